//! How busy a GPU, or its memory, was: by all samples of the driver where it keeps them.
//!
//! What surprised us: the share that a driver tells at a look is that of the last sixth of a
//! second to a whole one. At the beginning of a run that is what others did before it.

use super::super::curve::{Mean, Peak, SHORTEST_WINDOW};

/// Shares of looks in so many seconds after the run's zero are of the time before it, too.
const OF_BEFORE: f64 = 1.0;

/// How busy something was.
#[derive(Debug, Default)]
pub(super) struct Busy {
    peak: Peak,
    seen: Mean,
    /// Whether a share was told that is of the time before the run, too.
    is_early: bool,
    /// Time busy and time observed, at the first look and at the last.
    sampled: Option<[(f64, f64); 2]>,
}

/// One look at how busy something is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    /// The share that the driver told.
    pub(super) share: Option<f64>,
    /// Time busy and time observed until then.
    pub(super) sampled: Option<(f64, f64)>,
    /// The share by the driver's samples since an earlier look.
    pub(super) between: Option<f64>,
    /// When the driver was asked.
    pub(super) looked: f64,
}

impl Busy {
    /// Takes in a look that is told of at this moment, and says how busy it was, as far as that
    /// was during the run.
    pub(super) fn see(&mut self, look: Look, at: f64) -> Option<f64> {
        let is_early = look.share.is_some() && look.looked < OF_BEFORE;
        self.is_early |= is_early;
        let share = look.share.filter(|_| !is_early);
        match share {
            Some(share) => self.seen.see(share, at),
            None => self.seen.pause(at),
        }
        if let Some(now) = look.sampled {
            let first = self.sampled.map_or(now, |[first, _]| first);
            self.sampled = Some([first, now]);
        }
        let highest = [share, look.between].into_iter().flatten().max_by(f64::total_cmp);
        highest.into_iter().for_each(|share| self.peak.see(share, at));
        highest
    }

    /// Nothing is known from this moment on.
    pub(super) fn pause(&mut self, at: f64) {
        self.seen.pause(at);
    }

    /// The highest share that is known: a mean may be above all that was seen.
    pub(super) fn highest(&self, end: f64) -> Option<f64> {
        let highest = [self.peak.value, self.mean(end)].into_iter().flatten();
        highest.max_by(f64::total_cmp)
    }

    /// Whether all samples of the driver are in its mean.
    pub(super) fn is_sampled(&self) -> bool {
        self.sampled.is_some_and(|[first, last]| last.1 > first.1)
    }

    /// Whether it was told, and only of a time that began before the run.
    pub(super) fn is_of_before(&self) -> bool {
        self.is_early && self.peak.value.is_none()
    }

    /// The share of the time in which it was busy: by all samples of the driver, or else by
    /// those that were seen.
    pub(super) fn mean(&self, end: f64) -> Option<f64> {
        let sampled = self.sampled.and_then(|[first, last]| {
            let observed = last.1 - first.1;
            // Time observed is that of samples of computing; those of memory may be one ahead.
            (observed > 0.0).then(|| ((last.0 - first.0) / observed).min(1.0))
        });
        sampled.or_else(|| self.seen.until(end))
    }
}

/// The share between two looks, by time busy and time observed.
#[derive(Debug, Default)]
pub(super) struct Window {
    before: Option<(f64, f64)>,
}

impl Window {
    /// The share since the last look that was long enough ago.
    pub(super) fn share(&mut self, now: Option<(f64, f64)>) -> Option<f64> {
        let (busy, observed) = now?;
        let (busy_before, observed_before) = *self.before.get_or_insert((busy, observed));
        let passed = observed - observed_before;
        if (0.0..SHORTEST_WINDOW).contains(&passed) {
            return None;
        }
        self.before = now;
        // A count that goes back is somebody else's.
        (passed > 0.0).then(|| ((busy - busy_before) / passed).clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(share: Option<f64>, looked: f64) -> Look {
        Look { share, sampled: None, between: None, looked }
    }

    #[test]
    fn what_a_driver_tells_in_the_first_second_is_of_the_time_before_the_run() {
        let mut busy = Busy::default();
        assert_eq!(busy.see(look(Some(1.0), 0.2), 0.2), None);
        assert_eq!(busy.see(look(Some(1.0), 0.9), 1.1), None, "when it was asked counts");
        assert!(busy.is_of_before());
        assert_eq!((busy.mean(1.1), busy.highest(1.1)), (None, None));
        assert_eq!(busy.see(look(Some(0.25), 1.0), 1.2), Some(0.25));
        assert!(!busy.is_of_before());
        assert_eq!((busy.mean(4.0), busy.highest(4.0)), (Some(0.25), Some(0.25)));
    }

    #[test]
    fn samples_tell_of_the_first_second_too() {
        let (mut busy, mut window) = (Busy::default(), Window::default());
        for (at, time, observed) in [(0.1, 4.0, 7.0), (0.15, 4.05, 7.05), (0.5, 4.1, 7.4)] {
            let sampled = Some((time, observed));
            let between = window.share(sampled);
            busy.see(Look { share: Some(1.0), sampled, between, looked: at }, at);
        }
        let near = |one: Option<f64>| (one.unwrap() - 0.25).abs() < 1e-9;
        assert!(near(busy.mean(0.5)) && near(busy.highest(0.5)), "{busy:?}");
        assert_eq!(window.share(Some((1.0, 1.0))), None, "it began again");
        assert_eq!(window.share(Some((1.5, 2.0))), Some(0.5));
    }
}
