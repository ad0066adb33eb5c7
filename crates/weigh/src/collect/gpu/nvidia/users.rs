//! The processes on one card: who they are by the driver's pids, and what they have.
//!
//! What surprised us: the driver tells only of those that did something. Who is on the card and
//! is not told of did nothing, but only when a sample period of the driver is over; until then
//! nothing is known of anybody. And what it tells is the mean since the moment it is asked from,
//! so that moment moves on while nothing is done, too.
//!
//! Samples have the time of day, or none that makes sense (Syllo/nvtop, issue 110). When the clock
//! is set back, none is newer than the last. So a card that is busy by nobody tells nothing, and
//! after a while of that all samples are asked for: if they move on, they are new ones.

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::super::reading::{UserRead, Who};
use super::sampled::{LONGEST, SILENCE};
use crate::catalog::metrics::GpuShare;
use crate::host::nvml::{PerProcess, User};
use crate::model::Name;

/// A card that is busier than this is so by somebody. Less is not told of a process.
const BUSY: f64 = 0.05;

/// The processes of one card; the list is made anew at each look.
#[derive(Debug, Default)]
pub(super) struct Users {
    found: Vec<Found>,
    /// The newest sample that was seen, of the driver's clock; nothing before the first look.
    seen: Option<u64>,
    /// When it was last known what everybody did.
    known: Duration,
    /// Since when the card is busy by nobody.
    unheard: Option<Duration>,
    /// Whether all samples were asked for at this look, and the newest when they were last.
    asks_all: bool,
    noted: Option<u64>,
}

/// What a look found of the card itself.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OfCard {
    /// When it was sampled last, if that is new at this look.
    pub(super) newest: Option<u64>,
    /// How busy it is.
    pub(super) utilization: Option<f64>,
}

#[derive(Debug, Default)]
struct Found {
    pid: u32,
    share: GpuShare,
    /// Its samples of this look, added up, and how many they are.
    sums: [u64; 4],
    count: u32,
    /// Whether one of its samples cannot be.
    is_doubtful: bool,
}

impl Users {
    /// Begins a look.
    pub(super) fn begin(&mut self) {
        self.found.clear();
    }

    /// Processes that compute or draw. One that does both is told of twice, with all its memory
    /// each time.
    pub(super) fn meet(&mut self, users: impl Iterator<Item = User>) {
        for User { pid, memory } in users {
            match self.found.iter_mut().find(|found| found.pid == pid) {
                Some(found) => found.share.memory = found.share.memory.max(memory),
                None => {
                    let share = GpuShare { memory, ..GpuShare::default() };
                    self.found.push(Found { pid, share, ..Found::default() });
                }
            }
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.found.len() as u64
    }

    /// Samples that are newer than this are wanted at this moment.
    pub(super) fn after(&mut self, at: Duration) -> u64 {
        self.asks_all = self.unheard.is_some_and(|since| at.saturating_sub(since) >= SILENCE);
        if self.asks_all { 0 } else { self.seen.unwrap_or(0) }
    }

    /// Puts what each of them did beside what it has: the mean of its samples, which are those
    /// of this look.
    ///
    /// Drivers also give samples of nobody (pid 0), of processes that are gone, of more than
    /// all, without a time, and old ones again.
    pub(super) fn did(
        &mut self,
        at: Duration,
        card: OfCard,
        samples: impl Iterator<Item = PerProcess>,
    ) {
        let samples = samples.filter(|sample| sample.pid != 0);
        if self.asks_all {
            self.find_the_way_back(samples);
            return;
        }
        // What the driver still has at the first look was before it.
        let (is_first, after) = (self.seen.is_none(), self.seen.unwrap_or(0));
        let passed = at.saturating_sub(self.known);
        let mut is_over = card.newest > Some(after) || passed >= Duration::from_micros(LONGEST);
        let mut newest = card.newest.unwrap_or(0).max(after);
        let mut by_nobody = card.utilization > Some(BUSY);
        for sample in samples.filter(|sample| sample.at > after) {
            let is_doubtful = sample.is_doubtful();
            by_nobody &= is_doubtful;
            let Some(found) = self.found.iter_mut().find(|found| found.pid == sample.pid) else {
                continue;
            };
            if !is_doubtful {
                newest = newest.max(sample.at);
                is_over = true;
            }
            found.add(&sample, is_doubtful);
        }
        self.seen = Some(newest);
        by_nobody &= !self.found.is_empty();
        self.unheard = by_nobody.then(|| self.unheard.unwrap_or(at));
        is_over &= !by_nobody;
        if is_first || is_over {
            self.known = at;
        }
        if is_over && !is_first {
            self.found.iter_mut().for_each(Found::tell);
        }
    }

    /// Takes in all samples that the driver has. Those of before stay as they are; those of a
    /// clock that was set back move on, and from there on are new.
    fn find_the_way_back(&mut self, samples: impl Iterator<Item = PerProcess>) {
        let is_there = |pid: u32| self.found.iter().any(|found| found.pid == pid);
        let old = samples.filter(|sample| Some(sample.at) <= self.seen && !sample.is_doubtful());
        let newest = old.filter(|sample| is_there(sample.pid)).map(|sample| sample.at).max();
        match self.noted.take() {
            Some(noted) if newest > Some(noted) => (self.seen, self.unheard) = (Some(noted), None),
            _ => self.noted = newest,
        }
    }

    /// Puts in the most memory each of them ever had.
    pub(super) fn peaks(&mut self, mut peak: impl FnMut(u32) -> Option<u64>) {
        for found in &mut self.found {
            found.share.memory_peak = peak(found.pid);
        }
    }

    /// All of them, on this card.
    pub(super) fn on(&self, gpu: Name) -> impl Iterator<Item = UserRead> {
        let read = move |found: &Found| UserRead {
            gpu,
            who: Who::Numbered(found.pid, None),
            share: found.share,
        };
        self.found.iter().map(read)
    }
}

impl PerProcess {
    /// Whether it cannot be.
    fn is_doubtful(&self) -> bool {
        self.shares.iter().any(|share| *share > 100)
    }
}

impl Found {
    fn add(&mut self, sample: &PerProcess, is_doubtful: bool) {
        if is_doubtful {
            self.is_doubtful = true;
            return;
        }
        self.count += 1;
        for (sum, share) in self.sums.iter_mut().zip(sample.shares) {
            *sum += u64::from(share);
        }
    }

    /// Says what it did; of whom there is no sample, that was nothing.
    fn tell(&mut self) {
        if self.count == 0 && self.is_doubtful {
            return;
        }
        let mean = |sum: u64| Some(sum as f64 / f64::from(self.count.max(1)) / 100.0);
        let [sm, memory, encoder, decoder] = self.sums.map(mean);
        self.share.utilization = sm;
        self.share.memory_utilization = memory;
        self.share.encoder = encoder;
        self.share.decoder = decoder;
    }
}
