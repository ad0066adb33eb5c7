//! The run's counters at a look, and what they were at a moment between two looks.

/// A look this soon after a moment counts for that moment: the kernel's own clock ticks are
/// no finer, and the monitor looks as soon as it hears of a phase.
pub(super) const SHARP: f64 = 0.01;

/// What the run had used when it was looked at.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PhaseSample {
    /// When, in seconds since the run began.
    pub at: f64,
    /// The run's task clock.
    pub clock: Option<f64>,
    /// CPU time summed over processes; the kernel cuts each off at its clock ticks.
    pub summed: Option<f64>,
    /// Time in user mode and in the kernel, summed over processes.
    pub split: (f64, f64),
    /// I/O summed over processes, in the order of [`super::figures::IO`].
    pub io: Option<[f64; 6]>,
    /// How many processes were alive.
    pub alive: usize,
    /// CPU time of the machine that went to interrupts and other guests.
    pub elsewhere: f64,
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

    /// What was there does not become less: time and I/O that move from one process to the one
    /// that waited for it may be missing from a look.
    pub(crate) fn not_below(mut self, before: &PhaseSample) -> PhaseSample {
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

/// How much a counter rose, and between which bounds the truth lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PhaseDelta {
    /// By how much.
    pub value: f64,
    /// Not by less.
    pub lower: f64,
    /// Not by more, as far as both looks saw everything.
    pub upper: f64,
    /// Whether both ends had a look of their own.
    pub sharp: bool,
}

/// A moment and the looks around it; without a look after it the last one is all there is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Boundary {
    /// The moment.
    pub at: f64,
    /// The last look before it.
    pub before: PhaseSample,
    /// The first look after it.
    pub after: Option<PhaseSample>,
}

impl Boundary {
    /// A counter at this moment: value, not below, not above, and whether a look was near.
    ///
    /// `fastest` is what it can rise in a second, when there is such a limit.
    fn reading(
        &self,
        of: impl Fn(&PhaseSample) -> Option<f64>,
        fastest: Option<f64>,
    ) -> Option<(f64, f64, f64, bool)> {
        let first = of(&self.before)?;
        let reached = |from: f64, seconds: f64| fastest.map(|fastest| from + fastest * seconds);
        let Some(after) = self.after else {
            let upper = reached(first, (self.at - self.before.at).max(0.0)).unwrap_or(first);
            return Some((first, first, upper, false));
        };
        let last = of(&after)?.max(first);
        let late = (after.at - self.at).max(0.0);
        let early = (self.at - self.before.at).max(0.0);
        let lower = reached(last, -late).map_or(first, |bound| bound.max(first));
        let upper = reached(first, early).map_or(last, |bound| bound.min(last)).max(lower);
        let sharp = late <= SHARP;
        let value = if sharp || early + late <= 0.0 {
            last
        } else {
            first + (last - first) * early / (early + late)
        };
        Some((value.clamp(lower, upper), lower, upper, sharp))
    }
}

/// How much a counter rose between two moments.
pub(super) fn rise(
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
        sharp: from_sharp && to_sharp,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(at: f64, clock: f64) -> PhaseSample {
        PhaseSample { at, clock: Some(clock), ..PhaseSample::default() }
    }

    fn boundary(at: f64, before: PhaseSample, after: Option<PhaseSample>) -> Boundary {
        Boundary { at, before, after }
    }

    #[test]
    fn looks_at_both_ends_give_what_was_used_between_them() {
        let start = boundary(1.0, look(0.5, 0.1), Some(look(1.001, 0.2)));
        let end = boundary(2.0, look(1.5, 0.6), Some(look(2.001, 1.0)));
        let rise = rise(&start, &end, |look| look.clock, Some(2.0)).unwrap();
        assert!((rise.value - 0.8).abs() < 1e-9 && rise.sharp, "{rise:?}");
        assert!((rise.lower - 0.798).abs() < 1e-9 && (rise.upper - 0.802).abs() < 1e-9, "{rise:?}");
    }

    #[test]
    fn without_a_look_of_its_own_a_boundary_is_interpolated_and_says_so() {
        let start = boundary(1.0, look(0.0, 0.0), Some(look(1.0, 1.0)));
        let end = boundary(1.5, look(1.0, 1.0), Some(look(2.0, 1.4)));
        let rise = rise(&start, &end, |look| look.clock, Some(1.0)).unwrap();
        assert!((rise.value - 0.2).abs() < 1e-9 && !rise.sharp, "{rise:?}");
        assert!(rise.lower == 0.0 && (rise.upper - 0.4).abs() < 1e-9, "{rise:?}");
    }

    #[test]
    fn a_counter_that_was_never_read_rises_by_nothing_known() {
        let start = boundary(1.0, look(0.0, 0.0), Some(look(1.0, 1.0)));
        assert_eq!(rise(&start, &start, |look| look.summed, None), None);
    }
}
