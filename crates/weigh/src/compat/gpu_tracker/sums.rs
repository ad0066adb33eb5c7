//! Processes added up: what they share counts once.

use crate::model::live::LastKnownMemory;

/// Sums over some processes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PartSums {
    /// Whether there is any process.
    any: bool,
    /// Proportional shares, or all where those are not known.
    proportional: Option<f64>,
    /// The largest of them.
    largest: Option<f64>,
    /// What they share.
    pub shared: Option<f64>,
    /// Threads.
    threads: Option<u64>,
}

impl PartSums {
    /// With one more.
    pub(super) fn add(&mut self, memory: &LastKnownMemory) {
        self.any = true;
        if let Some(share) = memory.pss().or(memory.rss) {
            self.proportional = Some(self.proportional.unwrap_or(0.0) + share as f64);
        }
        if let Some(rss) = memory.rss {
            self.largest = Some(self.largest.unwrap_or(0.0).max(rss as f64));
        }
        if let (Some(pss), Some(uss)) = (memory.pss(), memory.uss()) {
            self.shared = Some(self.shared.unwrap_or(0.0) + pss.saturating_sub(uss) as f64);
        }
        if let Some(threads) = memory.threads {
            self.threads = Some(self.threads.unwrap_or(0) + threads);
        }
    }

    /// All of their memory: never below the largest of them. Without a process it is zero; of one
    /// that could not be read it is not known.
    pub(super) fn total(&self) -> Option<f64> {
        let total = self.proportional.map(|sum| sum.max(self.largest.unwrap_or(0.0)));
        total.or((!self.any).then_some(0.0))
    }

    /// The largest of them, in the same way.
    pub(super) fn largest(&self) -> Option<f64> {
        self.largest.or((!self.any).then_some(0.0))
    }

    /// Their threads, in the same way.
    pub(super) fn threads(&self) -> Option<u64> {
        self.threads.or((!self.any).then_some(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_process_is_zero_and_an_unreadable_process_is_unknown() {
        let mut sums = PartSums::default();
        assert_eq!((sums.total(), sums.threads()), (Some(0.0), Some(0)));
        sums.add(&LastKnownMemory::default());
        assert_eq!((sums.total(), sums.largest(), sums.threads()), (None, None, None));
        let mut memory = LastKnownMemory::default();
        (memory.rss, memory.threads) = (Some(7), Some(2));
        sums.add(&memory);
        assert_eq!((sums.total(), sums.threads()), (Some(7.0), Some(2)));
    }
}
