//! How much the expensive reads may cost.
//!
//! `smaps_rollup` walks the target's page tables under its mmap lock: 14 to 24 µs
//! for each MiB that is resident, during which the target cannot map memory.
//! So it is never read at a fixed rate, but within a share of one core.

use std::time::Duration;

/// A share of one core, and what was spent of it.
#[derive(Debug)]
pub struct Budget {
    share: f64,
    spent: Duration,
    last_ended: Duration,
    last_cost: Duration,
}

/// An urgent read must wait so many times the duration of the last one.
///
/// A growing tree makes every tick urgent; this keeps even that below a tenth of
/// one core.
const URGENT_PAUSE: u32 = 10;

impl Budget {
    /// A budget of this share of one core.
    pub fn with_core_share(share: f64) -> Budget {
        Budget {
            share,
            spent: Duration::ZERO,
            last_ended: Duration::ZERO,
            last_cost: Duration::ZERO,
        }
    }

    /// Whether the budget allows a read at `now`, the time since the run began.
    pub fn allows(&self, now: Duration) -> bool {
        self.spent.as_secs_f64() <= self.share * now.as_secs_f64()
    }

    /// Whether an urgent read may exceed the budget at `now`.
    pub fn allows_urgent(&self, now: Duration) -> bool {
        self.share > 0.0 && now.saturating_sub(self.last_ended) >= self.last_cost * URGENT_PAUSE
    }

    /// Records the cost of a read that ended at `now`.
    pub fn spend(&mut self, now: Duration, cost: Duration) {
        self.spent += cost;
        self.last_ended = now;
        self.last_cost = cost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn reads_wait_until_the_budget_covers_the_cost() {
        let mut budget = Budget::with_core_share(0.005);
        assert!(budget.allows(Duration::ZERO), "the first reading is free");
        budget.spend(Duration::ZERO, 10 * MS);
        assert!(!budget.allows(1999 * MS));
        assert!(budget.allows(2001 * MS));
    }

    #[test]
    fn urgent_reads_take_at_most_a_tenth() {
        let mut budget = Budget::with_core_share(0.005);
        budget.spend(100 * MS, 50 * MS);
        assert!(!budget.allows_urgent(599 * MS));
        assert!(budget.allows_urgent(600 * MS));
    }

    #[test]
    fn zero_budget_allows_no_urgent_read() {
        assert!(!Budget::with_core_share(0.0).allows_urgent(Duration::from_secs(9)));
    }
}
