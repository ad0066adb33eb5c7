//! Readings that no tick has taken, as one.
//!
//! The thread looks every second, and ticks may be rarer. What was there at a look and is not at
//! the next would be lost, and what a process did in the last second would be told for all the
//! time. So a reading takes in the one before it: shares are means over the time, and memory is
//! that of the look at which most was in use. All of it is of one look, because the most that
//! each process ever had is more than all had together.

use std::collections::HashMap;
use std::time::Duration;

use super::reading::{Reading, UserRead, Who};
use crate::catalog::metrics::GpuShare;
use crate::model::Name;

/// For how long what is told of a process is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Known {
    /// Seconds that its shares are of, and those of which they are not told yet.
    told: f64,
    untold: f64,
    /// Whether it was there at the last look.
    pub(super) is_there: bool,
}

impl Reading {
    /// Notes that it is the next look, so long after the one before.
    pub(super) fn follows(&mut self, passed: Duration) {
        let seconds = passed.as_secs_f64();
        self.known = self.users.iter().map(|user| Known::of(&user.share, seconds)).collect();
        let used = self.cards.iter().filter_map(|card| card.memory.used);
        let held = self.users.iter().filter_map(|user| user.share.memory);
        // Where memory is the machine's own, only what processes have is known.
        self.most = used.reduce(u64::saturating_add).or(held.reduce(u64::saturating_add));
    }

    /// Takes in the one before it, which nobody took.
    pub(super) fn take_in(&mut self, before: Reading) {
        self.met.splice(0..0, before.met);
        self.trouble.splice(0..0, before.trouble);
        let is_less = before.most > self.most;
        if is_less {
            for card in &mut self.cards {
                let then = before.cards.iter().find(|then| then.name == card.name);
                card.memory = then.map_or(card.memory, |then| then.memory);
            }
        }
        self.most = self.most.max(before.most);
        let mut earlier: HashMap<_, _> =
            before.users.into_iter().zip(before.known).map(|both| (key(&both.0), both)).collect();
        for (user, known) in self.users.iter_mut().zip(&mut self.known) {
            let now = user.share;
            let (then, was_known) = match earlier.remove(&key(user)) {
                Some((then, was_known)) => (then.share, was_known),
                // It was not there, and had nothing.
                None => (none_of(&now), Known { told: 0.0, untold: 0.0, is_there: false }),
            };
            user.share = mean(&then, was_known.told, &now, was_known.untold + known.told);
            user.share.memory = if is_less { then.memory } else { now.memory };
            user.share.memory_peak = most(&[then, now]);
            *known = was_known.and(*known);
        }
        let cards = &self.cards;
        let gone = earlier.into_values().filter(|(user, _)| {
            // Of a card that is lost nothing is told.
            cards.iter().any(|card| card.name == user.gpu)
        });
        for (mut user, known) in gone {
            user.share.memory_peak = most(&[user.share]);
            user.share.memory =
                if is_less { user.share.memory } else { none_of(&user.share).memory };
            self.users.push(user);
            self.known.push(Known { is_there: false, ..known });
        }
    }
}

impl Known {
    fn of(share: &GpuShare, seconds: f64) -> Known {
        let (told, untold) =
            if share.utilization.is_some() { (seconds, 0.0) } else { (0.0, seconds) };
        Known { told, untold, is_there: true }
    }

    /// This, and the look after it: a share is that of all the time since the last one.
    fn and(self, next: Known) -> Known {
        let is_told = next.told > 0.0;
        Known {
            told: if is_told { self.told + self.untold + next.told } else { self.told },
            untold: if is_told { 0.0 } else { self.untold + next.untold },
            is_there: next.is_there,
        }
    }
}

/// Who somebody is from look to look: a pid of the driver's is the same process while it is listed.
fn key(user: &UserRead) -> (Name, u32, Option<u64>) {
    match user.who {
        Who::Numbered(pid, _) => (user.gpu, pid, None),
        Who::Known(id) => (user.gpu, id.pid, Some(id.started)),
    }
}

/// What one had that was not there, where it is told what it has.
fn none_of(share: &GpuShare) -> GpuShare {
    GpuShare { memory: share.memory.map(|_| 0), ..GpuShare::default() }
}

/// The most memory that was ever told.
fn most(shares: &[GpuShare]) -> Option<u64> {
    shares.iter().flat_map(|share| [share.memory, share.memory_peak]).flatten().max()
}

/// What it had on average: this for so many seconds, and then that for so many.
fn mean(then: &GpuShare, seconds_then: f64, now: &GpuShare, seconds: f64) -> GpuShare {
    let of = |field: fn(&GpuShare) -> Option<f64>| match (field(then), field(now)) {
        (Some(then), Some(now)) if seconds_then + seconds > 0.0 => {
            Some((then * seconds_then + now * seconds) / (seconds_then + seconds))
        }
        (then, now) => now.or(then),
    };
    GpuShare {
        memory: now.memory,
        memory_peak: now.memory_peak,
        utilization: of(|share| share.utilization),
        memory_utilization: of(|share| share.memory_utilization),
        encoder: of(|share| share.encoder),
        decoder: of(|share| share.decoder),
        video: of(|share| share.video),
        copy: of(|share| share.copy),
        occupancy: of(|share| share.occupancy),
    }
}

#[cfg(test)]
mod tests {
    use super::super::reading::CardRead;
    use super::*;
    use crate::catalog::metrics::GpuMemory;

    /// A look a second after the one before: what each pid had, and what it did.
    fn look(used: Option<u64>, users: &[(u32, Option<u64>, Option<f64>)]) -> Reading {
        let gpu = Name::new(b"nvidia0");
        let memory = GpuMemory { used, ..GpuMemory::default() };
        let users = users.iter().map(|&(pid, memory, utilization)| UserRead {
            gpu,
            who: Who::Numbered(pid, None),
            share: GpuShare { memory, utilization, ..GpuShare::default() },
        });
        let cards = vec![CardRead { memory, ..CardRead::nothing(gpu) }];
        let mut reading = Reading { cards, users: users.collect(), ..Reading::default() };
        reading.follows(Duration::from_secs(1));
        reading
    }

    fn all(looks: impl IntoIterator<Item = Reading>) -> Reading {
        let one = looks.into_iter().reduce(|before, mut now| {
            now.take_in(before);
            now
        });
        one.unwrap()
    }

    /// Memory, most memory, what it did, and whether it is there at the end.
    fn of(reading: &Reading, pid: u32) -> (Option<u64>, Option<u64>, Option<f64>, bool) {
        let users = reading.users.iter().zip(&reading.known);
        let mut of_pid =
            users.filter(|(user, _)| matches!(user.who, Who::Numbered(number, _) if number == pid));
        let (UserRead { share, .. }, known) = of_pid.next().unwrap();
        (share.memory, share.memory_peak, share.utilization, known.is_there)
    }

    #[test]
    fn what_a_process_did_is_the_mean_of_all_looks_that_nobody_took() {
        let did = [Some(1.0), Some(1.0), Some(1.0), Some(0.8), Some(0.0)];
        let looks = did.map(|did| look(None, &[(7, Some(1), did)]));
        assert_eq!(of(&all(looks), 7).2, Some(3.8 / 5.0));
        // A share is that of all the time since the last one.
        let did = [Some(1.0), None, None, Some(0.5), None];
        let merged = all(did.map(|did| look(None, &[(7, Some(1), did)])));
        assert_eq!(of(&merged, 7).2, Some((1.0 + 3.0 * 0.5) / 4.0));
        let next = all([merged, look(None, &[(7, Some(1), Some(0.0))])]);
        assert_eq!(of(&next, 7).2, Some(2.5 / 6.0));
    }

    #[test]
    fn memory_is_that_of_the_look_with_most_and_nobody_is_forgotten() {
        let merged = all([
            look(Some(5), &[(7, Some(4), None)]),
            look(Some(41), &[(7, Some(10), None), (8, Some(30), Some(0.5))]),
            look(Some(13), &[(7, Some(12), None), (9, Some(1), None)]),
        ]);
        assert_eq!(merged.cards[0].memory.used, Some(41));
        assert_eq!(of(&merged, 7), (Some(10), Some(12), None, true));
        assert_eq!(of(&merged, 8), (Some(30), Some(30), Some(0.5), false));
        assert_eq!(of(&merged, 9), (Some(0), Some(1), None, true));
        // One after the other, two have never more than one of them.
        let looks =
            [look(Some(30), &[(7, Some(30), None)]), look(Some(31), &[(8, Some(31), None)])];
        let merged = all(looks);
        assert_eq!((of(&merged, 7).0, of(&merged, 8).0), (Some(0), Some(31)));
        let untold = all([look(None, &[(7, None, None)]), look(None, &[(8, None, None)])]);
        assert_eq!((of(&untold, 7).0, of(&untold, 8).0), (None, None), "not known is not nothing");
    }

    #[test]
    fn of_a_card_that_is_lost_nothing_is_told() {
        let mut lost = look(None, &[]);
        lost.cards.clear();
        assert_eq!(all([look(Some(1), &[(7, Some(1), None)]), lost]).users, []);
    }
}
