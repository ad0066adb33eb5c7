//! `--tconfig`: the arguments of gpu-tracker's `Tracker` class in a JSON file.
//!
//! Options of the command line override it. A switch that is on in the file stays on: the command
//! line cannot turn it off.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::args::TrackArgs;
use super::usage;
use crate::failure::Failure;

/// Arguments that weigh ignores: it has no process to join, and the backup is a recording.
const WITHOUT_EFFECT: [(&str, &str); 3] = [
    ("resource_usage_file", "a string"),
    ("n_join_attempts", "a number"),
    ("join_timeout", "a number"),
];

/// The options of the command line, with those of the file where it has none.
pub(super) fn merge(mut args: TrackArgs) -> Result<TrackArgs, Failure> {
    let Some(path) = args.tconfig.take() else { return Ok(args) };
    let wrong = |why: String| usage(format!("{}: {why}", path.display()));
    for (key, value) in read(&path)? {
        let given = Given { key: &key, value: &value };
        match key.as_str() {
            "sleep_time" => or(&mut args.st, given.number()),
            "ram_unit" => or(&mut args.ru, given.text()),
            "gpu_ram_unit" => or(&mut args.gru, given.text()),
            "time_unit" => or(&mut args.tu, given.text()),
            "n_expected_cores" => or(&mut args.nec, given.number()),
            "gpu_uuids" => or(&mut args.guuids, given.list()),
            "gpu_brand" => or(&mut args.gb, given.text()),
            "tracking_file" => or(&mut args.tf, given.text().map(|t| t.map(PathBuf::from))),
            "disable_logs" => given.switch().map(|on| args.disable_logs |= on),
            "overwrite" => given.switch().map(|on| args.overwrite |= on),
            "process_id" => Err("process_id is that of the command".to_owned()),
            other => match WITHOUT_EFFECT.iter().find(|(name, _)| *name == other) {
                Some((_, "a string")) => given.text().map(drop),
                Some(_) => given.number().map(drop),
                None => {
                    Err(format!("Tracker.__init__() got an unexpected keyword argument '{other}'"))
                }
            },
        }
        .map_err(wrong)?;
    }
    Ok(args)
}

/// A JSON file that holds one object.
#[expect(clippy::disallowed_methods, reason = "a file the user named")]
pub(super) fn read(path: &Path) -> Result<Map<String, Value>, Failure> {
    let wrong = |why: &dyn std::fmt::Display| usage(format!("{}: {why}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| wrong(&error))?;
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(wrong(&"not a JSON object")),
        Err(error) => Err(wrong(&error)),
    }
}

fn or<T>(option: &mut Option<T>, given: Result<Option<T>, String>) -> Result<(), String> {
    let given = given?;
    *option = option.take().or(given);
    Ok(())
}

/// An entry of the file. Null is the same as missing.
struct Given<'a> {
    key: &'a str,
    value: &'a Value,
}

impl Given<'_> {
    fn wrong<T>(&self, wanted: &str) -> Result<T, String> {
        Err(format!("{} is {}, and should be {wanted}", self.key, self.value))
    }

    fn text(&self) -> Result<Option<String>, String> {
        match self.value {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text.clone())),
            _ => self.wrong("a string"),
        }
    }

    /// A number, or text that should be one.
    fn number(&self) -> Result<Option<String>, String> {
        match self.value {
            Value::Null => Ok(None),
            Value::Number(number) => Ok(Some(number.to_string())),
            Value::String(text) => Ok(Some(text.clone())),
            _ => self.wrong("a number"),
        }
    }

    fn list(&self) -> Result<Option<String>, String> {
        const EMPTY: &str = "gpu_uuids is not None but the set is empty. Please provide a set of \
                             at least one GPU UUID.";
        match self.value {
            Value::Array(items) if items.is_empty() => Err(EMPTY.to_owned()),
            Value::Array(items) => {
                match items.iter().map(Value::as_str).collect::<Option<Vec<_>>>() {
                    Some(names) => Ok(Some(names.join(","))),
                    None => self.wrong("a list of strings"),
                }
            }
            _ => self.text(),
        }
    }

    fn switch(&self) -> Result<bool, String> {
        match self.value {
            Value::Null => Ok(false),
            Value::Bool(on) => Ok(*on),
            _ => self.wrong("true or false"),
        }
    }
}
