//! What is kept of one phase: a few peaks while it lasts, and the deltas of the counters.

use super::sample::{Boundary, PhaseDelta, PhaseSample, counted_between, delta_between};
use crate::model::live::is_near;
use crate::model::{End, ProcessId, Usage};
use crate::record::events::PhaseCommandUsage;
use crate::summary::alive::{GaugePeaks, TreeSums};
use crate::summary::counters::PhaseCounts;
use crate::summary::curve::{Mean, Peak, Rate};
use crate::summary::helpers::Helpers;
use crate::summary::upper_bounds::UpperBounds;

/// One phase, under way or ended. Its size does not depend on how long it lasted.
#[derive(Debug, Clone)]
pub(crate) struct PhaseWindow {
    pub id: String,
    pub name: String,
    pub parent: Option<String>,
    /// The index of the enclosing phase among the windows.
    pub enclosing: Option<usize>,
    pub start: f64,
    /// `None` when its end was not reported.
    pub end: Option<f64>,
    /// The process of its command, once that is known.
    pub command: Option<ProcessId>,
    /// Whether phases that neither enclose it nor are inside it ran at the same time.
    pub shared: bool,
    /// What `weigh mark` and `weigh phase` inside it have used themselves.
    pub helpers: Helpers,
    /// What its command used, without them.
    pub usage: Option<Usage>,
    pub account: Option<PhaseCommandUsage>,
    pub exit: Option<End>,
    pub peaks: PhasePeaks,
    pub measured: Option<PhaseDeltas>,
}

/// Peaks during a phase: of its command's processes when it has one, else of the whole run.
#[derive(Debug, Default, Clone)]
pub(crate) struct PhasePeaks {
    pub gauge_peaks: GaugePeaks,
    /// The largest single process.
    pub largest_process: Peak,
    /// When its processes were last sampled; 0 before the first time.
    pub sampled_at: f64,
    /// Resident memory over time, each shared page counted once.
    pub memory: Mean,
    /// CPU time from sample to sample.
    pub cores: Rate,
    /// Upper bounds of the memory of the whole run.
    pub upper_bounds: UpperBounds,
    /// How many processes of its command were sampled.
    pub members: u64,
}

impl PhasePeaks {
    /// Drops all but the bounds of the whole run: from here on only the command counts.
    pub(crate) fn begin_with_the_command(&mut self, members: u64) {
        let upper_bounds = std::mem::take(&mut self.upper_bounds);
        *self = PhasePeaks { upper_bounds, members, ..PhasePeaks::default() };
    }

    /// Adds a sample.
    pub(crate) fn add(&mut self, extremes: &PhaseProcessSample, at: f64) {
        extremes.sums.raise_peaks_of_parts(&mut self.gauge_peaks, at);
        if let Some(largest) = extremes.largest_process {
            match extremes.is_largest_now() {
                true => self.largest_process.add(largest as f64, at),
                // A high-water mark that no sample reached.
                false => self.largest_process.add_between(largest as f64, self.sampled_at, at),
            }
        }
        self.sampled_at = at;
        if let Some(memory) = extremes.sums.pss_or_largest_rss() {
            self.memory.add_memory(memory, at);
        }
        if let Some(cpu) = extremes.cpu {
            self.cores.add(cpu, at);
        }
    }
}

/// A sample of the processes that count for a phase.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PhaseProcessSample {
    pub sums: TreeSums,
    /// The largest of them so far, by its high-water mark where that is of this phase.
    pub largest_process: Option<u64>,
    /// The largest resident memory of one of them now.
    pub resident: Option<u64>,
    pub cpu: Option<f64>,
}

impl PhaseProcessSample {
    fn is_largest_now(&self) -> bool {
        is_near(self.largest_process.unwrap_or(0), self.resident.unwrap_or(0))
    }
}

/// Deltas of the run's counters during a phase.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PhaseDeltas {
    /// By the run's task clock.
    pub clock: Option<PhaseDelta>,
    /// By the sum over processes.
    pub summed: Option<PhaseDelta>,
    /// User and system time, by the sum over processes.
    pub split: (f64, f64),
    pub io: Option<[PhaseDelta; 6]>,
    /// CPU time of the machine that went to interrupts and other guests.
    pub irq_and_steal: f64,
    /// What perf counted.
    pub counts: PhaseCounts,
    /// The most processes at either end, each of which the kernel truncates to its clock ticks.
    pub alive: usize,
}

impl PhaseDeltas {
    /// From the samples enclosing both ends, on a machine with so many cores.
    pub(crate) fn between(start: &Boundary, end: &Boundary, cores: f64) -> PhaseDeltas {
        let of = |counter: fn(&PhaseSample) -> Option<f64>| {
            delta_between(start, end, counter, Some(cores))
        };
        let part = |counter: fn(&PhaseSample) -> f64| {
            delta_between(start, end, |sample| Some(counter(sample)), Some(cores))
                .map_or(0.0, |delta| delta.value)
        };
        let io = |which: usize| delta_between(start, end, |sample| Some(sample.io?[which]), None);
        let last = end.after.unwrap_or(end.before);
        PhaseDeltas {
            clock: of(|sample| sample.clock),
            summed: of(|sample| sample.summed),
            split: (part(|sample| sample.split.0), part(|sample| sample.split.1)),
            io: io(0).map(|first| std::array::from_fn(|which| io(which).unwrap_or(first))),
            irq_and_steal: (last.irq_and_steal - start.before.irq_and_steal).max(0.0),
            counts: std::array::from_fn(|place| counted_between(start, end, place)),
            alive: start.after.unwrap_or(start.before).alive.max(last.alive),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn high_water_mark_of_a_phase_is_of_the_time_between_two_samples() {
        let mut peaks = PhasePeaks::default();
        let extremes = |largest, resident| PhaseProcessSample {
            largest_process: Some(largest),
            resident: Some(resident),
            ..PhaseProcessSample::default()
        };
        peaks.add(&extremes(50, 50), 1.0);
        assert_eq!((peaks.largest_process.at, peaks.largest_process.after), (1.0, None));
        peaks.add(&extremes(900, 60), 2.0);
        assert_eq!((peaks.largest_process.at, peaks.largest_process.after), (2.0, Some(1.0)));
    }
}
