//! Rows that are an interval apart, however often weigh sampled.

use std::time::Duration;

/// Ten clock ticks of 10 ms: over a shorter time a share of CPU time means nothing.
pub(super) const SHORTEST: Duration = Duration::from_millis(100);

/// How far apart rows are.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowSpacing {
    step: Duration,
}

impl RowSpacing {
    /// The spacing of a run with this sampling interval in seconds.
    pub(super) fn every(seconds: f64) -> RowSpacing {
        RowSpacing::of(Duration::try_from_secs_f64(seconds).unwrap_or(SHORTEST))
    }

    /// Rows this far apart.
    pub(super) fn of(step: Duration) -> RowSpacing {
        RowSpacing { step: step.max(SHORTEST) }
    }

    /// The least time between two rows.
    pub(super) fn shortest(self) -> Duration {
        self.step / 2
    }

    /// Whether a sample is in a later interval than the last row.
    pub(super) fn is_over(self, last: Duration, at: Duration) -> bool {
        let interval = |at: Duration| at.as_nanos() / self.step.as_nanos();
        // A late sample and the next one may be close together.
        interval(at) != interval(last) && at.saturating_sub(last) >= self.shortest()
    }
}
