//! `weigh phase NAME -- CMD`: run a command as a phase of the run around it.
//!
//! The phase says what its command used, exactly, because `wait4` does. Without a
//! run around it the command simply runs.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use super::Error;
use crate::host::child::{self, Inherited, Pause};
use crate::host::clock::Clock;
use crate::host::perf::TaskClock;
use crate::host::signals::{self, Signals};
use crate::host::wait::{self, End};
use crate::host::{Host, ProcPath, environment, own};
use crate::parse;
use crate::record::events::Account;
use crate::record::inbox::{self, Word};
use crate::record::{self, Event};

/// The variable by which a phase inside a phase knows the one around it.
const PHASE_VARIABLE: &str = "WEIGH_PHASE";

/// Begins a phase that lasts until the next one begins, or until [`end_step`].
///
/// Inside the command of a phase it ends with that command at the latest, and does not
/// end the steps of others.
pub fn step(recording: &Path, name: &str) -> Result<(), record::Error> {
    let event = Event::PhaseStart { id: String::new(), name: name.to_owned(), parent: around() };
    say(recording, event)
}

/// Ends the phase that [`step`] began.
pub fn end_step(recording: &Path) -> Result<(), record::Error> {
    say(recording, Event::PhaseEnd { id: String::new(), usage: None, end: None, account: None })
}

/// Puts a mark into the recording.
pub fn mark(recording: &Path, text: &str) -> Result<(), record::Error> {
    say(recording, Event::Mark { text: text.to_owned() })
}

/// The phase whose command this process belongs to.
fn around() -> Option<String> {
    environment::variable(PHASE_VARIABLE).map(|id| id.to_string_lossy().into_owned())
}

fn say(recording: &Path, event: Event) -> Result<(), record::Error> {
    say_at(recording, Clock::Monotonic.now(), event)
}

fn say_at(recording: &Path, at: Duration, event: Event) -> Result<(), record::Error> {
    inbox::send_word(
        recording,
        &Word { nanoseconds: at.as_nanos() as u64, within: around(), event },
    )
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
    let host = Host::at(Path::new("/")).ok();
    // A process that was a shell before may have reaped children already.
    let io_before = host.as_ref().and_then(|host| own::reaped_io(host).ok());
    let (mut signals, before) =
        Signals::take().map_err(|source| Error::System { what: "signals", source })?;
    let now = Clock::Monotonic.now();
    let id = format!("{}-{}", std::process::id(), now.as_nanos());
    let variables = [(PHASE_VARIABLE, OsStr::new(&id))];
    let variables = if recording.is_some() { &variables[..] } else { &[] };
    let waiting = child::fork(command, variables, inherited, &before)?;
    let pid = waiting.pid;
    // It may be refused; then nobody hears of children that are not waited for.
    let mut clock = recording.and_then(|_| TaskClock::on_exec(pid).ok());
    let mut not_recorded = None;
    let mut tell = |at, event| {
        if let Some(recording) = recording
            && let Err(error) = say_at(recording, at, event)
        {
            not_recorded.get_or_insert(error);
        }
    };
    // Before exec: nothing inside the phase can be heard of before the phase itself.
    let start = Event::PhaseStart { id: id.clone(), name: name.to_owned(), parent: around() };
    tell(Clock::Monotonic.now(), start);
    let pause = match waiting.exec() {
        Ok(pause) => pause,
        Err(error) => {
            let at = Clock::Monotonic.now();
            let end = Some(End::Code(127));
            tell(at, Event::PhaseEnd { id, usage: None, end, account: None });
            return Err(error.into());
        }
    };
    // After exec: what the process was before is not the command's.
    if let Some(started) = host.as_ref().and_then(|host| started(host, pid)) {
        tell(Clock::Monotonic.now(), Event::PhaseCommand { id: id.clone(), pid, started });
    }
    let (end, mut usage) = loop {
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
    let at = Clock::Monotonic.now();
    usage.take_off(pause.cpu.as_secs_f64());
    let io = host.as_ref().zip(io_before).and_then(|(host, before)| {
        own::reaped_io(host).ok().map(|io| io.less(&before).less(&Pause::IO))
    });
    let account = Account {
        task_clock_seconds: clock.as_mut().and_then(|c| c.read().ok()).map(|t| t.as_secs_f64()),
        io,
        rss_before_exec_bytes: pause.largest_rss,
    };
    let (usage, account) = (Some(usage), Some(account));
    tell(at, Event::PhaseEnd { id, usage, end: Some(end), account });
    Ok(Outcome { end, not_recorded })
}

/// Clock ticks from boot to the start of a process: with its pid, who it is.
fn started(host: &Host, pid: u32) -> Option<u64> {
    let mut buffer = Vec::new();
    let bytes = host.proc.read(ProcPath::new(pid, "stat").as_c_str(), &mut buffer).ok()?;
    parse::stat::parse(bytes).ok().map(|stat| stat.started)
}
