//! `weigh.toml`: settings that need not be typed every time.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use weigh::host::environment;
use weigh::quantity::{parse_duration, parse_ratio};
use weigh::settings::{Destination, Settings};

use crate::args::{Measuring, OwnGroup, Units};
use crate::failure::{Failure, USAGE};

/// What a file may say. Quantities are text, as people write them.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct File {
    interval: Option<String>,
    record: Option<bool>,
    collect: Option<Vec<String>>,
    skip: Option<Vec<String>>,
    budget: Option<String>,
    expected_cores: Option<f64>,
    wait_all: Option<bool>,
    per_cpu: Option<bool>,
    gpus: Option<Vec<String>>,
    cgroup: Option<OwnGroup>,
    command_lines: Option<bool>,
    env: Option<bool>,
    units: Option<Units>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

/// The nearest file: here, or the user's.
pub fn read() -> Result<File, Failure> {
    let user = environment::variable("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(environment::variable("HOME")?).join(".config")))
        .map(|config| config.join("weigh/weigh.toml"));
    if let Some(file) = read_one(Path::new("weigh.toml"))? {
        return Ok(file);
    }
    let file = user.map_or(Ok(None), |path| read_one(&path))?;
    Ok(file.unwrap_or_default())
}

/// The units of sizes: what the command line says, else the file.
pub fn units(said: Option<Units>) -> Result<weigh::quantity::Units, Failure> {
    Ok(match said {
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
    // A pipe or a device of that name is not meant, and would keep us waiting.
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Ok(None);
    }
    match std::fs::read_to_string(path) {
        Ok(text) => match toml::from_str(&text) {
            Ok(file) => Ok(Some(file)),
            Err(error) => Err(failed(in_its_line(&text, &error))),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        // A directory one may not look into (HOME under su, a working directory) has no
        // settings for us; a file that is there and may not be read is another matter.
        Err(_) if std::fs::symlink_metadata(path).is_err() => Ok(None),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// What is wrong, with the line it is in.
fn in_its_line(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().map_or("", |span| text.get(..span.start).unwrap_or_default());
    let number = before.matches('\n').count();
    let line = text.lines().nth(number).unwrap_or_default().trim();
    format!("line {}, `{line}`: {}", number + 1, error.message())
}

impl File {
    /// The units of sizes, when the command line does not say.
    pub fn units(&self) -> Units {
        self.units.unwrap_or_default()
    }

    /// The settings of the file, overruled by the command line.
    pub fn settings(self, args: &Measuring, wait_all: bool) -> Result<Settings, Failure> {
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
            gpus: args.gpus.clone().or(self.gpus),
            visible_gpus: default.visible_gpus,
            own_cgroup: self.cgroup.map_or(default.own_cgroup, Into::into),
            cgroup: default.cgroup,
            command_lines: !args.no_cmdline && self.command_lines.unwrap_or(true),
            surroundings: args.env || self.env.unwrap_or(false),
            host_root: args.host_root.clone().unwrap_or(default.host_root),
        })
    }
}
