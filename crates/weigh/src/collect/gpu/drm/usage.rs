//! What processes have of GPUs: the usage of clients, summed by process and GPU.
//!
//! Counters of a client's engines become shares of the time between two polls.

use std::time::Duration;

use crate::catalog::metrics::GpuProcessUsage;
use crate::model::ProcessId;
use crate::parse::drm_fdinfo::{Engine, Work};

/// A client at the last poll.
#[derive(Clone, Copy)]
pub(super) struct ClientCounts {
    pub(super) memory: Option<u64>,
    /// Counters that deltas are taken from.
    pub(super) engines: [Work; 6],
    /// Whether its GPU was suspended at that poll, so that it was not read.
    pub(super) was_suspended: bool,
}

/// The usage of all clients at one poll.
#[derive(Debug, Default)]
pub(super) struct ClientUsage {
    each: Vec<ProcessUsage>,
}

/// The usage of one GPU by all clients of one process.
#[derive(Debug)]
pub(super) struct ProcessUsage {
    address: Vec<u8>,
    id: ProcessId,
    memory: Option<u64>,
    /// Utilization of each kind of engine, as far as it is known.
    worked: [Option<f64>; 6],
    /// Whether any engine ever worked for it.
    has_worked: bool,
    /// Whether one of its clients was not read yet.
    some_unread: bool,
}

/// A process on a GPU.
#[derive(Debug)]
pub(super) struct DrmProcess {
    pub(super) id: ProcessId,
    pub(super) share: GpuProcessUsage,
    /// Whether it used the GPU, or may have. Others only have it open.
    pub(super) uses: bool,
}

impl ClientUsage {
    /// The processes on the GPU of this address, without those that only opened it.
    pub(super) fn on(&self, address: &[u8]) -> Vec<DrmProcess> {
        let here = self.each.iter().filter(|one| one.address == address);
        here.filter(|one| !one.has_nothing()).map(ProcessUsage::process).collect()
    }

    /// The usage of the GPU of this address by a process, so far.
    pub(super) fn entry(&mut self, address: &[u8], id: ProcessId) -> &mut ProcessUsage {
        let is_it = |one: &ProcessUsage| one.address == address && one.id == id;
        let index = self.each.iter().position(is_it).unwrap_or_else(|| {
            self.each.push(ProcessUsage {
                address: address.to_vec(),
                id,
                memory: None,
                worked: [None; 6],
                has_worked: false,
                some_unread: false,
            });
            self.each.len() - 1
        });
        &mut self.each[index]
    }
}

impl ProcessUsage {
    /// One of its clients was not read yet.
    pub(super) fn add_unread(&mut self) {
        self.some_unread = true;
    }

    /// Adds a client with this memory and these counters of engines.
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

    /// Adds a client whose GPU is suspended: its memory stays, and engines are idle. How long they
    /// worked before the GPU was suspended is not known.
    pub(super) fn add_suspended(&mut self, client: &ClientCounts) {
        self.add_client(client.memory, &client.engines);
        for (sum, work) in self.worked.iter_mut().zip(&client.engines) {
            if client.was_suspended && work.cycles.or(work.nanoseconds).is_some() {
                sum.get_or_insert(0.0);
            }
        }
    }

    /// Adds what engines did since the last poll.
    pub(super) fn add_work(&mut self, before: &[Work; 6], now: &[Work; 6], elapsed: Duration) {
        for ((sum, before), now) in self.worked.iter_mut().zip(before).zip(now) {
            if let Some(share) = worked(before, now, elapsed) {
                // Work on two queues at once takes the time of one.
                *sum = Some((sum.unwrap_or(0.0) + share).min(1.0));
            }
        }
    }

    fn has_nothing(&self) -> bool {
        !self.has_worked && !self.some_unread && self.memory.unwrap_or(0) == 0
    }

    fn process(&self) -> DrmProcess {
        let share = self.share();
        let uses = self.has_worked || self.some_unread || !share.is_merely_open();
        DrmProcess { id: self.id, share, uses }
    }

    fn share(&self) -> GpuProcessUsage {
        let of = |engine: Engine| self.worked[engine as usize];
        let computing = of(Engine::Graphics).into_iter().chain(of(Engine::Compute));
        GpuProcessUsage {
            memory: self.memory,
            utilization: computing.reduce(f64::max),
            encoder: of(Engine::Encode),
            decoder: of(Engine::Decode),
            video: of(Engine::Video),
            copy: of(Engine::Copy),
            ..GpuProcessUsage::default()
        }
    }
}

/// Utilization of the engines of one kind. A client without a counter before had none: amdgpu
/// leaves out engines that were never used.
fn worked(before: &Work, now: &Work, elapsed: Duration) -> Option<f64> {
    let delta = |before: Option<u64>, now: Option<u64>| {
        now.map(|now| now.saturating_sub(before.unwrap_or(0)))
    };
    let by_time = delta(before.nanoseconds, now.nanoseconds)
        .map(|worked| (worked as f64, elapsed.as_nanos() as f64));
    let by_cycles = || {
        let worked = delta(before.cycles, now.cycles)?;
        // The GPU's clock; nothing after a reset.
        let all = now.total_cycles?.checked_sub(before.total_cycles?)?;
        Some((worked as f64, all as f64))
    };
    let (worked, possible) = by_time.or_else(by_cycles)?;
    let possible = possible * now.capacity.unwrap_or(1).max(1) as f64;
    (possible > 0.0).then(|| (worked / possible).min(1.0))
}

/// The counters for the next delta. One may go back for a while and then catch up; the larger
/// value holds until then (drm-usage-stats.rst).
pub(super) fn highest(before: &Work, now: &Work) -> Work {
    Work {
        nanoseconds: before.nanoseconds.max(now.nanoseconds),
        cycles: before.cycles.max(now.cycles),
        total_cycles: now.total_cycles.or(before.total_cycles),
        capacity: now.capacity,
    }
}
