//! Synthetic runs for tests: a manifest, samples and events, defined in the test.
//!
//! A [`FakeRun`] stores its events, so that a test hands the same run to the reader under test:
//! [`FakeRun::summary`], [`FakeRun::record`], or any other by [`FakeRun::replay`].

use std::path::Path;
use std::time::Duration;

use crate::catalog::metrics::{OwnTicks, ProcessCpu, ProcessMemory, ProcessState};
use crate::model::settings::Settings;
use crate::model::{End, Entity, Facts, ProcessId, Table, Tick, Usage};
use crate::record::events::HelperUsage;
use crate::record::{
    AttachEnd, CommandEnd, Entry, Event, Frame, Frames, Manifest, Moment, Recording, StopReason,
    Target, Writer,
};
use crate::summary::{Accumulator, Summary};

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;

/// The command's process.
pub(crate) const MAIN: ProcessId = ProcessId { pid: 10, started: 100 };

/// A process that the command's process has started.
pub(crate) const CHILD: ProcessId = ProcessId { pid: 11, started: 101 };

/// When every run begins, in seconds since 1970.
pub(crate) const BEGIN: u64 = 1_700_000_000;

/// A run that is defined moment by moment.
#[derive(Debug, Clone)]
pub(crate) struct FakeRun {
    /// May be changed at any time: readers get it as it is at the call.
    pub(crate) manifest: Manifest,
    tick: Tick,
    moments: Vec<FakeMoment>,
    samples: u64,
}

#[derive(Debug, Clone)]
enum FakeMoment {
    /// The tables with rows alone: a test may have thousands of ticks.
    Tick(Duration, Vec<Table>),
    Event(Box<Entry>),
}

impl FakeRun {
    /// A run of `work` on a machine of 4 cores and 8 GiB.
    pub(crate) fn new() -> FakeRun {
        FakeRun::with(&Settings::default())
    }

    /// The same, measured in another way.
    pub(crate) fn with(settings: &Settings) -> FakeRun {
        let (command, began) = (["work".to_owned()], Duration::from_secs(BEGIN));
        let mut manifest = Manifest::new(settings, &command, Facts::example(), began);
        (manifest.pid, manifest.process_started) = (MAIN.pid, MAIN.started);
        let tick = Tick::new(&crate::catalog::groups(settings.sources()));
        FakeRun { manifest, tick, moments: Vec::new(), samples: 0 }
    }

    /// One that is merged of several recordings: a sample is complete when each has had its own.
    pub(crate) fn merged() -> FakeRun {
        let mut run = FakeRun::new();
        run.manifest.target = Some(Target::Merged { members: Vec::new(), exact: false });
        run
    }

    /// A complete sample: a process without a row did not run since the last one.
    pub(crate) fn sample(&mut self, seconds: f64, fill: impl FnOnce(&mut Tick)) -> &mut FakeRun {
        self.samples += 1;
        let ticks = OwnTicks { taken: Some(self.samples), missed: Some(0), ..OwnTicks::default() };
        self.sample_some(seconds, |tick| {
            fill(tick);
            tick.complete(&ticks);
        })
    }

    /// A sample of some of the processes.
    pub(crate) fn sample_some(
        &mut self,
        seconds: f64,
        fill: impl FnOnce(&mut Tick),
    ) -> &mut FakeRun {
        let at = Duration::from_secs_f64(seconds);
        self.tick.begin(at);
        fill(&mut self.tick);
        let tables = self.tick.tables().iter().filter(|table| !table.is_empty()).cloned();
        self.moments.push(FakeMoment::Tick(at, tables.collect()));
        // What is left empty is the shape of the next, and of the recording.
        self.tick.begin(at);
        self
    }

    pub(crate) fn event(&mut self, seconds: f64, event: Event) -> &mut FakeRun {
        let entry = Entry::new(Duration::from_secs_f64(seconds), event);
        self.moments.push(FakeMoment::Event(Box::new(entry)));
        self
    }

    /// A process of this command line has started.
    pub(crate) fn starts(&mut self, seconds: f64, id: ProcessId, line: &str) -> &mut FakeRun {
        self.starts_under(seconds, id, 1, line)
    }

    /// A process of this parent has started.
    pub(crate) fn starts_under(
        &mut self,
        seconds: f64,
        id: ProcessId,
        parent: u32,
        line: &str,
    ) -> &mut FakeRun {
        let (ProcessId { pid, started }, (name, command)) = (id, program(line));
        let start = Event::ProcessStart { pid, started, parent, name, command, tool: None };
        self.event(seconds, start)
    }

    /// A process has replaced its program.
    pub(crate) fn exec(&mut self, seconds: f64, id: ProcessId, line: &str) -> &mut FakeRun {
        let (ProcessId { pid, started }, (name, command)) = (id, program(line));
        self.event(seconds, Event::ProcessExec { pid, started, name, command, tool: None })
    }

    /// A process has exited, and its parent has reaped it.
    pub(crate) fn exits(&mut self, seconds: f64, id: ProcessId) -> &mut FakeRun {
        self.event(seconds, Event::ended(id, None, None))
    }

    /// A process has exited with 0, and weigh has reaped it.
    pub(crate) fn reaped(&mut self, seconds: f64, id: ProcessId, usage: Usage) -> &mut FakeRun {
        self.event(seconds, Event::ended(id, Some(End::Code(0)), Some(usage)))
    }

    pub(crate) fn phase_starts(&mut self, seconds: f64, id: &str, name: &str) -> &mut FakeRun {
        let (id, name, parent) = (id.to_owned(), name.to_owned(), None);
        self.event(seconds, Event::PhaseStart { id, name, parent })
    }

    pub(crate) fn phase_ends(&mut self, seconds: f64, id: &str) -> &mut FakeRun {
        let (id, usage, end, account) = (id.to_owned(), None, None, None);
        self.event(seconds, Event::PhaseEnd { id, usage, end, account })
    }

    /// The command has exited with 0, and used what was reaped, unless set otherwise.
    pub(crate) fn ends(
        &mut self,
        seconds: f64,
        change: impl FnOnce(&mut CommandEnd),
    ) -> &mut FakeRun {
        let mut end = CommandEnd {
            end: Some(End::Code(0)),
            duration_seconds: seconds,
            measured_seconds: None,
            reaped: self.all_reaped(),
            task_clock_seconds: None,
            io: None,
            still_running: Vec::new(),
            may_miss_processes: false,
            rss_before_exec_bytes: 0,
            cpu_before_exec_seconds: 0.0,
            helpers: HelperUsage::default(),
            monitor_cpu_seconds: 0.01,
        };
        change(&mut end);
        self.event(seconds, Event::RunEnd(end.into()))
    }

    /// weigh was asked to stop monitoring.
    pub(crate) fn stops(
        &mut self,
        seconds: f64,
        change: impl FnOnce(&mut AttachEnd),
    ) -> &mut FakeRun {
        let mut end = AttachEnd {
            why: Some(StopReason::StopRequested),
            end: None,
            duration_seconds: seconds,
            task_clock_seconds: None,
            task_clock_began_seconds: None,
            still_running: Vec::new(),
            may_miss_processes: false,
            monitor_cpu_seconds: 0.01,
        };
        change(&mut end);
        self.event(seconds, Event::RunEnd(end.into()))
    }

    fn all_reaped(&self) -> Usage {
        let mut all = Usage::default();
        for moment in &self.moments {
            if let FakeMoment::Event(entry) = moment
                && let Event::ProcessExit { usage: Some(usage), .. } = &entry.event
            {
                all.add(usage);
            }
        }
        all
    }

    /// Hands over each frame, as [`Recording::replay`] does.
    pub(crate) fn replay(&self, mut take: impl FnMut(&Frame<'_>)) -> Frames {
        let mut frames = Frames::default();
        self.moments(|moment| frames.moment(moment, &mut take));
        frames
    }

    fn moments(&self, mut take: impl FnMut(Moment<'_>)) {
        let mut tick = self.tick.clone();
        for moment in &self.moments {
            match moment {
                FakeMoment::Event(entry) => take(Moment::Event(entry)),
                FakeMoment::Tick(at, tables) => {
                    tick.begin(*at);
                    for table in tables {
                        tick.table_mut(table.scope()).unwrap().append(table, None);
                    }
                    tick.read_completeness();
                    take(Moment::Tick(&tick));
                }
            }
        }
    }

    fn accumulated(&self) -> (Accumulator, Frames) {
        let mut accumulator = Accumulator::new(&self.manifest);
        let frames = self.replay(|frame| accumulator.frame(frame));
        (accumulator, frames)
    }

    /// The summary so far.
    pub(crate) fn accumulator(&self) -> Accumulator {
        self.accumulated().0
    }

    pub(crate) fn summary(&self) -> Summary {
        let (accumulator, frames) = self.accumulated();
        accumulator.finish(frames.live())
    }

    /// Both processes have exited; weigh has reaped the command's, which used so much CPU time,
    /// and recorded the run.
    pub(crate) fn recorded(mut self, seconds: f64, cpu: f64) -> (tempfile::TempDir, Recording) {
        let reaped = usage(cpu, 0);
        self.exits(seconds, CHILD).event(seconds, Event::ended(MAIN, None, Some(reaped)));
        self.ends(seconds, |end| {
            (end.reaped, end.task_clock_seconds) = (reaped, Some(cpu));
        });
        let directory = tempfile::tempdir().unwrap();
        let recording = self.record(&directory.path().join("run"));
        (directory, recording)
    }

    /// Records the run into a new directory.
    pub(crate) fn record(&self, directory: &Path) -> Recording {
        let mut writer = Writer::create(directory, &self.manifest, &self.tick).unwrap();
        self.moments(|moment| match moment {
            Moment::Tick(tick) => writer.tick(tick),
            Moment::Event(entry) => writer.event(entry.clone()),
        });
        assert_eq!(writer.finish(self.tick.at, || false), [""; 0]);
        Recording::open(directory).unwrap()
    }
}

/// The kernel's name and the arguments of a command line.
fn program(line: &str) -> (String, Option<Vec<String>>) {
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    (words[0].rsplit('/').next().unwrap_or_default().to_owned(), Some(words))
}

/// The counts of `wait4`: CPU time, and the size of the largest process.
pub(crate) fn usage(cpu: f64, largest: u64) -> Usage {
    Usage { user_seconds: cpu, largest_rss_bytes: largest, ..Usage::default() }
}

/// CPU time of a process that has reaped no child: in user mode and in the kernel.
pub(crate) fn cpu(tick: &mut Tick, id: ProcessId, user: f64, system: f64) {
    cpu_rows(tick, id, (user, system), 0.0);
}

/// CPU time of a process, and of the children it has reaped.
pub(crate) fn cpu_with_children(tick: &mut Tick, id: ProcessId, own: f64, children: f64) {
    cpu_rows(tick, id, (own, 0.0), children);
}

fn cpu_rows(tick: &mut Tick, id: ProcessId, (user, system): (f64, f64), children: f64) {
    let row = ProcessCpu {
        user: Some(user),
        system: Some(system),
        children_user: Some(children),
        children_system: Some(0.0),
        ..ProcessCpu::default()
    };
    tick.put(Entity::Process(id), &row);
}

/// Resident memory of a process and its high-water mark; its proportional memory, all of it
/// private, where that was read.
pub(crate) fn memory(tick: &mut Tick, id: ProcessId, rss: u64, peak: u64, pss: Option<u64>) {
    let (rss, peak, uss, swap) = (Some(rss), Some(peak), pss, Some(0));
    let row = ProcessMemory { rss, peak, pss, uss, swap, ..ProcessMemory::default() };
    tick.put(Entity::Process(id), &row);
}

/// Resident memory of a process that was never larger; its proportional and private memory,
/// where they were read.
pub(crate) fn sizes(tick: &mut Tick, id: ProcessId, rss: u64, shares: Option<(u64, u64)>) {
    let (pss, uss) = shares.unzip();
    memory(tick, id, rss, rss, pss);
    tick.put(Entity::Process(id), &ProcessMemory { uss, ..ProcessMemory::default() });
}

pub(crate) fn threads(tick: &mut Tick, id: ProcessId, threads: u64) {
    let row = ProcessState { threads: Some(threads), ..ProcessState::default() };
    tick.put(Entity::Process(id), &row);
}
