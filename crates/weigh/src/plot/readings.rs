//! Counters of many entities as rates, each over the time between two readings.
//!
//! Most rows are read at their tick. Those of GPUs were read earlier by a thread, and a tick may
//! find the same reading again: then there is no new rate, and the interval continues.

use super::window::SHORTEST;
use crate::catalog::RateDenominator;
use crate::model::{CounterReading, Delta};

/// Turns the counters of entities into rates.
#[derive(Debug, Clone)]
pub(super) struct Readings {
    basis: RateDenominator,
    before: Vec<Option<CounterReading>>,
    rates: Vec<f64>,
    /// When the last interval ended.
    end: Option<f64>,
}

/// An interval and its rates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RateInterval<'a> {
    /// When it began.
    pub from: f64,
    /// When it ended.
    pub to: f64,
    /// The rate of each entity; NaN where unknown.
    pub rates: &'a [f64],
}

impl Readings {
    /// Of counters that may have started before the recording.
    pub(super) fn over(basis: RateDenominator) -> Readings {
        Readings { basis, before: Vec::new(), rates: Vec::new(), end: None }
    }

    /// Adds the counters of all entities at a tick, and returns the rates up to now when any
    /// reading is new. An entity that is absent, new or reset has no rate.
    pub(super) fn push(
        &mut self,
        at: f64,
        totals: &[Option<CounterReading>],
    ) -> Option<RateInterval<'_>> {
        self.before.resize(totals.len(), None);
        self.rates.resize(totals.len(), f64::NAN);
        let mut reached = f64::NEG_INFINITY;
        for (place, total) in totals.iter().enumerate() {
            let Some(now) = total else {
                (self.before[place], self.rates[place]) = (None, f64::NAN);
                reached = reached.max(at);
                continue;
            };
            let delta = self.before[place].map(|before| {
                let is_short = now.at.saturating_sub(before.at) < (SHORTEST * 1e9) as i64;
                if is_short { Delta::NoNewReading } else { now.since(&before, self.basis) }
            });
            if delta != Some(Delta::NoNewReading) {
                let rate = delta.and_then(|delta| delta.rate(self.basis));
                (self.before[place], self.rates[place]) = (Some(*now), rate.unwrap_or(f64::NAN));
                reached = reached.max(now.at as f64 / 1e9);
            }
        }
        if reached == f64::NEG_INFINITY {
            return None;
        }
        let from = *self.end.get_or_insert(reached);
        if reached < from + SHORTEST {
            return None;
        }
        self.end = Some(reached);
        Some(RateInterval { from, to: reached, rates: &self.rates })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGED: RateDenominator =
        RateDenominator { age: Some(0), observed_time: None, is_share: false };

    fn total(tick: f64, age: f64, value: f64) -> Option<CounterReading> {
        Some(CounterReading::from_row((tick * 1e9) as i64, value, AGED, |_| Some(age)))
    }

    #[test]
    fn late_device_starts_without_a_burst() {
        let mut readings = Readings::over(RateDenominator::default());
        assert_eq!(readings.push(0.0, &[total(0.0, 0.0, 1.0)]), None);
        let now = readings.push(1.0, &[total(1.0, 0.0, 2.0), total(1.0, 0.0, 1e12)]).unwrap();
        assert!(now.rates[0] == 1.0 && now.rates[1].is_nan(), "{now:?}");
        let now = readings.push(2.0, &[None, total(2.0, 0.0, 1e12 + 5.0)]).unwrap();
        assert!(now.rates[0].is_nan() && now.rates[1] == 5.0, "{now:?}");
    }

    #[test]
    fn steady_gpu_has_a_steady_rate_with_readings_of_any_age() {
        let mut readings = Readings::over(AGED);
        let ages = [0.1, 0.7, 1.703, 0.0, 0.9, 0.2];
        let mut area = 0.0;
        for (tick, age) in ages.into_iter().enumerate() {
            let tick = tick as f64 + 1.0;
            // The third tick has the second's reading again.
            let read = if tick == 3.0 { 1.3 } else { tick - age };
            if let Some(now) = readings.push(tick, &[total(tick, age, 500.0 * read)]) {
                assert!((now.rates[0] - 500.0).abs() < 2.0, "{now:?}");
                area += (now.to - now.from) * now.rates[0];
            }
        }
        assert!((area - 500.0 * (5.8 - 0.9)).abs() < 5.0, "{area}");
    }

    #[test]
    fn rate_is_unknown_while_the_driver_reports_nothing() {
        let mut readings = Readings::over(AGED);
        readings.push(1.0, &[total(1.0, 0.1, 1.0)]);
        readings.push(2.0, &[total(2.0, 0.1, 2.0)]);
        assert!(readings.push(3.0, &[None]).unwrap().rates[0].is_nan());
        assert!(readings.push(9.0, &[total(9.0, 0.1, 9.0)]).unwrap().rates[0].is_nan());
        let now = readings.push(10.0, &[total(10.0, 0.1, 10.0)]).unwrap();
        assert!((now.rates[0] - 1.0).abs() < 1e-9 && (now.from - 8.9).abs() < 1e-9, "{now:?}");
    }
}
