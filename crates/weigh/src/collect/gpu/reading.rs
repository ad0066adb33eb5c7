//! What was read of all cards of one driver at one moment, whoever made them.

use std::time::Duration;

use super::untaken::Known;
use crate::catalog::metrics::{
    GpuActivity, GpuEcc, GpuLink, GpuMemory, GpuPower, GpuShare, GpuThrottle, GpuUnits,
};
use crate::model::{Entity, Gpu, Name, ProcessId, Tick};

/// What one look at a card found.
#[derive(Debug, Clone, Copy)]
pub(super) struct CardRead {
    pub(super) name: Name,
    pub(super) activity: GpuActivity,
    pub(super) memory: GpuMemory,
    pub(super) power: GpuPower,
    pub(super) throttle: GpuThrottle,
    pub(super) ecc: GpuEcc,
    pub(super) link: GpuLink,
    pub(super) units: GpuUnits,
}

impl CardRead {
    /// A card of which nothing is known.
    pub(super) fn nothing(name: Name) -> CardRead {
        CardRead {
            name,
            activity: GpuActivity::default(),
            memory: GpuMemory::default(),
            power: GpuPower::default(),
            throttle: GpuThrottle::default(),
            ecc: GpuEcc::default(),
            link: GpuLink::default(),
            units: GpuUnits::default(),
        }
    }

    /// Puts it into a tick.
    pub(super) fn put(&self, tick: &mut Tick) {
        let who = Entity::Named(self.name);
        tick.put(who, &self.activity);
        tick.put(who, &self.memory);
        tick.put(who, &self.power);
        tick.put(who, &self.throttle);
        tick.put(who, &self.ecc);
        tick.put(who, &self.link);
        tick.put(who, &self.units);
    }
}

/// Who a process on a card is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// The pid that the driver has for it, which may be of another pid namespace; and who had that
    /// when the driver told of it, if that is known.
    Numbered(u32, Option<ProcessId>),
    /// One that was found in our `/proc`.
    Known(ProcessId),
}

/// A process on a card.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct UserRead {
    pub(super) gpu: Name,
    pub(super) who: Who,
    pub(super) share: GpuShare,
}

/// Everything that a driver said at one moment.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// When it was asked, on the monotonic clock.
    pub(super) at: Duration,
    /// How long it took to answer.
    pub(super) took: Duration,
    pub(super) cards: Vec<CardRead>,
    pub(super) users: Vec<UserRead>,
    /// For how long each of those is known, when it is a thread that looks.
    pub(super) known: Vec<Known>,
    /// The most memory that was in use at a look.
    pub(super) most: Option<u64>,
    /// Cards that are told of for the first time.
    pub(super) met: Vec<Gpu>,
    /// What went wrong, for people.
    pub(super) trouble: Vec<String>,
}

/// Somebody who can be asked for everything, again and again.
pub(super) trait Ask {
    /// All cards there are, also those that do not count.
    fn there(&self) -> Vec<Gpu>;

    /// Looks at all cards, at this moment of the monotonic clock. The files of these processes
    /// are not those that they were at the last look.
    fn read(&mut self, at: Duration, moved: &[ProcessId]) -> Reading;
}

/// Finds somebody to ask. It may take as long as asking does.
pub(super) type Find = Box<dyn FnOnce() -> Result<Box<dyn Ask>, String> + Send>;

/// Answers that are read when they are wanted, so that a test knows what was there to read.
#[cfg(test)]
pub(super) fn at_once(find: Find) -> super::thread::Answers {
    use super::thread::News;
    let mut asked = find();
    let mut is_new = true;
    Box::new(move |now, _, moved| match &mut asked {
        Ok(asked) => {
            let reading = Reading { at: now, ..asked.read(now, moved) };
            let there = std::mem::take(&mut is_new).then(|| asked.there());
            News { reading: Some(reading), there, ended: None }
        }
        Err(why) => News { ended: Some(why.clone()), ..News::default() },
    })
}
