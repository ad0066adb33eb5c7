//! The processes of a run as the summary follows them: who is alive, with what.

use std::collections::{BTreeMap, HashMap};

use super::curve::{Mean, Peak};
use crate::collect::process::{ProcessCpu, ProcessEvents, ProcessIo, ProcessMemory, ProcessState};
use crate::sample::{ProcessId, Table};

/// What was last read of a process that is alive.
#[derive(Debug, Clone, Copy, Default)]
struct Alive {
    cpu: ProcessCpu,
    memory: ProcessMemory,
    io: ProcessIo,
    events: ProcessEvents,
    state: ProcessState,
}

/// Takes the new value where there is one: what was not read is as it was.
macro_rules! renew {
    ($old:expr, $new:expr, $($field:ident),+) => {
        $( $old.$field = $new.$field.or($old.$field); )+
    };
}

impl Alive {
    fn renew(&mut self, table: &Table, row: usize) {
        let cpu = table.get::<ProcessCpu>(row);
        renew!(self.cpu, cpu, user, system, children_user, children_system);
        let memory = table.get::<ProcessMemory>(row);
        renew!(self.memory, memory, rss, peak, pss, uss, swap);
        let io = table.get::<ProcessIo>(row);
        renew!(self.io, io, read, written, read_calls, write_calls, storage_read, storage_written);
        let events = table.get::<ProcessEvents>(row);
        renew!(
            self.events,
            events,
            faults_minor,
            faults_major,
            switches_voluntary,
            switches_involuntary
        );
        let state = table.get::<ProcessState>(row);
        renew!(self.state, state, threads, files_open);
    }

    fn own_cpu(&self) -> Option<f64> {
        Some(self.cpu.user? + self.cpu.system?)
    }

    /// With the children it has waited for.
    fn cpu(&self) -> Option<f64> {
        Some(self.own_cpu()? + self.cpu.children_user? + self.cpu.children_system?)
    }

    /// The most this process can have had so far.
    fn ceiling(&self) -> Option<u64> {
        self.memory.peak.max(self.memory.rss)
    }
}

/// Peaks of one part of the tree.
#[derive(Debug, Clone, Copy, Default)]
pub struct Levels {
    /// Resident memory, shared pages counted in full.
    pub rss: Peak,
    /// Proportional memory.
    pub pss: Peak,
    /// Private memory.
    pub uss: Peak,
    /// Swapped memory.
    pub swap: Peak,
    /// Threads.
    pub threads: Peak,
    /// Open files.
    pub files: Peak,
}

/// Sums over one part of the tree at one moment; `None` where nobody had a value.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    rss: Option<f64>,
    pss: Option<f64>,
    uss: Option<f64>,
    swap: Option<f64>,
    threads: Option<f64>,
    files: Option<f64>,
}

fn add(sum: &mut Option<f64>, value: Option<u64>) {
    if let Some(value) = value {
        *sum = Some(sum.unwrap_or(0.0) + value as f64);
    }
}

impl Sums {
    fn add(&mut self, process: &Alive) {
        add(&mut self.rss, process.memory.rss);
        add(&mut self.pss, process.memory.pss);
        add(&mut self.uss, process.memory.uss);
        add(&mut self.swap, process.memory.swap);
        add(&mut self.threads, process.state.threads);
        add(&mut self.files, process.state.files_open);
    }

    fn into(self, levels: &mut Levels, at: f64) {
        for (sum, peak) in [
            (self.rss, &mut levels.rss),
            (self.pss, &mut levels.pss),
            (self.uss, &mut levels.uss),
            (self.swap, &mut levels.swap),
            (self.threads, &mut levels.threads),
            (self.files, &mut levels.files),
        ] {
            if let Some(sum) = sum {
                peak.see(sum, at);
            }
        }
    }
}

/// The tree of a run.
#[derive(Debug, Default)]
pub struct Tree {
    main: Option<ProcessId>,
    alive: HashMap<ProcessId, Alive>,
    names: HashMap<ProcessId, String>,
    /// Sizes of those who were reaped since the last whole look: they may have been there
    /// together with somebody who had not been seen yet.
    reaped: u64,
    /// How many others went since: what they grew to after they were last looked at, only
    /// those who waited for them know.
    went: usize,
    main_cpu: Option<f64>,
    /// Everybody seen so far.
    pub total: u64,
    /// The most at once.
    pub most: u64,
    /// Peaks of the main process.
    pub main_levels: Levels,
    /// Peaks of everybody else.
    pub descendants: Levels,
    /// Peaks of all together.
    pub combined: Levels,
    /// The largest single process.
    pub largest: Peak,
    /// The largest process that was reaped as the command itself, as `wait4` says.
    pub main_exit: Peak,
    /// For each number of processes of unknown size, the most that the others can have had.
    ceilings: BTreeMap<usize, f64>,
    /// Memory over time.
    pub mean: Mean,
}

impl Tree {
    /// The tree of a command's process.
    pub fn of(main: ProcessId) -> Tree {
        Tree { main: Some(main), ..Tree::default() }
    }

    /// Takes in the rows of a tick.
    pub fn rows(&mut self, table: &Table, at: f64) {
        for (row, entity) in table.entities().iter().enumerate() {
            let crate::sample::Entity::Process(id) = entity else { continue };
            let next = self.alive.len() as u64;
            let process = self.alive.entry(*id).or_default();
            process.renew(table, row);
            if let Some(size) = process.ceiling() {
                self.largest.see(size as f64, at);
            }
            if self.main == Some(*id) {
                self.main_cpu = process.own_cpu().or(self.main_cpu);
            }
            if self.alive.len() as u64 > next {
                self.total += 1;
                self.most = self.most.max(self.alive.len() as u64);
            }
        }
        // Without a row nothing has changed.
        if !table.is_empty() {
            self.levels(at);
        }
    }

    fn levels(&mut self, at: f64) {
        let (mut main, mut others, mut all) = (Sums::default(), Sums::default(), Sums::default());
        let mut ceiling = None;
        for (id, process) in &self.alive {
            if self.main == Some(*id) {
                main.add(process)
            } else {
                others.add(process)
            }
            all.add(process);
            add(&mut ceiling, process.ceiling());
        }
        main.into(&mut self.main_levels, at);
        others.into(&mut self.descendants, at);
        all.into(&mut self.combined, at);
        if let Some(ceiling) = ceiling {
            self.note_ceiling(ceiling);
        }
        if let Some(memory) = all.pss.or(all.rss) {
            self.mean.see(memory, at);
        }
    }

    /// Everybody was looked at: who went before is not together with who comes after.
    pub fn looked_at_everybody(&mut self) {
        self.reaped = 0;
        self.went = 0;
    }

    fn note_ceiling(&mut self, alive: f64) {
        let known = alive + self.reaped as f64;
        let most = self.ceilings.entry(self.went).or_insert(known);
        *most = most.max(known);
    }

    /// The most that all together can have had, when no single process had more than `largest`.
    pub fn ceiling(&self, largest: f64) -> Option<f64> {
        let sum = |(unknown, known): (&usize, &f64)| known + *unknown as f64 * largest;
        self.ceilings.iter().map(sum).reduce(f64::max)
    }

    /// A process has this name.
    pub fn named(&mut self, id: ProcessId, name: &str) {
        self.names.insert(id, name.to_owned());
    }

    /// A process ended; `largest` is what the kernel says was its largest size, if it does.
    pub fn ended(&mut self, id: ProcessId, largest: Option<u64>, at: f64) {
        self.names.remove(&id);
        if let Some(size) = largest {
            // The command's own carries what it was before exec, and is judged at the end.
            let peak = if self.main == Some(id) { &mut self.main_exit } else { &mut self.largest };
            peak.see(size as f64, at);
        }
        let Some(process) = self.alive.remove(&id) else { return };
        match largest {
            Some(size) => self.reaped += process.ceiling().unwrap_or(0).max(size),
            None => self.went += 1,
        }
        let others: u64 = self.alive.values().filter_map(Alive::ceiling).sum();
        self.note_ceiling(others as f64);
    }

    /// The name of a process that is alive.
    pub fn name(&self, pid: u32) -> String {
        let named = self.names.iter().find(|(id, _)| id.pid == pid);
        named.map_or_else(|| "?".to_owned(), |(_, name)| name.clone())
    }

    /// CPU time of the main process alone.
    pub fn main_cpu(&self) -> Option<f64> {
        self.main_cpu
    }

    /// CPU time of everybody alive, with the children they have waited for.
    pub fn cpu_of_alive(&self) -> f64 {
        self.alive.values().filter_map(Alive::cpu).sum()
    }

    /// One counter over everybody alive.
    pub fn sum_of_alive(&self, counter: impl Fn(&ProcessIo, &ProcessEvents) -> Option<u64>) -> f64 {
        self.alive.values().filter_map(|alive| counter(&alive.io, &alive.events)).sum::<u64>()
            as f64
    }
}
