//! Downsampling of rates that keeps every burst at its length.
//!
//! A rate covers an interval. Of each bucket the intervals with the minimum and maximum of every
//! column are kept as measured, and all others become one: their mean. So a burst keeps its height,
//! time and length, and the area under the curve is what was used.

use super::extremes::{self, Shape, cell};

/// Intervals with their rates.
#[derive(Debug, Clone)]
pub(crate) struct RateSteps {
    /// The value of a column in intervals from before it was added.
    absent: f64,
    /// Whether the sum of all columns is drawn, too, so its extremes are kept.
    summed: bool,
    columns: usize,
    width: f64,
    buckets: Vec<RateBucket>,
}

#[derive(Debug, Clone)]
struct RateBucket {
    number: u64,
    /// Intervals kept as measured, in order.
    kept: Vec<RateStep>,
    /// Of each column over all intervals: the area, and the time its value was known.
    areas: Vec<(f64, f64)>,
    from: f64,
    to: f64,
}

#[derive(Debug, Clone, PartialEq)]
struct RateStep {
    from: f64,
    to: f64,
    values: Vec<f64>,
}

/// Buckets of a finished chart; it is some hundred pixels wide.
const BUCKETS: usize = 120;

/// No window of a rate is shorter than a hundred of these.
const FIRST_WIDTH: f64 = 1e-3;

impl RateSteps {
    /// Lines; before a column was added its values are unknown.
    pub(crate) fn lines() -> RateSteps {
        RateSteps {
            absent: f64::NAN,
            summed: false,
            columns: 0,
            width: FIRST_WIDTH,
            buckets: vec![],
        }
    }

    /// Stacked areas; before a column was added it was zero.
    pub(crate) fn stack() -> RateSteps {
        RateSteps { absent: 0.0, summed: true, ..RateSteps::lines() }
    }

    /// The number of columns.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// Adds the rates of an interval that begins where the last one ended.
    pub(crate) fn push(&mut self, from: f64, to: f64, values: &[f64]) {
        self.columns = self.columns.max(values.len());
        let number = (to.max(0.0) / self.width) as u64;
        if self.buckets.last().is_none_or(|bucket| bucket.number < number) {
            self.buckets.push(RateBucket { number, kept: vec![], areas: vec![], from, to: from });
            if self.buckets.len() > 2 * BUCKETS {
                self.widen();
            }
        }
        let (columns, absent, summed) = (self.columns, self.absent, self.summed);
        let Some(bucket) = self.buckets.last_mut() else { return };
        bucket.to = to;
        bucket.areas.resize(columns, (0.0, 0.0));
        for (column, area) in bucket.areas.iter_mut().enumerate() {
            let value = cell(values, column, absent);
            if !value.is_nan() {
                *area = (area.0 + value * (to - from), area.1 + (to - from));
            }
        }
        bucket.kept.push(RateStep { from, to, values: values.to_vec() });
        if bucket.kept.len() > 4 * (columns + 2) {
            bucket.prune(columns, absent, summed);
        }
    }

    fn widen(&mut self) {
        self.width *= 2.0;
        let mut wide: Vec<RateBucket> = Vec::with_capacity(BUCKETS + 1);
        for bucket in self.buckets.drain(..) {
            let number = bucket.number / 2;
            match wide.last_mut().filter(|last| last.number == number) {
                Some(last) => last.join(bucket),
                None => wide.push(RateBucket { number, ..bucket }),
            }
        }
        for bucket in &mut wide {
            bucket.prune(self.columns, self.absent, self.summed);
        }
        self.buckets = wide;
    }

    /// Adds one column to another and removes it.
    pub(crate) fn merge(&mut self, from: usize, into: usize) {
        for bucket in &mut self.buckets {
            bucket.areas.resize(self.columns, (0.0, 0.0));
            let (area, known) = bucket.areas[from];
            bucket.areas[into] = (bucket.areas[into].0 + area, bucket.areas[into].1.max(known));
            bucket.areas.remove(from);
            for step in &mut bucket.kept {
                step.values.resize(self.columns, self.absent);
                step.values[into] += step.values[from];
                step.values.remove(from);
            }
        }
        self.columns -= 1;
    }

    /// The ends of the steps, and the values of each column.
    pub(crate) fn finish(mut self) -> (Vec<f64>, Vec<Vec<f64>>) {
        let mut steps: Vec<(f64, Vec<f64>)> = Vec::new();
        for bucket in &mut self.buckets {
            bucket.prune(self.columns, self.absent, self.summed);
            bucket.draw(self.columns, self.absent, &mut steps);
        }
        let column = |column| steps.iter().map(|(_, values)| values[column]).collect();
        (steps.iter().map(|(to, _)| *to).collect(), (0..self.columns).map(column).collect())
    }
}

impl RateBucket {
    fn join(&mut self, later: RateBucket) {
        self.kept.extend(later.kept);
        self.areas.resize(self.areas.len().max(later.areas.len()), (0.0, 0.0));
        for (area, more) in self.areas.iter_mut().zip(&later.areas) {
            *area = (area.0 + more.0, area.1 + more.1);
        }
        self.to = later.to;
    }

    /// Keeps only intervals that are an extreme; the others are in the areas.
    fn prune(&mut self, columns: usize, absent: f64, summed: bool) {
        // A few are all kept.
        if self.kept.len() <= 3 {
            return;
        }
        let mut keep = vec![false; self.kept.len()];
        let rows: Vec<&[f64]> = self.kept.iter().map(|step| &step.values[..]).collect();
        extremes::mark(&rows, Shape { columns, absent, summed }, &mut keep);
        let mut kept = keep.into_iter();
        self.kept.retain(|_| kept.next().unwrap_or(true));
    }

    /// The kept intervals, and between them the mean of all others.
    fn draw(&self, columns: usize, absent: f64, steps: &mut Vec<(f64, Vec<f64>)>) {
        let rest: Vec<f64> = (0..columns).map(|column| self.rest(column, absent)).collect();
        let mut reached = self.from;
        for step in &self.kept {
            if step.from > reached {
                put(steps, step.from, rest.clone());
            }
            let values = (0..columns).map(|column| cell(&step.values, column, absent));
            put(steps, step.to, values.collect());
            reached = step.to;
        }
        if self.to > reached {
            put(steps, self.to, rest);
        }
    }

    fn rest(&self, column: usize, absent: f64) -> f64 {
        let (mut area, mut known) = self.areas.get(column).copied().unwrap_or_default();
        for step in &self.kept {
            let value = cell(&step.values, column, absent);
            if !value.is_nan() {
                area -= value * (step.to - step.from);
                known -= step.to - step.from;
            }
        }
        if known > 1e-9 { (area / known).max(0.0) } else { absent }
    }
}

/// Adds a step; equal steps are merged.
fn put(steps: &mut Vec<(f64, Vec<f64>)>, to: f64, values: Vec<f64>) {
    match steps.last_mut().filter(|(_, last)| *last == values) {
        Some((end, _)) => *end = to,
        None => steps.push((to, values)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The area under a column, from zero.
    fn area(times: &[f64], values: &[f64]) -> f64 {
        let before = std::iter::once(0.0).chain(times.iter().copied());
        times.iter().zip(before).zip(values).map(|((to, from), value)| (to - from) * value).sum()
    }

    #[test]
    fn bursts_keep_height_time_length_and_area() {
        let mut steps = RateSteps::stack();
        // Ten hours, a second of two cores every ten minutes.
        for second in 0..36_000 {
            let busy = if second % 600 == 300 { 2.0 } else { 0.0 };
            steps.push(f64::from(second), f64::from(second + 1), &[busy]);
        }
        let (times, columns) = steps.finish();
        assert!(times.len() < 8 * BUCKETS, "{} steps", times.len());
        assert!((area(&times, &columns[0]) - 120.0).abs() < 1e-6, "{}", area(&times, &columns[0]));
        let first = times.iter().position(|time| *time == 301.0).unwrap();
        assert_eq!((times[first - 1], columns[0][first]), (300.0, 2.0));
    }

    #[test]
    fn noise_keeps_its_area_and_its_maximum() {
        let mut steps = RateSteps::stack();
        let (mut total, mut noise) = (0.0, 12_345_u64);
        for tick in 0..200_000 {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let value = (noise >> 40) as f64 / 1e6 + if tick == 77_777 { 1e3 } else { 0.0 };
            total += value * 0.1;
            steps.push(f64::from(tick) * 0.1, f64::from(tick + 1) * 0.1, &[value, 1.0]);
        }
        let (times, columns) = steps.finish();
        assert!((area(&times, &columns[0]) / total - 1.0).abs() < 1e-6);
        assert!((area(&times, &columns[1]) / 20_000.0 - 1.0).abs() < 1e-6);
        assert!(columns[0].iter().any(|value| *value >= 1e3));
        assert!(times.is_sorted() && times.len() < 8 * BUCKETS * 2);
    }

    #[test]
    fn few_intervals_are_not_thinned_and_unknown_stays_unknown() {
        let mut steps = RateSteps::lines();
        for (second, value) in [1.0, f64::NAN, 3.0].into_iter().enumerate() {
            steps.push(second as f64, second as f64 + 1.0, &[value]);
        }
        let (times, columns) = steps.finish();
        assert_eq!(times, [1.0, 2.0, 3.0]);
        assert!(columns[0][0] == 1.0 && columns[0][1].is_nan() && columns[0][2] == 3.0);
    }

    #[test]
    fn merged_columns_add_up() {
        let mut steps = RateSteps::stack();
        steps.push(0.0, 1.0, &[1.0, 10.0]);
        steps.push(1.0, 2.0, &[2.0, 20.0, 300.0]);
        steps.merge(2, 0);
        assert_eq!(steps.finish().1, [[1.0, 302.0], [10.0, 20.0]]);
    }
}
