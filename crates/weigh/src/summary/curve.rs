//! Curves reduced to what the summary needs: a peak and its time, a mean over time, a rate.

/// The largest value so far, and when it was reached.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Peak {
    /// The value; `None` before the first.
    pub value: Option<f64>,
    /// When, in seconds since the run began.
    pub at: f64,
    /// It was reached after this and until `at`, where the time itself is not known: a high-water
    /// mark has a size and no time.
    pub after: Option<f64>,
}

impl Peak {
    /// Adds a value.
    pub fn add(&mut self, value: f64, at: f64) {
        if self.value.is_none_or(|peak| value > peak) {
            *self = Peak { value: Some(value), at, after: None };
        }
    }

    /// Adds a value that was reached at some time between the two.
    pub fn add_between(&mut self, value: f64, after: f64, at: f64) {
        if self.value.is_none_or(|peak| value > peak) {
            *self = Peak { value: Some(value), at, after: Some(after) };
        }
    }

    /// Keeps the larger of both.
    pub fn max_with(&mut self, other: Peak) {
        if other.value > self.value {
            *self = other;
        }
    }
}

/// The mean over time of a value that is carried forward until the next one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mean {
    last: Option<(f64, f64)>,
    area: f64,
    length: f64,
    /// The lowest value and the highest: a mean is between them, whatever the rounding of sums.
    range: Option<(f64, f64)>,
}

impl Mean {
    /// The value from now on.
    pub(crate) fn add(&mut self, value: f64, at: f64) {
        self.pause(at);
        self.last = Some((value, at));
        let (lowest, highest) = self.range.unwrap_or((value, value));
        self.range = Some((lowest.min(value), highest.max(value)));
    }

    /// The memory of processes from now on. Zero is what zombies have: it is ignored until memory
    /// was sampled.
    pub(crate) fn add_memory(&mut self, bytes: f64, at: f64) {
        if bytes > 0.0 || self.range.is_some() {
            self.add(bytes, at);
        }
    }

    /// The value now.
    pub(crate) fn now(&self) -> Option<f64> {
        self.last.map(|(value, _)| value)
    }

    /// Unknown from now on, until the next value.
    pub(crate) fn pause(&mut self, at: f64) {
        if let Some((before, then)) = self.last.take() {
            let length = (at - then).max(0.0);
            self.area += before * length;
            self.length += length;
        }
    }

    /// The mean over the time in which it was known until `end`, or until the last value when that
    /// is later: a command is timed from its exec, which is slightly after the run's zero.
    pub(crate) fn until(mut self, end: f64) -> Option<f64> {
        let last = self.last;
        self.pause(end);
        let (lowest, highest) = self.range?;
        // A value of zero duration has no weight.
        let mean = if self.length > 0.0 { self.area / self.length } else { last?.0 };
        Some(mean.clamp(lowest, highest))
    }
}

/// The highest rate of a counter, over windows that are long enough to mean something.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rate {
    last: Option<(f64, f64)>,
    /// The highest rate so far.
    pub peak: Peak,
}

/// Clock ticks are 10 ms apart: over a shorter window they give no rate. Charts have the same
/// windows, so that the highest point of one is the figure.
pub(crate) const SHORTEST_WINDOW: f64 = 0.1;

impl Rate {
    /// Of a counter that was zero when the run began.
    pub(crate) fn from_start() -> Rate {
        Rate { last: Some((0.0, 0.0)), ..Rate::default() }
    }

    /// The counter's value now. One that decreases belongs to another process: it gives no rate.
    pub(crate) fn add(&mut self, total: f64, at: f64) {
        self.add_within(total, at, f64::INFINITY);
    }

    /// The same for CPU time, of which at most so many cores can have been used since the last
    /// window; returns whether a window ended.
    pub(crate) fn add_within(&mut self, total: f64, at: f64, most: f64) -> bool {
        let Some((before, then)) = self.last else {
            self.last = Some((total, at));
            return true;
        };
        if at - then < SHORTEST_WINDOW {
            return false;
        }
        if total >= before {
            self.peak.add(possible_cores(total - before, at - then, most), at);
        }
        self.last = Some((total, at));
        true
    }
}

/// The error of two readings of CPU time: user and system time are truncated to 10 ms each.
const RESOLUTION: f64 = 0.02;

/// How much longer or shorter than its timestamps a window may have been: a process is read
/// slightly after the tick began, and a busy machine makes that delay longer.
const JITTER: f64 = 0.05;

/// Cores used, where there were threads for at most so many.
///
/// One thread cannot use 104 % of a core; a counter in steps of 10 ms can show that over a short
/// window. What exceeds the error of counter and timestamps was used by threads that are in no
/// sample.
pub(crate) fn possible_cores(used: f64, seconds: f64, most: f64) -> f64 {
    let cores = used / seconds;
    let is_noise = cores <= most * (1.0 + JITTER) + RESOLUTION / seconds;
    if cores > most && is_noise { most } else { cores }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_weighs_each_value_with_its_time() {
        let mut mean = Mean::default();
        mean.add(10.0, 0.0);
        mean.add(20.0, 1.0);
        assert_eq!(mean.until(4.0), Some((10.0 + 3.0 * 20.0) / 4.0));
        assert_eq!(Mean::default().until(4.0), None);
        assert_eq!(mean.until(0.5), Some(10.0), "until its last value at least");
        mean.pause(2.0);
        mean.add(0.0, 100.0);
        assert_eq!(mean.until(102.0), Some((10.0 + 20.0) / 4.0), "and not while it is unknown");
    }

    #[test]
    fn counter_that_decreases_gives_no_rate() {
        let mut rate = Rate::default();
        for (total, at) in [(5.0, 0.0), (1.0, 1.0), (1.5, 2.0)] {
            rate.add(total, at);
        }
        assert_eq!(rate.peak, Peak { value: Some(0.5), at: 2.0, after: None });
    }

    #[test]
    fn one_thread_uses_at_most_one_core_and_unsampled_threads_stay_counted() {
        assert_eq!(possible_cores(0.26, 0.25, 1.0), 1.0, "a step of the counter");
        assert_eq!(possible_cores(1.04, 1.0, 1.0), 1.0, "a late reading");
        assert_eq!(possible_cores(3.0, 1.0, 1.0), 3.0, "threads that no sample has");
        assert_eq!(possible_cores(0.5, 1.0, 1.0), 0.5);
        let mut rate = Rate::default();
        assert!(rate.add_within(0.0, 0.0, 1.0));
        assert!(!rate.add_within(0.06, 0.05, 1.0), "the window goes on");
        assert!(rate.add_within(0.12, 0.11, 1.0));
        assert_eq!(rate.peak.value, Some(1.0));
    }

    #[test]
    fn dense_ticks_do_not_turn_one_clock_tick_into_many_cores() {
        let mut rate = Rate::default();
        for (total, at) in [(0.0, 0.0), (0.01, 0.001), (0.01, 0.05), (0.1, 0.1)] {
            rate.add(total, at);
        }
        assert_eq!(rate.peak.value, Some(1.0));
    }
}
