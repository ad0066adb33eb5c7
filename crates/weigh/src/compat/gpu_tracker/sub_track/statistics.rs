//! Minimum, maximum, mean and standard deviation, the same as gpu-tracker's to the last digit.
//!
//! Floating-point sums depend on their order. pandas adds pairwise, as numpy does, and SQLite
//! one after the other (before 3.43; later versions compensate the rounding error, so there the
//! last digit of gpu-tracker itself depends on the SQLite version).

/// Statistics of a series. Without a single value all are NaN.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasureStatistics {
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The standard deviation of the population, not of a sample (ddof 0).
    pub std: f64,
}

/// The names of the statistics, in their order.
pub const NAMES: [&str; 4] = ["min", "max", "mean", "std"];

/// In which order to add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Summing {
    /// As numpy does.
    Pairwise,
    /// As SQLite does.
    InOrder,
}

impl Summing {
    /// The sum of these.
    pub fn sum(self, values: &[f64]) -> f64 {
        // The sum of nothing is -0.0 in Rust.
        0.0 + match self {
            Summing::Pairwise => pairwise(values),
            Summing::InOrder => values.iter().sum(),
        }
    }
}

/// Eight running sums; long inputs are halved: numpy's `pairwise_sum`.
fn pairwise(values: &[f64]) -> f64 {
    const LANES: usize = 8;
    const BLOCK: usize = 128;
    if values.len() < LANES {
        return values.iter().sum();
    }
    if values.len() > BLOCK {
        let half = values.len() / 2;
        let (one, other) = values.split_at(half - half % LANES);
        return pairwise(one) + pairwise(other);
    }
    let (lanes, rest) = values.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for lane in lanes {
        for (sum, value) in sums.iter_mut().zip(lane) {
            *sum += value;
        }
    }
    let [a, b, c, d, e, f, g, h] = sums;
    let sum = ((a + b) + (c + d)) + ((e + f) + (g + h));
    rest.iter().fold(sum, |sum, value| sum + value)
}

impl MeasureStatistics {
    /// Of values where NaN stands for a missing one.
    pub fn of(values: &[f64], summing: Summing) -> MeasureStatistics {
        let known = values.iter().filter(|value| !value.is_nan());
        let count = known.clone().count() as f64;
        if count == 0.0 {
            let none = f64::NAN;
            return MeasureStatistics { min: none, max: none, mean: none, std: none };
        }
        // pandas puts a zero where a value is missing; only the order of additions depends on it.
        let or_zero = |value: f64| if value.is_nan() { 0.0 } else { value };
        let filled: Vec<f64> = values.iter().map(|value| or_zero(*value)).collect();
        let mean = summing.sum(&filled) / count;
        let squares: Vec<f64> =
            values.iter().map(|value| or_zero((mean - value) * (mean - value))).collect();
        MeasureStatistics {
            min: known.clone().copied().fold(f64::INFINITY, f64::min),
            max: known.copied().fold(f64::NEG_INFINITY, f64::max),
            mean,
            std: (summing.sum(&squares) / count).sqrt(),
        }
    }

    /// In the order of [`NAMES`].
    pub fn values(&self) -> [f64; 4] {
        [self.min, self.max, self.mean, self.std]
    }

    /// The one of this name.
    pub fn named(&self, name: &str) -> Option<f64> {
        NAMES.iter().position(|known| *known == name).map(|place| self.values()[place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviation_is_that_of_the_population() {
        let found = MeasureStatistics::of(&[1.0, f64::NAN, 3.0], Summing::Pairwise);
        assert_eq!(found, MeasureStatistics { min: 1.0, max: 3.0, mean: 2.0, std: 1.0 });
        assert!(MeasureStatistics::of(&[f64::NAN], Summing::InOrder).mean.is_nan());
    }

    #[test]
    fn sum_is_pairwise_as_in_numpy() {
        // numpy.full(200, 0.1).sum() and sum([0.1] * 200)
        let tenths = [0.1; 200];
        assert_eq!(Summing::Pairwise.sum(&tenths), 20.0);
        assert_eq!(Summing::InOrder.sum(&tenths), 20.000000000000014);
    }
}
