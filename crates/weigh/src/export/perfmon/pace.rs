//! Which looks have a row: one for each interval, and none twice in a second.
//!
//! perfmon's times are whole seconds, `int(time.time())`, and its reader takes differences of
//! them for the time between two rows. Two rows of one second would be no time apart, so weigh
//! writes the first look of an interval alone, and no second twice.

use std::time::Duration;

use jiff::Timestamp;

use crate::export::unix_nanoseconds;

/// The looks that have had a row.
#[derive(Debug)]
pub struct Pace {
    started: Timestamp,
    step: Duration,
    /// When the last row was: in the run, and in seconds since 1970.
    last: Option<(Duration, u64)>,
}

impl Pace {
    /// Of a run that began then, with a row for each step.
    pub fn new(started: Timestamp, step: Duration) -> Pace {
        Pace { started, step, last: None }
    }

    /// The second of a look, if it has a row.
    pub fn second(&mut self, at: Duration) -> Option<u64> {
        const SECOND: i128 = 1_000_000_000;
        let nanoseconds = unix_nanoseconds(self.started, at.as_secs_f64());
        let second = u64::try_from(nanoseconds.div_euclid(SECOND)).ok()?;
        if let Some((before, last)) = self.last {
            let interval = |at: Duration| at.as_nanos() / self.step.as_nanos();
            // A look that came late and the next one may be next to each other.
            let is_near = at.saturating_sub(before) < self.step / 2;
            if interval(at) == interval(before) || is_near || second <= last {
                return None;
            }
        }
        self.last = Some((at, second));
        Some(second)
    }
}
