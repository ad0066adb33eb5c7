//! `gpu-tracker sub-track combine | analyze | compare`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use weigh::compat::gpu_tracker::Error;
use weigh::compat::gpu_tracker::sub_track::{self, Sessions};
use weigh::compat::python;

use super::args::{OutputArgs, SubTrack};
use super::output::Output;
use super::tconfig;
use crate::failure::{Failure, USAGE};
use crate::print;

const HINT: &str = "see gpu-tracker sub-track --help";

/// Runs one of the three verbs.
pub(super) fn dispatch(verb: SubTrack) -> Result<u8, Failure> {
    match verb {
        SubTrack::Combine { stf, paths } => {
            let combined = sub_track::combine(&paths, &stf);
            combined.map_err(|error| failed("cannot combine these files", &error))?;
        }
        SubTrack::Analyze { tf, stf, output } => analyze(&tf, stf.as_deref(), &output)?,
        SubTrack::Compare { output, cconfig, map, stat } => {
            compare(&output, cconfig.as_deref(), &map, stat)?;
        }
    }
    Ok(0)
}

fn failed(what: &str, error: &Error) -> Failure {
    Failure::new(what, error, HINT)
}

fn analyze(tf: &Path, stf: Option<&Path>, output: &OutputArgs) -> Result<(), Failure> {
    let what = "cannot analyze this session";
    let stf = match stf {
        Some(path) => path,
        None if sub_track::is_recording(tf) => tf,
        None => {
            let cause = format!("{} has no code blocks: --stf is missing", tf.display());
            return Err(Failure::new(what, cause, HINT).code(USAGE));
        }
    };
    let output = Output::open(output)?;
    match sub_track::analyze_files(tf, stf) {
        Ok(results) => write(output, &results.to_value(), || results.to_text()),
        Err(error) => {
            output.discard();
            Err(failed(what, &error))
        }
    }
}

fn compare(
    output: &OutputArgs,
    config: Option<&Path>,
    map: &[OsString],
    stat: Option<String>,
) -> Result<(), Failure> {
    let what = "cannot compare these sessions";
    let wrong = |cause: String| Failure::new(what, cause, HINT).code(USAGE);
    let (mut paths, configured) = match config {
        Some(path) => read_config(path).map_err(wrong)?,
        None => (Vec::new(), None),
    };
    for option in map {
        let (name, path) = named(option).map_err(wrong)?;
        // A later one of the same name replaces the earlier.
        match paths.iter_mut().find(|(known, _)| *known == name) {
            Some(entry) => entry.1 = path,
            None => paths.push((name, path)),
        }
    }
    if paths.is_empty() {
        return Err(wrong(
            "A mapping of tracking session name to file path must be provided either through the \
             -m option or a config file."
                .to_owned(),
        ));
    }
    let statistic = stat.or(configured).unwrap_or_else(|| "mean".to_owned());
    let output = Output::open(output)?;
    let sessions = Sessions::read(paths.iter().map(|(name, path)| (name.clone(), path.as_path())));
    let compared = sessions.and_then(|sessions| {
        let compared = sessions.compare(&statistic)?;
        Ok((sessions.warnings, compared))
    });
    match compared {
        Ok((warnings, results)) => {
            warnings.iter().for_each(|warning| print::warning(warning));
            write(output, &results.to_value(), || results.to_text())
        }
        Err(error) => {
            output.discard();
            Err(failed(what, &error))
        }
    }
}

fn write(
    output: Output,
    value: &python::PythonValue,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    let written = output.write(value, text);
    written.map_err(|why| Failure::new("cannot write the result", why, HINT))
}

/// `name=path`; the path may contain more `=`.
fn named(option: &OsStr) -> Result<(String, PathBuf), String> {
    let bytes = option.as_bytes();
    let place = bytes.iter().position(|byte| *byte == b'=').filter(|place| *place > 0);
    let Some(place) = place else {
        return Err(format!("\"{}\" is not like name=path", option.to_string_lossy()));
    };
    let name = String::from_utf8_lossy(&bytes[..place]).into_owned();
    Ok((name, PathBuf::from(OsStr::from_bytes(&bytes[place + 1..]))))
}

/// Sessions by name, and the statistic to compare.
type Config = (Vec<(String, PathBuf)>, Option<String>);

fn read_config(path: &Path) -> Result<Config, String> {
    let config = tconfig::read(path).map_err(|failure| failure.cause)?;
    let wrong = |key: &str| format!("{}: {key} is malformed", path.display());
    let mut paths = Vec::new();
    let mut statistic = None;
    for (key, value) in &config {
        match (key.as_str(), value) {
            ("file_path_map", Value::Object(map)) => {
                for (name, path) in map {
                    let path = path.as_str().ok_or_else(|| wrong("file_path_map"))?;
                    paths.push((name.clone(), PathBuf::from(path)));
                }
            }
            ("statistic", Value::String(name)) => statistic = Some(name.clone()),
            ("statistic", Value::Null) => {}
            ("file_path_map" | "statistic", _) => return Err(wrong(key)),
            (other, _) => {
                return Err(format!(
                    "{}: unknown key \"{other}\"; known are file_path_map and statistic",
                    path.display()
                ));
            }
        }
    }
    Ok((paths, statistic))
}
