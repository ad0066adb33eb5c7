//! The processes on one card: who they are by the driver's pids, and what they have.
//!
//! What surprised us: the driver tells only of those that did something. Who is on the card and
//! is not told of did nothing, but only when a sample period of the driver is over; until then
//! nothing is known of anybody. And what it tells is the mean since the moment it is asked from,
//! so that moment moves on while nothing is done, too.

use std::time::Duration;

use super::super::GpuShare;
use super::super::reading::{UserRead, Who};
use super::sampled::LONGEST;
use crate::host::nvml::{PerProcess, User};
use crate::sample::Name;

/// The processes of one card; the list is made anew at each look.
#[derive(Debug, Default)]
pub(super) struct Users {
    found: Vec<Found>,
    /// The newest sample that was seen, of the driver's clock; nothing before the first look.
    seen: Option<u64>,
    /// When it was last known what everybody did.
    known: Duration,
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

    /// Samples that are newer than this have not been seen.
    pub(super) fn after(&self) -> u64 {
        self.seen.unwrap_or(0)
    }

    /// Puts what each of them did beside what it has: the mean of its samples, which are those
    /// of this look. The card itself was sampled last at `newest`.
    ///
    /// Drivers also give samples of nobody (pid 0), of processes that are gone, of more than
    /// all, without a time, and old ones again.
    pub(super) fn did(
        &mut self,
        at: Duration,
        newest: u64,
        samples: impl Iterator<Item = PerProcess>,
    ) {
        // What the driver still has at the first look was before it.
        let (is_first, after) = (self.seen.is_none(), self.after());
        let passed = at.saturating_sub(self.known);
        let mut is_over = newest > after || passed >= Duration::from_micros(LONGEST);
        let mut newest = newest.max(after);
        for sample in samples.filter(|sample| sample.pid != 0 && sample.at > after) {
            let is_doubtful = sample.shares.iter().any(|share| *share > 100);
            if !is_doubtful {
                newest = newest.max(sample.at);
                is_over = true;
            }
            if let Some(found) = self.found.iter_mut().find(|found| found.pid == sample.pid) {
                found.add(&sample, is_doubtful);
            }
        }
        self.seen = Some(newest);
        if is_first || is_over {
            self.known = at;
        }
        if is_over && !is_first {
            self.found.iter_mut().for_each(Found::tell);
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
            who: Who::Numbered(found.pid),
            share: found.share,
        };
        self.found.iter().map(read)
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
        users.begin();
        users.meet([7, 8].map(|pid| User { pid, memory: None }).into_iter());
        users.did(Duration::from_millis(at), newest, samples.iter().copied());
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
        assert_eq!(users.after(), 9);
        assert_eq!(look(&mut users, 5100, 0, &[sample(7, 9, 100)]), [None, None], "once more");
    }

    #[test]
    fn what_a_process_did_is_the_mean_of_its_samples_and_without_any_nothing() {
        let mut users = Users::default();
        look(&mut users, 5000, 0, &[]);
        let samples = [sample(7, 12, 60), sample(7, 15, 80), sample(9, 15, 100)];
        assert_eq!(look(&mut users, 5100, 0, &samples), [Some(0.7), Some(0.0)]);
        assert_eq!(users.after(), 15);
    }

    #[test]
    fn nobody_was_idle_before_a_sample_period_is_over() {
        let mut users = Users::default();
        look(&mut users, 5000, 10, &[]);
        assert_eq!(look(&mut users, 5200, 10, &[]), [None, None]);
        assert_eq!(look(&mut users, 5400, 11, &[]), [Some(0.0); 2], "the card was sampled");
        assert_eq!(users.after(), 11, "from here on, and not from the last busy moment");
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
        assert_eq!(users.after(), 10);
        let doubtful = [sample(7, 14, 3_000_000), sample(8, 15, 80)];
        assert_eq!(look(&mut users, 5200, 10, &doubtful), [None, Some(0.8)], "not idle for that");
        let both = [sample(7, 18, 3_000_000), sample(7, 17, 60)];
        assert_eq!(look(&mut users, 5300, 10, &both), [Some(0.6), Some(0.0)]);
        assert_eq!(users.after(), 17);
    }
}
