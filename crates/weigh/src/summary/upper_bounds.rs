//! What the memory of a tree is certainly not above.

use std::collections::BTreeMap;

/// For each number of processes of unknown size, the most that the others can have had.
///
/// It has an entry for each number of processes that went between two looks, so it stays small.
#[derive(Debug, Clone, Default)]
pub(super) struct UpperBounds(BTreeMap<usize, f64>);

impl UpperBounds {
    /// So many processes of unknown size were there beside others of this size.
    pub(super) fn note(&mut self, unknown: usize, known: f64) {
        let most = self.0.entry(unknown).or_insert(known);
        *most = most.max(known);
    }

    /// Takes over what was noted elsewhere.
    pub(super) fn join(&mut self, other: &UpperBounds) {
        other.0.iter().for_each(|(unknown, known)| self.note(*unknown, *known));
    }

    /// The most that all together can have had, when no single process had more than `largest`.
    pub(super) fn most(&self, largest: f64) -> Option<f64> {
        let sum = |(unknown, known): (&usize, &f64)| known + *unknown as f64 * largest;
        self.0.iter().map(sum).reduce(f64::max)
    }
}
