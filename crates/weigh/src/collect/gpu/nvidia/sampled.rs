//! What the driver samples by itself, added up.
//!
//! Each sample is the mean over the time since the one before it. The driver keeps the last
//! hundred or so: what was longer ago than they reach is not known, and not counted as covered.
//! Such a gap can only be before the first sample of a look. That sample then stands for as long
//! as its neighbours do, and not for the gap.
//!
//! What surprised us: samples have the time of day. When that is set back, none is newer than the
//! last for as long as it was set back. So after a while without any, all are asked for. And when
//! it is set forward, or the machine slept, a gap seems longer than it was: no gap is longer than
//! the monotonic clock says.
//!
//! Some drivers take no samples of a card that does nothing (GB10; polarsignals/gpu-metrics-agent,
//! pull request 37). Looks are a second apart and samples less, so a driver that answers and has
//! no new one takes none; what it tells at the look is then what the time since is worth
//! ([`Sum::stand_still`]).

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::host::nvml::Sample;

/// How long the driver may have no new sample before its clock is doubted.
pub(super) const SILENCE: Duration = Duration::from_secs(5);

/// The longest time that one sample stands for (nvmlUtilization_t: "between 1 second and 1/6
/// second, depending on the product"), in microseconds.
pub(super) const LONGEST: u64 = 1_000_000;

/// Values times their time, since the first look.
#[derive(Debug, Default)]
pub(super) struct Sum {
    /// The last sample that was seen; nothing before the first.
    last: Option<Sample>,
    /// When there was a new one, on the monotonic clock, or when it was first asked for one;
    /// nothing before the first answer.
    heard: Option<Duration>,
    /// Until when the time without samples is in the total.
    stood: Duration,
    /// Whether the driver answered at this look, and had nothing new.
    is_dry: bool,
    /// The longest time between two samples of one look, of the last look that had two.
    apart: Option<u64>,
    /// Value × seconds.
    total: f64,
    /// Seconds that samples cover.
    covered: f64,
    /// Value × seconds of what they do not cover, as if the value had changed evenly.
    missed: f64,
}

impl Sum {
    /// Samples that are newer than this are wanted at this moment.
    pub(super) fn after(&mut self, at: Duration) -> u64 {
        self.is_dry = false;
        let is_silent = self.since_heard(at) >= SILENCE;
        if is_silent { 0 } else { self.newest() }
    }

    fn since_heard(&self, at: Duration) -> Duration {
        self.heard.map_or(Duration::ZERO, |heard| at.saturating_sub(heard))
    }

    /// When the last sample was taken that was seen.
    pub(super) fn newest(&self) -> u64 {
        self.last.map_or(0, |last| last.at)
    }

    /// The same, if it was at this look that it was seen.
    pub(super) fn newest_at(&self, at: Duration) -> Option<u64> {
        self.last.filter(|_| self.heard == Some(at) && !self.is_dry).map(|last| last.at)
    }

    /// Takes in the samples of a look, oldest first; those above `most` are not real.
    pub(super) fn see(&mut self, at: Duration, samples: impl Iterator<Item = Sample>, most: u64) {
        let (newest, mut last) = (self.newest(), None);
        let all = samples.filter(|sample| sample.value <= most).inspect(|one| last = Some(*one));
        let mut samples = all.filter(|sample| sample.at > newest);
        let Some(first) = samples.next() else {
            drop(samples);
            self.is_dry = true;
            if last.is_some_and(|last| last.at < newest) {
                // The clock was set back: what is sampled from now on is new again.
                (self.last, self.heard) = (last, Some(at));
            } else if self.heard.is_none() {
                (self.heard, self.stood) = (Some(at), at);
            }
            return;
        };
        // What the driver still has at the first look was before it.
        let heard = self.heard.replace(at);
        let before = self.last.replace(first);
        let mut apart = None;
        for sample in samples {
            let since = sample.at.saturating_sub(self.newest());
            if heard.is_some() {
                self.cover(sample.value, since.min(LONGEST));
            }
            apart = apart.max(Some(since.min(LONGEST)));
            self.last = Some(sample);
        }
        self.apart = apart.or(self.apart);
        if let Some(heard) = heard {
            let stood = self.stood.saturating_sub(heard);
            self.see_first(before, first, at.saturating_sub(heard), stood);
        }
        self.stood = at;
    }

    /// Takes in the first sample of a look, so long after there was one; of that time, so much is
    /// in the total already.
    fn see_first(
        &mut self,
        before: Option<Sample>,
        first: Sample,
        passed: Duration,
        stood: Duration,
    ) {
        let micros = |time: Duration| time.as_micros() as u64;
        let apart = self.apart.unwrap_or(LONGEST);
        // The last sample may have been taken a while before it was seen; and those behind the
        // first have their part of the time.
        let behind = self.newest().saturating_sub(first.at);
        let most = micros(passed).saturating_add(apart).saturating_sub(behind);
        let since = before.map_or(apart, |before| {
            first.at.saturating_sub(before.at).min(most).saturating_sub(micros(stood))
        });
        // Samples are not taken to the microsecond: one that is late is not a gap.
        let stands_for = if since <= LONGEST.min(2 * apart) { since } else { apart };
        self.cover(first.value, stands_for);
        let missed = since.saturating_sub(stands_for) as f64 / 1e6;
        let before = before.map_or(first.value, |before| before.value);
        self.missed += (before + first.value) as f64 / 2.0 * missed;
    }

    /// Adds what the driver told at this look, if it takes no samples, for the time since.
    pub(super) fn stand_still(&mut self, at: Duration, value: Option<f64>) {
        // When the clock was set back, there are some again, and what they are of is not known.
        let is_set_back = self.heard > Some(self.stood);
        let is_long = self.since_heard(at) > Duration::from_micros(LONGEST);
        let is_silent = self.is_dry && (is_long || is_set_back);
        let Some(value) = value.filter(|_| is_silent) else { return };
        let seconds = at.saturating_sub(self.stood).as_secs_f64();
        self.total += value * seconds;
        self.covered += seconds;
        self.stood = at;
    }

    fn cover(&mut self, value: u64, micros: u64) {
        let seconds = micros as f64 / 1e6;
        self.total += value as f64 * seconds;
        self.covered += seconds;
    }

    /// Value × seconds so far; nothing when nothing was ever sampled.
    pub(super) fn total(&self) -> Option<f64> {
        self.is_any().then_some(self.total)
    }

    /// The seconds that this is of.
    pub(super) fn covered(&self) -> Option<f64> {
        self.is_any().then_some(self.covered)
    }

    fn is_any(&self) -> bool {
        self.last.is_some() || self.covered > 0.0
    }

    /// The total and what is missing in it, as it probably was.
    pub(super) fn whole(&self) -> Option<f64> {
        self.total().map(|total| total + self.missed)
    }
}
