//! The rate of a running total: its growth over the time between two readings of it.
//!
//! A row has the time of its tick. What a thread has read before the tick came (GPUs) is older,
//! each time by another amount, and a tick may find the reading of the last one once more. Divided
//! by the time between the ticks, such a total would give rates that never were: a GPU that is
//! busy for 180 % of its time.

use crate::catalog::Basis;

/// A running total as it was read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Total {
    /// When it was read, in nanoseconds since any moment that is the same for all.
    pub at: i64,
    /// What it was.
    pub value: f64,
    /// The time it is about, in seconds, where that is counted.
    pub cover: Option<f64>,
}

/// How a total grew since an earlier reading.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Delta {
    /// It is the same reading, or one that says nothing new.
    Same,
    /// It went back: it was set to zero meanwhile, and nothing is known.
    Back,
    /// By so much, in so many seconds.
    Grew {
        /// By how much.
        by: f64,
        /// In how many seconds.
        seconds: f64,
    },
}

/// Readings are at least a tenth of a second apart (`collect::gpu::worker`). Ages are known to some
/// milliseconds only, because a tick takes its time; over less than this that would be most of a
/// rate. What seems closer together is one reading, or waits for the next.
const SAME_READING: i64 = 100_000_000;

impl Total {
    /// A total in the row of a tick at this moment, given the cells of the row by column.
    pub fn of(at: i64, value: f64, basis: Basis, cell: impl Fn(usize) -> Option<f64>) -> Total {
        let age = basis.age.and_then(&cell).filter(|age| age.is_finite()).unwrap_or(0.0);
        let cover = basis.cover.and_then(&cell).filter(|cover| cover.is_finite());
        Total { at: at.saturating_sub((age * 1e9) as i64), value, cover }
    }

    /// How it grew since an earlier reading.
    pub fn since(&self, before: &Total, basis: Basis) -> Delta {
        let passed = self.at.saturating_sub(before.at);
        let least = if basis.is_of_readings() { SAME_READING } else { 1 };
        if passed < least {
            return Delta::Same;
        }
        if self.value.is_nan() || before.value.is_nan() || self.value < before.value {
            return Delta::Back;
        }
        let by = self.value - before.value;
        let covered = self.cover.zip(before.cover).map(|(now, before)| now - before);
        match covered {
            Some(seconds) if seconds > 0.0 => Delta::Grew { by, seconds },
            // Nothing new was counted between the two.
            Some(0.0) if by == 0.0 => Delta::Same,
            Some(seconds) if seconds < 0.0 => Delta::Back,
            _ => Delta::Grew { by, seconds: passed as f64 / 1e9 },
        }
    }
}

impl Delta {
    /// What it comes to in a second.
    pub fn rate(self, basis: Basis) -> Option<f64> {
        match self {
            Delta::Grew { by, seconds } => Some(rate(by, seconds, basis)),
            Delta::Same | Delta::Back => None,
        }
    }
}

/// A growth in so many seconds; of a share not more than all.
pub fn rate(by: f64, seconds: f64, basis: Basis) -> f64 {
    let rate = by / seconds;
    // The time of a reading is known to some milliseconds, and sums may be a sample ahead.
    if basis.is_share { rate.min(1.0) } else { rate }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: f64 = 1e9;
    const AGED: Basis = Basis { age: Some(0), cover: None, is_share: false };

    fn read(tick: f64, age: f64, value: f64) -> Total {
        Total::of((tick * SECOND) as i64, value, AGED, |_| Some(age))
    }

    #[test]
    fn a_rate_is_over_the_time_between_the_readings() {
        // A card that takes 500 W, read shortly before the first tick and long before the second.
        let (first, second) = (read(1.0, 0.01, 495.0), read(2.0, 0.61, 695.0));
        let watts = second.since(&first, AGED).rate(AGED).unwrap();
        assert!((watts - 500.0).abs() < 1e-6, "{watts}");
        let third = read(3.0, 0.01, 1495.0);
        let watts = third.since(&second, AGED).rate(AGED).unwrap();
        assert!((watts - 500.0).abs() < 1e-6, "{watts}");
    }

    #[test]
    fn a_reading_that_comes_again_has_no_rate() {
        let (first, again) = (read(1.0, 0.01, 5.0), read(2.0, 1.012, 5.0));
        assert_eq!(again.since(&first, AGED), Delta::Same);
        assert_eq!(read(3.0, 0.0, 4.0).since(&first, AGED), Delta::Back);
        let plain = Basis::default();
        assert_eq!(read(1.0, 0.0, 5.0).since(&read(1.0, 0.0, 5.0), plain), Delta::Same);
    }

    #[test]
    fn what_a_total_is_about_is_the_time_it_is_divided_by_and_a_share_is_never_more_than_all() {
        let basis = Basis { age: Some(0), cover: Some(1), is_share: true };
        let at = |tick: f64, busy: f64, cover: f64| Total {
            at: (tick * SECOND) as i64,
            value: busy,
            cover: Some(cover),
        };
        let before = at(1.0, 0.5, 1.0);
        let half = at(2.0, 0.9, 1.8).since(&before, basis).rate(basis).unwrap();
        assert!((half - 0.5).abs() < 1e-9, "{half}");
        assert_eq!(at(2.0, 1.5, 1.8).since(&before, basis).rate(basis), Some(1.0));
        assert_eq!(at(2.0, 0.5, 1.0).since(&before, basis), Delta::Same, "no sample came");
    }
}
