//! A minimum interval between reads of files that are expensive to read.
//!
//! A sensor behind a slow bus or a counter in firmware costs tens of microseconds and more. With
//! ticks a millisecond apart they are not read at every tick, and their last values are carried
//! forward.

use std::time::Duration;

/// The minimum interval, and the time of the last read.
#[derive(Debug)]
pub(super) struct MinInterval {
    interval: Duration,
    last: Option<Duration>,
}

impl MinInterval {
    /// Reads at least so far apart.
    pub(super) fn of(interval: Duration) -> MinInterval {
        MinInterval { interval, last: None }
    }

    /// Whether a read is due at this time of the run.
    pub(super) fn is_due(&mut self, at: Duration) -> bool {
        let due = self.last.is_none_or(|last| at.saturating_sub(last) >= self.interval);
        if due {
            self.last = Some(at);
        }
        due
    }

    /// Nothing is read at this time of the run, as if it had been.
    pub(super) fn skip(&mut self, at: Duration) {
        self.last = Some(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_read_is_due_at_once_and_the_next_after_the_interval() {
        let mut pace = MinInterval::of(Duration::from_millis(100));
        let due: Vec<bool> =
            [0, 50, 99, 100, 150, 260].map(|at| pace.is_due(Duration::from_millis(at))).into();
        assert_eq!(due, [true, false, false, true, false, true]);
    }
}
