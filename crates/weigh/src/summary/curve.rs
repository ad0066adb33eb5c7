//! Curves reduced to what is asked of them: a peak and when, a mean over time, a rate.

/// The largest value so far, and when it was reached.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Peak {
    /// The value; `None` before the first.
    pub value: Option<f64>,
    /// When, in seconds since the run began.
    pub at: f64,
}

impl Peak {
    /// Takes a value into account.
    pub fn see(&mut self, value: f64, at: f64) {
        if self.value.is_none_or(|peak| value > peak) {
            *self = Peak { value: Some(value), at };
        }
    }
}

/// The mean over time of a value that holds until the next one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mean {
    last: Option<(f64, f64)>,
    area: f64,
    length: f64,
    /// The lowest value and the highest: a mean is between them, whatever sums are rounded to.
    range: Option<(f64, f64)>,
}

impl Mean {
    /// The value from now on.
    pub fn see(&mut self, value: f64, at: f64) {
        self.pause(at);
        self.last = Some((value, at));
        let (lowest, highest) = self.range.unwrap_or((value, value));
        self.range = Some((lowest.min(value), highest.max(value)));
    }

    /// From now on it is not known, until it is seen again.
    pub fn pause(&mut self, at: f64) {
        if let Some((before, then)) = self.last.take() {
            let length = (at - then).max(0.0);
            self.area += before * length;
            self.length += length;
        }
    }

    /// The mean over the time in which it was known until `end`, or until the last when that is
    /// later: a command is timed from its exec, which is a moment after the run's zero.
    pub fn until(mut self, end: f64) -> Option<f64> {
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
pub struct Rate {
    last: Option<(f64, f64)>,
    /// The highest rate so far.
    pub peak: Peak,
}

/// Clock ticks are 10 ms apart: over a shorter window they say nothing about a rate.
pub(super) const SHORTEST_WINDOW: f64 = 0.1;

impl Rate {
    /// The counter's value now. One that goes back is somebody else's: no rate comes of it.
    pub fn see(&mut self, total: f64, at: f64) {
        let Some((before, then)) = self.last else {
            self.last = Some((total, at));
            return;
        };
        if at - then < SHORTEST_WINDOW {
            return;
        }
        if total >= before {
            self.peak.see((total - before) / (at - then), at);
        }
        self.last = Some((total, at));
    }
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
        assert_eq!(rate.peak, Peak { value: Some(0.5), at: 2.0 });
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
