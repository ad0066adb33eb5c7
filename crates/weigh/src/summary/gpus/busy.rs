//! How busy a GPU, or its memory, was: by all samples of the driver where it keeps them.

use super::super::curve::{Mean, Peak};

/// How busy something was.
#[derive(Debug, Default)]
pub(super) struct Busy {
    peak: Peak,
    seen: Mean,
    /// Time busy and time observed, at the first look and at the last.
    sampled: Option<[(f64, f64); 2]>,
}

impl Busy {
    /// The share at a look, and time busy and time observed until then.
    pub(super) fn see(&mut self, share: Option<f64>, sampled: Option<(f64, f64)>, at: f64) {
        match share {
            Some(share) => {
                self.peak.see(share, at);
                self.seen.see(share, at);
            }
            None => self.seen.pause(at),
        }
        if let Some(now) = sampled {
            let first = self.sampled.map_or(now, |[first, _]| first);
            self.sampled = Some([first, now]);
        }
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
