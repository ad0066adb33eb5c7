//! The command of a session: started from another program, and reaped by pid alone.
//!
//! Unlike `weigh run`, a session reaps nothing but its command: all other children are the
//! program's. Descendants that nobody reaps before the command exits are counted by the inherited
//! task clock, and by samples; with `Settings::subreaper` they are reaped, too (`super::orphans`).

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use super::orphans::Orphans;
use crate::catalog::{SourceId, groups};
use crate::collect::perf::PreparedCounters;
use crate::collect::processes::ProcessCollector;
use crate::collect::sockets::{SocketBaseline, Sockets};
use crate::collect::task_clock::RunClock;
use crate::collect::{Collectors, Selection};
use crate::host::child::{self, Inherited, Original, PreExecUsage};
use crate::host::hardware::surroundings::LimitsOf;
use crate::host::pidfd::PidFd;
use crate::host::{Host, clock, own, wait};
use crate::model::gpu::Visible;
use crate::model::settings::Settings;
use crate::model::{End, Facts, FaultSource, Io, ProcessId, Tick, Usage};
use crate::record::inbox::Inbox;
use crate::record::{Event, FinalCounters, Manifest, RunEnd, Writer, files, secrets};
use crate::run::attach::{AttachMonitor, session_descriptors};
use crate::run::control::Control;
use crate::run::requests::{RequestQueue, Requests};
use crate::run::sampling_loop::SamplingLoop;
use crate::run::{Error, check_gpus, counters, is_here, prepare, select, surroundings, variables};

/// A command that a session has started.
pub(in crate::run) struct SessionCommand {
    pub(super) id: ProcessId,
    /// When it called exec.
    executed: Duration,
    /// What its process used before exec.
    before_exec: PreExecUsage,
    /// How and when it ended, and what it used, once it is reaped.
    exit: Option<(End, Duration, Usage)>,
    io: Option<Io>,
    /// Where the program is a child subreaper.
    pub(super) orphans: Option<Orphans>,
}

impl SessionCommand {
    /// Completes the end of the run with what `wait4` reported; a command that still runs, or that
    /// the program has reaped itself, has no counts.
    pub(in crate::run) fn close(&self, end: &mut RunEnd, now: Duration, control: &Control) {
        let since_exec = |at: Duration| at.saturating_sub(self.executed).as_secs_f64();
        end.task_clock_began_seconds = end.task_clock_seconds.map(|_| 0.0);
        // Without a subreaper, orphans are reparented to another process, which reaps them.
        end.may_miss_processes |= self.orphans.as_ref().is_none_or(Orphans::may_be_lost);
        let Some((exit, at, mut reaped)) = self.exit else {
            end.duration_seconds = since_exec(now);
            return;
        };
        end.why = None;
        end.exit = Some(exit);
        end.duration_seconds = since_exec(at);
        end.measured_seconds =
            Some(since_exec(if end.still_running.is_empty() { at } else { now }));
        let mut io = self.io;
        if let Some(orphans) = &self.orphans {
            orphans.add_to(&mut reaped, &mut io);
        }
        end.final_counters = Some(Box::new(FinalCounters {
            reaped,
            io,
            rss_before_exec_bytes: self.before_exec.largest_rss.max(control.largest_helper),
            cpu_before_exec_seconds: self.before_exec.cpu.as_secs_f64(),
            helpers: control.helpers,
        }));
    }
}

/// Starts a command and prepares its monitor. Nothing has been started when it fails.
pub(super) fn begin(
    command: &[OsString],
    settings: &Settings,
    original: &Original,
    queue: RequestQueue,
    warnings: &mut Vec<String>,
) -> Result<(AttachMonitor, Manifest), Error> {
    settings.check()?;
    let Some(program) = command.first() else {
        return Err(child::Error::NotFound { program: String::new() }.into());
    };
    let path = child::find(program)?;
    let host = Host::at(&settings.host_root)?;
    check_gpus(settings, &host)?;
    if !own::proc_is_our_pid_namespace(&host.proc) {
        return Err(Error::OtherNamespace);
    }
    let settings = &Settings { visible_gpus: Some(Visible::from_here()), ..settings.clone() };
    let shown = secrets::command(&command.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
    let mut manifest = Manifest::new(settings, &shown, Facts::of(&host), clock::wall());
    manifest.surroundings = surroundings(settings, &host, LimitsOf::Own);
    let Selection { sources, absent } = select(&host, settings, &mut manifest);
    let PreparedCounters { counters, faults: not_counted, .. } =
        counters(&host, settings, &sources, &mut manifest)?;
    let collects = |id| sources.iter().any(|source| source.id == id);
    let mut tick = Tick::new(&groups(sources.iter().copied()));
    let claim = prepare(settings, &manifest, warnings)?;
    let directory = claim.as_ref().map(|claim| (claim.directory.clone(), claim.made));
    let discard = |error: Error| {
        directory.iter().for_each(|(directory, made)| files::discard(directory, *made));
        error
    };
    let recording = directory.as_ref().map(|(directory, _)| directory.as_path());
    let added = variables(recording);
    let added: Vec<_> = added.iter().map(|(name, path)| (*name, path.as_os_str())).collect();
    let orphans = if settings.subreaper { Orphans::adopt() } else { Err(NO_SUBREAPER.to_owned()) };
    let mark = orphans.as_ref().ok().map(|orphans| orphans.mark);
    let original = &Original { mark, ..*original };
    let waiting =
        child::fork(&path, command, &added, original).map_err(|error| discard(error.into()))?;
    let pid = waiting.pid;
    // It exists until this process reaps it.
    let pidfd = PidFd::open(pid).map_err(|source| discard(Error::Process { pid, source }))?;
    let task_clock = collects(SourceId::TaskClock).then(|| RunClock::on_exec(pid));
    let counters = counters.map(|counters| counters.starting_at_exec(&host, pid));
    let mut processes = collects(SourceId::Process).then(|| match mark {
        Some(mark) => {
            ProcessCollector::of_marked_child(&host, settings, mark, session_descriptors())
        }
        None => ProcessCollector::of_child(&host, settings, pid, session_descriptors()),
    });
    let main =
        processes.as_mut().map(|processes| processes.begin(&host, pid, session_descriptors()));
    let id = main.unwrap_or(ProcessId { pid, started: 0 });
    manifest.user = recording.and_then(|_| own::user());
    (manifest.pid, manifest.process_started) = (id.pid, id.started);
    let zero = host.clock.now();
    manifest.started =
        jiff::Timestamp::from_nanosecond(clock::wall().as_nanos() as i128).unwrap_or_default();
    tick.begin(Duration::ZERO);
    let writer = claim.and_then(|claim| {
        Writer::within(claim, &manifest, &tick, &[])
            .map_err(|error| warnings.push(format!("not recorded: {error}")))
            .ok()
    });
    let inbox = writer.as_ref().map(|writer| Inbox::create(writer.directory()));
    let mut collectors = Collectors::new(settings, sources.iter().copied());
    collectors.processes = processes;
    let mut sampling = SamplingLoop::new(host, zero, settings, &manifest, tick, collectors, writer);
    if collects(SourceId::Sockets) && is_here(settings) {
        let sockets = Sockets::begin(&sampling.host, settings, SocketBaseline::Running);
        sampling.collectors.sockets = sampling.or_fault(SourceId::Sockets, sockets);
    }
    if let Some(clock) = task_clock {
        sampling.collectors.task_clock = sampling.or_fault(SourceId::TaskClock, clock);
    }
    if let Some(counters) = counters {
        sampling.collectors.counters = sampling.or_fault(SourceId::Perf, counters);
    }
    not_counted.into_iter().for_each(|why| sampling.fault(SourceId::Perf, why));
    for missed in absent.into_iter().filter(|absence| absence.is_missed) {
        sampling.fault(missed.source.id, missed.why);
    }
    if let Err(why) = &orphans {
        let lack = "what orphaned descendants (daemons) used may be missing from what was reaped";
        sampling.fault(FaultSource::ChildSubreaper, format!("{lack}: {why}"));
    }
    let mut control = Control::default();
    if let Some(inbox) = inbox {
        control.take_inbox(&mut sampling, inbox);
    }
    sampling.sample_before_exec();
    let executed = sampling.now();
    let before_exec = match waiting.exec() {
        Ok(before_exec) => before_exec,
        Err(error) => {
            wait::reap_now(pid);
            // Its thread must not write into a directory that is removed.
            if let Some(writer) = sampling.writer.take() {
                writer.finish(executed, || false);
            }
            return Err(discard(error.into()));
        }
    };
    sampling.schedule_from(executed);
    sampling.describe_machine(manifest.clone(), settings);
    let monitor = AttachMonitor {
        sampling,
        requests: Requests::Queue(queue),
        control,
        command: Some(SessionCommand {
            id,
            executed,
            before_exec,
            exit: None,
            io: None,
            orphans: orphans.ok(),
        }),
        target_pidfds: vec![pidfd],
        occupants: None,
        job: None,
        connector: None,
        happened: Vec::new(),
        taskstats: None,
        exit_records: Vec::new(),
        clocked_since: Some(Duration::ZERO),
        until: None,
        wait_all: settings.wait_all,
        is_alone: true,
        end: None,
    };
    Ok((monitor, manifest))
}

const NO_SUBREAPER: &str = "a session is a child subreaper only on request (Settings::subreaper)";

/// What a command inherits from a program that is not weigh: as with `std::process::Command`,
/// SIGPIPE has its default disposition again, which the runtimes of Rust and Python have changed.
pub(super) fn original() -> Original {
    Original::now(Inherited::default())
}

impl AttachMonitor {
    /// Takes the final counts of the command, which has just exited and was sampled.
    pub(in crate::run) fn reap_command(&mut self) {
        let Some(command) = &mut self.command else { return };
        let (id, at) = (command.id, self.sampling.now());
        command.io = self.sampling.zombie_io(id.pid).map(|io| io.less(&PreExecUsage::IO));
        if let Some(processes) = &mut self.sampling.collectors.processes {
            processes.forget(id.pid);
        }
        // The program may have reaped it itself, or ignore SIGCHLD.
        let reaped = wait::reap(id.pid).map(|(end, mut usage)| {
            command.orphans.iter_mut().for_each(|orphans| orphans.note_reaped(&usage));
            usage.subtract_pre_exec(command.before_exec.cpu.as_secs_f64());
            (end, usage)
        });
        command.exit = reaped.map(|(end, usage)| (end, at, usage));
        let (end, usage) = reaped.unzip();
        self.sampling.event(at, Event::ended(id, end, usage));
        if reaped.is_none() {
            let why = format!("process {} was reaped by the program that started it", id.pid);
            self.sampling.fault(SourceId::Process, why);
        }
    }
}
