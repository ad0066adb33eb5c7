//! Utilization of a GPU, or of its memory: by all samples of the driver where it has them.
//!
//! What surprised us: the utilization that a driver reports is of the last sixth of a second to a
//! whole one. At the start of a run that is of other processes before it.

use super::super::curve::{Mean, Peak, SHORTEST_WINDOW};

/// Utilization that was read in so many seconds after the start is of the time before it, too.
const EARLY: f64 = 1.0;

/// The utilization of something.
#[derive(Debug, Default, Clone)]
pub(super) struct UtilizationTracker {
    peak: Peak,
    polled: Mean,
    /// Whether there was a value that is of the time before the run, too.
    has_early: bool,
    /// Time busy and time observed, at the first poll and at the last.
    sampled: Option<[(f64, f64); 2]>,
}

/// The utilization at one tick.
#[derive(Debug, Clone, Copy)]
pub(super) struct UtilizationSample {
    /// As the driver reported it.
    pub(super) share: Option<f64>,
    /// Time busy and time observed until then.
    pub(super) sampled: Option<(f64, f64)>,
    /// By the driver's samples since an earlier tick.
    pub(super) between: Option<f64>,
    /// When the driver was polled.
    pub(super) polled_at: f64,
}

impl UtilizationTracker {
    /// Adds a sample of this time, and returns the utilization, as far as it was during the run.
    pub(super) fn add(&mut self, sample: UtilizationSample, at: f64) -> Option<f64> {
        let is_early = sample.share.is_some() && sample.polled_at < EARLY;
        self.has_early |= is_early;
        let share = sample.share.filter(|_| !is_early);
        match share {
            Some(share) => self.polled.add(share, at),
            None => self.polled.pause(at),
        }
        if let Some(now) = sample.sampled {
            let first = self.sampled.map_or(now, |[first, _]| first);
            self.sampled = Some([first, now]);
        }
        let highest = [share, sample.between].into_iter().flatten().max_by(f64::total_cmp);
        highest.into_iter().for_each(|share| self.peak.add(share, at));
        highest
    }

    /// Nothing is known from this time on.
    pub(super) fn pause(&mut self, at: f64) {
        self.polled.pause(at);
    }

    /// The highest value that is known: the mean may be above all polls.
    pub(super) fn highest(&self, end: f64) -> Option<f64> {
        let highest = [self.peak.value, self.mean(end)].into_iter().flatten();
        highest.max_by(f64::total_cmp)
    }

    /// Whether its mean is of all samples of the driver.
    pub(super) fn is_sampled(&self) -> bool {
        self.sampled.is_some_and(|[first, last]| last.1 > first.1)
    }

    /// Whether there are values, and all of a time that began before the run.
    pub(super) fn is_all_early(&self) -> bool {
        self.has_early && self.peak.value.is_none()
    }

    /// The mean utilization: by all samples of the driver, or else by polls.
    pub(super) fn mean(&self, end: f64) -> Option<f64> {
        let sampled = self.sampled.and_then(|[first, last]| {
            let observed = last.1 - first.1;
            // Time observed is that of samples of the GPU; those of memory may be one ahead.
            (observed > 0.0).then(|| ((last.0 - first.0) / observed).min(1.0))
        });
        sampled.or_else(|| self.polled.until(end))
    }
}

/// The utilization between two ticks, by time busy and time observed.
#[derive(Debug, Default, Clone)]
pub(super) struct UtilizationWindow {
    before: Option<(f64, f64)>,
}

impl UtilizationWindow {
    /// The utilization since the last tick that was long enough ago.
    pub(super) fn share(&mut self, now: Option<(f64, f64)>) -> Option<f64> {
        let (busy, observed) = now?;
        let (busy_before, observed_before) = *self.before.get_or_insert((busy, observed));
        let elapsed = observed - observed_before;
        if (0.0..SHORTEST_WINDOW).contains(&elapsed) {
            return None;
        }
        self.before = now;
        // A counter that decreases was reset.
        (elapsed > 0.0).then(|| ((busy - busy_before) / elapsed).clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(share: Option<f64>, polled_at: f64) -> UtilizationSample {
        UtilizationSample { share, sampled: None, between: None, polled_at }
    }

    #[test]
    fn utilization_of_the_first_second_is_of_the_time_before_the_run() {
        let mut busy = UtilizationTracker::default();
        assert_eq!(busy.add(sample(Some(1.0), 0.2), 0.2), None);
        assert_eq!(busy.add(sample(Some(1.0), 0.9), 1.1), None, "the time of the poll counts");
        assert!(busy.is_all_early());
        assert_eq!((busy.mean(1.1), busy.highest(1.1)), (None, None));
        assert_eq!(busy.add(sample(Some(0.25), 1.0), 1.2), Some(0.25));
        assert!(!busy.is_all_early());
        assert_eq!((busy.mean(4.0), busy.highest(4.0)), (Some(0.25), Some(0.25)));
    }

    #[test]
    fn samples_of_the_driver_cover_the_first_second() {
        let (mut busy, mut window) = (UtilizationTracker::default(), UtilizationWindow::default());
        for (at, time, observed) in [(0.1, 4.0, 7.0), (0.15, 4.05, 7.05), (0.5, 4.1, 7.4)] {
            let sampled = Some((time, observed));
            let between = window.share(sampled);
            busy.add(UtilizationSample { share: Some(1.0), sampled, between, polled_at: at }, at);
        }
        let near = |one: Option<f64>| (one.unwrap() - 0.25).abs() < 1e-9;
        assert!(near(busy.mean(0.5)) && near(busy.highest(0.5)), "{busy:?}");
        assert_eq!(window.share(Some((1.0, 1.0))), None, "it was reset");
        assert_eq!(window.share(Some((1.5, 2.0))), Some(0.5));
    }
}
