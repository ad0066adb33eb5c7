//! The processes of a run as the ResourceMonitor would have polled them.
//!
//! Rows are an interval apart, because its reader gives each the same weight, and weigh samples
//! more often in the first second of a run and where a phase ends. A row stands for the interval
//! before it, so there is none at the very beginning.
//!
//! Their reader takes the largest CPU time of a process for all it has used. So the rows of a poll
//! wait for the next one, and the last row of a process has the CPU time that it had when it
//! exited. A row of its own would have a time of its own, at which their reader would find no other
//! process. Only a process that no poll has found has such a row: with its memory, too, because an
//! exited process has none left.
//!
//! CPU is over the time since the last row, and over a longer one where that is short: the kernel
//! counts in steps of 10 ms. The first window of a process begins when it was started, not when it
//! was first sampled. (Theirs has 0.0 in every first row.)

use std::collections::HashMap;
use std::time::Duration;

use crate::compat::row_spacing::{RowSpacing, SHORTEST};
use crate::export::unix_seconds;
use crate::model::live::{LiveProcess, LiveProcesses, PerProcess, start_seconds};
use crate::model::{ProcessId, Tick};
use crate::record::{Entry, Event, Frame, Manifest, Moment};
use crate::summary::curve::possible_cores;
use crate::summary::sample_times::SampleTimes;
use crate::summary::tools::{machine_cores, tool_name};

/// A process at one poll.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PollRow<'a> {
    /// Seconds since 1970, the same for all of one poll.
    pub timestamp: f64,
    /// What it runs.
    pub tool: &'a str,
    /// Its pid.
    pub pid: u32,
    /// Cores that it used.
    pub cores: f64,
    /// Its CPU time so far: in user mode and in the kernel.
    pub cpu: [f64; 2],
    /// Resident memory in bytes.
    pub rss: Option<u64>,
    /// Private memory.
    pub uss: Option<u64>,
    /// Proportional memory.
    pub pss: Option<u64>,
}

/// Polls a run.
#[derive(Debug)]
pub(super) struct PollBuilder {
    started: jiff::Timestamp,
    /// Clock ticks from boot to the run's zero.
    zero: u64,
    /// Cores of the machine.
    cores: f64,
    pace: RowSpacing,
    alive: PerProcess<PolledProcess>,
    tools: Vec<String>,
    by_name: HashMap<String, usize>,
    /// When the last poll was.
    polled: Duration,
    /// When all processes were sampled.
    sample_times: SampleTimes,
    /// Those that have exited since the last tick, and whose final CPU time is in no row.
    exited: Vec<ProcessId>,
    /// The rows of the last poll, and of processes that no poll has found and that exited since.
    waiting: Vec<PendingRow>,
}

/// A row that is not written yet.
#[derive(Debug)]
struct PendingRow {
    timestamp: f64,
    pid: u32,
    tool: usize,
    cores: f64,
    cpu: [f64; 2],
    rss: Option<u64>,
    uss: Option<u64>,
    pss: Option<u64>,
}

/// A process that is alive, or was not reaped yet.
#[derive(Debug)]
struct PolledProcess {
    tool: usize,
    /// Its CPU time: as last sampled, or by a clock that outlived it.
    cpu: Option<[f64; 2]>,
    /// CPU time in its last two rows, and when that was; since it was started at first.
    rows: [(f64, f64); 2],
    has_row: bool,
    /// The index of its row among those of the last poll.
    waiting: Option<usize>,
    /// When its values were last known.
    sampled_at: f64,
    /// The most threads it had.
    threads: Option<u64>,
    has_exited: bool,
}

/// The tool of processes whose start event is lost.
const UNNAMED: usize = 0;

impl PollBuilder {
    /// Of a run that is about to begin.
    pub(super) fn new(manifest: &Manifest) -> PollBuilder {
        PollBuilder {
            started: manifest.started,
            zero: manifest.zero(),
            cores: machine_cores(manifest),
            pace: RowSpacing::every(manifest.interval_seconds),
            alive: PerProcess::default(),
            tools: vec!["?".to_owned()],
            by_name: HashMap::from([("?".to_owned(), UNNAMED)]),
            polled: Duration::ZERO,
            sample_times: SampleTimes::new(manifest.is_merged()),
            exited: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// Adds a frame, and emits the rows that are final.
    pub(super) fn frame(&mut self, frame: &Frame<'_>, each: impl FnMut(&PollRow<'_>)) {
        match frame.moment {
            Moment::Tick(tick) => self.tick(tick, frame.live, each),
            Moment::Event(entry) => self.event(entry, frame.live),
        }
    }

    fn event(&mut self, entry: &Entry, live: &LiveProcesses) {
        let alive =
            |pid: &u32, started: &u64| live.get(&ProcessId { pid: *pid, started: *started });
        match &entry.event {
            Event::ProcessStart { pid, started, .. } | Event::ProcessExec { pid, started, .. } => {
                let Some(process) = alive(pid, started) else { return };
                let tool = self.tool(&tool_name(&process.program));
                self.member(process, entry.seconds).tool = tool;
            }
            Event::ProcessExit { pid, started, cpu_seconds, .. } => {
                let Some(process) = alive(pid, started) else { return };
                if let Some(member) = self.alive.get_mut(process) {
                    member.apply_task_clock(*cpu_seconds, entry.seconds);
                    self.last_row(process);
                    self.alive.remove(process);
                }
            }
            _ => {}
        }
    }

    fn tool(&mut self, name: &str) -> usize {
        if let Some(place) = self.by_name.get(name) {
            return *place;
        }
        self.tools.push(name.to_owned());
        self.by_name.insert(name.to_owned(), self.tools.len() - 1);
        self.tools.len() - 1
    }

    /// A running process; a new one did not run at the last sample.
    fn member(&mut self, process: &LiveProcess, at: f64) -> &mut PolledProcess {
        let start = start_seconds(process.id, self.zero).max(self.sample_times.certain()).min(at);
        self.alive.get_or_insert_with(process, || PolledProcess::new(UNNAMED, start))
    }

    fn tick(&mut self, tick: &Tick, live: &LiveProcesses, each: impl FnMut(&PollRow<'_>)) {
        let at = tick.at.as_secs_f64();
        for (_, process) in live.in_rows() {
            let member = self.member(process, at);
            let had_exited = member.has_exited;
            member.renew(process, at);
            if member.has_exited && !had_exited {
                self.exited.push(process.id);
            }
        }
        if tick.is_complete() {
            self.sample_times.complete_tick(at);
            if self.pace.is_over(self.polled, tick.at) {
                self.polled = tick.at;
                self.poll(live, at, each);
            }
        }
        for id in std::mem::take(&mut self.exited) {
            live.get(&id).into_iter().for_each(|process| self.last_row(process));
        }
    }

    /// All processes were sampled: those without a row are unchanged.
    fn poll(&mut self, live: &LiveProcesses, at: f64, each: impl FnMut(&PollRow<'_>)) {
        self.hand_on(each);
        let timestamp = unix_seconds(self.started, at);
        let (certain, shortest) = (self.sample_times.certain(), self.shortest());
        let exited = std::mem::take(&mut self.exited);
        // By pid, which is the order of theirs.
        for process in live.iter() {
            let Some(member) = self.alive.get_mut(process) else { continue };
            member.waiting = None;
            if member.cpu.is_none() || (member.has_exited && !exited.contains(&process.id)) {
                continue;
            }
            member.sampled_at = member.sampled_at.max(certain);
            member.waiting = Some(self.waiting.len());
            self.waiting.push(member.row(process, timestamp, self.cores, shortest));
        }
    }

    /// The shortest window of a rate.
    fn shortest(&self) -> f64 {
        self.pace.shortest().max(SHORTEST).as_secs_f64()
    }

    /// Emits the rows of the last poll, and of processes that exited since.
    fn hand_on(&mut self, mut each: impl FnMut(&PollRow<'_>)) {
        for row in self.waiting.drain(..) {
            each(&row.named(&self.tools));
        }
    }

    /// A process used CPU time since its last row: it is added there, if that row is still pending.
    fn last_row(&mut self, process: &LiveProcess) {
        let (shortest, machine) = (self.shortest(), self.cores);
        let Some(member) = self.alive.get_mut(process).filter(|member| member.has_news()) else {
            return;
        };
        let waiting = member.waiting.and_then(|place| self.waiting.get_mut(place));
        match waiting.filter(|row| row.tool == member.tool) {
            Some(row) => {
                row.cores = member.cores_since(member.rows[0], machine);
                row.cpu = member.cpu.unwrap_or(row.cpu);
                member.rows[1] = (member.used(), member.sampled_at);
            }
            None => {
                let timestamp = unix_seconds(self.started, member.sampled_at);
                self.waiting.push(member.row(process, timestamp, machine, shortest));
            }
        }
    }

    /// Emits what is left.
    pub(super) fn finish(mut self, live: &LiveProcesses, each: impl FnMut(&PollRow<'_>)) {
        for process in live.iter() {
            self.last_row(process);
        }
        self.hand_on(each);
    }
}

impl PendingRow {
    fn named<'a>(&self, tools: &'a [String]) -> PollRow<'a> {
        let PendingRow { timestamp, pid, tool, cores, cpu, rss, uss, pss } = *self;
        PollRow { timestamp, tool: tools[tool].as_str(), pid, cores, cpu, rss, uss, pss }
    }
}

impl PolledProcess {
    fn new(tool: usize, start: f64) -> PolledProcess {
        PolledProcess {
            tool,
            cpu: None,
            rows: [(0.0, start); 2],
            waiting: None,
            has_row: false,
            sampled_at: start,
            threads: None,
            has_exited: false,
        }
    }

    /// Applies a row about it.
    fn renew(&mut self, process: &LiveProcess, at: f64) {
        let values = &process.values;
        self.sampled_at = at;
        self.cpu = values.cpu.user.zip(values.cpu.system).map(Into::into);
        self.threads = values.state.threads.max(self.threads);
        self.has_exited = values.has_exited();
    }

    /// A clock that outlived it has all it used: what was not sampled is counted as user mode.
    fn apply_task_clock(&mut self, seconds: Option<f64>, at: f64) {
        let (Some(seconds), Some([user, system])) = (seconds, self.cpu) else { return };
        if seconds > user + system {
            self.cpu = Some([seconds - system, system]);
            self.sampled_at = at;
        }
    }

    fn used(&self) -> f64 {
        self.cpu.map_or(0.0, |[user, system]| user + system)
    }

    /// Whether its last row lacks some of its CPU time.
    fn has_news(&self) -> bool {
        self.cpu.is_some() && (!self.has_row || self.used() > self.rows[1].0)
    }

    /// Cores that it used since it had used so much at a moment.
    fn cores_since(&self, (before, since): (f64, f64), machine: f64) -> f64 {
        // A process shorter than a window did not use more than was counted in it.
        let window = (self.sampled_at - since).max(SHORTEST.as_secs_f64());
        let most = self.threads.map_or(f64::INFINITY, |threads| threads as f64);
        possible_cores((self.used() - before).max(0.0), window, most).min(machine)
    }

    /// Its row at a moment, over a window of at least so many seconds.
    fn row(
        &mut self,
        process: &LiveProcess,
        timestamp: f64,
        machine: f64,
        shortest: f64,
    ) -> PendingRow {
        let is_long = self.sampled_at - self.rows[1].1 >= shortest;
        let cores = self.cores_since(self.rows[usize::from(is_long)], machine);
        self.rows = [self.rows[1], (self.used(), self.sampled_at)];
        self.has_row = true;
        PendingRow {
            timestamp,
            pid: process.id.pid,
            tool: self.tool,
            cores,
            cpu: self.cpu.unwrap_or_default(),
            rss: process.program_memory.rss,
            uss: process.program_memory.uss(),
            pss: process.program_memory.pss(),
        }
    }
}
