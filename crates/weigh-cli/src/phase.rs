//! `weigh phase` and `weigh mark`.
//!
//! A script that uses them also works without weigh around it: then there is
//! nothing to tell, and only a warning says so.

use std::path::PathBuf;

use weigh::host::child::Inherited;
use weigh::host::environment;
use weigh::{record, run};

use crate::args::PhaseArgs;
use crate::failure::Failure;
use crate::print;
use crate::run::limited;

const OUTSIDE: &str = "nothing is recorded: this is not inside weigh run";

/// Begins or ends a phase, or runs a command as one.
pub(crate) fn phase(args: PhaseArgs, inherited: Inherited) -> Result<u8, Failure> {
    let recording = environment::running_recording();
    let name = args.name.unwrap_or_default();
    if args.command.is_empty() {
        let told = |recording: PathBuf| match args.end {
            true => run::phase::end_step(&recording, inherited),
            false => run::phase::step(&recording, &name, inherited),
        };
        return Ok(tell(recording, told));
    }
    let outcome = run::phase::run(recording.as_deref(), &name, &args.command, inherited)
        .map_err(|error| limited(error, &args.command, inherited))?;
    match outcome.not_recorded {
        Some(error) => print::warning(&format!("the phase is not recorded: {error}")),
        None if recording.is_none() => print::warning(OUTSIDE),
        None => {}
    }
    Ok(outcome.end.exit_code() as u8)
}

/// Marks this moment.
pub(crate) fn mark(text: &str, inherited: Inherited) -> Result<u8, Failure> {
    let told = |recording: PathBuf| run::phase::mark(&recording, text, inherited);
    Ok(tell(environment::running_recording(), told))
}

fn tell(recording: Option<PathBuf>, say: impl FnOnce(PathBuf) -> Result<(), record::Error>) -> u8 {
    match recording.map(say) {
        Some(Ok(())) => {}
        Some(Err(error)) => print::warning(&format!("nothing is recorded: {error}")),
        None => print::warning(OUTSIDE),
    }
    0
}
