//! When everybody has been looked at, by all who look.
//!
//! A row of weigh's own says that everybody was looked at. Of several recordings it is written
//! when each that goes on has looked once more, with the sums of what each says of itself.

use crate::catalog::metrics::{OwnCost, OwnTicks, RunCpu};
use crate::model::{Entity, Tick};

/// Who looks, and who has looked in this round.
#[derive(Debug)]
pub(super) struct Rounds {
    watchers: Vec<Watcher>,
    /// Whether each has a task clock.
    has_clocks: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Watcher {
    /// Whether it is waited for.
    has_begun: bool,
    goes_on: bool,
    has_looked: bool,
    cost: OwnCost,
    ticks: OwnTicks,
    clock: Option<f64>,
}

impl Rounds {
    /// Of so many, none of whom has begun.
    pub(super) fn of(watchers: usize, has_clocks: bool) -> Rounds {
        Rounds { watchers: vec![Watcher::default(); watchers], has_clocks }
    }

    /// Whether nobody looks now, and somebody will later.
    pub(super) fn is_interrupted(&self) -> bool {
        let nobody = self.watchers.iter().all(|watcher| !watcher.goes_on);
        nobody && self.watchers.iter().any(|watcher| !watcher.has_begun)
    }

    /// One of them goes on, and tells when it looks.
    pub(super) fn begins(&mut self, one: usize) {
        self.watchers[one].goes_on = true;
        self.watchers[one].has_begun = true;
    }

    /// One of them looks no more, and this is what its task clock said at last; says whether
    /// the others had only waited for it to end a round.
    pub(super) fn ends(&mut self, one: usize, clock: Option<f64>) -> bool {
        let watcher = &mut self.watchers[one];
        watcher.goes_on = false;
        watcher.clock = clock.or(watcher.clock);
        self.is_over()
    }

    /// What one of them says of the CPU time of its run.
    pub(super) fn counted(&mut self, one: usize, clock: &RunCpu) {
        self.watchers[one].clock = clock.time.or(self.watchers[one].clock);
    }

    /// One of them looked at everybody it has; says whether the round is over.
    pub(super) fn sampled(&mut self, one: usize, cost: OwnCost, ticks: OwnTicks) -> bool {
        let watcher = &mut self.watchers[one];
        (watcher.cost, watcher.ticks, watcher.has_looked) = (cost, ticks, true);
        self.is_over()
    }

    /// Whether everybody has looked who goes on; then a new round begins.
    fn is_over(&mut self) -> bool {
        let mut sampled = 0;
        for watcher in &self.watchers {
            if !watcher.has_looked && watcher.goes_on {
                return false;
            }
            sampled += usize::from(watcher.has_looked);
        }
        self.watchers.iter_mut().for_each(|one| one.has_looked = false);
        sampled > 0
    }

    /// Puts what all say of themselves into the tick that ends a round.
    pub(super) fn put(&self, tick: &mut Tick) {
        tick.put(
            Entity::Single,
            &OwnCost {
                user: self.sum(|one| one.cost.user),
                system: self.sum(|one| one.cost.system),
                sampling: self.sum(|one| one.cost.sampling),
                memory_peak: self.sum(|one| one.cost.memory_peak),
            },
        );
        tick.complete(&OwnTicks {
            taken: self.sum(|one| one.ticks.taken),
            missed: self.sum(|one| one.ticks.missed),
        });
        if self.has_clocks {
            tick.put(Entity::Single, &RunCpu { time: self.sum(|one| one.clock) });
        }
    }

    /// The sum over those of whom it is known.
    fn sum<T: std::iter::Sum>(&self, of: impl Fn(&Watcher) -> Option<T>) -> Option<T> {
        let mut known = self.watchers.iter().filter_map(of).peekable();
        known.peek()?;
        Some(known.sum())
    }
}
