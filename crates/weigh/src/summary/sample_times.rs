//! When everybody was looked at.
//!
//! One weigh looks at all its processes at one moment. In a recording that was put together of
//! several, everybody was looked at when the last of them has looked: a round. Whoever comes
//! or goes in a round may have done so since the round before, because some of the looks were
//! earlier than its end.

/// The moments at which everybody was looked at.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SampleTimes {
    in_rounds: bool,
    last: f64,
    before: f64,
}

impl SampleTimes {
    /// Of a run, or in rounds of several.
    pub(crate) fn new(in_rounds: bool) -> SampleTimes {
        SampleTimes { in_rounds, ..SampleTimes::default() }
    }

    /// Everybody was looked at.
    pub(crate) fn complete_tick(&mut self, at: f64) {
        (self.before, self.last) = (self.last, at);
    }

    /// Whether the moments are the ends of rounds of several.
    pub(crate) fn in_rounds(&self) -> bool {
        self.in_rounds
    }

    /// The part of a stretch of time that is before the last such moment, from 0 to 1.
    pub(crate) fn share_before(&self, from: f64, to: f64) -> f64 {
        if from >= self.last {
            return 0.0;
        }
        if to <= self.last { 1.0 } else { (self.last - from) / (to - from) }
    }

    /// When that was last so.
    pub(crate) fn last(&self) -> f64 {
        self.last
    }

    /// The moment since which everybody has certainly been looked at: who comes now was not
    /// there then.
    pub(crate) fn certain(&self) -> f64 {
        if self.in_rounds { self.before } else { self.last }
    }
}
