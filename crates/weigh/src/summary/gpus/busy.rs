//! How busy a GPU, or its memory, was: by all samples of the driver where it keeps them.

use super::super::curve::{Mean, Peak};

/// How busy something was.
#[derive(Debug, Default)]
pub(super) struct Busy {
    /// The highest share that was seen.
    pub(super) peak: Peak,
    seen: Mean,
    /// Time busy and time observed, at the first look and at the last.
    sampled: Option<[(f64, f64); 2]>,
}

impl Busy {
    /// The share at a look, and time busy and time observed until then.
    pub(super) fn see(&mut self, share: Option<f64>, sampled: Option<(f64, f64)>, at: f64) {
        if let Some(share) = share {
            self.peak.see(share, at);
            self.seen.see(share, at);
        }
        if let Some(now) = sampled {
            let first = self.sampled.map_or(now, |[first, _]| first);
            self.sampled = Some([first, now]);
        }
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
