//! What processes have of GPUs: what clients said, added up for each process and each card.
//!
//! Counts of a client's engines become shares of the time between two looks.

use std::time::Duration;

use crate::catalog::metrics::GpuShare;
use crate::model::ProcessId;
use crate::parse::drm_fdinfo::{Engine, Work};

/// What a client had by the last look.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    pub(super) memory: Option<u64>,
    /// Counts from which growth is measured.
    pub(super) engines: [Work; 6],
    /// Whether its card slept at that look, so that it was not asked.
    pub(super) slept: bool,
}

/// What one look found.
#[derive(Debug, Default)]
pub(super) struct Using {
    each: Vec<Use>,
}

/// What all clients of one process have of one GPU.
#[derive(Debug)]
pub(super) struct Use {
    address: Vec<u8>,
    id: ProcessId,
    memory: Option<u64>,
    /// Shares of the time of each kind of engine, as far as they are known.
    worked: [Option<f64>; 6],
    /// Whether any engine has ever worked for it.
    has_worked: bool,
    /// Whether one of its clients was not asked yet.
    some_untold: bool,
}

/// A process on a card.
#[derive(Debug)]
pub(super) struct User {
    pub(super) id: ProcessId,
    pub(super) share: GpuShare,
    /// Whether it has used the card, or may have, for all that is known. Others have it open.
    pub(super) uses: bool,
}

impl Using {
    /// The processes on the card of this address. Whoever has opened it and nothing else is not.
    pub(super) fn of(&self, address: &[u8]) -> Vec<User> {
        let here = self.each.iter().filter(|one| one.address == address);
        here.filter(|one| !one.has_nothing()).map(Use::user).collect()
    }

    /// What a process has of the card of this address, so far.
    pub(super) fn by(&mut self, address: &[u8], id: ProcessId) -> &mut Use {
        let is_it = |one: &Use| one.address == address && one.id == id;
        let place = self.each.iter().position(is_it).unwrap_or_else(|| {
            let address = address.to_vec();
            let (has_worked, some_untold) = (false, false);
            let worked = [None; 6];
            self.each.push(Use { address, id, memory: None, worked, has_worked, some_untold });
            self.each.len() - 1
        });
        &mut self.each[place]
    }
}

impl Use {
    /// One of its clients was not asked yet.
    pub(super) fn add_untold(&mut self) {
        self.some_untold = true;
    }

    /// A client that has this memory, and for which engines have done so much in its life.
    pub(super) fn add_client(&mut self, memory: Option<u64>, engines: &[Work; 6]) {
        self.add_memory(memory);
        let counts = engines.iter().map(|work| work.cycles.or(work.nanoseconds));
        self.has_worked |= counts.flatten().any(|count| count > 0);
    }

    fn add_memory(&mut self, bytes: Option<u64>) {
        if let Some(bytes) = bytes {
            self.memory = Some(self.memory.unwrap_or(0).saturating_add(bytes));
        }
    }

    /// What a client has whose card sleeps: its memory is where it was, and engines do nothing. How
    /// long they worked before it fell asleep is not known.
    pub(super) fn add_asleep(&mut self, client: &Seen) {
        self.add_client(client.memory, &client.engines);
        for (sum, work) in self.worked.iter_mut().zip(&client.engines) {
            if client.slept && work.cycles.or(work.nanoseconds).is_some() {
                sum.get_or_insert(0.0);
            }
        }
    }

    /// What engines did since the last look.
    pub(super) fn add_work(&mut self, before: &[Work; 6], now: &[Work; 6], passed: Duration) {
        for ((sum, before), now) in self.worked.iter_mut().zip(before).zip(now) {
            if let Some(share) = worked(before, now, passed) {
                // What is done on two queues at once is done in the time of one.
                *sum = Some((sum.unwrap_or(0.0) + share).min(1.0));
            }
        }
    }

    fn has_nothing(&self) -> bool {
        !self.has_worked && !self.some_untold && self.memory.unwrap_or(0) == 0
    }

    fn user(&self) -> User {
        let share = self.share();
        let uses = self.has_worked || self.some_untold || !share.is_merely_open();
        User { id: self.id, share, uses }
    }

    fn share(&self) -> GpuShare {
        let of = |engine: Engine| self.worked[engine as usize];
        let computing = of(Engine::Graphics).into_iter().chain(of(Engine::Compute));
        GpuShare {
            memory: self.memory,
            utilization: computing.reduce(f64::max),
            encoder: of(Engine::Encode),
            decoder: of(Engine::Decode),
            video: of(Engine::Video),
            copy: of(Engine::Copy),
            ..GpuShare::default()
        }
    }
}

/// The share of their time that engines of one kind worked. A client that was there without a
/// count had none: amdgpu leaves out engines that have done nothing yet.
fn worked(before: &Work, now: &Work, passed: Duration) -> Option<f64> {
    let growth = |before: Option<u64>, now: Option<u64>| {
        now.map(|now| now.saturating_sub(before.unwrap_or(0)))
    };
    let by_time = growth(before.nanoseconds, now.nanoseconds)
        .map(|worked| (worked as f64, passed.as_nanos() as f64));
    let by_cycles = || {
        let worked = growth(before.cycles, now.cycles)?;
        // The card's clock, which tells nothing when it begins again.
        let all = now.total_cycles?.checked_sub(before.total_cycles?)?;
        Some((worked as f64, all as f64))
    };
    let (worked, possible) = by_time.or_else(by_cycles)?;
    let possible = possible * now.capacity.unwrap_or(1).max(1) as f64;
    (possible > 0.0).then(|| (worked / possible).min(1.0))
}

/// What growth is measured from at the next look. A count may go back for a while and then catch
/// up, and the larger one holds until then (drm-usage-stats.rst).
pub(super) fn highest(before: &Work, now: &Work) -> Work {
    Work {
        nanoseconds: before.nanoseconds.max(now.nanoseconds),
        cycles: before.cycles.max(now.cycles),
        total_cycles: now.total_cycles.or(before.total_cycles),
        capacity: now.capacity,
    }
}
