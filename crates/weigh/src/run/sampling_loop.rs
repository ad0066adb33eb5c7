//! What all kinds of monitoring share: the ticks, the events, and the recording's end.

use std::path::Path;
use std::time::Duration;

use super::job_clock;
use super::live::{LiveEvent, LiveObserver, LiveValues, Observed, RequestedValues};
use super::schedule::Schedule;
use super::{Outcome, live};
use crate::catalog::SourceId;
use crate::catalog::metrics::OwnTicks;
use crate::collect::Collectors;
use crate::collect::processes::ExitedProcess;
use crate::host::connector::ProcEvent;
use crate::host::taskstats::ExitRecord;
use crate::host::{Host, ProcPath, own};
use crate::model::hardware::Hardware;
use crate::model::settings::Settings;
use crate::model::{FaultSource, Io, ProcessId, Tick};
use crate::parse;
use crate::record::{
    AttachBaseline, Entry, Event, Frame, Frames, Manifest, Moment, RunEnd, Target, Writer, files,
};
use crate::summary::{Accumulator, Summary};

/// The collectors of each tick, and its consumers.
pub(super) struct SamplingLoop {
    pub(super) host: Host,
    /// The clock's reading at the run's zero.
    pub(super) begin: Duration,
    pub(super) tick: Tick,
    pub(super) collectors: Collectors,
    pub(super) writer: Option<Writer>,
    frames: Frames,
    pub(super) accumulator: Accumulator,
    pub(super) schedule: Schedule,
    /// Subtracts what processes used before weigh attached to them.
    baseline: Option<AttachBaseline>,
    faulted: Vec<(FaultSource, String)>,
    /// Whoever shows the values of the run while it runs.
    live: Option<Observed>,
    requested: RequestedValues,
}

impl SamplingLoop {
    pub(super) fn new(
        host: Host,
        begin: Duration,
        settings: &Settings,
        manifest: &Manifest,
        mut tick: Tick,
        collectors: Collectors,
        writer: Option<Writer>,
    ) -> SamplingLoop {
        tick.zero = begin;
        if let Some(thread) = writer.as_ref().and_then(Writer::thread) {
            own::count_thread(thread);
        }
        SamplingLoop {
            host,
            begin,
            tick,
            collectors,
            writer,
            frames: Frames::default(),
            accumulator: Accumulator::new(manifest),
            schedule: Schedule::new(Duration::ZERO, settings.interval),
            baseline: manifest.attach_clock_ticks.map(AttachBaseline::new),
            faulted: Vec::new(),
            live: None,
            requested: RequestedValues::default(),
        }
    }

    /// Where it is recorded.
    pub(super) fn directory(&self) -> Option<&Path> {
        self.writer.as_ref().map(Writer::directory)
    }

    /// Begins the schedule of ticks at a moment of the run.
    pub(super) fn schedule_from(&mut self, at: Duration) {
        self.schedule = Schedule::new(at, self.schedule.interval());
    }

    /// Adds the machine's hardware to the recording, without waiting until it is read.
    pub(super) fn describe_machine(&mut self, manifest: Manifest, settings: &Settings) {
        let Some(writer) = &mut self.writer else { return };
        let root = self.host.root.clone();
        let live = live(settings);
        let directory = writer.directory().to_owned();
        writer.describe(move || {
            let is_of_job = matches!(manifest.target, Some(Target::Job { .. }));
            let clock = is_of_job.then(|| job_clock::reading(&directory));
            Manifest { clock, ..manifest }.with_hardware(Hardware::of(&root, live))
        });
    }

    /// Passes the values of ticks on, from now on.
    pub(super) fn observe(&mut self, observer: Option<LiveObserver>) {
        self.live = observer.map(Observed::new);
    }

    /// Passes on what concerns the terminal.
    pub(super) fn tell(&mut self, event: LiveEvent<'_>) {
        if let Some(live) = &mut self.live {
            live.tell(event);
        }
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
        self.tick.begin(self.now());
        self.collectors.sample(&self.host, &mut self.tick);
        let ticks =
            OwnTicks { taken: Some(self.schedule.taken + 1), missed: Some(self.schedule.missed) };
        self.tick.complete(&ticks);
        self.emit_tick();
        if let Some(live) = &mut self.live {
            live.tick(self.tick.at, &self.accumulator, self.frames.live());
        }
        self.report_faults();
        let now = self.now();
        if now >= self.schedule.due() {
            self.schedule.took(now);
        }
    }

    /// Samples the machine's counters before a command starts, so that nothing it does is missing
    /// from them. It is no complete tick: no process of the run exists yet.
    pub(super) fn sample_before_exec(&mut self) {
        self.tick.begin(self.now());
        self.collectors.sample_before_exec(&self.host, &mut self.tick);
        self.emit_tick();
        self.report_faults();
    }

    /// Takes the final values of the run's connections.
    pub(super) fn finish_sockets(&mut self) {
        if self.collectors.sockets.is_some() {
            self.tick.begin(self.now());
            self.collectors.finish_sockets(&self.host, &mut self.tick);
            self.emit_tick();
            self.report_faults();
        }
    }

    /// Takes the final counts of the run's events.
    pub(super) fn finish_counters(&mut self) {
        if self.collectors.counters.is_some() {
            self.tick.begin(self.now());
            self.collectors.finish_counters(&self.host, &mut self.tick);
            self.emit_tick();
            self.report_faults();
        }
    }

    fn report_faults(&mut self) {
        for (source, why) in self.collectors.take_faults() {
            self.fault(source, why);
        }
    }

    /// What a source gave; otherwise a fault says why it did not.
    pub(super) fn or_fault<T>(
        &mut self,
        source: impl Into<FaultSource>,
        given: Result<T, impl ToString>,
    ) -> Option<T> {
        given.map_err(|error| self.fault(source, error.to_string())).ok()
    }

    /// Reads a zombie for the last time; returns its identity, unless it was weigh's own helper.
    pub(super) fn final_read(&mut self, pid: u32, at: Duration) -> Option<ProcessId> {
        let Some(processes) = &mut self.collectors.processes else {
            return Some(ProcessId { pid, started: 0 });
        };
        self.tick.begin(at);
        let id = processes.final_read(&self.host, pid, &mut self.tick);
        self.emit_tick();
        id
    }

    /// I/O of a zombie, with that of the children it has reaped.
    pub(super) fn zombie_io(&self, pid: u32) -> Option<Io> {
        let mut buffer = Vec::new();
        let bytes = self.host.proc.read(ProcPath::new(pid, "io").as_c_str(), &mut buffer).ok()?;
        parse::io::parse(bytes).ok()
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
        if let Some(processes) = &mut self.collectors.processes {
            processes.add_helper_commands(&self.host, &mut self.tick);
        }
        if !self.tick.changes.is_empty() {
            self.emit_tick();
        }
    }

    /// Handles kernel events, in their order, with the exit records.
    pub(super) fn apply_kernel_events(
        &mut self,
        happened: &[ProcEvent],
        exit_records: &[ExitRecord],
    ) {
        self.tick.begin(self.now());
        for one in happened {
            let (host, tick) = (&self.host, &mut self.tick);
            let Some(processes) = &mut self.collectors.processes else { return };
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
            // Its last sample comes before its exit, and that before the next start, which did not
            // overlap with it.
            self.emit_tick();
            let ExitedProcess { id, cpu_seconds, is_ours } = gone;
            let record = exit_records.iter().rfind(|one| one.pid == id.pid).filter(|_| is_ours);
            let counted = record.map(|record| record.cpu.as_secs_f64());
            let exit = Event::ProcessExit {
                pid: id.pid,
                started: id.started,
                end: Some(end),
                usage: None,
                // The kernel's final value, where it gives one: what a clock adds from before it
                // was opened on a running process may be as old as a tick of the scheduler.
                cpu_seconds: counted.or(cpu_seconds),
                memory_peak_bytes: record.and_then(|record| record.peak_rss_bytes),
            };
            self.event(self.now(), exit);
            self.tick.begin(self.now());
        }
        if !self.tick.is_empty() {
            self.emit_tick();
        }
    }

    /// Records an event.
    pub(super) fn event(&mut self, at: Duration, event: Event) {
        self.entry(Entry::new(at, event));
    }

    /// Records an event with what belongs to it.
    pub(super) fn entry(&mut self, entry: Entry) {
        if let Some(baseline) = &mut self.baseline {
            baseline.event(&entry);
        }
        self.frames.event(&entry, |frame| self.accumulator.frame(frame));
        if let Some(writer) = &mut self.writer {
            writer.event(entry);
        }
    }

    /// Records what could not be measured; the same fault once.
    pub(super) fn fault(&mut self, source: impl Into<FaultSource>, why: String) {
        let fault = (source.into(), why);
        if !self.faulted.contains(&fault) {
            let event = Event::fault(fault.0, fault.1.clone());
            self.faulted.push(fault);
            self.event(self.now(), event);
        }
    }

    /// The run's task clock now.
    pub(super) fn read_task_clock(&mut self) -> Option<f64> {
        let read = self.collectors.task_clock.as_mut()?.read();
        self.or_fault(SourceId::TaskClock, read).map(|time| time.as_secs_f64())
    }

    /// Records the end, finishes the recording and makes the summary.
    ///
    /// That may take long when the disk hangs: `is_impatient` says when to give up.
    pub(super) fn close(
        mut self,
        end: RunEnd,
        mut is_impatient: impl FnMut() -> bool,
        mut warnings: Vec<String>,
    ) -> Outcome {
        // Before anything else is written to the terminal.
        self.live = None;
        let now = self.now();
        self.event(now, Event::RunEnd(end.clone()));
        let Some(mut writer) = self.writer.take() else {
            let summary = self.accumulator.finish(self.frames.live());
            return Outcome { end, summary, recording: None, warnings };
        };
        let directory = writer.directory().to_owned();
        writer.close(now);
        // The thread of the recording writes and waits for the disk meanwhile.
        let mut summary = self.accumulator.finish(self.frames.live());
        let mut json = serde_json::to_vec_pretty(&summary);
        let elapsed = || self.host.clock.now().saturating_sub(self.begin + now);
        let faults = writer.finish(now, || is_impatient() && elapsed() > PATIENCE);
        // All failures in a directory that was removed have this one reason.
        let gone = (!directory.join("run.json").exists()).then(|| {
            let path = directory.display();
            format!("{path} was deleted or renamed during the run: nothing is recorded there")
        });
        let whole = faults.is_empty() && gone.is_none();
        if !whole {
            let why = gone
                .unwrap_or_else(|| format!("the recording is incomplete: {}", faults.join("; ")));
            summary.monitor.faults.push(format!("{}: {why}", FaultSource::Recording));
            // What was measured is in the figures; what is recorded of it is less.
            summary.run.complete = false;
            json = serde_json::to_vec_pretty(&summary);
            warnings.push(why);
        }
        let written = json.map_err(|error| error.to_string()).and_then(|json| {
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
        Outcome { end, summary, recording, warnings }
    }

    /// The values at the last tick.
    pub(super) fn values_now(&mut self) -> LiveValues {
        self.requested.now(self.tick.at, &self.accumulator, self.frames.live())
    }

    /// The summary of everything until now, as if the run had ended so.
    pub(super) fn summary_so_far(&self, end: RunEnd) -> Summary {
        let mut accumulator = self.accumulator.clone();
        let entry = Entry::new(self.now(), Event::RunEnd(end));
        accumulator.frame(&Frame { moment: Moment::Event(&entry), live: self.frames.live() });
        let mut summary = accumulator.finish(self.frames.live());
        (summary.run.complete, summary.run.ended, summary.run.stopped) = (false, None, None);
        summary
    }
}

/// How long a recording that takes long to finish, because its disk hangs, is waited for when a
/// stop is requested. Not at once: a job that is stopped often signals all processes, and more than
/// once.
const PATIENCE: Duration = Duration::from_secs(2);

/// Signals that request the end.
pub(super) const ENDS: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
