//! Upper bounds of the memory of a tree.

use std::collections::BTreeMap;

/// For each number of processes of unknown size, the upper bound of the others.
///
/// It has an entry for each number of processes that exited between two ticks, so it stays small.
#[derive(Debug, Clone, Default)]
pub(super) struct UpperBounds(BTreeMap<usize, f64>);

impl UpperBounds {
    /// So many processes of unknown size were alive beside others of this size.
    pub(super) fn note(&mut self, unknown: usize, known: f64) {
        let most = self.0.entry(unknown).or_insert(known);
        *most = most.max(known);
    }

    /// Merges another one.
    pub(super) fn merge(&mut self, other: &UpperBounds) {
        other.0.iter().for_each(|(unknown, known)| self.note(*unknown, *known));
    }

    /// The upper bound of the sum, when no single process had more than `largest`.
    pub(super) fn most(&self, largest: f64) -> Option<f64> {
        let sum = |(unknown, known): (&usize, &f64)| known + *unknown as f64 * largest;
        self.0.iter().map(sum).reduce(f64::max)
    }
}
