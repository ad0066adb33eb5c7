//! Not oftener than makes sense: some files cost more than they tell.
//!
//! A sensor behind a slow bus or a counter that firmware is asked for costs tens of
//! microseconds and more. With ticks a millisecond apart they are read now and then, and
//! stand as they were last read in between.

use std::time::Duration;

/// When something was last done, and how long it rests.
#[derive(Debug)]
pub(super) struct MinInterval {
    interval: Duration,
    last: Option<Duration>,
}

impl MinInterval {
    /// Something that rests at least so long.
    pub(super) fn of(interval: Duration) -> MinInterval {
        MinInterval { interval, last: None }
    }

    /// Whether it is time again, at this moment of the run.
    pub(super) fn is_due(&mut self, at: Duration) -> bool {
        let due = self.last.is_none_or(|last| at.saturating_sub(last) >= self.interval);
        if due {
            self.last = Some(at);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_done_at_once_and_then_after_its_rest() {
        let mut pace = MinInterval::of(Duration::from_millis(100));
        let due: Vec<bool> =
            [0, 50, 99, 100, 150, 260].map(|at| pace.is_due(Duration::from_millis(at))).into();
        assert_eq!(due, [true, false, false, true, false, true]);
    }
}
