//! The processes of a run as the summary tracks them: which are alive, with what.

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
    /// The command's process; several, in order, when several runs were merged.
    mains: Vec<ProcessId>,
    /// Ordered, so that the same recording always gives the same last digit.
    alive: BTreeMap<ProcessId, TrackedProcess>,
    names: HashMap<ProcessId, String>,
    /// Those that have started and have no row yet.
    announced: HashSet<ProcessId>,
    /// Those that exited since the last complete tick: they may have been alive together with a
    /// process that had not been sampled yet.
    exited_since_tick: ExitedSinceSample,
    /// Those that exited in the round before, where ticks are rounds of several: a process that was
    /// alive with them may still not have been sampled.
    exited_before: Option<ExitedSinceSample>,
    /// CPU time of the main processes.
    main_cpu: BTreeMap<ProcessId, f64>,
    /// All processes so far.
    pub total: u64,
    /// The most at once.
    pub most: u64,
    /// The most that have a row of the same tick: those were alive together, even where exits are
    /// not recorded.
    pub most_with_rows: u64,
    /// Peaks of the main process.
    pub main_levels: PeakLevels,
    /// Peaks of all other processes.
    pub descendants: PeakLevels,
    /// Peaks of all together.
    pub combined: PeakLevels,
    /// The largest single process.
    pub largest: Peak,
    /// The largest process that was reaped as the command itself, by `wait4`.
    pub main_maxrss: Peak,
    /// The largest of all others that weigh reaped, by `wait4`.
    pub others_maxrss: Peak,
    upper_bounds: UpperBounds,
    /// The same since the last complete tick.
    recent: UpperBounds,
    /// The largest size that a process grew to since the last complete tick.
    largest_since_complete_tick: Option<u64>,
    /// CPU time of exited processes, of each its own as last sampled.
    own_cpu_of_exited: f64,
    /// I/O of reaped processes, as far as it was sampled.
    reaped_io: [f64; 6],
    /// Resident memory over time, each shared page counted once.
    pub mean: Mean,
    /// The same with shared pages counted for each process that maps them.
    pub mean_rss: Mean,
    /// What exited processes used, when weigh reaps none.
    exited_usage: Option<ExitedUsage>,
}

/// Those that exited since all processes were sampled.
#[derive(Debug, Clone, Copy, Default)]
struct ExitedSinceSample {
    /// The sizes of the reaped ones.
    reaped: u64,
    /// How many others there were: what they grew to after their last sample is known only to the
    /// processes that reaped them.
    others: usize,
}

impl RunTree {
    /// The tree of a command's process, or of several.
    pub(super) fn of(mut mains: Vec<ProcessId>) -> RunTree {
        mains.sort_unstable();
        RunTree { mains, ..RunTree::default() }
    }

    /// The same of processes that weigh attached to and does not reap.
    pub(super) fn with_exited_usage(self, exited_usage: ExitedUsage) -> RunTree {
        RunTree { exited_usage: Some(exited_usage), ..self }
    }

    /// The same, where ticks are rounds of several.
    pub(super) fn in_rounds(self) -> RunTree {
        RunTree { exited_before: Some(ExitedSinceSample::default()), ..self }
    }

    fn is_main(&self, id: &ProcessId) -> bool {
        self.mains.binary_search(id).is_ok()
    }

    /// Adds the rows of a tick.
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
            // A zombie has no memory left, and that proves nothing.
            if let Some(size) = process.largest().filter(|size| *size > 0) {
                match process.is_at_its_peak() {
                    true => self.largest.add(size as f64, at),
                    // It had been larger between the last reading of the mark and this one.
                    false => {
                        let after = was.high_water_read.unwrap_or(0.0);
                        self.largest.add_between(size as f64, after, at);
                    }
                }
                if before.is_none_or(|before| size > before) {
                    self.largest_since_complete_tick =
                        self.largest_since_complete_tick.max(Some(size));
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
            self.raise_peaks(at);
        }
    }

    fn raise_peaks(&mut self, at: f64) {
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
            self.mean.add_memory(memory, at);
        }
        if let Some(rss) = all.rss {
            self.mean_rss.add_memory(rss, at);
        }
    }

    /// All processes were sampled: earlier exits do not overlap with later starts.
    pub(super) fn sample_completed(&mut self) {
        if let Some(exited_usage) = &mut self.exited_usage {
            exited_usage.sample_completed();
        }
        let exited_since_tick = std::mem::take(&mut self.exited_since_tick);
        if let Some(before) = &mut self.exited_before {
            *before = exited_since_tick;
        }
        self.largest_since_complete_tick = None;
        self.recent = UpperBounds::default();
        let alive: u64 = self.alive.values().filter_map(TrackedProcess::upper_bound).sum();
        let (others, known) = self.with_exited(alive as f64);
        self.recent.note(others, known);
    }

    /// How many of unknown size may exist beside those alive, and what all others have.
    fn with_exited(&self, alive: f64) -> (usize, f64) {
        let before = self.exited_before.unwrap_or_default();
        let reaped = self.exited_since_tick.reaped.saturating_add(before.reaped);
        (self.exited_since_tick.others + before.others, alive + reaped as f64)
    }

    fn note_upper_bound(&mut self, alive: f64) {
        let (others, known) = self.with_exited(alive);
        self.upper_bounds.note(others, known);
        self.recent.note(others, known);
    }

    /// The upper bound of the sum, when no single process had more than `largest`.
    pub(super) fn upper_bound(&self, largest: f64) -> Option<f64> {
        self.upper_bounds.most(largest)
    }

    /// What bounds the memory since the last complete tick.
    pub(super) fn recent_upper_bounds(&self) -> &UpperBounds {
        &self.recent
    }

    /// The largest size that a process grew to since the last complete tick, or started with.
    pub(super) fn largest_since_complete_tick(&self) -> Option<u64> {
        self.largest_since_complete_tick
    }

    /// All live processes.
    pub(super) fn all_alive(&self) -> impl Iterator<Item = (&ProcessId, &TrackedProcess)> {
        self.alive.iter()
    }

    /// Keeps only these pids alive.
    pub(super) fn retain_alive(&mut self, pids: &[u32]) {
        self.alive.retain(|id, _| pids.contains(&id.pid));
        self.announced.retain(|id| pids.contains(&id.pid));
    }

    /// A process has this parent.
    pub(super) fn starts(&mut self, id: ProcessId, parent: u32) {
        // It counts, whether there is a row of it or not. How many were alive at once is counted
        // with the rows: the one it replaces may exit at the same time.
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

    /// A process exited; `usage` is what `wait4` reported, if it did, and `cpu_seconds` all that it
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
            // It includes reaped children, `weigh mark` among them, and the command's own includes
            // its size before exec: it is judged at the end.
            let (is_main, after) = (self.is_main(&id), self.high_water_read(&id));
            let peak = if is_main { &mut self.main_maxrss } else { &mut self.others_maxrss };
            peak.add_between(size as f64, after, at);
        }
        let process = self.alive.remove(&id);
        if let Some(exited_usage) = &mut self.exited_usage {
            // A process that was never sampled may have a clock all the same.
            exited_usage.on_exit(id, &process.unwrap_or_default(), usage, cpu_seconds);
            if process.is_none() && !was_announced && (cpu_seconds.is_some() || usage.is_some()) {
                self.total += 1;
                self.most = self.most.max(self.alive.len() as u64 + 1);
            }
        }
        let Some(process) = process else { return };
        self.own_cpu_of_exited += process.own_cpu().unwrap_or(0.0);
        // What weigh reaps is not in any parent's counters any more.
        if let Some(io) = process.all_io().filter(|_| largest.is_some()) {
            self.reaped_io = std::array::from_fn(|which| self.reaped_io[which] + io[which]);
        }
        match largest {
            Some(size) => {
                self.exited_since_tick.reaped += process.upper_bound().unwrap_or(0).max(size);
            }
            None => self.exited_since_tick.others += 1,
        }
        let others: u64 = self.alive.values().filter_map(TrackedProcess::upper_bound).sum();
        self.note_upper_bound(others as f64);
    }

    /// When the high-water mark of a process was last read; 0 when it never was.
    pub(super) fn high_water_read(&self, id: &ProcessId) -> f64 {
        self.alive.get(id).and_then(|process| process.high_water_read).unwrap_or(0.0)
    }

    /// The name of a process, if it is one of the run and has not exited.
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

    /// CPU time of all live processes, with their reaped children, and of those that are not in any
    /// parent's counters.
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

    /// Sampled CPU time, of each process its own: reaped or not.
    pub(super) fn own_cpu_sampled(&self) -> f64 {
        let alive = self.alive.values().filter_map(TrackedProcess::own_cpu);
        self.own_cpu_of_exited + alive.sum::<f64>()
    }

    /// What exited processes used, when weigh reaps none.
    pub(super) fn exited_counts(&self) -> ExitedCounts {
        self.exited_usage.as_ref().map_or_else(ExitedCounts::default, ExitedUsage::total)
    }

    /// I/O of live and of exited processes; `None` when no process's can be read.
    pub(super) fn io(&self) -> Option<[f64; 6]> {
        let left = self.exited_counts().io;
        let ended = left.unwrap_or(self.reaped_io);
        let mut is_known = left.is_some() || ended.iter().any(|count| *count > 0.0);
        let mut sum = ended;
        for io in self.alive.values().filter_map(TrackedProcess::all_io) {
            is_known = true;
            sum = std::array::from_fn(|which| sum[which] + io[which]);
        }
        is_known.then_some(sum)
    }

    /// One counter over all live processes.
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
