//! What the driver samples by itself, added up.
//!
//! Each sample is the mean over the time since the one before it. The driver keeps the last
//! hundred or so: what was longer ago than they reach is not known, and not counted as covered.

use crate::host::nvml::Sample;

/// The longest time that one sample stands for (nvmlUtilization_t: "between 1 second and 1/6
/// second, depending on the product"), in microseconds.
pub(super) const LONGEST: u64 = 1_000_000;

/// Values times their time, since the first look.
#[derive(Debug, Default)]
pub(super) struct Sum {
    /// The last sample that was seen; nothing before the first look.
    last: Option<u64>,
    /// Value × seconds.
    total: f64,
    /// Seconds that samples cover.
    covered: f64,
}

impl Sum {
    /// Samples that are newer than this have not been seen.
    pub(super) fn after(&self) -> u64 {
        self.last.unwrap_or(0)
    }

    /// Takes in the new samples of a look, oldest first; those above `most` are not real.
    pub(super) fn see(&mut self, samples: impl Iterator<Item = Sample>, most: u64) {
        // What the driver still has at the first look was before it.
        let was_looked_at = self.last.is_some();
        for sample in samples.filter(|sample| sample.value <= most) {
            let before = self.last.replace(sample.at).unwrap_or(sample.at);
            if was_looked_at {
                let seconds = sample.at.saturating_sub(before).min(LONGEST) as f64 / 1e6;
                self.total += sample.value as f64 * seconds;
                self.covered += seconds;
            }
        }
    }

    /// Value × seconds so far; nothing when nothing was ever sampled.
    pub(super) fn total(&self) -> Option<f64> {
        self.last.map(|_| self.total)
    }

    /// The seconds that this is of.
    pub(super) fn covered(&self) -> Option<f64> {
        self.last.map(|_| self.covered)
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
