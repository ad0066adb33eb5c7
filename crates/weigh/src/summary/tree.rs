//! The processes of a run as the summary follows them: who is alive, with what.

use std::collections::HashMap;

use super::alive::{Alive, Levels, Sums, add};
use super::ceiling::Ceilings;
use super::curve::{Mean, Peak};
use super::estate::{Account, Estate};
use crate::collect::process::{ProcessEvents, ProcessIo};
use crate::sample::{ProcessId, Table};

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
    ceilings: Ceilings,
    /// The same since the last whole look.
    recent: Ceilings,
    /// The largest size that a process grew to since the last whole look.
    grown: Option<u64>,
    /// I/O of those who were reaped, as far as it was seen.
    reaped_io: [f64; 6],
    /// Memory over time.
    pub mean: Mean,
    /// What those who ended left behind, when weigh waits for nobody.
    estate: Option<Estate>,
}

impl Tree {
    /// The tree of a command's process.
    pub fn of(main: ProcessId) -> Tree {
        Tree { main: Some(main), ..Tree::default() }
    }

    /// Processes that ran already: with all they start, or each for itself.
    pub fn followed(main: ProcessId, with_children: bool) -> Tree {
        Tree { estate: Some(Estate::new(with_children)), ..Tree::of(main) }
    }

    /// Takes in the rows of a tick.
    pub fn rows(&mut self, table: &Table, at: f64) {
        for (row, entity) in table.entities().iter().enumerate() {
            let crate::sample::Entity::Process(id) = entity else { continue };
            let next = self.alive.len() as u64;
            let process = self.alive.entry(*id).or_default();
            let (before, was) = (process.ceiling(), *process);
            process.renew(table, row);
            if let Some(estate) = &mut self.estate {
                estate.looked_at(*id, &was, process);
            }
            if let Some(size) = process.ceiling() {
                self.largest.see(size as f64, at);
                if before.is_none_or(|before| size > before) {
                    self.grown = self.grown.max(Some(size));
                }
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
        self.grown = None;
        self.recent = Ceilings::default();
        let alive: u64 = self.alive.values().filter_map(Alive::ceiling).sum();
        self.recent.note(0, alive as f64);
    }

    fn note_ceiling(&mut self, alive: f64) {
        let known = alive + self.reaped as f64;
        self.ceilings.note(self.went, known);
        self.recent.note(self.went, known);
    }

    /// The most that all together can have had, when no single process had more than `largest`.
    pub fn ceiling(&self, largest: f64) -> Option<f64> {
        self.ceilings.most(largest)
    }

    /// What bounds the memory since the last whole look.
    pub fn recent_ceilings(&self) -> &Ceilings {
        &self.recent
    }

    /// The largest size that a process grew to since the last whole look, or came with.
    pub fn grown(&self) -> Option<u64> {
        self.grown
    }

    /// Everybody alive.
    pub fn everybody(&self) -> impl Iterator<Item = (&ProcessId, &Alive)> {
        self.alive.iter()
    }

    /// A process has this parent.
    pub fn comes(&mut self, id: ProcessId, parent: u32) {
        if let Some(estate) = &mut self.estate {
            estate.comes(id, parent);
        }
    }

    /// A process has this name.
    pub fn named(&mut self, id: ProcessId, name: &str) {
        self.names.insert(id, name.to_owned());
    }

    /// A process ended; `largest` is what the kernel says was its largest size, if it does, and
    /// `cpu_seconds` all that it used.
    pub fn ended(
        &mut self,
        id: ProcessId,
        largest: Option<u64>,
        cpu_seconds: Option<f64>,
        at: f64,
    ) {
        self.names.remove(&id);
        if let Some(size) = largest {
            // The command's own carries what it was before exec, and is judged at the end.
            let peak = if self.main == Some(id) { &mut self.main_exit } else { &mut self.largest };
            peak.see(size as f64, at);
        }
        let process = self.alive.remove(&id);
        if let Some(estate) = &mut self.estate {
            // Somebody who was never looked at may have a clock all the same.
            estate.inherit(id, &process.unwrap_or_default(), cpu_seconds);
            if process.is_none() && cpu_seconds.is_some() {
                self.total += 1;
                self.most = self.most.max(self.alive.len() as u64 + 1);
            }
        }
        let Some(process) = process else { return };
        // Whom weigh reaps is in nobody's account any more.
        if let Some(io) = process.all_io().filter(|_| largest.is_some()) {
            self.reaped_io = std::array::from_fn(|which| self.reaped_io[which] + io[which]);
        }
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

    /// CPU time of everybody alive, with the children they have waited for, and of those who
    /// are in nobody's account.
    pub fn cpu_of_alive(&self) -> f64 {
        let (user, system) = self.split_of_alive();
        user + system
    }

    /// The same in user mode, and in the kernel.
    pub fn split_of_alive(&self) -> (f64, f64) {
        let with_children = self.estate.as_ref().is_none_or(Estate::with_children);
        let left = self.left_behind().cpu;
        self.alive.values().fold((left[0], left[1]), |(user, system), alive| {
            let cpu = &alive.cpu;
            let sum = |own: Option<f64>, children: Option<f64>| {
                own.unwrap_or(0.0) + children.filter(|_| with_children).unwrap_or(0.0)
            };
            (user + sum(cpu.user, cpu.children_user), system + sum(cpu.system, cpu.children_system))
        })
    }

    /// What those who ended left behind, when weigh waits for nobody.
    pub fn left_behind(&self) -> Account {
        self.estate.as_ref().map_or_else(Account::default, Estate::total)
    }

    /// I/O of everybody alive and of those who ended; `None` when nobody's can be read.
    pub fn io(&self) -> Option<[f64; 6]> {
        let left = self.left_behind().io;
        let ended = left.unwrap_or(self.reaped_io);
        let mut seen = left.is_some() || ended.iter().any(|count| *count > 0.0);
        let mut sum = ended;
        for io in self.alive.values().filter_map(Alive::all_io) {
            seen = true;
            sum = std::array::from_fn(|which| sum[which] + io[which]);
        }
        seen.then_some(sum)
    }

    /// One counter over everybody alive.
    pub fn sum_of_alive(&self, counter: impl Fn(&ProcessIo, &ProcessEvents) -> Option<u64>) -> f64 {
        self.alive.values().filter_map(|alive| counter(&alive.io, &alive.events)).sum::<u64>()
            as f64
    }
}
