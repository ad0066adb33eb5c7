//! The driver's own samples, integrated over time.
//!
//! Each sample is the mean over the time since the one before it. The driver buffers the last
//! hundred or so: time before those is not known, and not counted as covered. Such a gap can only
//! be before the first sample of a poll. That sample then stands for as long as its neighbours do,
//! and not for the gap.
//!
//! What surprised us: samples have the time of day. When that is set back, none is newer than the
//! last for as long as it was set back. So after a while without any, all samples are requested.
//! When it is set forward, or the machine was suspended, a gap seems longer than it was: no gap is
//! longer than the monotonic clock says.
//!
//! Some drivers take no samples of an idle GPU (GB10; polarsignals/gpu-metrics-agent, pull request
//! 37). Polls are a second apart and samples less, so a driver that answers and has no new sample
//! takes none; the value of the poll then holds for the time since
//! ([`SampleIntegrator::hold_last`]).

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::host::nvml::Sample;

/// How long the driver may have no new sample before a clock step is assumed.
pub(super) const CLOCK_STEP_AFTER: Duration = Duration::from_secs(5);

/// The longest time that one sample stands for (nvmlUtilization_t: "between 1 second and 1/6
/// second, depending on the product"), in microseconds.
pub(super) const MAX_PERIOD: u64 = 1_000_000;

/// The integral of one sampled value since the first poll.
#[derive(Debug, Default)]
pub(super) struct SampleIntegrator {
    /// The newest sample; nothing before the first.
    last: Option<Sample>,
    /// When there was a new sample, on the monotonic clock, or when the first poll was; nothing
    /// before that.
    last_sample_at: Option<Duration>,
    /// Until when time without samples is in the total.
    integrated_until: Duration,
    /// Whether the driver answered at this poll, and had no new sample.
    no_new_samples: bool,
    /// The longest time between two samples of one poll, of the last poll that had two.
    period: Option<u64>,
    /// Value × seconds.
    total: f64,
    /// Seconds that samples cover.
    covered: f64,
    /// Value × seconds of the gaps, as if the value had changed linearly.
    gaps: f64,
}

impl SampleIntegrator {
    /// The time after which samples are requested at this poll.
    pub(super) fn after(&mut self, at: Duration) -> u64 {
        self.no_new_samples = false;
        let is_silent = self.since_last_sample(at) >= CLOCK_STEP_AFTER;
        if is_silent { 0 } else { self.newest() }
    }

    fn since_last_sample(&self, at: Duration) -> Duration {
        self.last_sample_at.map_or(Duration::ZERO, |last| at.saturating_sub(last))
    }

    /// The time of the newest sample.
    pub(super) fn newest(&self) -> u64 {
        self.last.map_or(0, |last| last.at)
    }

    /// The same, if the sample is new at this poll.
    pub(super) fn newest_at(&self, at: Duration) -> Option<u64> {
        let is_new = self.last_sample_at == Some(at) && !self.no_new_samples;
        self.last.filter(|_| is_new).map(|last| last.at)
    }

    /// Adds the samples of a poll, oldest first; those above `max` are invalid.
    pub(super) fn push(&mut self, at: Duration, samples: impl Iterator<Item = Sample>, max: u64) {
        let (newest, mut last) = (self.newest(), None);
        let valid = samples.filter(|sample| sample.value <= max).inspect(|one| last = Some(*one));
        let mut samples = valid.filter(|sample| sample.at > newest);
        let Some(first) = samples.next() else {
            drop(samples);
            self.no_new_samples = true;
            if last.is_some_and(|last| last.at < newest) {
                // The clock was set back: samples from now on are new again.
                (self.last, self.last_sample_at) = (last, Some(at));
            } else if self.last_sample_at.is_none() {
                (self.last_sample_at, self.integrated_until) = (Some(at), at);
            }
            return;
        };
        // What the driver has buffered at the first poll was before it.
        let last_sample_at = self.last_sample_at.replace(at);
        let before = self.last.replace(first);
        let mut period = None;
        for sample in samples {
            let stands_for = sample.at.saturating_sub(self.newest()).min(MAX_PERIOD);
            if last_sample_at.is_some() {
                self.add(sample.value, stands_for);
            }
            period = period.max(Some(stands_for));
            self.last = Some(sample);
        }
        self.period = period.or(self.period);
        if let Some(last_sample_at) = last_sample_at {
            let integrated = self.integrated_until.saturating_sub(last_sample_at);
            self.add_first(before, first, at.saturating_sub(last_sample_at), integrated);
        }
        self.integrated_until = at;
    }

    /// Adds the first sample of a poll. `elapsed` is the time since the last sample; of that,
    /// `integrated` is in the total already.
    fn add_first(
        &mut self,
        before: Option<Sample>,
        first: Sample,
        elapsed: Duration,
        integrated: Duration,
    ) {
        let micros = |time: Duration| time.as_micros() as u64;
        let period = self.period.unwrap_or(MAX_PERIOD);
        // The last sample may have been taken a while before its poll, and the samples after the
        // first have their part of the time.
        let behind = self.newest().saturating_sub(first.at);
        let max = micros(elapsed).saturating_add(period).saturating_sub(behind);
        let since = before.map_or(period, |before| {
            first.at.saturating_sub(before.at).min(max).saturating_sub(micros(integrated))
        });
        // Samples are not taken to the microsecond: a late one is not a gap.
        let stands_for = if since <= MAX_PERIOD.min(2 * period) { since } else { period };
        self.add(first.value, stands_for);
        let gap = since.saturating_sub(stands_for) as f64 / 1e6;
        let before = before.map_or(first.value, |before| before.value);
        self.gaps += (before + first.value) as f64 / 2.0 * gap;
    }

    /// Adds the value of this poll for the time since, if the driver takes no samples.
    pub(super) fn hold_last(&mut self, at: Duration, value: Option<f64>) {
        // After the clock was set back there are samples again, of a time that is not known.
        let is_set_back = self.last_sample_at > Some(self.integrated_until);
        let is_long = self.since_last_sample(at) > Duration::from_micros(MAX_PERIOD);
        let is_silent = self.no_new_samples && (is_long || is_set_back);
        let Some(value) = value.filter(|_| is_silent) else { return };
        let seconds = at.saturating_sub(self.integrated_until).as_secs_f64();
        self.total += value * seconds;
        self.covered += seconds;
        self.integrated_until = at;
    }

    fn add(&mut self, value: u64, micros: u64) {
        let seconds = micros as f64 / 1e6;
        self.total += value as f64 * seconds;
        self.covered += seconds;
    }

    /// Value × seconds so far; nothing before the first sample.
    pub(super) fn total(&self) -> Option<f64> {
        self.has_any().then_some(self.total)
    }

    /// The seconds that the total is of.
    pub(super) fn covered(&self) -> Option<f64> {
        self.has_any().then_some(self.covered)
    }

    fn has_any(&self) -> bool {
        self.last.is_some() || self.covered > 0.0
    }

    /// The total, with the gaps interpolated.
    pub(super) fn with_gaps(&self) -> Option<f64> {
        self.total().map(|total| total + self.gaps)
    }
}
