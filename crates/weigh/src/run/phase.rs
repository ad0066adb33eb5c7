//! `weigh phase NAME -- CMD`: run a command as a phase of the run around it.
//!
//! The phase says what its command used, exactly, because `wait4` does. Without a
//! run around it the command simply runs.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};

use super::Error;
use crate::host::child::{self, Inherited};
use crate::host::clock::Clock;
use crate::host::environment;
use crate::host::signals::{self, Signals};
use crate::host::wait::{self, End};
use crate::record::{self, Event, inbox};

/// The variable by which a phase inside a phase knows the one around it.
const PHASE_VARIABLE: &str = "WEIGH_PHASE";

/// Begins a phase that lasts until the next one begins, or until [`end_step`].
pub fn step(recording: &Path, name: &str) -> Result<(), record::Error> {
    let event = Event::PhaseStart { id: String::new(), name: name.to_owned(), parent: None };
    inbox::send(recording, Clock::Monotonic.now(), event)
}

/// Ends the phase that [`step`] began.
pub fn end_step(recording: &Path) -> Result<(), record::Error> {
    let event = Event::PhaseEnd { id: String::new(), usage: None, end: None };
    inbox::send(recording, Clock::Monotonic.now(), event)
}

/// Puts a mark into the recording.
pub fn mark(recording: &Path, text: &str) -> Result<(), record::Error> {
    inbox::send(recording, Clock::Monotonic.now(), Event::Mark { text: text.to_owned() })
}

/// How a phase's command ended, and why the phase is not recorded, if it is not.
#[derive(Debug)]
pub struct Outcome {
    /// How the command ended.
    pub end: End,
    /// Why the recording does not have it.
    pub not_recorded: Option<record::Error>,
}

/// Runs a command as a phase.
pub fn run(
    recording: Option<&Path>,
    name: &str,
    command: &[OsString],
    inherited: Inherited,
) -> Result<Outcome, Error> {
    let Some(program) = command.first() else {
        return Err(child::Error::NotFound { program: String::new() }.into());
    };
    child::find(program)?;
    let (mut signals, before) =
        Signals::take().map_err(|source| Error::System { what: "signals", source })?;
    let now = Clock::Monotonic.now();
    let id = format!("{}-{}", std::process::id(), now.as_nanos());
    let variables = [(PHASE_VARIABLE, OsStr::new(&id))];
    let variables = if recording.is_some() { &variables[..] } else { &[] };
    let waiting = child::fork(command, variables, inherited, &before)?;
    let pid = waiting.pid;
    let mut not_recorded = None;
    let mut tell = |event| {
        if let Some(recording) = recording
            && let Err(error) = inbox::send(recording, Clock::Monotonic.now(), event)
        {
            not_recorded.get_or_insert(error);
        }
    };
    let parent = environment::variable(PHASE_VARIABLE).map(|id| id.to_string_lossy().into_owned());
    tell(Event::PhaseStart { id: id.clone(), name: name.to_owned(), parent });
    waiting.exec()?;
    let (end, usage) = loop {
        // A signal arrives, or an error only means another look.
        let _ = poll(&mut [PollFd::new(&signals, PollFlags::IN)], None);
        while let Some(signal) = signals.arrived() {
            if signal.sender.is_some_and(|sender| sender != pid) && signal.number != libc::SIGCHLD {
                signals::send(pid, signal.number);
            }
        }
        if let Some(ended) = wait::reap(pid) {
            break ended;
        }
        if let Some(signal) = wait::newly_stopped(pid)
            && signal == libc::SIGTSTP
        {
            signals::stop_self();
        }
    };
    tell(Event::PhaseEnd { id, usage: Some(usage), end: Some(end) });
    Ok(Outcome { end, not_recorded })
}
