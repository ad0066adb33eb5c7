//! Cells of a heat map: entity by time interval, as few as can be seen.

/// The maximum of each entity in each interval.
#[derive(Debug, Default)]
pub(super) struct HeatmapGrid {
    width: f64,
    rows: Vec<(u64, Vec<f64>)>,
}

/// Intervals of a finished chart.
const INTERVALS: usize = 120;

impl HeatmapGrid {
    /// Adds the values at a time that is not before the last one.
    pub(super) fn push(&mut self, at: f64, values: &[f64]) {
        if self.width == 0.0 {
            self.width = 1e-3;
        }
        let number = (at.max(0.0) / self.width) as u64;
        match self.rows.last_mut().filter(|(last, _)| *last == number) {
            Some((_, highest)) => raise(highest, values),
            None => self.rows.push((number, values.to_vec())),
        }
        while self.rows.len() > 2 * INTERVALS {
            self.widen();
        }
    }

    fn widen(&mut self) {
        self.width *= 2.0;
        let mut wide: Vec<(u64, Vec<f64>)> = Vec::with_capacity(INTERVALS + 1);
        for (number, values) in self.rows.drain(..) {
            match wide.last_mut().filter(|(last, _)| *last == number / 2) {
                Some((_, highest)) => raise(highest, &values),
                None => wide.push((number / 2, values)),
            }
        }
        self.rows = wide;
    }

    /// The start of each interval, and the values of each entity.
    pub(super) fn finish(self) -> (Vec<f64>, Vec<Vec<f64>>) {
        let entities = self.rows.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
        let times = self.rows.iter().map(|(number, _)| *number as f64 * self.width).collect();
        let value = |values: &Vec<f64>, entity| values.get(entity).copied().unwrap_or(f64::NAN);
        let column = |entity| self.rows.iter().map(|(_, values)| value(values, entity)).collect();
        (times, (0..entities).map(column).collect())
    }
}

fn raise(highest: &mut Vec<f64>, values: &[f64]) {
    highest.resize(highest.len().max(values.len()), f64::NAN);
    for (highest, value) in highest.iter_mut().zip(values) {
        // `f64::max` ignores NaN.
        *highest = highest.max(*value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heatmap_keeps_the_maximum_of_each_entity() {
        let mut grid = HeatmapGrid::default();
        for place in 0..100_000 {
            let spike = if place == 54_321 { 99.0 } else { 1.0 };
            grid.push(f64::from(place), &[f64::NAN, spike]);
        }
        let (times, columns) = grid.finish();
        assert!(times.len() <= 2 * INTERVALS && times.is_sorted());
        assert!(columns[0].iter().all(|value| value.is_nan()));
        let hot: Vec<_> = (0..times.len()).filter(|place| columns[1][*place] == 99.0).collect();
        assert_eq!(hot.len(), 1);
        assert!(times[hot[0]] <= 54_321.0 && times[hot[0] + 1] > 54_321.0);
    }
}
