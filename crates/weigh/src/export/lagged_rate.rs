//! The rate of a counter whose readings are older than their rows (GPUs), over one step of a grid.

use super::window::Windows;
use crate::catalog::RateDenominator;
use crate::model::{self, CounterReading, Delta};

/// One such counter of an entity.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LaggedRate {
    before: Option<CounterReading>,
    /// Delta between the readings of this step, and the seconds between them.
    delta: f64,
    seconds: f64,
    last: Option<f64>,
}

impl LaggedRate {
    /// Adds the reading of a row at this time.
    pub(super) fn push(
        &mut self,
        now: CounterReading,
        basis: RateDenominator,
        at: i64,
        windows: Option<&Windows>,
    ) {
        let change = self.before.map(|before| now.since(&before, basis));
        if change != Some(Delta::NoNewReading) {
            self.before = Some(now);
        }
        match change {
            Some(Delta::Increase { by, seconds }) if windows.is_none_or(|w| w.contains(at)) => {
                self.delta += by;
                self.seconds += seconds;
            }
            Some(Delta::Reset) => self.last = None,
            _ => {}
        }
    }

    /// The rate in the step. Without a new reading the last rate is carried forward.
    pub(super) fn rate(&mut self, basis: RateDenominator) -> Option<f64> {
        if self.seconds > 0.0 {
            self.last = Some(model::rate(self.delta, self.seconds, basis));
        }
        self.last
    }

    /// Begins a new step.
    pub(super) fn begin_step(&mut self) {
        (self.delta, self.seconds) = (0.0, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_rate_is_carried_forward_without_a_new_reading() {
        let basis = RateDenominator { age: Some(0), observed_time: None, is_share: false };
        let mut lagged = LaggedRate::default();
        let mut read = |seconds: f64, joules: f64| {
            let at = (seconds * 1e9) as i64;
            lagged.push(CounterReading { at, value: joules, observed_time: None }, basis, at, None);
            let rate = lagged.rate(basis);
            lagged.begin_step();
            rate
        };
        assert_eq!(read(1.0, 5.0), None);
        assert_eq!(read(1.5, 55.0), Some(100.0));
        assert_eq!(read(1.501, 55.0), Some(100.0));
        assert_eq!(read(2.5, 255.0), Some(200.0));
        assert_eq!(read(3.5, 0.0), None, "it was set to zero");
    }
}
