//! The processes on one card: who they are by the driver's pids, and what they have.

use super::super::GpuShare;
use super::super::reading::{UserRead, Who};
use crate::host::nvml::{PerProcess, User};
use crate::sample::Name;

/// The processes of one look at one card.
#[derive(Debug, Default)]
pub(super) struct Users {
    found: Vec<(u32, GpuShare)>,
}

impl Users {
    /// Processes that compute or draw.
    pub(super) fn meet_all(&mut self, users: impl Iterator<Item = User>) {
        users.for_each(|user| self.meet(user));
    }

    /// A process that computes or draws. One that does both is told of twice, with all its
    /// memory each time.
    fn meet(&mut self, user: User) {
        let share = self.of(user.pid);
        share.memory = share.memory.max(user.memory);
    }

    fn of(&mut self, pid: u32) -> &mut GpuShare {
        let place = self.found.iter().position(|(known, _)| *known == pid).unwrap_or_else(|| {
            self.found.push((pid, GpuShare::default()));
            self.found.len() - 1
        });
        &mut self.found[place].1
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.found.len() as u64
    }

    /// Puts what each of them did beside what it has: the mean of its samples. Of processes that
    /// are not there any more there are samples, too.
    pub(super) fn did(&mut self, samples: &[PerProcess]) {
        for (pid, share) in &mut self.found {
            let theirs = || samples.iter().filter(|sample| sample.pid == *pid);
            let count = theirs().count();
            if count == 0 {
                continue;
            }
            let mean = |which: usize| {
                let sum: u64 = theirs().map(|sample| u64::from(sample.shares[which])).sum();
                Some(sum as f64 / count as f64 / 100.0)
            };
            share.utilization = mean(0);
            share.memory_utilization = mean(1);
            share.encoder = mean(2);
            share.decoder = mean(3);
        }
    }

    /// Puts in the most memory each of them ever had.
    pub(super) fn peaks(&mut self, mut peak: impl FnMut(u32) -> Option<u64>) {
        for (pid, share) in &mut self.found {
            share.memory_peak = peak(*pid);
        }
    }

    /// All of them, on this card.
    pub(super) fn on(self, gpu: Name) -> impl Iterator<Item = UserRead> {
        let read = move |(pid, share)| UserRead { gpu, who: Who::Numbered(pid), share };
        self.found.into_iter().map(read)
    }
}

/// Leaves out what cannot be, and what was seen before; says what is the newest now.
///
/// Drivers give samples of nobody (pid 0), of more than all, without a time, and old ones again.
pub(super) fn believable(samples: &mut Vec<PerProcess>, after: u64) -> u64 {
    samples.retain(|sample| {
        sample.pid != 0 && sample.at > after && sample.shares.iter().all(|share| *share <= 100)
    });
    samples.iter().map(|sample| sample.at).max().unwrap_or(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(pid: u32, at: u64, sm: u32) -> PerProcess {
        PerProcess { pid, at, shares: [sm, 10, 0, 0] }
    }

    #[test]
    fn who_computes_and_draws_is_one_and_has_its_memory_once() {
        let mut users = Users::default();
        users.meet(User { pid: 7, memory: Some(100) });
        users.meet(User { pid: 8, memory: None });
        users.meet(User { pid: 7, memory: Some(100) });
        assert_eq!(users.count(), 2);
        let memory: Vec<_> = users.on(Name::new(b"g")).map(|one| one.share.memory).collect();
        assert_eq!(memory, [Some(100), None]);
    }

    #[test]
    fn bogus_and_stale_samples_are_left_out() {
        let mut samples = vec![
            sample(7, 5, 40),
            sample(7, 12, 60),
            sample(0, 13, 1),
            sample(7, 14, 3_000_000),
            sample(7, 15, 80),
        ];
        assert_eq!(believable(&mut samples, 10), 15);
        assert_eq!(samples, [sample(7, 12, 60), sample(7, 15, 80)]);
        assert_eq!(believable(&mut Vec::new(), 10), 10);
    }

    #[test]
    fn what_a_process_did_is_the_mean_of_its_samples_and_without_any_not_known() {
        let mut users = Users::default();
        users.meet(User { pid: 7, memory: None });
        users.meet(User { pid: 8, memory: None });
        users.did(&[sample(7, 12, 60), sample(7, 15, 80), sample(9, 15, 100)]);
        let did: Vec<_> = users.on(Name::new(b"g")).map(|one| one.share.utilization).collect();
        assert_eq!(did, [Some(0.7), None]);
    }
}
