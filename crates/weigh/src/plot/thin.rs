//! Downsampling that keeps every spike.
//!
//! Time is divided into buckets; of each bucket the rows with the minimum or maximum of any column
//! are kept, at their own times. When there are too many buckets, pairs are merged. So memory does
//! not grow with the run, and every measured extreme is drawn.

use super::extremes::{self, Shape, cell, sum};

/// Rows of values over time, as few as a chart needs.
#[derive(Debug, Clone)]
pub(super) struct Thinned {
    /// The value of a column in rows from before it was added.
    absent: f64,
    /// Whether the sum of all columns is drawn, too, so its extremes are kept.
    summed: bool,
    columns: usize,
    width: f64,
    buckets: Vec<RowBucket>,
    /// The last row, extreme or not: the chart ends there.
    last: Option<ThinnedRow>,
    /// Whether it is in the rows of its bucket.
    is_last_kept: bool,
    /// The maximum of each column so far.
    highest: Vec<f64>,
}

#[derive(Debug, Clone)]
struct RowBucket {
    number: u64,
    rows: Vec<ThinnedRow>,
    /// The minimum and maximum of the sum and of each column.
    extremes: Vec<(f64, f64)>,
}

#[derive(Debug, Clone, PartialEq)]
struct ThinnedRow {
    at: f64,
    values: Vec<f64>,
    /// Whether a value became known or unknown here.
    is_edge: bool,
    /// Whether it is next to an extreme far from it: without it a spike would look as long as the
    /// gap to the next kept row.
    is_neighbour: bool,
}

/// Buckets of a finished chart; it is some hundred pixels wide.
const BUCKETS: usize = 240;

/// No two samples are closer together.
const FIRST_WIDTH: f64 = 1e-3;

impl Thinned {
    /// Lines; before a column was added its values are unknown.
    pub(super) fn lines(columns: usize) -> Thinned {
        Thinned::new(columns, f64::NAN, false)
    }

    /// Stacked areas; before a column was added it was zero.
    pub(super) fn stack() -> Thinned {
        Thinned::new(0, 0.0, true)
    }

    fn new(columns: usize, absent: f64, summed: bool) -> Thinned {
        let (width, buckets) = (FIRST_WIDTH, Vec::new());
        let (last, highest) = (None, Vec::new());
        Thinned { absent, summed, columns, width, buckets, last, is_last_kept: false, highest }
    }

    /// The number of columns.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// Adds the values at a time that is not before the last one. More values than columns add
    /// columns.
    pub(super) fn push(&mut self, at: f64, values: &[f64]) {
        self.columns = self.columns.max(values.len());
        let number = (at.max(0.0) / self.width) as u64;
        if self.buckets.last().is_none_or(|bucket| bucket.number < number) {
            self.buckets.push(RowBucket { number, rows: Vec::new(), extremes: Vec::new() });
            if self.buckets.len() > 2 * BUCKETS {
                self.widen();
            }
        }
        let is_edge = self.is_edge(values);
        let is_neighbour = self.jumps(values);
        let most = 8 * (self.columns + 2);
        let (absent, summed) = (self.absent, self.summed);
        let Some(bucket) = self.buckets.last_mut() else { return };
        if bucket.widen_extremes(values, absent, summed) || is_edge || is_neighbour {
            let last = self.last.as_ref().filter(|_| is_neighbour && !self.is_last_kept);
            bucket.rows.extend(last.map(|last| ThinnedRow { is_neighbour: true, ..last.clone() }));
            bucket.rows.push(ThinnedRow { at, values: values.to_vec(), is_edge, is_neighbour });
            if bucket.rows.len() > most {
                bucket.prune(self.columns, absent, summed);
            }
            self.is_last_kept = true;
        } else {
            self.is_last_kept = false;
        }
        match &mut self.last {
            Some(last) => {
                last.at = at;
                last.values.clear();
                last.values.extend_from_slice(values);
            }
            None => {
                let (values, is_edge, is_neighbour) = (values.to_vec(), false, false);
                self.last = Some(ThinnedRow { at, values, is_edge, is_neighbour });
            }
        }
    }

    /// Whether a value became known or unknown since the last row.
    fn is_edge(&self, values: &[f64]) -> bool {
        let Some(last) = &self.last else { return true };
        (0..values.len()).any(|column| {
            cell(values, column, self.absent).is_nan()
                != cell(&last.values, column, self.absent).is_nan()
        })
    }

    /// Whether a value differs much from the last row.
    fn jumps(&mut self, values: &[f64]) -> bool {
        const FAR: f64 = 0.1;
        self.highest.resize(self.highest.len().max(values.len()), 0.0);
        let Some(last) = &self.last else { return false };
        let mut is_far = false;
        for (column, value) in values.iter().enumerate() {
            let before = cell(&last.values, column, self.absent);
            self.highest[column] = self.highest[column].max(*value);
            is_far |= (value - before).abs() > FAR * self.highest[column];
        }
        is_far
    }

    fn widen(&mut self) {
        self.width *= 2.0;
        let mut wide: Vec<RowBucket> = Vec::with_capacity(BUCKETS + 1);
        for bucket in self.buckets.drain(..) {
            let number = bucket.number / 2;
            match wide.last_mut().filter(|last| last.number == number) {
                Some(last) => last.rows.extend(bucket.rows),
                None => wide.push(RowBucket { number, ..bucket }),
            }
        }
        for bucket in &mut wide {
            bucket.prune(self.columns, self.absent, self.summed);
        }
        self.buckets = wide;
    }

    /// Adds one column to another and removes it.
    pub(super) fn merge(&mut self, from: usize, into: usize) {
        let rows = self.buckets.iter_mut().flat_map(|bucket| &mut bucket.rows);
        for row in rows.chain(&mut self.last) {
            row.values.resize(self.columns, self.absent);
            row.values[into] += row.values[from];
            row.values.remove(from);
        }
        self.columns -= 1;
        self.highest.clear();
        for bucket in &mut self.buckets {
            bucket.prune(self.columns, self.absent, self.summed);
        }
    }

    /// The times, and the values of each column.
    pub(super) fn finish(mut self) -> (Vec<f64>, Vec<Vec<f64>>) {
        for bucket in &mut self.buckets {
            bucket.prune(self.columns, self.absent, self.summed);
        }
        let mut rows: Vec<ThinnedRow> =
            self.buckets.into_iter().flat_map(|bucket| bucket.rows).collect();
        if let Some(last) = self.last.filter(|last| rows.last().is_none_or(|row| row.at < last.at))
        {
            rows.push(last);
        }
        let column =
            |column| rows.iter().map(|row| cell(&row.values, column, self.absent)).collect();
        (rows.iter().map(|row| row.at).collect(), (0..self.columns).map(column).collect())
    }
}

impl RowBucket {
    /// Updates the extremes; says whether any value is a new one.
    fn widen_extremes(&mut self, values: &[f64], absent: f64, summed: bool) -> bool {
        self.extremes.resize(self.extremes.len().max(values.len() + 1), EMPTY_RANGE);
        let mut is_extreme = false;
        for column in 0..values.len() {
            is_extreme |= widened(&mut self.extremes[column + 1], cell(values, column, absent));
        }
        is_extreme | (summed && widened(&mut self.extremes[0], sum(values)))
    }

    /// Flickering values have more edges than a chart can show.
    fn limit_edges(&mut self) {
        const MAX_EDGES: usize = 4;
        let edges = self.rows.iter_mut().filter(|row| row.is_edge);
        edges.skip(MAX_EDGES).for_each(|row| row.is_edge = false);
    }

    /// Keeps only rows that are an extreme or an edge, and their neighbours.
    fn prune(&mut self, columns: usize, absent: f64, summed: bool) {
        self.limit_edges();
        let mut keep: Vec<bool> = self.rows.iter().map(|row| row.is_edge).collect();
        let rows: Vec<&[f64]> = self.rows.iter().map(|row| &row.values[..]).collect();
        extremes::mark(&rows, Shape { columns, absent, summed }, &mut keep);
        let near = |place: usize| {
            let before = place.checked_sub(1).is_some_and(|place| keep[place]);
            before || keep.get(place + 1).is_some_and(|kept| *kept)
        };
        let mut kept: Vec<bool> = (0..self.rows.len())
            .map(|place| keep[place] || (self.rows[place].is_neighbour && near(place)))
            .collect();
        let mut kept = kept.drain(..);
        self.rows.retain(|_| kept.next().unwrap_or(true));
        self.extremes.clear();
        for row in 0..self.rows.len() {
            let values = std::mem::take(&mut self.rows[row].values);
            self.widen_extremes(&values, absent, summed);
            self.rows[row].values = values;
        }
    }
}

const EMPTY_RANGE: (f64, f64) = (f64::INFINITY, f64::NEG_INFINITY);

fn widened((low, high): &mut (f64, f64), value: f64) -> bool {
    let (is_low, is_high) = (value < *low, value > *high);
    if is_low {
        *low = value;
    }
    if is_high {
        *high = value;
    }
    is_low || is_high
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A million samples, a millisecond apart, of a triangle wave.
    fn long(spike: usize) -> Thinned {
        let mut thinned = Thinned::lines(1);
        for place in 0..1_000_000 {
            let wave = ((place % 5000) as f64 - 2500.0).abs();
            let value = if place == spike { 1e9 } else { wave };
            thinned.push(place as f64 * 1e-3, &[value]);
        }
        thinned
    }

    #[test]
    fn spike_of_one_sample_in_a_million_keeps_its_time() {
        for spike in [0, 1, 345_678, 999_999] {
            let (times, columns) = long(spike).finish();
            assert!(times.len() <= 4 * BUCKETS + 2, "{} rows", times.len());
            let at = columns[0].iter().position(|value| *value == 1e9).unwrap();
            assert!((times[at] - spike as f64 * 1e-3).abs() < 1e-9);
            assert!(columns[0].contains(&0.0), "the lowest is kept, too");
            assert!(times.is_sorted());
            assert_eq!(*times.last().unwrap(), 999.999);
        }
    }

    #[test]
    fn thinning_does_not_widen_a_spike() {
        let mut thinned = Thinned::lines(1);
        for second in 0..36_000 {
            let value = if second == 12_345 { 900.0 } else { 100.0 };
            thinned.push(f64::from(second), &[value]);
        }
        let (times, _) = thinned.finish();
        let at = times.iter().position(|time| *time == 12_345.0).unwrap();
        assert_eq!(times[at - 1..=at + 1], [12_344.0, 12_345.0, 12_346.0]);
    }

    #[test]
    fn few_points_are_not_thinned() {
        let mut thinned = Thinned::lines(2);
        let rows = [(0.0, [1.0, 5.0]), (1.0, [2.0, 4.0]), (2.0, [2.0, 4.0])];
        rows.iter().for_each(|(at, values)| thinned.push(*at, values));
        let (times, columns) = thinned.finish();
        assert_eq!(times, [0.0, 1.0, 2.0]);
        assert_eq!(columns, [[1.0, 2.0, 2.0], [5.0, 4.0, 4.0]]);
    }

    #[test]
    fn extremes_of_the_sum_are_kept_where_no_column_has_one() {
        let mut thinned = Thinned::stack();
        for place in 0..100_000 {
            // The columns alternate; at one time both are at their maximum.
            let values = match place {
                77_777 => [9.0, 9.0],
                place if place % 2 == 0 => [9.0, 0.0],
                _ => [0.0, 9.0],
            };
            thinned.push(f64::from(place) * 0.01, &values);
        }
        let (times, columns) = thinned.finish();
        let highest = (0..times.len()).map(|place| columns[0][place] + columns[1][place]);
        assert_eq!(highest.fold(0.0, f64::max), 18.0);
    }

    #[test]
    fn unknown_values_leave_a_gap_and_late_columns_start_at_zero() {
        let mut thinned = Thinned::lines(1);
        for place in 0..10_000 {
            let value = if (4000..6000).contains(&place) { f64::NAN } else { 1.0 };
            thinned.push(f64::from(place), &[value]);
        }
        let (times, columns) = thinned.finish();
        let gap = times.iter().zip(&columns[0]).find(|(_, value)| value.is_nan()).unwrap();
        assert_eq!(*gap.0, 4000.0);
        assert!(times.contains(&6000.0));

        let mut flickering = Thinned::lines(1);
        for place in 0..100_000 {
            flickering.push(f64::from(place), &[if place % 2 == 0 { 1.0 } else { f64::NAN }]);
        }
        assert!(flickering.finish().0.len() < 16 * BUCKETS);

        let mut stack = Thinned::stack();
        stack.push(0.0, &[1.0]);
        stack.push(1.0, &[1.0, 2.0]);
        assert_eq!(stack.finish().1, [[1.0, 1.0], [0.0, 2.0]]);
    }

    #[test]
    fn merged_columns_add_up() {
        let mut stack = Thinned::stack();
        stack.push(0.0, &[1.0, 10.0]);
        stack.push(1.0, &[2.0, 20.0, 300.0]);
        stack.merge(0, 2);
        assert_eq!(stack.finish().1, [[10.0, 20.0], [1.0, 302.0]]);
    }
}
