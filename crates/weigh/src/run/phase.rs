//! `weigh phase NAME -- CMD`: run a command as a phase of the run around it.
//!
//! The phase reports exactly what its command used, from `wait4`. Outside a run the command simply
//! runs.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use super::Error;
use crate::host::child::{self, Inherited, Original, PreExecUsage, Replacement};
use crate::host::clock::{HostClock, Offsets};
use crate::host::perf::TaskClock;
use crate::host::signals::{self, Signals};
use crate::host::{Host, ProcPath, environment, out_of_memory, own, wait};
use crate::model::{End, Io, Usage};
use crate::parse;
use crate::record::events::{EventData, HelperUsage, PhaseCommandUsage};
use crate::record::inbox::{self, ControlMessage};
use crate::record::{self, Event};

/// The variable that holds the id of the enclosing phase.
const PHASE_VARIABLE: &str = "WEIGH_PHASE";

/// Begins a phase that lasts until the next one begins, or until [`end_step`].
///
/// Inside the command of a phase it ends with that command at the latest, and does not end the
/// steps of others.
pub fn step(recording: &Path, name: &str, inherited: Inherited) -> Result<(), record::Error> {
    let event = Event::PhaseStart { id: String::new(), name: name.to_owned(), parent: around() };
    send_only(recording, event, inherited)
}

/// Ends the phase that [`step`] began.
pub fn end_step(recording: &Path, inherited: Inherited) -> Result<(), record::Error> {
    let event = Event::PhaseEnd { id: String::new(), usage: None, end: None, account: None };
    send_only(recording, event, inherited)
}

/// Adds a mark to the recording.
pub fn mark(recording: &Path, text: &str, inherited: Inherited) -> Result<(), record::Error> {
    send_only(recording, Event::Mark { text: text.to_owned() }, inherited)
}

/// Sends a phase's start or end, or a mark, of a program that is itself part of the run: what it
/// uses is the run's, whatever part of it was used to send this.
pub fn send_of_program(
    recording: &Path,
    event: Event,
    data: Option<EventData>,
) -> Result<(), record::Error> {
    let event = match event {
        Event::PhaseStart { id, name, parent } => {
            Event::PhaseStart { id, name, parent: parent.or_else(around) }
        }
        event => event,
    };
    let message = ControlMessage {
        nanoseconds: Offsets::own().on_machine(HostClock::Monotonic.now().as_nanos() as u64),
        within: around(),
        data,
        ..ControlMessage::new(Duration::ZERO, event)
    };
    inbox::send_message(recording, &message)
}

/// The phase whose command this process belongs to.
fn around() -> Option<String> {
    environment::variable(PHASE_VARIABLE).map(|id| id.to_string_lossy().into_owned())
}

/// Sends the only message of this process.
fn send_only(recording: &Path, event: Event, inherited: Inherited) -> Result<(), record::Error> {
    send(recording, HostClock::Monotonic.now(), event, Some(NotOwn::before(inherited.used)))
}

/// What the kernel counts for this process and is not its own.
#[derive(Default)]
struct NotOwn {
    /// What it used before exec of its program.
    before: Usage,
    /// I/O of the children it has reaped.
    reaped_io: Io,
    /// CPU time of its child before exec, which the kernel counts for the child.
    child_cpu: Duration,
}

impl NotOwn {
    fn before(before: Usage) -> NotOwn {
        NotOwn { before, ..NotOwn::default() }
    }
}

/// What this process has used itself until now.
fn used(not_own: &NotOwn) -> HelperUsage {
    /// No fork, exec and loader take longer; a shell that has worked and then execs `weigh phase`
    /// may have.
    const STARTUP: f64 = 0.01;
    let before = not_own.before;
    let is_startup = before.cpu_seconds() < STARTUP;
    // It cannot be split between the two programs.
    let io = own::io_with_reaped().ok().filter(|_| is_startup).unwrap_or_default();
    let mut usage = Usage::own().less(&before);
    usage.system_seconds += not_own.child_cpu.as_secs_f64();
    let startup = Some(before).filter(|_| is_startup).unwrap_or_default();
    HelperUsage { usage, startup, io: io.less(&not_own.reaped_io) }
}

/// Sends a message; the last one of a process has its own usage.
fn send(
    recording: &Path,
    at: Duration,
    event: Event,
    last: Option<NotOwn>,
) -> Result<(), record::Error> {
    let mut message = ControlMessage {
        nanoseconds: Offsets::own().on_machine(at.as_nanos() as u64),
        within: around(),
        sender_rss_bytes: Some(child::largest_rss()),
        ..ControlMessage::new(at, event)
    };
    // After everything else that reads a file.
    message.helper = last.as_ref().map(used);
    inbox::send_message(recording, &message)
}

/// How a phase's command ended, and why the phase is not recorded, if it is not.
#[derive(Debug)]
pub struct PhaseOutcome {
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
) -> Result<PhaseOutcome, Error> {
    let Some(program) = command.first() else {
        return Err(child::Error::NotFound { program: String::new() }.into());
    };
    let path = child::find(program)?;
    let original = Original::now(inherited);
    out_of_memory::replace_by(Replacement::of(command, original)?);
    original.limits.raise();
    let outcome = observed(recording, name, &path, command, &original);
    if outcome.is_err() {
        out_of_memory::forget();
        original.signals.restore();
        original.limits.restore();
    }
    outcome
}

fn observed(
    recording: Option<&Path>,
    name: &str,
    path: &Path,
    command: &[OsString],
    original: &Original,
) -> Result<PhaseOutcome, Error> {
    let host = Host::at(Path::new("/")).ok();
    // A process that was a shell before may have reaped children already.
    let io_before = host.as_ref().and_then(|host| own::reaped_io(host).ok());
    let mut signals =
        Signals::take().map_err(|source| Error::System { what: "signals", source })?;
    let now = HostClock::Monotonic.now();
    let id = format!("{}-{}", std::process::id(), now.as_nanos());
    let variables = [(PHASE_VARIABLE, OsStr::new(&id))];
    let variables = if recording.is_some() { &variables[..] } else { &[] };
    let waiting = child::fork(path, command, variables, original)?;
    let pid = waiting.pid;
    out_of_memory::wait_for(&waiting, &signals);
    // It may be refused; then children that are not reaped are not counted.
    let mut clock = recording.and_then(|_| TaskClock::on_exec(pid).ok());
    let mut not_recorded = None;
    let mut report = |at, event, last| {
        if let Some(recording) = recording
            && let Err(error) = send(recording, at, event, last)
        {
            not_recorded.get_or_insert(error);
        }
    };
    // Before exec: no message from inside the phase can precede the phase itself.
    let start = Event::PhaseStart { id: id.clone(), name: name.to_owned(), parent: around() };
    report(HostClock::Monotonic.now(), start, None);
    let pause = match waiting.exec() {
        Ok(pause) => pause,
        Err(error) => {
            let at = HostClock::Monotonic.now();
            let end = Some(End::Code(127));
            let last = Some(NotOwn::before(original.inherited.used));
            report(at, Event::PhaseEnd { id, usage: None, end, account: None }, last);
            return Err(error.into());
        }
    };
    // After exec: what the process was before is not the command's.
    if let Some(started) = host.as_ref().and_then(|host| started(host, pid)) {
        let event = Event::PhaseCommand { id: id.clone(), pid, started };
        report(HostClock::Monotonic.now(), event, None);
    }
    let (end, mut usage) = loop {
        // A signal arrives; an error only means another poll.
        let _ = poll(&mut [PollFd::new(&signals, PollFlags::IN)], None);
        while let Some(signal) = signals.arrived() {
            if signal.number != libc::SIGCHLD && signal.is_for(pid) {
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
    out_of_memory::end_with(end);
    let at = HostClock::Monotonic.now();
    usage.subtract_pre_exec(pause.cpu.as_secs_f64());
    let reaped = host.as_ref().and_then(|host| own::reaped_io(host).ok());
    let io = reaped.zip(io_before).map(|(io, before)| io.less(&before).less(&PreExecUsage::IO));
    let last = NotOwn {
        before: original.inherited.used,
        reaped_io: reaped.unwrap_or_default().less(&PreExecUsage::IO),
        child_cpu: pause.cpu,
    };
    let account = PhaseCommandUsage {
        task_clock_seconds: clock.as_mut().and_then(|c| c.read().ok()).map(|t| t.as_secs_f64()),
        io,
        rss_before_exec_bytes: pause.largest_rss,
    };
    let (usage, account) = (Some(usage), Some(account));
    report(at, Event::PhaseEnd { id, usage, end: Some(end), account }, Some(last));
    Ok(PhaseOutcome { end, not_recorded })
}

/// Clock ticks from boot to the start of a process, by the machine's clock: with its pid, its
/// identity.
fn started(host: &Host, pid: u32) -> Option<u64> {
    let mut buffer = Vec::new();
    let bytes = host.proc.read(ProcPath::new(pid, "stat").as_c_str(), &mut buffer).ok()?;
    let started = parse::stat::parse(bytes).ok()?.started;
    Some(Offsets::own().start_on_machine(started, host.ticks_per_second))
}
