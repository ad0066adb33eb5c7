//! The run's counters at a sample, and interpolated between two samples.

use crate::summary::counters::{Counted, PhaseCounts};

/// A sample this soon after a time counts for that time: the kernel's own clock ticks are no finer,
/// and the monitor samples as soon as it receives the event of a phase.
pub(super) const BOUNDARY_DELAY: f64 = 0.01;

/// The run's counters at a sample.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PhaseSample {
    /// When, in seconds since the run began.
    pub at: f64,
    /// The run's task clock, less what `weigh mark` and `weigh phase` have reported of themselves.
    /// It may decrease: a helper is counted for a while before it reports.
    pub clock: Option<f64>,
    /// CPU time of the run so far, which never decreases.
    pub cpu: Option<f64>,
    /// CPU time summed over processes; the kernel truncates each to its clock ticks.
    pub summed: Option<f64>,
    /// Time in user mode and in the kernel, summed over processes.
    pub split: (f64, f64),
    /// I/O summed over processes, in the order of [`super::figures::IO`].
    pub io: Option<[f64; 6]>,
    /// How many processes were alive.
    pub alive: usize,
    /// CPU time of the machine that went to interrupts and other guests.
    pub irq_and_steal: f64,
    /// What perf counted.
    pub counts: PhaseCounts,
}

impl PhaseSample {
    /// The beginning of the run: nothing was used yet.
    pub(crate) fn zero() -> PhaseSample {
        PhaseSample {
            clock: Some(0.0),
            summed: Some(0.0),
            io: Some([0.0; 6]),
            ..PhaseSample::default()
        }
    }

    /// Counters never decrease: time and I/O that move from a process to the one that reaped it may
    /// be missing from a sample.
    pub(crate) fn clamp_to_previous(mut self, before: &PhaseSample) -> PhaseSample {
        if let (Some(summed), Some(then)) = (&mut self.summed, before.summed) {
            *summed = summed.max(then);
        }
        self.split = (self.split.0.max(before.split.0), self.split.1.max(before.split.1));
        if let (Some(io), Some(then)) = (&mut self.io, before.io) {
            *io = std::array::from_fn(|which| io[which].max(then[which]));
        }
        self
    }
}

/// The delta of a counter, with bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PhaseDelta {
    /// The delta.
    pub value: f64,
    /// Lower bound.
    pub lower: f64,
    /// Upper bound, if both samples were complete.
    pub upper: f64,
    /// Whether both ends had a sample of their own.
    pub is_boundary_sampled: bool,
}

/// A time and the samples enclosing it; without a sample after it the last one is used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Boundary {
    /// The time.
    pub at: f64,
    /// The last sample before it.
    pub before: PhaseSample,
    /// The first sample after it.
    pub after: Option<PhaseSample>,
}

impl Boundary {
    /// A counter at this time: value, lower bound, upper bound, and whether a sample was near.
    ///
    /// `fastest` is its highest possible rate per second, when there is such a limit.
    fn reading(
        &self,
        of: impl Fn(&PhaseSample) -> Option<f64>,
        fastest: Option<f64>,
    ) -> Option<(f64, f64, f64, bool)> {
        let mut first = of(&self.before)?;
        let reached = |from: f64, seconds: f64| fastest.map(|fastest| from + fastest * seconds);
        let Some(after) = self.after else {
            let upper = reached(first, (self.at - self.before.at).max(0.0)).unwrap_or(first);
            return Some((first, first, upper, false));
        };
        let last = of(&after)?;
        // The sample before includes a part of a helper that has reported itself by now.
        first = first.min(last);
        let late = (after.at - self.at).max(0.0);
        let early = (self.at - self.before.at).max(0.0);
        let lower = reached(last, -late).map_or(first, |bound| bound.max(first));
        let upper = reached(first, early).map_or(last, |bound| bound.min(last)).max(lower);
        let is_boundary_sampled = late <= BOUNDARY_DELAY;
        let value = if is_boundary_sampled || early + late <= 0.0 {
            last
        } else {
            first + (last - first) * early / (early + late)
        };
        Some((value.clamp(lower, upper), lower, upper, is_boundary_sampled))
    }
}

/// The delta of a counter between two times.
pub(super) fn delta_between(
    start: &Boundary,
    end: &Boundary,
    of: impl Fn(&PhaseSample) -> Option<f64>,
    fastest: Option<f64>,
) -> Option<PhaseDelta> {
    let (from, from_lower, from_upper, from_sharp) = start.reading(&of, fastest)?;
    let (to, to_lower, to_upper, to_sharp) = end.reading(&of, fastest)?;
    let value = (to - from).max(0.0);
    Some(PhaseDelta {
        value,
        lower: (to_lower - from_upper).clamp(0.0, value),
        upper: (to_upper - from_lower).max(value),
        is_boundary_sampled: from_sharp && to_sharp,
    })
}

/// What perf counted between two times, of the event at this place.
pub(super) fn counted_between(start: &Boundary, end: &Boundary, place: usize) -> Option<Counted> {
    let of = |number: &dyn Fn(Counted) -> Option<f64>| {
        let delta = delta_between(start, end, |sample| number(sample.counts[place]?), None)?;
        Some(delta.value)
    };
    let count = of(&|counted| Some(counted.count))?;
    let running = of(&|counted| Some(counted.times?.0));
    let enabled = of(&|counted| Some(counted.times?.1));
    Some(Counted { count, times: running.zip(enabled) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: f64, clock: f64) -> PhaseSample {
        PhaseSample { at, clock: Some(clock), ..PhaseSample::default() }
    }

    fn boundary(at: f64, before: PhaseSample, after: Option<PhaseSample>) -> Boundary {
        Boundary { at, before, after }
    }

    #[test]
    fn samples_at_both_ends_give_what_was_used_between_them() {
        let start = boundary(1.0, sample(0.5, 0.1), Some(sample(1.001, 0.2)));
        let end = boundary(2.0, sample(1.5, 0.6), Some(sample(2.001, 1.0)));
        let delta = delta_between(&start, &end, |sample| sample.clock, Some(2.0)).unwrap();
        assert!((delta.value - 0.8).abs() < 1e-9 && delta.is_boundary_sampled, "{delta:?}");
        assert!(
            (delta.lower - 0.798).abs() < 1e-9 && (delta.upper - 0.802).abs() < 1e-9,
            "{delta:?}"
        );
    }

    #[test]
    fn helper_in_the_sample_before_a_phase_is_not_subtracted_from_the_phase() {
        // The helper has used 3 ms at the first sample, and reports 4 ms until the second.
        let start = boundary(1.0, sample(0.999, 0.103), Some(sample(1.001, 0.1005)));
        let end = boundary(2.0, sample(1.5, 0.3), Some(sample(2.001, 0.4005)));
        let delta = delta_between(&start, &end, |sample| sample.clock, Some(2.0)).unwrap();
        assert!((delta.value - 0.3).abs() < 1e-9, "{delta:?}");
        assert!(delta.lower <= 0.3 && delta.upper >= 0.3, "{delta:?}");
    }

    #[test]
    fn boundary_without_its_own_sample_is_interpolated_and_not_sharp() {
        let start = boundary(1.0, sample(0.0, 0.0), Some(sample(1.0, 1.0)));
        let end = boundary(1.5, sample(1.0, 1.0), Some(sample(2.0, 1.4)));
        let delta = delta_between(&start, &end, |sample| sample.clock, Some(1.0)).unwrap();
        assert!((delta.value - 0.2).abs() < 1e-9 && !delta.is_boundary_sampled, "{delta:?}");
        assert!(delta.lower == 0.0 && (delta.upper - 0.4).abs() < 1e-9, "{delta:?}");
    }

    #[test]
    fn counter_that_was_never_read_has_no_delta() {
        let start = boundary(1.0, sample(0.0, 0.0), Some(sample(1.0, 1.0)));
        assert_eq!(delta_between(&start, &start, |sample| sample.summed, None), None);
    }
}
