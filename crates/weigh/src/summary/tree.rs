//! Peaks, bounds and sums over the processes of a run.

use std::collections::BTreeMap;

use super::alive::{GaugePeaks, TreeSums, add};
use super::curve::{Mean, Peak};
use super::exited_usage::{ExitedCounts, ExitedUsage};
use super::peak_process::PeakProcess;
use super::upper_bounds::UpperBounds;
use crate::model::live::{LiveProcess, LiveProcesses, ProcessValues};
use crate::model::{ProcessId, Usage};

/// The tree of a run.
#[derive(Debug, Default, Clone)]
pub(super) struct RunTree {
    /// The command's process; several, in order, when several runs were merged.
    mains: Vec<ProcessId>,
    /// What live processes had when they were last counted.
    counts: AliveCounts,
    /// The pids that were left at the end, where exits may be missing: no other process is alive.
    still_running: Option<Vec<u32>>,
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
    /// Those of them of which only the exit is known.
    exited_unseen: u64,
    /// The most at once.
    pub peak_alive: u64,
    /// The most that have a row of the same tick: those were alive together, even where exits are
    /// not recorded.
    pub peak_in_one_tick: u64,
    /// Peaks of the main process.
    pub main_peaks: GaugePeaks,
    /// Peaks of all other processes.
    pub descendants: GaugePeaks,
    /// Peaks of all together.
    pub combined: GaugePeaks,
    /// The largest single process.
    pub largest_process: Peak,
    /// Which process that is, and which had the most when the sums of PSS and of RSS were highest.
    pub largest_holder: Option<PeakProcess>,
    pub pss_holder: Option<PeakProcess>,
    pub rss_holder: Option<PeakProcess>,
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

/// Counters summed over live processes.
#[derive(Debug, Clone, Copy, Default)]
struct AliveCounts {
    /// CPU time with that of reaped children, in user mode and in the kernel.
    cpu: (f64, f64),
    /// CPU time of each process by itself.
    own_cpu: f64,
    /// I/O in the order of [`crate::model::live::ProcessValues::all_io`]; `None` where no
    /// process's can be read.
    io: Option<[f64; 6]>,
    events: AliveEvents,
}

/// Page faults and context switches of live processes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AliveEvents {
    pub(super) faults_minor: u64,
    pub(super) faults_major: u64,
    pub(super) switches_voluntary: u64,
    pub(super) switches_involuntary: u64,
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

    /// The live processes that were sampled.
    pub(super) fn alive<'a>(
        &'a self,
        live: &'a LiveProcesses,
    ) -> impl Iterator<Item = &'a LiveProcess> {
        let is_left = |process: &&LiveProcess| {
            self.still_running.as_ref().is_none_or(|pids| pids.contains(&process.id.pid))
        };
        live.sampled().filter(is_left)
    }

    /// Adds the rows of a tick.
    pub(super) fn rows(&mut self, live: &LiveProcesses, at: f64) {
        let (mut rows, mut any_new) = (0, false);
        for (_, process) in live.in_rows() {
            let (id, now, was) = (process.id, &process.values, &process.previous);
            rows += 1;
            any_new |= process.is_new;
            if let Some(exited_usage) = &mut self.exited_usage {
                exited_usage.sampled(id, was, now);
            }
            // A zombie has no memory left, and that proves nothing.
            if let Some(size) = now.peak_rss().filter(|size| *size > 0) {
                // It had been larger between the last reading of the mark and this one.
                let after = (!now.is_at_its_peak()).then(|| was.high_water_read.unwrap_or(0.0));
                self.raise_largest(size, after, at, Some(process));
                if was.peak_rss().is_none_or(|before| size > before) {
                    self.largest_since_complete_tick =
                        self.largest_since_complete_tick.max(Some(size));
                }
            }
            let is_main = self.is_main(&id);
            if let Some(cpu) = now.own_cpu_finer().filter(|_| is_main) {
                self.main_cpu.insert(id, cpu);
            }
        }
        if any_new {
            self.total = live.total() + self.exited_unseen;
            // Those that have started and have no row yet count together with the rows: the one
            // that a process replaces may exit at the same time.
            self.peak_alive = self.peak_alive.max(live.len() as u64);
        }
        // Without a row nothing has changed.
        if rows > 0 {
            self.peak_in_one_tick = self.peak_in_one_tick.max(rows);
            self.raise_peaks(live, at);
        }
    }

    /// A process has this size, or had it at some time after that.
    pub(super) fn raise_largest(
        &mut self,
        size: u64,
        after: Option<f64>,
        at: f64,
        process: Option<&LiveProcess>,
    ) {
        let before = self.largest_process.value;
        match after {
            None => self.largest_process.add(size as f64, at),
            Some(after) => self.largest_process.add_between(size as f64, after, at),
        }
        if self.largest_process.value > before {
            match process {
                Some(process) => PeakProcess::raise(&mut self.largest_holder, process, size, at),
                None => self.largest_holder = None,
            }
        }
    }

    fn raise_peaks(&mut self, live: &LiveProcesses, at: f64) {
        let (mut main, mut others, mut all) =
            (TreeSums::default(), TreeSums::default(), TreeSums::default());
        let mut upper_bound = None;
        for LiveProcess { id, values, .. } in self.alive(live) {
            if self.is_main(id) {
                main.add(values);
            } else {
                others.add(values);
            }
            all.add(values);
            add(&mut upper_bound, values.peak_rss_without_hugetlb());
        }
        main.raise_gauge_peaks(&mut self.main_peaks, at);
        others.raise_gauge_peaks(&mut self.descendants, at);
        let before = self.combined;
        all.raise_gauge_peaks(&mut self.combined, at);
        if self.combined.pss.value > before.pss.value {
            self.name_holder(live, at, ProcessValues::pss_capped, |tree| &mut tree.pss_holder);
        }
        if self.combined.rss.value > before.rss.value {
            self.name_holder(live, at, |one| one.memory.rss, |tree| &mut tree.rss_holder);
        }
        if let Some(upper_bound) = upper_bound {
            self.note_upper_bound(upper_bound);
        }
        if let Some(memory) = all.pss_or_largest_rss() {
            self.mean.add_memory(memory, at);
        }
        if let Some(rss) = all.rss {
            self.mean_rss.add_memory(rss, at);
        }
    }

    /// Notes which process has the most of a sum that is higher than before.
    fn name_holder(
        &mut self,
        live: &LiveProcesses,
        at: f64,
        size: fn(&ProcessValues) -> Option<u64>,
        holder: fn(&mut RunTree) -> &mut Option<PeakProcess>,
    ) {
        let sizes =
            self.alive(live).filter_map(|process| Some((size(&process.values)?, process.id)));
        let largest = sizes.max_by_key(|(bytes, _)| *bytes);
        if let Some((bytes, id)) = largest
            && let Some(process) = live.get(&id)
        {
            PeakProcess::raise(holder(self), process, bytes, at);
        }
    }

    /// All processes were sampled: earlier exits do not overlap with later starts.
    pub(super) fn sample_completed(&mut self, live: &LiveProcesses) {
        if let Some(exited_usage) = &mut self.exited_usage {
            exited_usage.sample_completed();
        }
        let exited_since_tick = std::mem::take(&mut self.exited_since_tick);
        if let Some(before) = &mut self.exited_before {
            *before = exited_since_tick;
        }
        self.largest_since_complete_tick = None;
        self.recent = UpperBounds::default();
        let (others, known) = self.with_exited(self.upper_bound_of(live, None));
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

    /// The sum of the upper bounds of live processes, but for one that exits.
    fn upper_bound_of(&self, live: &LiveProcesses, exits: Option<ProcessId>) -> f64 {
        let stays = self.alive(live).filter(|process| Some(process.id) != exits);
        stays.filter_map(|process| process.values.peak_rss_without_hugetlb()).sum::<u64>() as f64
    }

    /// From here on only these pids are alive.
    pub(super) fn retain_alive(&mut self, pids: &[u32]) {
        self.still_running = Some(pids.to_vec());
    }

    /// A process has this parent.
    pub(super) fn starts(&mut self, id: ProcessId, parent: u32, live: &LiveProcesses) {
        // It counts, whether there is a row of it or not.
        self.total = live.total() + self.exited_unseen;
        if let Some(exited_usage) = &mut self.exited_usage {
            exited_usage.starts(id, parent);
        }
    }

    /// A process exits; `usage` is what `wait4` reported, if it did, and `cpu_seconds` all that it
    /// used itself.
    pub(super) fn ended(
        &mut self,
        id: ProcessId,
        usage: Option<&Usage>,
        cpu_seconds: Option<f64>,
        (live, at): (&LiveProcesses, f64),
    ) {
        let process = live.get(&id);
        let largest = usage.map(|usage| usage.largest_rss_bytes);
        if let Some(size) = largest {
            // It includes reaped children, `weigh mark` among them, and the command's own includes
            // its size before exec: it is judged at the end.
            let after = high_water_read(process);
            let is_main = self.is_main(&id);
            let peak = if is_main { &mut self.main_maxrss } else { &mut self.others_maxrss };
            peak.add_between(size as f64, after, at);
        }
        if let Some(exited_usage) = &mut self.exited_usage {
            // A process that was never sampled may have a clock all the same.
            let values = process.map_or_else(ProcessValues::default, |process| process.values);
            exited_usage.on_exit(id, &values, usage, cpu_seconds);
            if process.is_none() && (cpu_seconds.is_some() || usage.is_some()) {
                self.exited_unseen += 1;
                self.total += 1;
                self.peak_alive = self.peak_alive.max(live.sampled_len() as u64 + 1);
            }
        }
        let Some(process) = process.filter(|process| process.is_sampled) else { return };
        self.own_cpu_of_exited += process.values.own_cpu_ticks().unwrap_or(0.0);
        // What weigh reaps is not in any parent's counters any more.
        if let Some(io) = process.values.all_io().filter(|_| largest.is_some()) {
            self.reaped_io = std::array::from_fn(|which| self.reaped_io[which] + io[which]);
        }
        match largest {
            Some(size) => {
                self.exited_since_tick.reaped +=
                    process.values.peak_rss_without_hugetlb().unwrap_or(0).max(size);
            }
            None => self.exited_since_tick.others += 1,
        }
        self.note_upper_bound(self.upper_bound_of(live, Some(id)));
    }

    /// CPU time of the main process alone, or of the main processes.
    pub(super) fn main_cpu(&self) -> Option<f64> {
        (!self.main_cpu.is_empty()).then(|| self.main_cpu.values().sum())
    }

    /// Sums the counters of live processes, for everything below.
    pub(super) fn count_alive(&mut self, live: &LiveProcesses) {
        let left = self.exited_counts();
        let mut counts = AliveCounts { cpu: (left.cpu[0], left.cpu[1]), ..AliveCounts::default() };
        for LiveProcess { id, values, .. } in self.alive(live) {
            let with_children = self.exited_usage.as_ref().is_none_or(|all| all.with_children(*id));
            let sum = |own: Option<f64>, children: Option<f64>| {
                own.unwrap_or(0.0) + children.filter(|_| with_children).unwrap_or(0.0)
            };
            counts.cpu.0 += sum(values.cpu.user, values.cpu.children_user);
            counts.cpu.1 += sum(values.cpu.system, values.cpu.children_system);
            counts.own_cpu += values.own_cpu_ticks().unwrap_or(0.0);
            if let Some(io) = values.all_io() {
                let before = counts.io.unwrap_or_default();
                counts.io = Some(std::array::from_fn(|which| before[which] + io[which]));
            }
            let (sums, events) = (&mut counts.events, &values.events);
            sums.faults_minor += events.faults_minor.unwrap_or(0);
            sums.faults_major += events.faults_major.unwrap_or(0);
            sums.switches_voluntary += events.switches_voluntary.unwrap_or(0);
            sums.switches_involuntary += events.switches_involuntary.unwrap_or(0);
        }
        self.counts = counts;
    }

    /// CPU time of all live processes, with their reaped children, and of those that are not in any
    /// parent's counters.
    pub(super) fn cpu_of_live_processes(&self) -> f64 {
        let (user, system) = self.counts.cpu;
        user + system
    }

    /// The same in user mode, and in the kernel.
    pub(super) fn split_of_alive(&self) -> (f64, f64) {
        self.counts.cpu
    }

    /// Sampled CPU time, of each process its own: reaped or not.
    pub(super) fn own_cpu_sampled(&self) -> f64 {
        self.own_cpu_of_exited + self.counts.own_cpu
    }

    /// What exited processes used, when weigh reaps none.
    pub(super) fn exited_counts(&self) -> ExitedCounts {
        self.exited_usage.as_ref().map_or_else(ExitedCounts::default, ExitedUsage::total)
    }

    /// I/O of live and of exited processes; `None` when no process's can be read.
    pub(super) fn io(&self) -> Option<[f64; 6]> {
        let left = self.exited_counts().io;
        let ended = left.unwrap_or(self.reaped_io);
        let is_known = left.is_some() || ended.iter().any(|count| *count > 0.0);
        let Some(alive) = self.counts.io else { return is_known.then_some(ended) };
        Some(std::array::from_fn(|which| ended[which] + alive[which]))
    }

    /// I/O of live processes.
    pub(super) fn io_of_live_processes(&self) -> [f64; 6] {
        self.counts.io.unwrap_or_default()
    }

    /// Page faults and context switches of live processes.
    pub(super) fn events_of_live_processes(&self) -> AliveEvents {
        self.counts.events
    }
}

/// When the high-water mark of a process was last read; 0 when it never was.
pub(super) fn high_water_read(process: Option<&LiveProcess>) -> f64 {
    process.and_then(|process| process.values.high_water_read).unwrap_or(0.0)
}
