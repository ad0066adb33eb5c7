//! `weigh run`.

use weigh::host::child::Inherited;
use weigh::run::{Caller, Outcome};

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::measured::Measured;

/// Runs the command, says what it used, and ends as it did.
pub fn run(args: RunArgs, inherited: Inherited) -> Result<u8, Failure> {
    let mut measured = Measured::prepare(&args.measuring, args.wait_all)?;
    if let Some(group) = args.cgroup {
        measured.settings.own_cgroup = group.into();
    }
    let caller = Caller { inherited, keeps_stderr: true };
    let outcome = weigh::run::run(&args.command, &measured.settings, caller);
    let Outcome { end, summary, recording, warnings } =
        outcome.inspect_err(|_| measured.forget())?;
    measured.tell(summary, recording.as_deref(), warnings)?;
    Ok(end.exit_code() as u8)
}
