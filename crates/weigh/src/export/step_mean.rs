//! A value that holds until the next one is read, over one step of a grid.

use super::window::Windows;

/// One value of an entity as it is held.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StepMean {
    /// The value, as last read.
    pub value: Option<f64>,
    /// Since when it is in this step.
    from: i64,
    /// Value times nanoseconds in this step, so far.
    area: f64,
    covered: i64,
    delta: Option<f64>,
}

impl StepMean {
    /// Nothing yet, from this moment on.
    pub(super) fn starting(at: i64) -> StepMean {
        StepMean { from: at, ..StepMean::default() }
    }

    /// A new value from this moment on.
    pub(super) fn push(&mut self, value: f64, at: i64, windows: Option<&Windows>) {
        self.carry_to(at, windows);
        let inside = windows.is_none_or(|windows| windows.contains(at));
        if let Some(before) = self.value.filter(|before| inside && value >= *before) {
            self.delta = Some(self.delta.unwrap_or(0.0) + (value - before));
        }
        self.value = Some(value);
    }

    /// Growth over the time lived in the step; none for somebody who was there before and
    /// has no new value, because then it stood still.
    pub(super) fn rate(&self, lived: i64, was_there: bool) -> Option<f64> {
        let delta = self.delta.or((self.value.is_some() && was_there).then_some(0.0));
        delta.filter(|_| lived > 0).map(|delta| delta / (lived as f64 / 1e9))
    }

    /// The value held up to a moment.
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

    /// The mean over the part of the step it was held in; of no time at all, the value itself.
    pub(super) fn mean(&self) -> Option<f64> {
        if self.covered > 0 { Some(self.area / self.covered as f64) } else { self.value }
    }

    /// A new step begins; the value goes on.
    pub(super) fn begin_step(&mut self, at: i64) {
        *self = StepMean { value: self.value, from: at.max(self.from), ..StepMean::default() };
    }
}
