//! `weigh run`.

use std::ffi::OsString;

use weigh::model::End;
use weigh::program::Inherited;
use weigh::run::{Caller, Error, Outcome};

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::measurement::Measurement;
use crate::print;

/// Runs the command, prints the summary, and returns its exit code.
pub(crate) fn run(args: RunArgs, inherited: Inherited) -> Result<u8, Failure> {
    let mut measurement = Measurement::prepare(&args.measuring, args.wait_all)?;
    if let Some(group) = args.cgroup {
        measurement.settings.own_cgroup = group.into();
    }
    let caller = Caller { inherited, keeps_stderr: true };
    let observer = measurement.observer();
    let outcome = weigh::run::run(&args.command, &measurement.settings, caller, observer);
    let Outcome { end, summary, recording, warnings } = outcome.map_err(|error| {
        measurement.discard();
        exec_if_limited(error, &args.command, inherited)
    })?;
    measurement.finish(summary, recording.as_deref(), warnings);
    Ok(end.exit.unwrap_or(End::Code(1)).exit_code() as u8)
}

/// Handles a run that did not begin: where a limit is the cause, replaces weigh by the command,
/// unmeasured. Otherwise, or when exec fails too, returns the error.
pub(crate) fn exec_if_limited(error: Error, command: &[OsString], inherited: Inherited) -> Error {
    if !error.is_limit() {
        return error;
    }
    print::warning(&format!("the command runs, but nothing is measured: {error}"));
    weigh::run::without_measuring(command, inherited)
}
