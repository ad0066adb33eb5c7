//! The processes of a run, look by look, as the ResourceMonitor would have polled them.
//!
//! There is a row for every process that is alive when everybody is looked at. A process
//! that did not run has none in the recording, and its private memory is looked at still
//! less often: both are carried on from the last look.
//!
//! CPU is over a window of at least 0.1 s: the kernel counts in steps of 10 ms, and over
//! a shorter window one step looks like many cores. Looks that are closer together have
//! the rate of the window they lie in. The first window of a process begins when it was
//! started, not when it was first seen. (Theirs has 0.0 in every first row.)

use std::collections::{BTreeMap, HashMap};

use crate::catalog::Scope;
use crate::collect::process::{ProcessCpu, ProcessMemory};
use crate::export::unix_seconds;
use crate::record::{Entry, Event, Manifest};
use crate::sample::{Entity, ProcessId, Table, Tick};
use crate::summary::looks::Looks;
use crate::summary::tools::{born, possible, tool_name};

/// A process at one look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row<'a> {
    /// Seconds since 1970, the same for all that were looked at together.
    pub timestamp: f64,
    /// What it runs.
    pub tool: &'a str,
    /// Its pid.
    pub pid: u32,
    /// Cores that it kept busy.
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

/// Follows a run.
#[derive(Debug)]
pub struct Follower {
    started: jiff::Timestamp,
    /// Clock ticks from boot to the run's zero.
    zero: u64,
    /// By pid, which is the order of theirs.
    alive: BTreeMap<ProcessId, Member>,
    /// Cores of those who went since the window began.
    gone: HashMap<ProcessId, f64>,
    tools: Vec<String>,
    by_name: HashMap<String, usize>,
    /// When the window began, and when everybody was looked at.
    since: f64,
    looks: Looks,
    /// Rows whose rate is not known yet.
    waiting: Vec<Waiting>,
}

/// A process that is alive.
#[derive(Debug)]
struct Member {
    tool: usize,
    cpu: Option<[f64; 2]>,
    /// CPU time at the beginning of its window, and when that was.
    before: (f64, f64),
    /// When it was last known what it had.
    looked: f64,
    cores: f64,
    rss: Option<u64>,
    pss: Option<u64>,
    uss: Option<u64>,
}

/// A row without its rate.
#[derive(Debug)]
struct Waiting {
    timestamp: f64,
    id: ProcessId,
    tool: usize,
    cpu: [f64; 2],
    rss: Option<u64>,
    uss: Option<u64>,
    pss: Option<u64>,
}

/// The place of the tool of those whose introduction is lost.
const UNNAMED: usize = 0;

/// Ten steps of the kernel's clock.
const SHORTEST_WINDOW: f64 = 0.1;

impl Follower {
    /// Of a run that is about to begin.
    pub fn new(manifest: &Manifest) -> Follower {
        Follower {
            started: manifest.started,
            zero: manifest.zero(),
            alive: BTreeMap::new(),
            gone: HashMap::new(),
            tools: vec!["?".to_owned()],
            by_name: HashMap::from([("?".to_owned(), UNNAMED)]),
            since: 0.0,
            looks: Looks::new(manifest.is_merged()),
            waiting: Vec::new(),
        }
    }

    /// Takes in something that happened.
    pub fn event(&mut self, entry: &Entry) {
        match &entry.event {
            Event::ProcessStart { pid, started, name, command, tool, .. }
            | Event::ProcessExec { pid, started, name, command, tool } => {
                let id = ProcessId { pid: *pid, started: *started };
                let tool = tool_name(name, command.as_deref(), tool.as_deref());
                let tool = self.tool(&tool);
                let member = self.member(id, entry.seconds);
                member.tool = tool;
                // What the last program had is not this one's.
                (member.rss, member.pss, member.uss) = (None, None, None);
            }
            Event::ProcessExit { pid, started, .. } => {
                let id = ProcessId { pid: *pid, started: *started };
                if let Some(mut member) = self.alive.remove(&id) {
                    member.measure();
                    self.gone.insert(id, member.cores);
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

    /// Somebody who is there now; one who comes was not there at the last look.
    fn member(&mut self, id: ProcessId, at: f64) -> &mut Member {
        let born = born(id, self.zero).max(self.looks.certain()).min(at);
        self.alive.entry(id).or_insert_with(|| Member::new(UNNAMED, born))
    }

    /// Takes in what was measured, and hands on the rows whose rates are known by now.
    pub fn tick(&mut self, tick: &Tick, each: impl FnMut(&Row<'_>)) {
        let at = tick.at.as_secs_f64();
        if let Some(table) = tick.table(Scope::Process) {
            for (row, entity) in table.entities().iter().enumerate() {
                if let Entity::Process(id) = entity {
                    self.member(*id, at).renew(table, row, at);
                }
            }
        }
        // Only a whole tick has a row of weigh's own: everybody was looked at.
        if tick.table(Scope::Own).is_some_and(|table| !table.is_empty()) {
            self.look(at);
            if at - self.since >= SHORTEST_WINDOW {
                self.since = at;
                self.hand_on(each);
            }
        }
    }

    /// Everybody was looked at: whoever has no row is as before.
    fn look(&mut self, at: f64) {
        self.looks.look(at);
        let timestamp = unix_seconds(self.started, at);
        for (id, member) in &mut self.alive {
            let Some(cpu) = member.cpu else { continue };
            member.looked = at;
            self.waiting.push(Waiting {
                timestamp,
                id: *id,
                tool: member.tool,
                cpu,
                rss: member.rss,
                uss: possible(member.uss, member.rss),
                pss: possible(member.pss, member.rss),
            });
        }
    }

    /// The window is over: the rates of everybody in it are known.
    fn hand_on(&mut self, mut each: impl FnMut(&Row<'_>)) {
        self.alive.values_mut().for_each(Member::measure);
        for Waiting { timestamp, id, tool, cpu, rss, uss, pss } in self.waiting.drain(..) {
            let there = self.alive.get(&id).map(|member| member.cores);
            let cores = there.or_else(|| self.gone.get(&id).copied()).unwrap_or(0.0);
            let tool = self.tools[tool].as_str();
            each(&Row { timestamp, tool, pid: id.pid, cores, cpu, rss, uss, pss });
        }
        self.gone.clear();
    }

    /// Hands on what is left.
    pub fn finish(mut self, each: impl FnMut(&Row<'_>)) {
        self.hand_on(each);
    }
}

impl Member {
    fn new(tool: usize, born: f64) -> Member {
        Member {
            tool,
            cpu: None,
            before: (0.0, born),
            looked: born,
            cores: 0.0,
            rss: None,
            pss: None,
            uss: None,
        }
    }

    /// Takes in a row about it.
    fn renew(&mut self, table: &Table, row: usize, at: f64) {
        self.looked = at;
        let cpu = table.get::<ProcessCpu>(row);
        if let (Some(user), Some(system)) = (cpu.user, cpu.system) {
            self.cpu = Some([user, system]);
        }
        let memory = table.get::<ProcessMemory>(row);
        self.rss = memory.rss.or(self.rss);
        self.pss = memory.pss.or(self.pss);
        self.uss = memory.uss.or(self.uss);
    }

    /// Its cores since its window began; a new one begins.
    fn measure(&mut self) {
        let (Some(cpu), (before, since)) = (self.cpu, self.before) else { return };
        let used = (cpu[0] + cpu[1] - before).max(0.0);
        // One who was there for less than a window did not use more than was counted in it.
        self.cores = used / (self.looked - since).max(SHORTEST_WINDOW);
        self.before = (cpu[0] + cpu[1], self.looked);
    }
}
