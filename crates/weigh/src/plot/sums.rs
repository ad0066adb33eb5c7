//! Sums of process metrics over all live processes.

use crate::catalog::{ChildAccounting, Kind, Metric};

/// The sum of every process metric, updated by deltas.
#[derive(Debug)]
pub(super) struct ProcessMetricSums {
    metrics: Vec<&'static Metric>,
    totals: Vec<f64>,
    /// How many live processes have a value.
    known: Vec<u32>,
    /// The sums as shown; NaN where no value was ever known.
    shown: Vec<f64>,
}

impl ProcessMetricSums {
    /// Empty sums of these metrics.
    pub(super) fn new(metrics: &[&'static Metric]) -> ProcessMetricSums {
        let count = metrics.len();
        ProcessMetricSums {
            metrics: metrics.to_vec(),
            totals: vec![0.0; count],
            known: vec![0; count],
            shown: vec![f64::NAN; count],
        }
    }

    /// One value of one process changed; NaN means unknown.
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
            // A counter that decreases is the kernel's rounding.
            self.totals[column] += if is_gauge { delta } else { delta.max(0.0) };
        }
    }

    /// A process exited with these values. Its gauges are removed. Its counters stay in the sum, or
    /// pass to its parent when the parent is monitored, too, and reaps it.
    pub(super) fn exited(&mut self, values: &[f64], stays: bool) {
        for (column, value) in values.iter().enumerate().filter(|(_, value)| !value.is_nan()) {
            self.known[column] -= 1;
            let metric = self.metrics[column];
            let is_removed = match (metric.kind, metric.children) {
                (Kind::Gauge, _) => true,
                (Kind::Counter, ChildAccounting::SelfOnly) => false,
                (Kind::Counter, _) => !stays,
            };
            if is_removed {
                self.totals[column] -= value;
            }
        }
    }

    /// The sums over so many live processes. A gauge that is unknown for one of them has no sum.
    pub(super) fn now(&mut self, alive: usize) -> &[f64] {
        for (column, metric) in self.metrics.iter().enumerate() {
            let (known, total) = (self.known[column] as usize, self.totals[column]);
            let shown = &mut self.shown[column];
            *shown = match metric.kind {
                // Between a child's exit and its parent's next sample a count is in neither; it
                // must not fall.
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
            /// A gauge.
            level: Gauge u64 One, "Level", from "here";
            /// Of the process alone.
            own: Counter u64 One, "Own", from "here";
            /// With its reaped children's.
            all: Counter u64 One WithReaped, "All", from "here";
        }
    }

    #[test]
    fn counters_of_a_reaped_child_are_neither_lost_nor_counted_twice() {
        let mut sums = ProcessMetricSums::new(&TestCounts::METRICS.iter().collect::<Vec<_>>());
        let nothing = f64::NAN;
        let (parent, child) = ([10.0, 1.0, 1.0], [5.0, 7.0, 7.0]);
        for column in 0..3 {
            sums.change(column, nothing, parent[column]);
            sums.change(column, nothing, child[column]);
        }
        assert_eq!(sums.now(2), [15.0, 8.0, 8.0]);
        // The parent reaps it: its count is in the parent's from the next sample on.
        sums.exited(&child, false);
        assert_eq!(sums.now(1), [10.0, 8.0, 8.0]);
        sums.change(2, 1.0, 9.0);
        assert_eq!(sums.now(1), [10.0, 8.0, 9.0]);
        // weigh reaps the parent: no other process takes the counts over.
        sums.exited(&[10.0, 1.0, 9.0], true);
        assert_eq!(sums.now(0), [0.0, 8.0, 9.0]);
        // The gauge of the next one cannot be read.
        sums.change(1, nothing, 2.0);
        assert!(sums.now(1)[0].is_nan());
    }
}
