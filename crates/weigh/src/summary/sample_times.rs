//! The complete ticks: when all processes were sampled.
//!
//! One weigh samples all its processes at one tick. In a recording merged of several, all processes
//! are sampled when the last of them has sampled: a round. A process that starts or exits in a
//! round may have done so since the round before, because some of its samples were earlier than its
//! end.

/// The times at which all processes were sampled.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SampleTimes {
    in_rounds: bool,
    last: f64,
    before: f64,
}

impl SampleTimes {
    /// Of one run, or in rounds of several.
    pub(crate) fn new(in_rounds: bool) -> SampleTimes {
        SampleTimes { in_rounds, ..SampleTimes::default() }
    }

    /// All processes were sampled.
    pub(crate) fn complete_tick(&mut self, at: f64) {
        (self.before, self.last) = (self.last, at);
    }

    /// Whether the times are the ends of rounds of several.
    pub(crate) fn in_rounds(&self) -> bool {
        self.in_rounds
    }

    /// The part of a time span that is before the last such time, from 0 to 1.
    pub(crate) fn share_before(&self, from: f64, to: f64) -> f64 {
        if from >= self.last {
            return 0.0;
        }
        if to <= self.last { 1.0 } else { (self.last - from) / (to - from) }
    }

    /// The last such time.
    pub(crate) fn last(&self) -> f64 {
        self.last
    }

    /// The time since which all processes have certainly been sampled: a process that starts now
    /// did not exist then.
    pub(crate) fn certain(&self) -> f64 {
        if self.in_rounds { self.before } else { self.last }
    }
}
