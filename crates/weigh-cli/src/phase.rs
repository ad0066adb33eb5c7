//! `weigh phase` and `weigh mark`.
//!
//! A script that uses them also works outside of a run: then there is only a warning.

use std::path::PathBuf;

use weigh::program::{Inherited, running_recording};
use weigh::{record, run};

use crate::args::PhaseArgs;
use crate::failure::Failure;
use crate::print;
use crate::run::exec_if_limited;

const OUTSIDE: &str = "nothing is recorded: this is not inside weigh run";

/// Begins or ends a phase, or runs a command as one.
pub(crate) fn phase(args: PhaseArgs, inherited: Inherited) -> Result<u8, Failure> {
    let recording = running_recording();
    let name = args.name.unwrap_or_default();
    if args.command.is_empty() {
        let message = |recording: PathBuf| match args.end {
            true => run::phase::end_step(&recording, inherited),
            false => run::phase::step(&recording, &name, inherited),
        };
        return Ok(send(recording, message));
    }
    let outcome = run::phase::run(recording.as_deref(), &name, &args.command, inherited)
        .map_err(|error| exec_if_limited(error, &args.command, inherited))?;
    match outcome.not_recorded {
        Some(error) => print::warning(&format!("the phase is not recorded: {error}")),
        None if recording.is_none() => print::warning(OUTSIDE),
        None => {}
    }
    Ok(outcome.end.exit_code() as u8)
}

/// Puts a mark into the recording.
pub(crate) fn mark(text: &str, inherited: Inherited) -> Result<u8, Failure> {
    let message = |recording: PathBuf| run::phase::mark(&recording, text, inherited);
    Ok(send(running_recording(), message))
}

/// Sends a control message to the recording; a failure is only a warning.
fn send(
    recording: Option<PathBuf>,
    message: impl FnOnce(PathBuf) -> Result<(), record::Error>,
) -> u8 {
    match recording.map(message) {
        Some(Ok(())) => {}
        Some(Err(error)) => print::warning(&format!("nothing is recorded: {error}")),
        None => print::warning(OUTSIDE),
    }
    0
}
