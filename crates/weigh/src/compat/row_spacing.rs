//! Rows that are an interval apart, however often weigh looked.

use std::time::Duration;

/// Ten steps of the kernel's clock: over a shorter time a share of CPU time means nothing.
pub(super) const SHORTEST: Duration = Duration::from_millis(100);

/// How far apart rows are.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowSpacing {
    step: Duration,
}

impl RowSpacing {
    /// Of a run that was looked at in intervals of so many seconds.
    pub(super) fn every(seconds: f64) -> RowSpacing {
        RowSpacing::of(Duration::try_from_secs_f64(seconds).unwrap_or(SHORTEST))
    }

    /// So far apart.
    pub(super) fn of(step: Duration) -> RowSpacing {
        RowSpacing { step: step.max(SHORTEST) }
    }

    /// The least time that is between two rows.
    pub(super) fn shortest(self) -> Duration {
        self.step / 2
    }

    /// Whether a look is in a later interval than the one that the last row is of.
    pub(super) fn is_over(self, since: Duration, at: Duration) -> bool {
        let interval = |at: Duration| at.as_nanos() / self.step.as_nanos();
        // A look that came late and the next one may be next to each other.
        interval(at) != interval(since) && at.saturating_sub(since) >= self.shortest()
    }
}
