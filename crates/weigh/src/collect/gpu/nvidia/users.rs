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

use std::time::Duration;

use super::super::GpuShare;
use super::super::reading::{UserRead, Who};
use super::sampled::{LONGEST, SILENCE};
use crate::host::nvml::{PerProcess, User};
use crate::sample::Name;

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

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(pid: u32, at: u64, sm: u32) -> PerProcess {
        PerProcess { pid, at, shares: [sm, 10, 0, 0] }
    }

    /// What 7 and 8 did by a look at this moment, when the card was sampled last at `newest`.
    fn look(users: &mut Users, at: u64, newest: u64, samples: &[PerProcess]) -> [Option<f64>; 2] {
        look_at(users, at, newest, None, samples)
    }

    /// The same, when the card is this busy.
    fn look_at(
        users: &mut Users,
        at: u64,
        newest: u64,
        utilization: Option<f64>,
        samples: &[PerProcess],
    ) -> [Option<f64>; 2] {
        users.begin();
        users.meet([7, 8].map(|pid| User { pid, memory: None }).into_iter());
        let at = Duration::from_millis(at);
        let after = users.after(at);
        let card = OfCard { newest: Some(newest).filter(|newest| *newest > after), utilization };
        users.did(at, card, samples.iter().copied());
        let did: Vec<_> = users.on(Name::new(b"g")).map(|one| one.share.utilization).collect();
        did.try_into().unwrap()
    }

    #[test]
    fn who_computes_and_draws_is_one_and_has_its_memory_once() {
        let mut users = Users::default();
        let met = [(7, Some(100)), (8, None), (7, Some(100))];
        users.meet(met.map(|(pid, memory)| User { pid, memory }).into_iter());
        assert_eq!(users.count(), 2);
        let memory: Vec<_> = users.on(Name::new(b"g")).map(|one| one.share.memory).collect();
        assert_eq!(memory, [Some(100), None]);
        users.begin();
        assert_eq!(users.count(), 0, "each look begins anew");
    }

    #[test]
    fn what_was_before_the_first_look_is_nobody_s() {
        let mut users = Users::default();
        assert_eq!(look(&mut users, 5000, 0, &[sample(7, 9, 100)]), [None, None]);
        assert_eq!(users.seen.unwrap(), 9);
        assert_eq!(look(&mut users, 5100, 0, &[sample(7, 9, 100)]), [None, None], "once more");
    }

    #[test]
    fn what_a_process_did_is_the_mean_of_its_samples_and_without_any_nothing() {
        let mut users = Users::default();
        look(&mut users, 5000, 0, &[]);
        let samples = [sample(7, 12, 60), sample(7, 15, 80), sample(9, 15, 100)];
        assert_eq!(look(&mut users, 5100, 0, &samples), [Some(0.7), Some(0.0)]);
        assert_eq!(users.seen.unwrap(), 15);
    }

    #[test]
    fn nobody_was_idle_before_a_sample_period_is_over() {
        let mut users = Users::default();
        look(&mut users, 5000, 10, &[]);
        assert_eq!(look(&mut users, 5200, 10, &[]), [None, None]);
        assert_eq!(look(&mut users, 5400, 11, &[]), [Some(0.0); 2], "the card was sampled");
        assert_eq!(users.seen.unwrap(), 11, "from here on, and not from the last busy moment");
        assert_eq!(look(&mut users, 6300, 11, &[]), [None, None]);
        assert_eq!(look(&mut users, 6400, 11, &[]), [Some(0.0); 2], "no period is longer");
        assert_eq!(look(&mut users, 6500, 11, &[]), [None, None]);
    }

    #[test]
    fn bogus_and_stale_samples_are_left_out() {
        let mut users = Users::default();
        look(&mut users, 5000, 10, &[]);
        let samples = [sample(7, 5, 40), sample(0, 13, 1), sample(7, 14, 3_000_000)];
        assert_eq!(look(&mut users, 5100, 10, &samples), [None, None]);
        assert_eq!(users.seen.unwrap(), 10);
        let doubtful = [sample(7, 14, 3_000_000), sample(8, 15, 80)];
        assert_eq!(look(&mut users, 5200, 10, &doubtful), [None, Some(0.8)], "not idle for that");
        let both = [sample(7, 18, 3_000_000), sample(7, 17, 60)];
        assert_eq!(look(&mut users, 5300, 10, &both), [Some(0.6), Some(0.0)]);
        assert_eq!(users.seen.unwrap(), 17);
    }

    /// Looks every half second at a card that is 80 % busy by 7, and whose driver keeps the last four
    /// of these samples. Says what was told of it in the last second.
    fn told_in_the_end(times: impl Fn(u64) -> Vec<PerProcess>) -> [Option<f64>; 2] {
        let mut users = Users::default();
        let (mut last, mut all) = ([None; 2], Vec::new());
        for at in (1000..=15_000).step_by(500) {
            all.extend(times(at));
            all.drain(..all.len().saturating_sub(4));
            let after = users.after(Duration::from_millis(at));
            let new: Vec<_> = all.iter().copied().filter(|sample| sample.at > after).collect();
            let told = look_at(&mut users, at, 0, Some(0.8), &new);
            assert_ne!(told[0], Some(0.0), "at {at}: it was not idle");
            last = [last[1], told[0]];
        }
        last
    }

    #[test]
    fn a_clock_that_is_set_back_makes_nobody_idle_and_is_found_out() {
        let hour = 3_600_000;
        let times = |at: u64| vec![sample(7, at + if at < 4000 { hour } else { 0 }, 80)];
        assert_eq!(told_in_the_end(times), [Some(0.8); 2]);
    }

    #[test]
    fn one_sample_of_the_far_future_does_not_hide_all_others() {
        for pid in [7, 77] {
            let times = |at: u64| {
                let bogus = (at == 3000).then(|| sample(pid, at + 1_000_000_000, 3));
                std::iter::once(sample(7, at, 80)).chain(bogus).collect()
            };
            assert_eq!(told_in_the_end(times), [Some(0.8); 2], "of {pid}");
        }
    }

    #[test]
    fn a_card_that_is_busy_by_nobody_tells_of_nobody() {
        let mut users = Users::default();
        look_at(&mut users, 5000, 10, Some(0.8), &[]);
        assert_eq!(look_at(&mut users, 6500, 11, Some(0.8), &[]), [None; 2]);
        let of_another = [sample(9, 12, 80)];
        assert_eq!(look_at(&mut users, 7000, 12, Some(0.8), &of_another), [Some(0.0); 2]);
        assert_eq!(look_at(&mut users, 8500, 13, Some(0.01), &[]), [Some(0.0); 2]);
    }
}
