//! What all kinds of monitoring share: the ticks, the events, and the recording's end.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use super::live;
use super::schedule::Schedule;
use crate::catalog::SourceId;
use crate::catalog::metrics::OwnTicks;
use crate::collect::cgroup::CgroupCollector;
use crate::collect::packets::Packets;
use crate::collect::processes::{ExitedProcess, ProcessCollector};
use crate::collect::sockets::{SocketBaseline, Sockets};
use crate::collect::task_clock::RunClock;
use crate::collect::{self, Collector, Fault};
use crate::host::Host;
use crate::host::bpf::PacketCounter;
use crate::host::connector::ProcEvent;
use crate::host::run_cgroup::RunCgroup;
use crate::host::signals::Signals;
use crate::host::taskstats::ExitRecord;
use crate::model::Tick;
use crate::model::hardware::Hardware;
use crate::model::settings::Settings;
use crate::record::{AttachBaseline, Entry, Event, Frames, Manifest, Writer, files};
use crate::summary::{Accumulator, Summary};

/// The collectors of each tick, and its consumers.
pub(super) struct Watch {
    pub(super) host: Host,
    /// The clock's reading at the run's zero.
    pub(super) begin: Duration,
    pub(super) tick: Tick,
    pub(super) processes: Option<ProcessCollector>,
    pub(super) task_clock: Option<RunClock>,
    /// The counters of the monitored cgroup.
    pub(super) group: Option<CgroupCollector>,
    /// The packets of the run.
    pub(super) packets: Option<Packets>,
    /// The connections of the run.
    pub(super) sockets: Option<Sockets>,
    collectors: Vec<(SourceId, Box<dyn Collector>)>,
    pub(super) writer: Option<Writer>,
    frames: Frames,
    pub(super) accumulator: Accumulator,
    pub(super) schedule: Schedule,
    /// Subtracts what processes used before weigh attached to them.
    baseline: Option<AttachBaseline>,
    faulted: Vec<String>,
}

/// The result of monitoring.
pub(super) struct ClosedRun {
    pub(super) summary: Summary,
    pub(super) recording: Option<PathBuf>,
    pub(super) warnings: Vec<String>,
}

impl Watch {
    pub(super) fn new(
        host: Host,
        begin: Duration,
        settings: &Settings,
        manifest: &Manifest,
        mut tick: Tick,
        processes: Option<ProcessCollector>,
        writer: Option<Writer>,
    ) -> Watch {
        tick.zero = begin;
        let sources = settings.sources().into_iter();
        let collectors = sources
            // Those that this machine has.
            .filter(|source| manifest.collectors.iter().any(|name| name == source.name))
            .filter_map(|source| {
                Some((source.id, collect::provider(source.id)?.collector?(settings)))
            })
            .collect();
        Watch {
            host,
            begin,
            tick,
            processes,
            task_clock: None,
            group: None,
            packets: None,
            sockets: None,
            collectors,
            writer,
            frames: Frames::default(),
            accumulator: Accumulator::new(manifest),
            schedule: Schedule::new(Duration::ZERO, settings.interval),
            baseline: manifest.came.map(AttachBaseline::new),
            faulted: Vec::new(),
        }
    }

    /// Adds the machine's hardware to the recording, without waiting until it is read.
    pub(super) fn describe_machine(&mut self, manifest: Manifest, settings: &Settings) {
        let Some(writer) = &mut self.writer else { return };
        let root = self.host.root.clone();
        let live = live(settings);
        writer.describe(move || manifest.with_hardware(Hardware::of(&root, live)));
    }

    /// The time since the run began.
    pub(super) fn now(&self) -> Duration {
        self.host.clock.now().saturating_sub(self.begin)
    }

    /// Takes the tick that is due, flushes what is due, and returns how long there is nothing to
    /// do.
    pub(super) fn work(&mut self) -> Duration {
        let mut now = self.now();
        if now >= self.schedule.due() {
            self.take_tick();
            now = self.now();
        }
        let until = self.schedule.due();
        if let Some(writer) = &mut self.writer
            // Now, when the next tick would be too late: another wakeup costs more.
            && writer.due().is_some_and(|due| due < until)
        {
            writer.flush(now);
        }
        until.saturating_sub(now)
    }

    /// Takes the first sample of all processes, and flushes it at once: a process that reads along,
    /// or waits for weigh to attach, finds it.
    pub(super) fn first_tick(&mut self) {
        self.take_tick();
        let now = self.now();
        self.writer.iter_mut().for_each(|writer| writer.flush(now));
    }

    /// Samples all collectors, and emits the tick.
    pub(super) fn take_tick(&mut self) {
        let at = self.now();
        self.tick.begin(at);
        let mut faults = Vec::new();
        // First, because its rate shows how far it is from `at`.
        if let Some(clock) = &mut self.task_clock
            && let Err(fault) = clock.sample(&self.host, &mut self.tick)
        {
            self.task_clock = None;
            faults.push(("task-clock", fault));
        }
        if let Some(packets) = &mut self.packets
            && let Err(fault) = packets.sample(&self.host, &mut self.tick)
        {
            self.packets = None;
            faults.push(("packets", fault));
        }
        self.sample_cgroup();
        self.sample_processes();
        faults.extend(self.sample_collectors(|_| true));
        // After the machine's network, which shows whether anything can have moved.
        self.sample_sockets(Sockets::sample);
        let ticks =
            OwnTicks { taken: Some(self.schedule.taken + 1), missed: Some(self.schedule.missed) };
        self.tick.complete(&ticks);
        self.emit_tick();
        self.note(faults);
        let now = self.now();
        if now >= self.schedule.due() {
            self.schedule.took(now);
        }
    }

    /// Samples the machine's counters before a command starts, so that nothing it does is missing
    /// from them. It is no complete tick: no process of the run exists yet.
    pub(super) fn sample_before_exec(&mut self) {
        self.tick.begin(self.now());
        let faults = self.sample_collectors(|source| collect::BEFORE_EXEC.contains(&source));
        self.emit_tick();
        self.note(faults);
    }

    /// Samples the collectors of these sources, and drops those that have no more values.
    fn sample_collectors(
        &mut self,
        is_asked: impl Fn(SourceId) -> bool,
    ) -> Vec<(&'static str, Fault)> {
        let mut faults = Vec::new();
        let (host, tick) = (&self.host, &mut self.tick);
        self.collectors.retain_mut(|(source, collector)| {
            if !is_asked(*source) {
                return true;
            }
            let Err(fault) = collector.sample(host, tick) else { return true };
            let stays = matches!(fault, Fault::Skip(_));
            faults.push((source.name(), fault));
            stays
        });
        faults
    }

    fn note(&mut self, faults: Vec<(&'static str, Fault)>) {
        faults.into_iter().for_each(|(source, fault)| self.fault(source, fault.to_string()));
    }

    fn sample_cgroup(&mut self) {
        let Some(group) = &mut self.group else { return };
        let asked = group.sample(&self.host, &mut self.tick);
        let missing = group.missing();
        missing.into_iter().for_each(|(what, why)| self.fault(what, why));
        if let Err(fault) = asked {
            self.group = None;
            self.fault("cgroup", fault.to_string());
        }
    }

    fn sample_sockets(
        &mut self,
        ask: fn(&mut Sockets, &Host, &ProcessCollector, &mut Tick) -> Result<(), Fault>,
    ) {
        let Some((sockets, processes)) = self.sockets.as_mut().zip(self.processes.as_ref()) else {
            return;
        };
        let asked = ask(sockets, &self.host, processes, &mut self.tick);
        let mut missing = sockets.missing();
        if let Err(fault) = asked {
            missing.push(fault.to_string());
            if matches!(fault, Fault::Retire(_)) {
                self.sockets = None;
            }
        }
        missing.into_iter().for_each(|why| self.fault("sockets", why));
    }

    /// Takes the final values of the run's connections.
    pub(super) fn close_sockets(&mut self) {
        if self.sockets.is_some() {
            self.tick.begin(self.now());
            self.sample_sockets(Sockets::finish);
            self.emit_tick();
            self.sockets = None;
        }
    }

    /// Starts counting the packets of the command's cgroup.
    pub(super) fn take_packets(&mut self, own: &RunCgroup) {
        let counter = own.group.unified.as_ref().map(|group| PacketCounter::of(group.as_fd()));
        match counter {
            Some(Ok(counter)) => self.packets = Some(Packets::of(counter)),
            Some(Err(error)) => self.fault("packets", format!("bpf: {error}")),
            None => self.fault("packets", "there is no cgroup v2".to_owned()),
        }
    }

    /// Notes the existing connections, before those of the run begin.
    pub(super) fn take_sockets(&mut self, settings: &Settings, beginning: SocketBaseline) {
        match Sockets::begin(&self.host, settings, beginning) {
            Ok(sockets) => self.sockets = Some(sockets),
            Err(error) => self.fault("sockets", error.to_string()),
        }
    }

    fn sample_processes(&mut self) {
        let Some(processes) = &mut self.processes else { return };
        let asked = processes.sample(&self.host, &mut self.tick);
        let mut refusals = processes.refusals();
        if let Err(fault) = asked {
            refusals.push(fault.to_string());
            if matches!(fault, Fault::Retire(_)) {
                self.processes = None;
            }
        }
        refusals.into_iter().for_each(|why| self.fault("process", why));
    }

    /// Starts and exits first, so that no exited process is counted.
    pub(super) fn emit_tick(&mut self) {
        for change in std::mem::take(&mut self.tick.changes) {
            self.event(self.tick.at, Event::from(&change));
        }
        // The recording has the counters as the kernel gives them.
        if let Some(writer) = &mut self.writer {
            writer.tick(&self.tick);
        }
        if let Some(baseline) = &mut self.baseline {
            baseline.tick(&mut self.tick);
        }
        self.frames.tick(&self.tick, |frame| self.accumulator.frame(frame));
    }

    /// Adds the command of a phase at its start: until then it was weigh's own helper.
    pub(super) fn add_phase_commands(&mut self) {
        self.tick.begin(self.now());
        if let Some(processes) = &mut self.processes {
            processes.add_helper_commands(&self.host, &mut self.tick);
        }
        if !self.tick.changes.is_empty() {
            self.emit_tick();
        }
    }

    /// Handles kernel events, in their order, with the exit records.
    pub(super) fn take_in(&mut self, happened: &[ProcEvent], accounts: &[ExitRecord]) {
        self.tick.begin(self.now());
        for one in happened {
            let (host, tick) = (&self.host, &mut self.tick);
            let Some(processes) = &mut self.processes else { return };
            let (gone, end) = match *one {
                ProcEvent::Forked { parent, child } => {
                    processes.forked(host, tick.at, parent, child);
                    continue;
                }
                ProcEvent::Executed { pid } => {
                    processes.executed(host, tick, pid);
                    continue;
                }
                // The program is the same.
                ProcEvent::Renamed { .. } => continue,
                ProcEvent::Ended { pid, end } => match processes.exited(host, tick, pid) {
                    Some(gone) => (gone, end),
                    None => continue,
                },
            };
            // After its last sample: readers take the events of a moment before its tick. And
            // before the next start, which did not overlap with it.
            let at = self.tick.at + Duration::from_micros(1);
            self.emit_tick();
            let ExitedProcess { id, cpu_seconds, is_ours } = gone;
            let account = accounts.iter().rfind(|one| one.pid == id.pid).filter(|_| is_ours);
            let counted = account.map(|account| account.cpu.as_secs_f64());
            let exit = Event::ProcessExit {
                pid: id.pid,
                started: id.started,
                end: Some(end),
                usage: None,
                // The kernel's final value, where it gives one: what a clock adds from before it
                // was opened on a running process may be as old as a tick of the scheduler.
                cpu_seconds: counted.or(cpu_seconds),
                memory_peak_bytes: account.and_then(|account| account.peak_rss_bytes),
            };
            self.event(at, exit);
            self.tick.begin(at + Duration::from_micros(1));
        }
        if !self.tick.is_empty() {
            self.emit_tick();
        }
    }

    /// Records an event.
    pub(super) fn event(&mut self, at: Duration, event: Event) {
        let entry = Entry::new(at, event);
        if let Some(baseline) = &mut self.baseline {
            baseline.event(&entry);
        }
        self.frames.event(&entry, |frame| self.accumulator.frame(frame));
        if let Some(writer) = &mut self.writer {
            writer.event(&entry);
        }
    }

    /// Records what could not be measured; the same fault once.
    pub(super) fn fault(&mut self, source: &str, why: String) {
        let fault = format!("{source}: {why}");
        if !self.faulted.contains(&fault) {
            self.faulted.push(fault);
            self.event(self.now(), Event::Fault { source: source.to_owned(), why });
        }
    }

    /// The run's task clock now.
    pub(super) fn read_task_clock(&mut self) -> Option<f64> {
        match self.task_clock.as_mut()?.read() {
            Ok(time) => Some(time.as_secs_f64()),
            Err(error) => {
                self.fault("task-clock", error.to_string());
                None
            }
        }
    }

    /// Finishes the recording and makes the summary.
    ///
    /// That may take long when the disk hangs: signals tell when to give up.
    pub(super) fn close(mut self, signals: &mut Signals, mut warnings: Vec<String>) -> ClosedRun {
        let now = self.now();
        let Some(mut writer) = self.writer.take() else {
            let summary = self.accumulator.finish(self.frames.live());
            return ClosedRun { summary, recording: None, warnings };
        };
        let directory = writer.directory().to_owned();
        writer.flush(now);
        let faults = writer.finish(now, || self.should_give_up(signals, now));
        // All failures in a directory that was removed have this one reason.
        let gone = (!directory.join("run.json").exists()).then(|| {
            let path = directory.display();
            format!("{path} was deleted or renamed during the run: nothing is recorded there")
        });
        let whole = faults.is_empty() && gone.is_none();
        if !whole {
            let why = gone
                .unwrap_or_else(|| format!("the recording is not whole: {}", faults.join("; ")));
            warnings.push(why.clone());
            let source = "recording".to_owned();
            let entry = Entry::new(now, Event::Fault { source, why });
            self.frames.event(&entry, |frame| self.accumulator.frame(frame));
        }
        let mut summary = self.accumulator.finish(self.frames.live());
        // What was measured is in the figures; what is recorded of it is less.
        summary.run.complete &= whole;
        let written = serde_json::to_vec_pretty(&summary)
            .map_err(|error| error.to_string())
            .and_then(|json| {
                // Not synced: it can be made again.
                files::write_unsynced(&directory.join("summary.json"), &json)
                    .map_err(|error| error.to_string())
            });
        // One warning is enough: the second would have the same cause.
        if let Err(why) = written
            && whole
        {
            warnings.push(format!("no summary.json: {why}"));
        }
        let recording = directory.join("run.json").exists().then_some(directory);
        ClosedRun { summary, recording, warnings }
    }

    /// Whether a stop was requested while the recording is finished: its disk may hang.
    ///
    /// Not at once: a job that is stopped often signals all processes, and more than once.
    fn should_give_up(&self, signals: &mut Signals, since: Duration) -> bool {
        const PATIENCE: Duration = Duration::from_secs(2);
        let stop_requested = signals.arrived().is_some_and(|signal| ENDS.contains(&signal.number));
        stop_requested && self.now().saturating_sub(since) > PATIENCE
    }
}

/// Signals that request the end.
pub(super) const ENDS: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
