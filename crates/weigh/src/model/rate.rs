//! The rate of a counter: its delta over the time between two readings.
//!
//! A row has the time of its tick. What a thread has read before the tick (GPUs) is older, each
//! time by another amount, and a tick may get the reading of the last one again. Divided by the
//! time between the ticks, such a counter would give wrong rates: a GPU that is busy for 180 % of
//! its time.

use crate::catalog::RateDenominator;

/// A counter reading.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CounterReading {
    /// When it was read, in nanoseconds on any common clock.
    pub at: i64,
    /// Its value.
    pub value: f64,
    /// The time it covers, in seconds, where that is counted.
    pub observed_time: Option<f64>,
}

/// The delta of a counter since an earlier reading.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Delta {
    /// It is the same reading, or one without new data.
    NoNewReading,
    /// It decreased: it was reset meanwhile, and nothing is known.
    Reset,
    /// By so much, in so many seconds.
    Increase {
        /// By how much.
        by: f64,
        /// In how many seconds.
        seconds: f64,
    },
}

/// Readings are at least a tenth of a second apart (`collect::gpu::worker`). Ages are known to some
/// milliseconds only, because a tick takes its time; over less than this that would be most of a
/// rate. Readings that seem closer are one reading, or wait for the next.
const SAME_READING: i64 = 100_000_000;

impl CounterReading {
    /// A counter in the row of a tick at this moment, given the cells of the row by column.
    pub fn from_row(
        at: i64,
        value: f64,
        basis: RateDenominator,
        cell: impl Fn(usize) -> Option<f64>,
    ) -> CounterReading {
        let age = basis.age.and_then(&cell).filter(|age| age.is_finite()).unwrap_or(0.0);
        let observed_time =
            basis.observed_time.and_then(&cell).filter(|observed_time| observed_time.is_finite());
        CounterReading { at: at.saturating_sub((age * 1e9) as i64), value, observed_time }
    }

    /// Its delta since an earlier reading.
    pub fn since(&self, before: &CounterReading, basis: RateDenominator) -> Delta {
        let passed = self.at.saturating_sub(before.at);
        let least = if basis.is_of_readings() { SAME_READING } else { 1 };
        if passed < least {
            return Delta::NoNewReading;
        }
        if self.value.is_nan() || before.value.is_nan() || self.value < before.value {
            return Delta::Reset;
        }
        let by = self.value - before.value;
        let covered =
            self.observed_time.zip(before.observed_time).map(|(now, before)| now - before);
        match covered {
            Some(seconds) if seconds > 0.0 => Delta::Increase { by, seconds },
            // Nothing new was counted between the two.
            Some(0.0) if by == 0.0 => Delta::NoNewReading,
            Some(seconds) if seconds < 0.0 => Delta::Reset,
            _ => Delta::Increase { by, seconds: passed as f64 / 1e9 },
        }
    }
}

impl Delta {
    /// The rate per second.
    pub fn rate(self, basis: RateDenominator) -> Option<f64> {
        match self {
            Delta::Increase { by, seconds } => Some(rate(by, seconds, basis)),
            Delta::NoNewReading | Delta::Reset => None,
        }
    }
}

/// A delta in so many seconds; a share is at most 1.
pub fn rate(by: f64, seconds: f64, basis: RateDenominator) -> f64 {
    let rate = by / seconds;
    // The time of a reading is known to some milliseconds, and sums may be a sample ahead.
    if basis.is_share { rate.min(1.0) } else { rate }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: f64 = 1e9;
    const AGED: RateDenominator =
        RateDenominator { age: Some(0), observed_time: None, is_share: false };

    fn read(tick: f64, age: f64, value: f64) -> CounterReading {
        CounterReading::from_row((tick * SECOND) as i64, value, AGED, |_| Some(age))
    }

    #[test]
    fn a_rate_is_over_the_time_between_the_readings() {
        // A GPU at 500 W, read shortly before the first tick and long before the second.
        let (first, second) = (read(1.0, 0.01, 495.0), read(2.0, 0.61, 695.0));
        let watts = second.since(&first, AGED).rate(AGED).unwrap();
        assert!((watts - 500.0).abs() < 1e-6, "{watts}");
        let third = read(3.0, 0.01, 1495.0);
        let watts = third.since(&second, AGED).rate(AGED).unwrap();
        assert!((watts - 500.0).abs() < 1e-6, "{watts}");
    }

    #[test]
    fn a_repeated_reading_has_no_rate() {
        let (first, again) = (read(1.0, 0.01, 5.0), read(2.0, 1.012, 5.0));
        assert_eq!(again.since(&first, AGED), Delta::NoNewReading);
        assert_eq!(read(3.0, 0.0, 4.0).since(&first, AGED), Delta::Reset);
        let plain = RateDenominator::default();
        assert_eq!(read(1.0, 0.0, 5.0).since(&read(1.0, 0.0, 5.0), plain), Delta::NoNewReading);
    }

    #[test]
    fn a_counter_is_divided_by_the_time_it_covers_and_a_share_is_at_most_one() {
        let basis = RateDenominator { age: Some(0), observed_time: Some(1), is_share: true };
        let at = |tick: f64, busy: f64, observed_time: f64| CounterReading {
            at: (tick * SECOND) as i64,
            value: busy,
            observed_time: Some(observed_time),
        };
        let before = at(1.0, 0.5, 1.0);
        let half = at(2.0, 0.9, 1.8).since(&before, basis).rate(basis).unwrap();
        assert!((half - 0.5).abs() < 1e-9, "{half}");
        assert_eq!(at(2.0, 1.5, 1.8).since(&before, basis).rate(basis), Some(1.0));
        assert_eq!(at(2.0, 0.5, 1.0).since(&before, basis), Delta::NoNewReading, "no sample came");
    }
}
