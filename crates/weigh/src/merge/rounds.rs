//! When all processes have been sampled, by all recordings.
//!
//! A row of weigh's own means that all processes were sampled. In a merged recording it is written
//! when each active recording has sampled again, with the sums of weigh's own values.

use crate::catalog::metrics::{OwnCost, OwnTicks, RunCpu};
use crate::model::{Entity, Tick};

/// Which recordings are active, and which have sampled in this round.
#[derive(Debug)]
pub(super) struct Rounds {
    members: Vec<MemberRound>,
    /// Whether each has a task clock.
    has_clocks: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct MemberRound {
    /// Whether the round waits for it.
    has_begun: bool,
    is_active: bool,
    has_sampled: bool,
    cost: OwnCost,
    ticks: OwnTicks,
    clock: Option<f64>,
}

impl Rounds {
    /// For so many recordings, none of which has begun.
    pub(super) fn of(members: usize, has_clocks: bool) -> Rounds {
        Rounds { members: vec![MemberRound::default(); members], has_clocks }
    }

    /// Whether no recording is active now, and one will be later.
    pub(super) fn is_interrupted(&self) -> bool {
        let none_active = self.members.iter().all(|member| !member.is_active);
        none_active && self.members.iter().any(|member| !member.has_begun)
    }

    /// One of them is active, and marks its complete ticks.
    pub(super) fn begins(&mut self, one: usize) {
        self.members[one].is_active = true;
        self.members[one].has_begun = true;
    }

    /// One of them has ended, with this last value of its task clock; returns whether the round was
    /// only waiting for it.
    pub(super) fn ends(&mut self, one: usize, clock: Option<f64>) -> bool {
        let member = &mut self.members[one];
        member.is_active = false;
        member.clock = clock.or(member.clock);
        self.is_over()
    }

    /// The task clock of the run of one of them.
    pub(super) fn counted(&mut self, one: usize, clock: &RunCpu) {
        self.members[one].clock = clock.time.or(self.members[one].clock);
    }

    /// One of them sampled all its processes; returns whether the round is complete.
    pub(super) fn sampled(&mut self, one: usize, cost: OwnCost, ticks: OwnTicks) -> bool {
        let member = &mut self.members[one];
        (member.cost, member.ticks, member.has_sampled) = (cost, ticks, true);
        self.is_over()
    }

    /// Whether all active recordings have sampled; then a new round begins.
    fn is_over(&mut self) -> bool {
        let mut sampled = 0;
        for member in &self.members {
            if !member.has_sampled && member.is_active {
                return false;
            }
            sampled += usize::from(member.has_sampled);
        }
        self.members.iter_mut().for_each(|one| one.has_sampled = false);
        sampled > 0
    }

    /// Adds weigh's own values of all recordings to the tick that ends a round.
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

    /// The sum over those where it is known.
    fn sum<T: std::iter::Sum>(&self, of: impl Fn(&MemberRound) -> Option<T>) -> Option<T> {
        let mut known = self.members.iter().filter_map(of).peekable();
        known.peek()?;
        Some(known.sum())
    }
}
