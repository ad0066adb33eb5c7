//! The processes of a run as the ResourceMonitor would have polled them.
//!
//! Rows are an interval apart, because its reader gives each the same weight, and weigh samples
//! more often in the first second of a run and where a phase ends. A row stands for the interval
//! before it, so there is none at the very beginning. A process that did not run has no row in the
//! recording, and its private memory is read still less often: both are carried forward.
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

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::catalog::Scope;
use crate::catalog::metrics::{ProcessCpu, ProcessState};
use crate::compat::row_spacing::{RowSpacing, SHORTEST};
use crate::export::unix_seconds;
use crate::model::live::{LastKnownMemory, has_exited, start_seconds};
use crate::model::{Entity, ProcessId, Table, Tick};
use crate::record::{Entry, Event, Manifest};
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
    /// By pid, which is the order of theirs.
    alive: BTreeMap<ProcessId, PolledProcess>,
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
    cpu: Option<[f64; 2]>,
    /// CPU time in its last two rows, and when that was; since it was started at first.
    rows: [(f64, f64); 2],
    has_row: bool,
    /// The index of its row among those of the last poll.
    waiting: Option<usize>,
    /// When its values were last known.
    sampled_at: f64,
    memory: LastKnownMemory,
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
            alive: BTreeMap::new(),
            tools: vec!["?".to_owned()],
            by_name: HashMap::from([("?".to_owned(), UNNAMED)]),
            polled: Duration::ZERO,
            sample_times: SampleTimes::new(manifest.is_merged()),
            exited: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// Applies an event.
    pub(super) fn event(&mut self, entry: &Entry) {
        match &entry.event {
            Event::ProcessStart { pid, started, name, command, tool, .. }
            | Event::ProcessExec { pid, started, name, command, tool } => {
                let id = ProcessId { pid: *pid, started: *started };
                let tool = tool_name(name, command.as_deref(), tool.as_deref());
                let tool = self.tool(&tool);
                let member = self.member(id, entry.seconds);
                member.tool = tool;
                // The values of the last program are not this one's.
                member.memory = LastKnownMemory::default();
            }
            Event::ProcessExit { pid, started, cpu_seconds, .. } => {
                let id = ProcessId { pid: *pid, started: *started };
                if let Some(member) = self.alive.get_mut(&id) {
                    member.apply_task_clock(*cpu_seconds, entry.seconds);
                    self.last_row(id);
                    self.alive.remove(&id);
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
    fn member(&mut self, id: ProcessId, at: f64) -> &mut PolledProcess {
        let start = start_seconds(id, self.zero).max(self.sample_times.certain()).min(at);
        self.alive.entry(id).or_insert_with(|| PolledProcess::new(UNNAMED, start))
    }

    /// Applies a tick, and emits the rows that are final.
    pub(super) fn tick(&mut self, tick: &Tick, each: impl FnMut(&PollRow<'_>)) {
        let at = tick.at.as_secs_f64();
        if let Some(table) = tick.table(Scope::Process) {
            for (row, entity) in table.entities().iter().enumerate() {
                let Entity::Process(id) = entity else { continue };
                let member = self.member(*id, at);
                let had_exited = member.has_exited;
                member.renew(table, row, at);
                if member.has_exited && !had_exited {
                    self.exited.push(*id);
                }
            }
        }
        if tick.is_complete() {
            self.sample_times.complete_tick(at);
            if self.pace.is_over(self.polled, tick.at) {
                self.polled = tick.at;
                self.poll(at, each);
            }
        }
        for id in std::mem::take(&mut self.exited) {
            self.last_row(id);
        }
    }

    /// All processes were sampled: those without a row are unchanged.
    fn poll(&mut self, at: f64, each: impl FnMut(&PollRow<'_>)) {
        self.hand_on(each);
        let timestamp = unix_seconds(self.started, at);
        let (certain, shortest) = (self.sample_times.certain(), self.shortest());
        let exited = std::mem::take(&mut self.exited);
        for (id, member) in &mut self.alive {
            member.waiting = None;
            if member.cpu.is_none() || (member.has_exited && !exited.contains(id)) {
                continue;
            }
            member.sampled_at = member.sampled_at.max(certain);
            member.waiting = Some(self.waiting.len());
            self.waiting.push(member.row(*id, timestamp, self.cores, shortest));
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
    fn last_row(&mut self, id: ProcessId) {
        let (shortest, machine) = (self.shortest(), self.cores);
        let Some(member) = self.alive.get_mut(&id).filter(|member| member.has_news()) else {
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
                self.waiting.push(member.row(id, timestamp, machine, shortest));
            }
        }
    }

    /// Emits what is left.
    pub(super) fn finish(mut self, each: impl FnMut(&PollRow<'_>)) {
        for id in self.alive.keys().copied().collect::<Vec<_>>() {
            self.last_row(id);
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
            memory: LastKnownMemory::default(),
            threads: None,
            has_exited: false,
        }
    }

    /// Applies a row about it.
    fn renew(&mut self, table: &Table, row: usize, at: f64) {
        self.sampled_at = at;
        let cpu = table.get::<ProcessCpu>(row);
        if let (Some(user), Some(system)) = (cpu.user, cpu.system) {
            self.cpu = Some([user, system]);
        }
        let state: ProcessState = table.get(row);
        self.threads = state.threads.max(self.threads);
        self.has_exited = has_exited(&state);
        self.memory.update(table, row);
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
    fn row(&mut self, id: ProcessId, timestamp: f64, machine: f64, shortest: f64) -> PendingRow {
        let is_long = self.sampled_at - self.rows[1].1 >= shortest;
        let cores = self.cores_since(self.rows[usize::from(is_long)], machine);
        self.rows = [self.rows[1], (self.used(), self.sampled_at)];
        self.has_row = true;
        PendingRow {
            timestamp,
            pid: id.pid,
            tool: self.tool,
            cores,
            cpu: self.cpu.unwrap_or_default(),
            rss: self.memory.rss,
            uss: self.memory.uss(),
            pss: self.memory.pss(),
        }
    }
}
