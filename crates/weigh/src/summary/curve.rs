//! Curves reduced to what is asked of them: a peak and when, a mean over time, a rate.

/// The largest value so far, and when it was reached.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Peak {
    /// The value; `None` before the first.
    pub value: Option<f64>,
    /// When, in seconds since the run began.
    pub at: f64,
    /// It was reached after this and until `at`, where the moment itself is not known: a
    /// high-water mark says how much, and not when.
    pub after: Option<f64>,
}

impl Peak {
    /// Takes a value into account.
    pub fn see(&mut self, value: f64, at: f64) {
        if self.value.is_none_or(|peak| value > peak) {
            *self = Peak { value: Some(value), at, after: None };
        }
    }

    /// Takes into account a value that was reached at some moment between the two.
    pub fn see_between(&mut self, value: f64, after: f64, at: f64) {
        if self.value.is_none_or(|peak| value > peak) {
            *self = Peak { value: Some(value), at, after: Some(after) };
        }
    }

    /// Takes the larger of both.
    pub fn join(&mut self, other: Peak) {
        if other.value > self.value {
            *self = other;
        }
    }
}

/// The mean over time of a value that holds until the next one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mean {
    last: Option<(f64, f64)>,
    area: f64,
    length: f64,
    /// The lowest value and the highest: a mean is between them, whatever sums are rounded to.
    range: Option<(f64, f64)>,
}

impl Mean {
    /// The value from now on.
    pub(crate) fn see(&mut self, value: f64, at: f64) {
        self.pause(at);
        self.last = Some((value, at));
        let (lowest, highest) = self.range.unwrap_or((value, value));
        self.range = Some((lowest.min(value), highest.max(value)));
    }

    /// The memory of processes from now on. Nothing is what those have who ended and were not
    /// waited for: it says nothing while no memory was seen yet.
    pub(crate) fn see_memory(&mut self, bytes: f64, at: f64) {
        if bytes > 0.0 || self.range.is_some() {
            self.see(bytes, at);
        }
    }

    /// From now on it is not known, until it is seen again.
    pub(crate) fn pause(&mut self, at: f64) {
        if let Some((before, then)) = self.last.take() {
            let length = (at - then).max(0.0);
            self.area += before * length;
            self.length += length;
        }
    }

    /// The mean over the time in which it was known until `end`, or until the last when that is
    /// later: a command is timed from its exec, which is a moment after the run's zero.
    pub(crate) fn until(mut self, end: f64) -> Option<f64> {
        let last = self.last;
        self.pause(end);
        let (lowest, highest) = self.range?;
        // What was seen for a moment only has no time to be weighed with.
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

/// Clock ticks are 10 ms apart: over a shorter window they say nothing about a rate. Charts have
/// the same windows, so that the highest point of one is the figure.
pub(crate) const SHORTEST_WINDOW: f64 = 0.1;

impl Rate {
    /// Of a counter that was zero when the run began.
    pub(crate) fn from_start() -> Rate {
        Rate { last: Some((0.0, 0.0)), ..Rate::default() }
    }

    /// The counter's value now. One that goes back is somebody else's: no rate comes of it.
    pub(crate) fn see(&mut self, total: f64, at: f64) {
        self.see_within(total, at, f64::INFINITY);
    }

    /// The same of CPU time, of which at most so many cores can have been used since the last
    /// window; says whether a window ended.
    pub(crate) fn see_within(&mut self, total: f64, at: f64, most: f64) -> bool {
        let Some((before, then)) = self.last else {
            self.last = Some((total, at));
            return true;
        };
        if at - then < SHORTEST_WINDOW {
            return false;
        }
        if total >= before {
            self.peak.see(possible_cores(total - before, at - then, most), at);
        }
        self.last = Some((total, at));
        true
    }
}

/// What two readings of CPU time may be off by: user and system time are cut to 10 ms each.
const RESOLUTION: f64 = 0.02;

/// How much longer or shorter than its timestamps a window may have been: a process is read a
/// moment after the tick began, and a busy machine makes that moment longer.
const JITTER: f64 = 0.05;

/// Cores that were used, where there were threads for at most so many.
///
/// One thread cannot use 104 % of a core; a counter in steps of 10 ms says so over a short
/// window. What is further above than counter and timestamps explain was used by threads
/// that no sample has.
pub(crate) fn possible_cores(used: f64, seconds: f64, most: f64) -> f64 {
    let cores = used / seconds;
    let is_noise = cores <= most * (1.0 + JITTER) + RESOLUTION / seconds;
    if cores > most && is_noise { most } else { cores }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_weighs_each_value_with_its_time() {
        let mut mean = Mean::default();
        mean.see(10.0, 0.0);
        mean.see(20.0, 1.0);
        assert_eq!(mean.until(4.0), Some((10.0 + 3.0 * 20.0) / 4.0));
        assert_eq!(Mean::default().until(4.0), None);
        assert_eq!(mean.until(0.5), Some(10.0), "until its last value at least");
        mean.pause(2.0);
        mean.see(0.0, 100.0);
        assert_eq!(mean.until(102.0), Some((10.0 + 20.0) / 4.0), "and not while it is unknown");
    }

    #[test]
    fn a_counter_that_goes_back_gives_no_rate() {
        let mut rate = Rate::default();
        for (total, at) in [(5.0, 0.0), (1.0, 1.0), (1.5, 2.0)] {
            rate.see(total, at);
        }
        assert_eq!(rate.peak, Peak { value: Some(0.5), at: 2.0, after: None });
    }

    #[test]
    fn one_thread_uses_no_more_than_one_core_and_unseen_threads_stay_counted() {
        assert_eq!(possible_cores(0.26, 0.25, 1.0), 1.0, "a step of the counter");
        assert_eq!(possible_cores(1.04, 1.0, 1.0), 1.0, "a late reading");
        assert_eq!(possible_cores(3.0, 1.0, 1.0), 3.0, "threads that no sample has");
        assert_eq!(possible_cores(0.5, 1.0, 1.0), 0.5);
        let mut rate = Rate::default();
        assert!(rate.see_within(0.0, 0.0, 1.0));
        assert!(!rate.see_within(0.06, 0.05, 1.0), "the window goes on");
        assert!(rate.see_within(0.12, 0.11, 1.0));
        assert_eq!(rate.peak.value, Some(1.0));
    }

    #[test]
    fn dense_ticks_do_not_turn_one_clock_tick_into_many_cores() {
        let mut rate = Rate::default();
        for (total, at) in [(0.0, 0.0), (0.01, 0.001), (0.01, 0.05), (0.1, 0.1)] {
            rate.see(total, at);
        }
        assert_eq!(rate.peak.value, Some(1.0));
    }
}
