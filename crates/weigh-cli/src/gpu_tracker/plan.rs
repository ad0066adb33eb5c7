//! What to track and how, checked before the command is started.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use weigh::compat::gpu_tracker::units::{RamUnit, TimeUnit};
use weigh::compat::gpu_tracker::{Error, GpuTrackerOptions, tracking};
use weigh::compat::python::repr;
use weigh::model::settings::Settings;
use weigh::program::check_command;
use weigh::run::CommandError;

use super::args::TrackArgs;
use super::{gpus, usage};
use crate::failure::{Failure, NOT_EXECUTABLE, NOT_FOUND};

/// What to track and how.
#[derive(Debug)]
pub(super) struct Plan {
    pub command: Vec<OsString>,
    pub interval: Duration,
    pub options: GpuTrackerOptions,
    pub quiet: bool,
    pub tracking_file: Option<PathBuf>,
    pub overwrite: bool,
    /// GPUs that are measured, when not all.
    pub gpus: Option<Vec<String>>,
}

impl Plan {
    /// Checks the options, with gpu-tracker's own messages.
    pub(super) fn of(args: &TrackArgs) -> Result<Plan, Failure> {
        let Some(command) = &args.execute else {
            return Err(usage("no command to track: --execute is missing"));
        };
        let command = split(command)?;
        let plan = Plan {
            interval: interval(args.st.as_deref())?,
            options: GpuTrackerOptions {
                ram_unit: or_default(args.ru.as_deref(), RamUnit::parse)?,
                gpu_ram_unit: or_default(args.gru.as_deref(), RamUnit::parse_gpu)?,
                time_unit: or_default(args.tu.as_deref(), TimeUnit::parse)?,
                expected_cores: args.nec.as_deref().map(cores).transpose()?,
                gpu_uuids: args
                    .guuids
                    .as_deref()
                    .map(|uuids| uuids.split(',').map(str::to_owned).collect()),
            },
            quiet: args.disable_logs,
            tracking_file: args.tf.clone(),
            overwrite: args.overwrite,
            gpus: None,
            command,
        };
        plan.check_tracking_file()?;
        plan.check_program()?;
        // Last, because it queries a driver.
        let gpus = gpus::check(args.guuids.as_deref(), args.gb.as_deref())?;
        Ok(Plan { gpus, ..plan })
    }

    fn check_tracking_file(&self) -> Result<(), Failure> {
        let Some(path) = &self.tracking_file else { return Ok(()) };
        tracking::format_of(path).map_err(usage)?;
        if path.is_dir() {
            return Err(usage(format!("{} is a directory", path.display())));
        }
        if path.exists() && !self.overwrite {
            return Err(usage(Error::Exists { path: path.clone() }));
        }
        Ok(())
    }

    fn check_program(&self) -> Result<(), Failure> {
        let program = self.command.first().map(OsString::as_os_str).unwrap_or_default();
        let shown = program.to_string_lossy();
        let Err(error) = check_command(program) else { return Ok(()) };
        let (cause, code) = match &error {
            CommandError::NotFound { .. } => (format!("Command not found: \"{shown}\""), NOT_FOUND),
            other => (
                format!(
                    "The following error occurred when starting the command \"{shown}\": {other}"
                ),
                NOT_EXECUTABLE,
            ),
        };
        let hint = "check the name and PATH; a shell built-in needs a shell: -e \"sh -c '…'\"";
        Err(Failure::new(format!("cannot start {shown}"), cause, hint).code(code))
    }

    /// The settings of the measurement.
    pub(super) fn settings(&self) -> Settings {
        Settings {
            interval: self.interval,
            expected_cores: self.options.expected_cores,
            gpus: self.gpus.clone(),
            ..Settings::default()
        }
    }
}

/// Splits a command into arguments as a shell does.
fn split(command: &OsStr) -> Result<Vec<OsString>, Failure> {
    let Some(arguments) = shlex::bytes::split(command.as_bytes()) else {
        return Err(usage(format!("No closing quotation in {}", command.to_string_lossy())));
    };
    if arguments.is_empty() {
        return Err(usage("Empty command provided."));
    }
    Ok(arguments.into_iter().map(OsString::from_vec).collect())
}

fn interval(seconds: Option<&str>) -> Result<Duration, Failure> {
    let Some(text) = seconds else { return Ok(Duration::from_secs(1)) };
    let seconds: f64 = text
        .trim()
        .parse()
        .map_err(|_| usage(format!("could not convert string to float: '{text}'")))?;
    if seconds.is_nan() || seconds < 0.1 {
        let seconds = repr(seconds);
        return Err(usage(format!(
            "Sleep time of {seconds} is invalid. Must be at least 0.1 seconds."
        )));
    }
    let interval = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    let settings = Settings { interval, ..Settings::default() };
    settings.check().map_err(|error| usage(format!("Sleep time is invalid: {error}")))?;
    Ok(interval)
}

fn cores(text: &str) -> Result<f64, Failure> {
    let number: i64 = text
        .trim()
        .parse()
        .map_err(|_| usage(format!("invalid literal for int() with base 10: '{text}'")))?;
    if number < 1 {
        return Err(usage(format!("{number} is not a number of cores: at least 1 is expected")));
    }
    Ok(number as f64)
}

fn or_default<T: Default, E: ToString>(
    name: Option<&str>,
    parse: fn(&str) -> Result<T, E>,
) -> Result<T, Failure> {
    name.map_or_else(|| Ok(T::default()), |name| parse(name).map_err(usage))
}
