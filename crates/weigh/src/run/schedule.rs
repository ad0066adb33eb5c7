//! When ticks are due: absolute deadlines, dense at first, missed ones are skipped.

use std::time::Duration;

/// Ticks in the first second, so that short commands have a curve.
const DENSE: [u64; 8] = [5, 10, 20, 40, 80, 160, 320, 640];

/// The deadlines of a run.
#[derive(Debug)]
pub(super) struct Schedule {
    interval: Duration,
    begin: Duration,
    dense: std::slice::Iter<'static, u64>,
    /// Whole intervals that have passed.
    passed: u64,
    due: Duration,
    /// Ticks that were taken.
    pub taken: u64,
    /// Ticks whose time had passed before they could be taken.
    pub missed: u64,
}

impl Schedule {
    /// Deadlines from `begin` on, the first at once.
    pub(super) fn new(begin: Duration, interval: Duration) -> Schedule {
        Schedule {
            interval,
            begin,
            dense: DENSE.iter(),
            passed: 0,
            due: begin,
            taken: 0,
            missed: 0,
        }
    }

    /// The time between two ticks.
    pub(super) fn interval(&self) -> Duration {
        self.interval
    }

    /// When the next tick is due.
    pub(super) fn due(&self) -> Duration {
        self.due
    }

    /// A tick was taken that ended at `now`.
    pub(super) fn took(&mut self, now: Duration) {
        self.taken += 1;
        let elapsed = now.saturating_sub(self.begin);
        if self.passed == 0 {
            let dense = self.dense.by_ref().map(|ms| Duration::from_millis(*ms));
            let next = { dense }.find(|at| *at > elapsed).filter(|at| *at < self.interval);
            if let Some(next) = next {
                self.due = self.begin + next;
                return;
            }
        }
        let interval = self.interval.as_nanos() as u64;
        let whole = elapsed.as_nanos() as u64 / interval;
        self.missed += whole.saturating_sub(self.passed);
        self.passed = whole.max(self.passed) + 1;
        self.due = self.begin + Duration::from_nanos(interval * self.passed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn deadlines(interval: Duration, count: usize) -> Vec<u128> {
        let mut schedule = Schedule::new(Duration::ZERO, interval);
        (0..count)
            .map(|_| {
                let due = schedule.due();
                schedule.took(due);
                due.as_millis()
            })
            .collect()
    }

    #[test]
    fn the_first_second_is_dense_and_then_every_interval_has_its_tick() {
        let due = deadlines(1000 * MS, 12);
        assert_eq!(due, [0, 5, 10, 20, 40, 80, 160, 320, 640, 1000, 2000, 3000]);
    }

    #[test]
    fn a_short_interval_applies_once_it_is_the_denser_one() {
        assert_eq!(deadlines(10 * MS, 5), [0, 5, 10, 20, 30]);
        assert_eq!(deadlines(MS, 4), [0, 1, 2, 3]);
    }

    #[test]
    fn a_late_tick_counts_the_missed_ones_and_does_not_shift_the_deadlines() {
        let mut schedule = Schedule::new(500 * MS, 10 * MS);
        schedule.took(500 * MS);
        schedule.took(537 * MS);
        assert_eq!((schedule.missed, schedule.due()), (3, 540 * MS));
        schedule.took(541 * MS);
        assert_eq!((schedule.missed, schedule.due()), (3, 550 * MS));
    }
}
