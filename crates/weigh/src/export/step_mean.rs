//! One value over one step of a grid, carried forward between readings: mean, delta and rate.

use super::window::Windows;

/// One value of an entity within the current step.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StepMean {
    /// The last value read.
    pub value: Option<f64>,
    /// Up to where this step is integrated.
    from: i64,
    /// Value times nanoseconds in this step, so far, and the time covered.
    area: f64,
    covered: i64,
    delta: Option<f64>,
}

impl StepMean {
    /// No value yet, starting at this time.
    pub(super) fn starting(at: i64) -> StepMean {
        StepMean { from: at, ..StepMean::default() }
    }

    /// A new value from this time on.
    pub(super) fn push(&mut self, value: f64, at: i64, windows: Option<&Windows>) {
        self.carry_to(at, windows);
        let inside = windows.is_none_or(|windows| windows.contains(at));
        if let Some(before) = self.value.filter(|before| inside && value >= *before) {
            self.delta = Some(self.delta.unwrap_or(0.0) + (value - before));
        }
        self.value = Some(value);
    }

    /// Delta over the entity's time in the step; 0 for one that existed before and has no new
    /// value, since then the counter did not change.
    pub(super) fn rate(&self, lived: i64, was_there: bool) -> Option<f64> {
        let delta = self.delta.or((self.value.is_some() && was_there).then_some(0.0));
        delta.filter(|_| lived > 0).map(|delta| delta / (lived as f64 / 1e9))
    }

    /// Carries the value forward to a time.
    pub(super) fn carry_to(&mut self, at: i64, windows: Option<&Windows>) {
        if at <= self.from {
            return;
        }
        if let Some(value) = self.value {
            let held = windows
                .map_or(at.saturating_sub(self.from), |windows| windows.overlap(self.from, at));
            self.area += value * held as f64;
            self.covered = self.covered.saturating_add(held);
        }
        self.from = at;
    }

    /// The mean over the covered part of the step; without any, the value itself.
    pub(super) fn mean(&self) -> Option<f64> {
        if self.covered > 0 { Some(self.area / self.covered as f64) } else { self.value }
    }

    /// Begins a new step; the value is carried forward.
    pub(super) fn begin_step(&mut self, at: i64) {
        *self = StepMean { value: self.value, from: at.max(self.from), ..StepMean::default() };
    }
}
