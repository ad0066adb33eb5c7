//! `weigh.toml`: default settings.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use weigh::model::settings::{Destination, Settings};
use weigh::program::{unprivileged_user, variable};
use weigh::quantity::{parse_duration, parse_ratio};

use crate::args::{CgroupChoice, Measuring, Units};
use crate::failure::{Failure, USAGE};

/// The settings in a file. Quantities are text, as people write them.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct File {
    interval: Option<String>,
    record: Option<bool>,
    collect: Option<Vec<String>>,
    skip: Option<Vec<String>>,
    budget: Option<String>,
    expected_cores: Option<f64>,
    wait_all: Option<bool>,
    per_cpu: Option<bool>,
    perf: Option<Vec<String>>,
    events: Option<Vec<String>>,
    gpus: Option<Vec<String>>,
    cgroup: Option<CgroupChoice>,
    command_lines: Option<bool>,
    #[serde(alias = "env")]
    limits: Option<bool>,
    units: Option<Units>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

/// The nearest file: here, or the user's.
pub(crate) fn read() -> Result<File, Failure> {
    let user = variable("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(variable("HOME")?).join(".config")))
        .map(|config| config.join("weigh/weigh.toml"));
    if let Some(file) = read_one(Path::new("weigh.toml"))? {
        return Ok(file);
    }
    let file = user.map_or(Ok(None), |path| read_one(&path))?;
    Ok(file.unwrap_or_default())
}

/// The units of sizes: of the command line, else of the file.
pub(crate) fn units(given: Option<Units>) -> Result<weigh::quantity::Units, Failure> {
    Ok(match given {
        Some(units) => units,
        None => read()?.units(),
    }
    .into())
}

#[expect(clippy::disallowed_methods, reason = "the user's own file, not the machine's")]
fn read_one(path: &Path) -> Result<Option<File>, Failure> {
    let failed = |cause: String| {
        let what = format!("cannot read {}", path.display());
        Failure::new(what, cause, "see the settings: weigh run --help").code(USAGE)
    };
    // A pipe or a device of that name is not a settings file, and reading it could block.
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Ok(None);
    }
    if std::fs::symlink_metadata(path).is_ok_and(|link| leads_elsewhere(&link, path)) {
        return Err(failed(
            "it is another user's link to a file that this user does not own".to_owned(),
        ));
    }
    match read_short(path) {
        Ok(text) if text.len() > LONGEST => {
            Err(failed(format!("it is longer than {LONGEST} bytes")))
        }
        Ok(text) => File::of(&text).map(Some).map_err(failed),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        // A directory that may not be searched (HOME under su, a working directory) has no
        // settings; a file that exists and may not be read is an error.
        Err(_) if std::fs::symlink_metadata(path).is_err() => Ok(None),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// A longer file is not a settings file.
const LONGEST: usize = 1 << 20;

#[expect(clippy::disallowed_methods, reason = "the user's own file, not the machine's")]
fn read_short(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(LONGEST as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// Whether a link of another user leads to a file that this user does not own: in a directory
/// that others may write to, `sudo weigh` would read any file for them.
#[expect(clippy::disallowed_methods, reason = "the user's own file, not the machine's")]
fn leads_elsewhere(link: &Metadata, path: &Path) -> bool {
    let is_trusted = link.uid() == 0 || link.uid() == unprivileged_user().unwrap_or(0);
    let leads_away = |file: Metadata| file.uid() != link.uid();
    link.is_symlink() && !is_trusted && std::fs::metadata(path).is_ok_and(leads_away)
}

/// What is wrong, with the line number and the setting's name. No other text of the file: it may
/// be the wrong file, and errors end up in logs.
fn with_line_number(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().map_or("", |span| text.get(..span.start).unwrap_or_default());
    let number = before.matches('\n').count();
    let line = text.lines().nth(number).unwrap_or_default();
    let is_name = |name: &&str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        !name.is_empty() && name.bytes().all(is_letter)
    };
    let name = line.split_once('=').map(|(name, _)| name.trim()).filter(is_name);
    let name = name.map_or_else(String::new, |name| format!(", `{name}`"));
    // Text of the file is in quotes.
    let message: Vec<&str> = error.message().split('"').step_by(2).collect();
    format!("line {}{name}: {}", number + 1, message.join("…"))
}

impl File {
    /// Parses settings, or returns what is wrong and in which line.
    pub(crate) fn of(text: &str) -> Result<File, String> {
        toml::from_str(text).map_err(|error| with_line_number(text, &error))
    }

    /// The units of sizes, where the command line has none.
    pub(crate) fn units(&self) -> Units {
        self.units.unwrap_or_default()
    }

    /// The settings of the file, overridden by the command line.
    pub(crate) fn settings(self, args: &Measuring, wait_all: bool) -> Result<Settings, Failure> {
        let wrong = |error: weigh::quantity::BadQuantity| {
            Failure::new("cannot use weigh.toml", error, "see the settings: weigh run --help")
                .code(USAGE)
        };
        let default = Settings::default();
        let interval =
            self.interval.map(|text| parse_duration(&text)).transpose().map_err(wrong)?;
        let budget = self.budget.map(|text| parse_ratio(&text)).transpose().map_err(wrong)?;
        let destination = match &args.output {
            Some(directory) => Destination::Directory(directory.clone()),
            None if args.no_record || self.record == Some(false) => Destination::Nowhere,
            None => Destination::Here,
        };
        let mut labels = self.labels;
        labels.extend(args.labels.iter().cloned());
        Ok(Settings {
            interval: args.interval.or(interval).unwrap_or(default.interval),
            destination,
            name: args.name.clone().filter(|name| !name.trim().is_empty()),
            labels,
            collect: args.collect.clone().or(self.collect),
            skip: args.skip.clone().or(self.skip).unwrap_or_default(),
            budget: args.budget.or(budget).unwrap_or(default.budget),
            expected_cores: args.expected_cores.or(self.expected_cores),
            wait_all: wait_all || self.wait_all.unwrap_or(false),
            per_cpu: args.per_cpu || self.per_cpu.unwrap_or(false),
            perf: args.perf.clone().or(self.perf),
            events: match args.events.is_empty() {
                true => self.events.unwrap_or_default(),
                false => args.events.clone(),
            },
            gpus: args.gpus.clone().or(self.gpus),
            visible_gpus: default.visible_gpus,
            subreaper: default.subreaper,
            own_cgroup: self.cgroup.map_or(default.own_cgroup, Into::into),
            cgroup: default.cgroup,
            command_lines: !args.no_cmdline && self.command_lines.unwrap_or(true),
            surroundings: args.limits || self.limits.unwrap_or(false),
            host_root: args.host_root.clone().unwrap_or(default.host_root),
        })
    }
}
