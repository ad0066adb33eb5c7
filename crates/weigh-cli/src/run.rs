//! `weigh run`.

use std::ffi::OsString;

use weigh::host::child::Inherited;
use weigh::run::{Caller, Error, Outcome};

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::measured::Measured;
use crate::print;

/// Runs the command, says what it used, and ends as it did.
pub(crate) fn run(args: RunArgs, inherited: Inherited) -> Result<u8, Failure> {
    let mut measured = Measured::prepare(&args.measuring, args.wait_all)?;
    if let Some(group) = args.cgroup {
        measured.settings.own_cgroup = group.into();
    }
    let caller = Caller { inherited, keeps_stderr: true };
    let outcome = weigh::run::run(&args.command, &measured.settings, caller);
    let Outcome { end, summary, recording, warnings } = outcome.map_err(|error| {
        measured.forget();
        limited(error, &args.command, inherited)
    })?;
    measured.tell(summary, recording.as_deref(), warnings)?;
    Ok(end.exit_code() as u8)
}

/// What is left to do when a run did not begin: where a limit is why, the command runs without
/// weigh, in its place. Else, or when it cannot be executed either, says what went wrong.
pub(crate) fn limited(error: Error, command: &[OsString], inherited: Inherited) -> Error {
    if !error.is_limit() {
        return error;
    }
    print::warning(&format!("the command runs, but nothing is measured: {error}"));
    weigh::run::without_measuring(command, inherited)
}
