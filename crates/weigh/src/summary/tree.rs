//! The processes of a run as the summary follows them: who is alive, with what.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::alive::{PeakLevels, TrackedProcess, TreeSums, add};
use super::curve::{Mean, Peak};
use super::exited_usage::{ExitedCounts, ExitedUsage};
use super::upper_bounds::UpperBounds;
use crate::catalog::metrics::{ProcessEvents, ProcessIo, ProcessMemory};
use crate::model::{ProcessId, Table, Usage};

/// The tree of a run.
#[derive(Debug, Default)]
pub(super) struct RunTree {
    /// The command's process; several, in order, when several runs were put together.
    mains: Vec<ProcessId>,
    /// In an order, so that the same recording always gives the same last digit.
    alive: BTreeMap<ProcessId, TrackedProcess>,
    names: HashMap<ProcessId, String>,
    /// Those who have started and have no row yet.
    announced: HashSet<ProcessId>,
    /// Those who went since the last whole look: they may have been there together with
    /// somebody who had not been seen yet.
    gone: ExitedSinceSample,
    /// Those who went in the round before, where looks are rounds of several: somebody who was
    /// there with them may still not have been seen.
    exited_before: Option<ExitedSinceSample>,
    /// CPU time of the main processes.
    main_cpu: BTreeMap<ProcessId, f64>,
    /// Everybody seen so far.
    pub total: u64,
    /// The most at once.
    pub most: u64,
    /// The most that have a row of the same moment: those were there together, whoever's exit is
    /// not recorded.
    pub most_with_rows: u64,
    /// Peaks of the main process.
    pub main_levels: PeakLevels,
    /// Peaks of everybody else.
    pub descendants: PeakLevels,
    /// Peaks of all together.
    pub combined: PeakLevels,
    /// The largest single process.
    pub largest: Peak,
    /// The largest process that was reaped as the command itself, as `wait4` says.
    pub main_maxrss: Peak,
    /// The largest of all others that weigh reaped, as `wait4` says.
    pub others_maxrss: Peak,
    upper_bounds: UpperBounds,
    /// The same since the last whole look.
    recent: UpperBounds,
    /// The largest size that a process grew to since the last whole look.
    grown: Option<u64>,
    /// CPU time of those who ended, of each its own as it was last seen.
    own_cpu_of_exited: f64,
    /// I/O of those who were reaped, as far as it was seen.
    reaped_io: [f64; 6],
    /// Resident memory over time, each shared page counted once.
    pub mean: Mean,
    /// The same with shared pages counted for each who has them.
    pub mean_rss: Mean,
    /// What those who ended left behind, when weigh waits for nobody.
    exited_usage: Option<ExitedUsage>,
}

/// Those who went since everybody was looked at.
#[derive(Debug, Clone, Copy, Default)]
struct ExitedSinceSample {
    /// The sizes of those who were reaped.
    reaped: u64,
    /// How many others there were: what they grew to after they were last looked at, only
    /// those who waited for them know.
    others: usize,
}

impl RunTree {
    /// The tree of a command's process, or of several.
    pub(super) fn of(mut mains: Vec<ProcessId>) -> RunTree {
        mains.sort_unstable();
        RunTree { mains, ..RunTree::default() }
    }

    /// The same of processes that weigh follows and does not wait for.
    pub(super) fn with_exited_usage(self, exited_usage: ExitedUsage) -> RunTree {
        RunTree { exited_usage: Some(exited_usage), ..self }
    }

    /// The same, where looks are rounds of several.
    pub(super) fn in_rounds(self) -> RunTree {
        RunTree { exited_before: Some(ExitedSinceSample::default()), ..self }
    }

    fn is_main(&self, id: &ProcessId) -> bool {
        self.mains.binary_search(id).is_ok()
    }

    /// Takes in the rows of a tick.
    pub(super) fn rows(&mut self, table: &Table, at: f64) {
        for (row, entity) in table.entities().iter().enumerate() {
            let crate::model::Entity::Process(id) = entity else { continue };
            let next = self.alive.len() as u64;
            let process = self.alive.entry(*id).or_default();
            let (before, was) = (process.largest(), *process);
            process.last.update(table, row);
            if let Some(exited_usage) = &mut self.exited_usage {
                exited_usage.sampled(*id, &was, process);
            }
            // One that has ended and was not waited for has none left, and that says nothing.
            if let Some(size) = process.largest().filter(|size| *size > 0) {
                match process.is_at_its_peak() {
                    true => self.largest.see(size as f64, at),
                    // It had been larger between the last reading of the mark and this one.
                    false => {
                        let after = was.high_water_read.unwrap_or(0.0);
                        self.largest.see_between(size as f64, after, at);
                    }
                }
                if before.is_none_or(|before| size > before) {
                    self.grown = self.grown.max(Some(size));
                }
            }
            if table.get::<ProcessMemory>(row).peak.is_some() {
                process.high_water_read = Some(at);
            }
            let is_main = self.mains.binary_search(id).is_ok();
            if let Some(cpu) = process.own_cpu_finer().filter(|_| is_main) {
                self.main_cpu.insert(*id, cpu);
            }
            if self.alive.len() as u64 > next {
                self.total += u64::from(!self.announced.remove(id));
                self.most = self.most.max((self.alive.len() + self.announced.len()) as u64);
            }
        }
        self.most_with_rows = self.most_with_rows.max(table.entities().len() as u64);
        // Without a row nothing has changed.
        if !table.is_empty() {
            self.levels(at);
        }
    }

    fn levels(&mut self, at: f64) {
        let (mut main, mut others, mut all) =
            (TreeSums::default(), TreeSums::default(), TreeSums::default());
        let mut upper_bound = None;
        for (id, process) in &self.alive {
            if self.is_main(id) {
                main.add(process);
            } else {
                others.add(process);
            }
            all.add(process);
            add(&mut upper_bound, process.upper_bound());
        }
        main.into(&mut self.main_levels, at);
        others.into(&mut self.descendants, at);
        all.into(&mut self.combined, at);
        if let Some(upper_bound) = upper_bound {
            self.note_upper_bound(upper_bound);
        }
        if let Some(memory) = all.shared_counted_once() {
            self.mean.see_memory(memory, at);
        }
        if let Some(rss) = all.rss {
            self.mean_rss.see_memory(rss, at);
        }
    }

    /// Everybody was looked at: who went before is not together with who comes after.
    pub(super) fn sample_completed(&mut self) {
        if let Some(exited_usage) = &mut self.exited_usage {
            exited_usage.sample_completed();
        }
        let gone = std::mem::take(&mut self.gone);
        if let Some(before) = &mut self.exited_before {
            *before = gone;
        }
        self.grown = None;
        self.recent = UpperBounds::default();
        let alive: u64 = self.alive.values().filter_map(TrackedProcess::upper_bound).sum();
        let (others, known) = self.with_exited(alive as f64);
        self.recent.note(others, known);
    }

    /// How many of unknown size may be there beside those alive, and what all others have.
    fn with_exited(&self, alive: f64) -> (usize, f64) {
        let before = self.exited_before.unwrap_or_default();
        let reaped = self.gone.reaped.saturating_add(before.reaped);
        (self.gone.others + before.others, alive + reaped as f64)
    }

    fn note_upper_bound(&mut self, alive: f64) {
        let (others, known) = self.with_exited(alive);
        self.upper_bounds.note(others, known);
        self.recent.note(others, known);
    }

    /// The most that all together can have had, when no single process had more than `largest`.
    pub(super) fn upper_bound(&self, largest: f64) -> Option<f64> {
        self.upper_bounds.most(largest)
    }

    /// What bounds the memory since the last whole look.
    pub(super) fn recent_upper_bounds(&self) -> &UpperBounds {
        &self.recent
    }

    /// The largest size that a process grew to since the last whole look, or came with.
    pub(super) fn grown(&self) -> Option<u64> {
        self.grown
    }

    /// Everybody alive.
    pub(super) fn all_alive(&self) -> impl Iterator<Item = (&ProcessId, &TrackedProcess)> {
        self.alive.iter()
    }

    /// Takes nobody for alive but those of these pids.
    pub(super) fn retain_alive(&mut self, pids: &[u32]) {
        self.alive.retain(|id, _| pids.contains(&id.pid));
        self.announced.retain(|id| pids.contains(&id.pid));
    }

    /// A process has this parent.
    pub(super) fn starts(&mut self, id: ProcessId, parent: u32) {
        // It counts, whether there is a row of it or not. How many there were at once is counted
        // with the rows: the one whose place it takes may exit at the same moment.
        if !self.alive.contains_key(&id) && self.announced.insert(id) {
            self.total += 1;
        }
        if let Some(exited_usage) = &mut self.exited_usage {
            exited_usage.starts(id, parent);
        }
    }

    /// A process has this name.
    pub(super) fn named(&mut self, id: ProcessId, name: &str) {
        self.names.insert(id, name.to_owned());
    }

    /// A process ended; `usage` is what `wait4` said, if it did, and `cpu_seconds` all that it
    /// used itself.
    pub(super) fn ended(
        &mut self,
        id: ProcessId,
        usage: Option<&Usage>,
        cpu_seconds: Option<f64>,
        at: f64,
    ) {
        self.names.remove(&id);
        let was_announced = self.announced.remove(&id);
        let largest = usage.map(|usage| usage.largest_rss_bytes);
        if let Some(size) = largest {
            // It carries children that were waited for, `weigh mark` among them, and the
            // command's own what it was before exec: it is judged at the end.
            let (is_main, after) = (self.is_main(&id), self.high_water_read(&id));
            let peak = if is_main { &mut self.main_maxrss } else { &mut self.others_maxrss };
            peak.see_between(size as f64, after, at);
        }
        let process = self.alive.remove(&id);
        if let Some(exited_usage) = &mut self.exited_usage {
            // Somebody who was never looked at may have a clock all the same.
            exited_usage.on_exit(id, &process.unwrap_or_default(), usage, cpu_seconds);
            if process.is_none() && !was_announced && (cpu_seconds.is_some() || usage.is_some()) {
                self.total += 1;
                self.most = self.most.max(self.alive.len() as u64 + 1);
            }
        }
        let Some(process) = process else { return };
        self.own_cpu_of_exited += process.own_cpu().unwrap_or(0.0);
        // Whom weigh reaps is in nobody's account any more.
        if let Some(io) = process.all_io().filter(|_| largest.is_some()) {
            self.reaped_io = std::array::from_fn(|which| self.reaped_io[which] + io[which]);
        }
        match largest {
            Some(size) => self.gone.reaped += process.upper_bound().unwrap_or(0).max(size),
            None => self.gone.others += 1,
        }
        let others: u64 = self.alive.values().filter_map(TrackedProcess::upper_bound).sum();
        self.note_upper_bound(others as f64);
    }

    /// When the high-water mark of a process was last read; 0 when it never was.
    pub(super) fn high_water_read(&self, id: &ProcessId) -> f64 {
        self.alive.get(id).and_then(|process| process.high_water_read).unwrap_or(0.0)
    }

    /// The name of a process, if it is one of the run and has not ended.
    pub(super) fn called(&self, id: &ProcessId) -> Option<&str> {
        self.names.get(id).map(String::as_str)
    }

    /// The name of a process that is alive.
    pub(super) fn name(&self, pid: u32) -> String {
        let named = self.names.iter().find(|(id, _)| id.pid == pid);
        named.map_or_else(|| "?".to_owned(), |(_, name)| name.clone())
    }

    /// CPU time of the main process alone, or of the main processes.
    pub(super) fn main_cpu(&self) -> Option<f64> {
        (!self.main_cpu.is_empty()).then(|| self.main_cpu.values().sum())
    }

    /// CPU time of everybody alive, with the children they have waited for, and of those who
    /// are in nobody's account.
    pub(super) fn cpu_of_alive(&self) -> f64 {
        let (user, system) = self.split_of_alive();
        user + system
    }

    /// The same in user mode, and in the kernel.
    pub(super) fn split_of_alive(&self) -> (f64, f64) {
        let left = self.exited_counts().cpu;
        self.alive.iter().fold((left[0], left[1]), |(user, system), (id, alive)| {
            let cpu = &alive.last.cpu;
            let with_children = self.exited_usage.as_ref().is_none_or(|all| all.with_children(*id));
            let sum = |own: Option<f64>, children: Option<f64>| {
                own.unwrap_or(0.0) + children.filter(|_| with_children).unwrap_or(0.0)
            };
            (user + sum(cpu.user, cpu.children_user), system + sum(cpu.system, cpu.children_system))
        })
    }

    /// CPU time that was seen, of each process its own: whoever waited for it, and if nobody did.
    pub(super) fn own_cpu_seen(&self) -> f64 {
        let alive = self.alive.values().filter_map(TrackedProcess::own_cpu);
        self.own_cpu_of_exited + alive.sum::<f64>()
    }

    /// What those who ended left behind, when weigh waits for nobody.
    pub(super) fn exited_counts(&self) -> ExitedCounts {
        self.exited_usage.as_ref().map_or_else(ExitedCounts::default, ExitedUsage::total)
    }

    /// I/O of everybody alive and of those who ended; `None` when nobody's can be read.
    pub(super) fn io(&self) -> Option<[f64; 6]> {
        let left = self.exited_counts().io;
        let ended = left.unwrap_or(self.reaped_io);
        let mut seen = left.is_some() || ended.iter().any(|count| *count > 0.0);
        let mut sum = ended;
        for io in self.alive.values().filter_map(TrackedProcess::all_io) {
            seen = true;
            sum = std::array::from_fn(|which| sum[which] + io[which]);
        }
        seen.then_some(sum)
    }

    /// One counter over everybody alive.
    pub(super) fn sum_of_alive(
        &self,
        counter: impl Fn(&ProcessIo, &ProcessEvents) -> Option<u64>,
    ) -> f64 {
        self.alive
            .values()
            .filter_map(|alive| counter(&alive.last.io, &alive.last.events))
            .sum::<u64>() as f64
    }
}
