//! Which samples have a row: one for each interval, and at most one in a second.
//!
//! perfmon's times are whole seconds, `int(time.time())`, and its reader takes their differences
//! for the time between two rows. Two rows of one second would be no time apart, so weigh writes
//! only the first sample of an interval, and no second twice.

use std::time::Duration;

use jiff::Timestamp;

use crate::compat::row_spacing::RowSpacing;
use crate::export::unix_nanoseconds;

/// Chooses the samples that have a row.
#[derive(Debug)]
pub(super) struct Seconds {
    started: Timestamp,
    spacing: RowSpacing,
    /// When the last row was: in the run, and in seconds since 1970.
    last: Option<(Duration, u64)>,
}

impl Seconds {
    /// Of a run that started at this time.
    pub(super) fn new(started: Timestamp, spacing: RowSpacing) -> Seconds {
        Seconds { started, spacing, last: None }
    }

    /// The second of a sample, if it has a row.
    pub(super) fn of(&mut self, at: Duration) -> Option<u64> {
        const SECOND: i128 = 1_000_000_000;
        let nanoseconds = unix_nanoseconds(self.started, at.as_secs_f64());
        let second = u64::try_from(nanoseconds.div_euclid(SECOND)).ok()?;
        let is_new = |(before, last)| self.spacing.is_over(before, at) && second > last;
        if !self.last.is_none_or(is_new) {
            return None;
        }
        self.last = Some((at, second));
        Some(second)
    }
}
