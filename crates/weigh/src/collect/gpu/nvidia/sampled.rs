//! What the driver samples by itself, added up.
//!
//! Each sample is the mean over the time since the one before it. The driver keeps the last
//! hundred or so: what was longer ago than they reach is not known, and not counted as covered.
//! Such a gap can only be before the first sample of a look. That sample then stands for as long
//! as its neighbours do, and not for the gap.

use crate::host::nvml::Sample;

/// The longest time that one sample stands for (nvmlUtilization_t: "between 1 second and 1/6
/// second, depending on the product"), in microseconds.
pub(super) const LONGEST: u64 = 1_000_000;

/// Values times their time, since the first look.
#[derive(Debug, Default)]
pub(super) struct Sum {
    /// The last sample that was seen; nothing before the first look.
    last: Option<Sample>,
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
    /// Samples that are newer than this have not been seen.
    pub(super) fn after(&self) -> u64 {
        self.last.map_or(0, |last| last.at)
    }

    /// Takes in the new samples of a look, oldest first; those above `most` are not real.
    pub(super) fn see(&mut self, samples: impl Iterator<Item = Sample>, most: u64) {
        let mut samples = samples.filter(|sample| sample.value <= most);
        let Some(first) = samples.next() else { return };
        let before = self.last.replace(first);
        let mut apart = None;
        for sample in samples {
            let since = sample.at.saturating_sub(self.after());
            // What the driver still has at the first look was before it.
            if before.is_some() {
                self.cover(sample.value, since.min(LONGEST));
            }
            apart = apart.max(Some(since.min(LONGEST)));
            self.last = Some(sample);
        }
        self.apart = apart.or(self.apart);
        if let Some(before) = before {
            self.see_first(before, first);
        }
    }

    fn see_first(&mut self, before: Sample, first: Sample) {
        let since = first.at.saturating_sub(before.at);
        let apart = self.apart.unwrap_or(LONGEST);
        // Samples are not taken to the microsecond: one that is late is not a gap.
        let stands_for = if since <= LONGEST.min(2 * apart) { since } else { apart };
        self.cover(first.value, stands_for);
        let missed = since.saturating_sub(stands_for) as f64 / 1e6;
        self.missed += (before.value + first.value) as f64 / 2.0 * missed;
    }

    fn cover(&mut self, value: u64, micros: u64) {
        let seconds = micros as f64 / 1e6;
        self.total += value as f64 * seconds;
        self.covered += seconds;
    }

    /// Value × seconds so far; nothing when nothing was ever sampled.
    pub(super) fn total(&self) -> Option<f64> {
        self.last.map(|_| self.total)
    }

    /// The seconds that this is of.
    pub(super) fn covered(&self) -> Option<f64> {
        self.last.map(|_| self.covered)
    }

    /// The total and what is missing in it, as it probably was.
    pub(super) fn whole(&self) -> Option<f64> {
        self.total().map(|total| total + self.missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[(u64, u64)]) -> impl Iterator<Item = Sample> {
        values.iter().map(|&(at, value)| Sample { at, value })
    }

    #[test]
    fn samples_stand_for_the_time_since_the_one_before_them() {
        let mut sum = Sum::default();
        assert_eq!((sum.total(), sum.after()), (None, 0));
        sum.see(samples(&[(1_000_000, 100), (1_100_000, 100)]), 100);
        assert_eq!((sum.total(), sum.after()), (Some(0.0), 1_100_000), "that was before");
        sum.see(samples(&[(1_200_000, 50), (1_400_000, 25)]), 100);
        assert!((sum.total().unwrap() - 10.0).abs() < 1e-9, "{sum:?}");
        assert!((sum.covered().unwrap() - 0.3).abs() < 1e-9, "{sum:?}");
        sum.see(samples(&[]), 100);
        assert_eq!(sum.after(), 1_400_000);
    }

    #[test]
    fn what_cannot_be_is_left_out_and_a_gap_is_not_covered() {
        let mut sum = Sum::default();
        sum.see(samples(&[(1_000_000, 0)]), 100);
        sum.see(samples(&[(1_500_000, 4_000_000_000), (2_000_000, 60)]), 100);
        assert_eq!((sum.total(), sum.covered()), (Some(60.0), Some(1.0)));
        sum.see(samples(&[(9_000_000, 10)]), 100);
        assert_eq!((sum.total(), sum.covered()), (Some(70.0), Some(2.0)), "a second of seven");
    }

    #[test]
    fn a_sample_after_a_gap_stands_for_as_long_as_its_neighbours_and_the_rest_is_guessed() {
        let mut sum = Sum::default();
        sum.see(samples(&[(900_000, 200), (1_000_000, 200)]), 1000);
        // An interval of ten seconds, of which the driver has kept the last three tenths.
        sum.see(samples(&[(10_800_000, 100), (10_900_000, 100), (11_000_000, 100)]), 1000);
        let near = |one: Option<f64>, other: f64| (one.unwrap() - other).abs() < 1e-9;
        assert!(near(sum.total(), 30.0) && near(sum.covered(), 0.3), "{sum:?}");
        assert!(near(sum.whole(), 30.0 + 150.0 * 9.7), "{sum:?}");
        // Less than a second is a gap, too, where samples are a tenth apart; a late one is none.
        sum.see(samples(&[(11_900_000, 100)]), 1000);
        assert!(near(sum.covered(), 0.4) && near(sum.total(), 40.0), "{sum:?}");
        sum.see(samples(&[(12_050_000, 100)]), 1000);
        assert!(near(sum.covered(), 0.55), "{sum:?}");
        assert!(near(sum.whole(), 30.0 + 150.0 * 9.7 + 105.0), "{sum:?}");
    }

    #[test]
    fn a_known_curve_is_met_within_a_hundredth_however_looks_fall() {
        // A triangle from 0 to 100 and back in a second, sampled every 20 ms.
        let curve = |micros: u64| 100.0 - (micros % 1_000_000).abs_diff(500_000) as f64 / 5000.0;
        let sampled = |at: u64| Sample { at, value: curve(at - 10_000).round() as u64 };
        let all: Vec<Sample> = (1..=500).map(|n| sampled(n * 20_000)).collect();
        for look in [1, 7, 40, 120] {
            let mut sum = Sum::default();
            all.chunks(look).for_each(|new| sum.see(new.iter().copied(), 100));
            let (total, covered) = (sum.total().unwrap(), sum.covered().unwrap());
            // What was before the first look is not counted.
            let steps = (look as u64 * 20_000..10_000_000).step_by(1000);
            let truth: f64 = steps.map(|micros| curve(micros) * 1e-3).sum();
            assert!((total / truth - 1.0).abs() < 0.01, "{look}: {total} in {covered} of {truth}");
        }
    }
}
