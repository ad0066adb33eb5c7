//! The times of rows: their usual interval, and where rows are missing.
//!
//! A row of nvidia-smi or of CPU time stands for the time before it. So in a mean a row has the
//! weight of the time since the row before it, or of a usual interval where that is not known.
//! Evenly spaced rows then have the same weight, as in pytyche.

use serde::Serialize;

/// A row that is later than this many usual intervals is after a gap.
const GAP: f64 = 2.5;

/// When rows were written.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RowTimes {
    /// The time of the first row, as written there.
    pub first: String,
    /// The time of the last row.
    pub last: String,
    /// From the first to the last, without steps of a clock that was set back.
    pub duration_seconds: f64,
    /// The usual interval of rows; null when there is only one.
    pub interval_seconds: Option<f64>,
    /// Where rows are missing, or the clock was set forward.
    pub gaps: u64,
    /// The time without rows.
    pub gap_seconds: f64,
    /// How often the clock was set back, as it is at the end of daylight saving time.
    pub clock_set_back: u64,
}

/// The usual interval of moments: the median. `None` for a single moment.
pub(super) fn usual(moments: &[f64]) -> Option<f64> {
    let mut steps: Vec<f64> = steps(moments).filter(|step| *step > 0.0).collect();
    steps.sort_by(f64::total_cmp);
    steps.get(steps.len() / 2).copied()
}

/// From each moment to the next.
pub(super) fn steps(moments: &[f64]) -> impl Iterator<Item = f64> {
    moments.windows(2).map(|pair| pair[1] - pair[0])
}

/// The sum of nothing is 0 here; in the standard library it is -0.
fn sum(seconds: impl Iterator<Item = f64>) -> f64 {
    seconds.fold(0.0, |sum, seconds| sum + seconds)
}

fn is_steady(step: f64, usual: f64) -> bool {
    (0.0..=GAP * usual).contains(&step)
}

impl RowTimes {
    /// Of rows at these moments, in seconds, with the first and the last time as written.
    pub fn of(moments: &[f64], [first, last]: [String; 2]) -> RowTimes {
        let usual = usual(moments);
        let is_gap = |step: &f64| usual.is_some_and(|usual| *step > GAP * usual);
        let gaps: Vec<f64> = steps(moments).filter(is_gap).collect();
        RowTimes {
            first,
            last,
            duration_seconds: sum(steps(moments).filter(|step| *step > 0.0)),
            interval_seconds: usual,
            gaps: gaps.len() as u64,
            gap_seconds: sum(gaps.iter().copied()),
            clock_set_back: steps(moments).filter(|step| *step < 0.0).count() as u64,
        }
    }
}

impl RowTimes {
    /// Where means and energy do not cover the whole time.
    pub fn notes(&self) -> Vec<String> {
        let times =
            |count: u64| if count == 1 { "once".to_owned() } else { format!("{count} times") };
        let mut notes = Vec::new();
        if self.gaps > 0 {
            let (gaps, seconds) = (times(self.gaps), self.gap_seconds);
            notes.push(format!(
                "rows are missing {gaps}, for {seconds:.1} s in all, or the clock was set \
                 forward; means and energy leave that time out"
            ));
        }
        if self.clock_set_back > 0 {
            notes.push(format!(
                "the clock was set back {}; the time between the row before and the row after is \
                not known, and left out",
                times(self.clock_set_back)
            ));
        }
        notes
    }
}

/// The weighted mean of the known values at these moments.
pub(super) fn mean(moments: &[f64], values: &[Option<f64>]) -> Option<f64> {
    let usual = usual(moments).unwrap_or(1.0);
    let before = std::iter::once(usual).chain(steps(moments));
    let weights = before.map(|step| if is_steady(step, usual) { step } else { usual });
    let known = weights.zip(values).filter_map(|(weight, value)| Some((weight, (*value)?)));
    let (sum, weight) =
        known.fold((0.0, 0.0), |(sum, all), (weight, value)| (sum + weight * value, all + weight));
    (weight > 0.0).then(|| sum / weight)
}

/// Power at these moments integrated to energy, and the time it covers. Gaps add nothing.
pub(super) fn energy(moments: &[f64], watts: &[Option<f64>]) -> Option<(f64, f64)> {
    let usual = usual(moments)?;
    let known: Vec<(f64, f64)> =
        moments.iter().zip(watts).filter_map(|(at, watts)| Some((*at, (*watts)?))).collect();
    let mut sum = (0.0, 0.0);
    for pair in known.windows(2) {
        let step = pair[1].0 - pair[0].0;
        if is_steady(step, usual) {
            sum.0 += step * (pair[0].1 + pair[1].1) / 2.0;
            sum.1 += step;
        }
    }
    (sum.1 > 0.0).then_some(sum)
}

/// The largest value that is known.
pub(super) fn peak(values: &[Option<f64>]) -> Option<f64> {
    values.iter().flatten().copied().reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    #[test]
    fn evenly_spaced_rows_have_the_same_weight_and_a_late_one_has_more() {
        assert_eq!(mean(&[0.0, 2.0, 4.0], &some(&[0.0, 30.0, 60.0])), Some(30.0));
        assert_eq!(mean(&[0.0, 2.0, 4.0, 8.0], &some(&[0.0, 0.0, 0.0, 100.0])), Some(40.0));
        assert_eq!(mean(&[7.0], &some(&[5.0])), Some(5.0));
        assert_eq!(mean(&[0.0, 2.0], &[None, Some(5.0)]), Some(5.0));
        assert_eq!(mean(&[0.0, 2.0], &[None, None]), None);
        assert_eq!(mean(&[], &[]), None);
    }

    #[test]
    fn single_row_has_no_duration_and_no_gap() {
        let times = RowTimes::of(&[7.0], Default::default());
        let zeros = [times.duration_seconds, times.gap_seconds].map(f64::is_sign_positive);
        assert_eq!((zeros, times.interval_seconds), ([true; 2], None));
    }

    #[test]
    fn gap_is_counted_and_adds_no_energy() {
        let (moments, watts) = ([0.0, 2.0, 4.0, 64.0, 66.0], some(&[100.0; 5]));
        let times = RowTimes::of(&moments, Default::default());
        assert_eq!((times.gaps, times.gap_seconds, times.duration_seconds), (1, 60.0, 66.0));
        assert_eq!(times.interval_seconds, Some(2.0));
        assert_eq!(energy(&moments, &watts), Some((600.0, 6.0)));
        assert_eq!(mean(&moments, &watts), Some(100.0));
    }

    #[test]
    fn clock_set_back_gives_no_negative_time() {
        let moments = [0.0, 2.0, 4.0, -3596.0, -3594.0];
        let times = RowTimes::of(&moments, Default::default());
        assert_eq!((times.gaps, times.gap_seconds, times.clock_set_back), (0, 0.0, 1));
        assert_eq!(times.duration_seconds, 6.0, "the steps that are known");
        assert_eq!(energy(&moments, &some(&[50.0; 5])), Some((300.0, 6.0)));
        assert_eq!(mean(&moments, &some(&[50.0; 5])), Some(50.0));
    }

    #[test]
    fn one_missing_power_value_is_interpolated_and_one_value_gives_no_energy() {
        assert_eq!(energy(&[0.0, 1.0, 2.0], &[Some(10.0), None, Some(30.0)]), Some((40.0, 2.0)));
        assert_eq!(energy(&[0.0, 1.0, 2.0], &[None, Some(10.0), None]), None);
        assert_eq!(energy(&[0.0], &some(&[10.0])), None);
    }
}
