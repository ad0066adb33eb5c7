//! What all processes have together, metric by metric.

use crate::catalog::{Kind, Metric, Whose};

/// The sum of every process metric, kept up to date by what changes.
#[derive(Debug)]
pub(super) struct ProcessMetricSums {
    metrics: Vec<&'static Metric>,
    totals: Vec<f64>,
    /// How many of those alive have a value.
    known: Vec<u32>,
    /// The sums as they may be shown; NaN where nothing was ever known.
    shown: Vec<f64>,
}

impl ProcessMetricSums {
    /// Nothing yet, of these metrics.
    pub(super) fn new(metrics: &[&'static Metric]) -> ProcessMetricSums {
        let count = metrics.len();
        ProcessMetricSums {
            metrics: metrics.to_vec(),
            totals: vec![0.0; count],
            known: vec![0; count],
            shown: vec![f64::NAN; count],
        }
    }

    /// One value of one process changed; NaN when it was not known before, or is not any more.
    pub(super) fn change(&mut self, column: usize, old: f64, new: f64) {
        if old.is_nan() && new.is_nan() {
            return;
        }
        if old.is_nan() {
            self.known[column] += 1;
            self.totals[column] += new;
        } else if new.is_nan() {
            self.known[column] -= 1;
            self.totals[column] -= old;
        } else {
            let delta = new - old;
            let is_gauge = self.metrics[column].kind == Kind::Gauge;
            // A running total that goes back is the kernel's rounding.
            self.totals[column] += if is_gauge { delta } else { delta.max(0.0) };
        }
    }

    /// A process went with these values. Levels go with it. What it counted stays: in the
    /// sum, or with its parent when that is followed, too, and takes the count over.
    pub(super) fn exited(&mut self, values: &[f64], stays: bool) {
        for (column, value) in values.iter().enumerate().filter(|(_, value)| !value.is_nan()) {
            self.known[column] -= 1;
            let metric = self.metrics[column];
            let is_removed = match (metric.kind, metric.whose) {
                (Kind::Gauge, _) => true,
                (Kind::Counter, Whose::Own) => false,
                (Kind::Counter, _) => !stays,
            };
            if is_removed {
                self.totals[column] -= value;
            }
        }
    }

    /// The sums now that so many are alive. A level that is not known of somebody has no sum.
    pub(super) fn now(&mut self, alive: usize) -> &[f64] {
        for (column, metric) in self.metrics.iter().enumerate() {
            let (known, total) = (self.known[column] as usize, self.totals[column]);
            let shown = &mut self.shown[column];
            *shown = match metric.kind {
                // On its way from a child to its parent a count is nowhere; it does not fall.
                Kind::Counter if known > 0 => total.max(*shown),
                Kind::Counter => *shown,
                Kind::Gauge if known == alive => total,
                Kind::Gauge => f64::NAN,
            };
        }
        &self.shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Row, metrics};

    metrics! {
        /// For the tests.
        struct TestCounts in Process / "counts", "Counts" {
            /// A level.
            level: Gauge u64 One, "Level", from "here";
            /// Its own.
            own: Counter u64 One, "Own", from "here";
            /// With its children's.
            all: Counter u64 One WithChildren, "All", from "here";
        }
    }

    #[test]
    fn reaped_childs_counters_are_neither_lost_nor_counted_twice() {
        let mut sums = ProcessMetricSums::new(&TestCounts::METRICS.iter().collect::<Vec<_>>());
        let nothing = f64::NAN;
        let (parent, child) = ([10.0, 1.0, 1.0], [5.0, 7.0, 7.0]);
        for column in 0..3 {
            sums.change(column, nothing, parent[column]);
            sums.change(column, nothing, child[column]);
        }
        assert_eq!(sums.now(2), [15.0, 8.0, 8.0]);
        // The parent waits for it: its count is the parent's from the next look on.
        sums.exited(&child, false);
        assert_eq!(sums.now(1), [10.0, 8.0, 8.0]);
        sums.change(2, 1.0, 9.0);
        assert_eq!(sums.now(1), [10.0, 8.0, 9.0]);
        // weigh reaps the parent: nobody takes over.
        sums.exited(&[10.0, 1.0, 9.0], true);
        assert_eq!(sums.now(0), [0.0, 8.0, 9.0]);
        // Of the next one the level cannot be read.
        sums.change(1, nothing, 2.0);
        assert!(sums.now(1)[0].is_nan());
    }
}
