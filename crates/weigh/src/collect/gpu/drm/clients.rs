//! What processes of the run have of GPUs, by the files that they have open.
//!
//! Source: `/proc/PID/fdinfo/FD` of descriptors whose link (`/proc/PID/fd/FD`) is below
//! `/dev/dri/`, for the owner of the process and root. Which they are is looked for when a
//! process's files moved; at each look only those are read, on kept descriptors.
//!
//! What surprised us: a descriptor may be inherited or passed on, so one client is seen in many
//! processes. It counts for the one that was there first. Memory that two clients share is told
//! by both, and so it is counted twice. Reading takes a lock of the client's (amdgpu), which
//! is why it is not done oftener than the cards are asked.

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::time::Duration;

use super::super::GpuShare;
use crate::host::{Descriptors, Dir, KeptAt, ProcPath};
use crate::parse::drm_fdinfo::{self, DrmClient, Engine, Work};
use crate::sample::ProcessId;

/// Descriptors that are kept of clients; further ones are opened each time.
pub(super) const KEPT: usize = 64;

/// A client: where its GPU is, and its number there.
type ClientId = (Vec<u8>, u64);

/// The processes that have files of GPUs open.
pub(super) struct Clients {
    /// Their files, oldest process first.
    open: Vec<(ProcessId, Vec<KeptAt>)>,
    /// Processes into whose files we may not look.
    hidden: HashSet<ProcessId>,
    /// What engines had done for each client by the last look.
    before: HashMap<ClientId, [Work; 6]>,
    looked: Option<Duration>,
    allowance: Descriptors,
}

impl Default for Clients {
    fn default() -> Clients {
        Clients {
            open: Vec::new(),
            hidden: HashSet::new(),
            before: HashMap::new(),
            looked: None,
            allowance: Descriptors::at_most(KEPT),
        }
    }
}

/// What one look found.
#[derive(Debug, Default)]
pub(super) struct Using {
    each: Vec<Use>,
    /// Whether there is a process of the run into whose files we may not look.
    pub(super) some_hidden: bool,
}

/// What all clients of one process have of one GPU.
#[derive(Debug)]
struct Use {
    address: Vec<u8>,
    id: ProcessId,
    memory: Option<u64>,
    /// Shares of the time of each kind of engine, as far as they are known.
    worked: [Option<f64>; 6],
}

impl Using {
    /// The processes on the card of this address.
    pub(super) fn of(&self, address: &[u8]) -> Vec<(ProcessId, GpuShare)> {
        let here = self.each.iter().filter(|one| one.address == address);
        here.map(|one| (one.id, one.share())).collect()
    }

    fn by(&mut self, address: &[u8], id: ProcessId) -> &mut Use {
        let is_it = |one: &Use| one.address == address && one.id == id;
        let place = self.each.iter().position(is_it).unwrap_or_else(|| {
            let address = address.to_vec();
            self.each.push(Use { address, id, memory: None, worked: [None; 6] });
            self.each.len() - 1
        });
        &mut self.each[place]
    }
}

impl Use {
    /// Memory on the GPU; where that has none of its own, memory of the machine.
    fn add_memory(&mut self, client: &DrmClient) {
        if let Some(bytes) = client.local.or(client.system) {
            self.memory = Some(self.memory.unwrap_or(0).saturating_add(bytes));
        }
    }

    /// What engines did since the last look.
    fn add_work(&mut self, before: &[Work; 6], now: &[Work; 6], passed: Duration) {
        for ((sum, before), now) in self.worked.iter_mut().zip(before).zip(now) {
            if let Some(share) = worked(before, now, passed) {
                // What is done on two queues at once is done in the time of one.
                *sum = Some((sum.unwrap_or(0.0) + share).min(1.0));
            }
        }
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

impl Clients {
    /// Looks for files of GPUs where files moved, and reads all of them.
    pub(super) fn look(
        &mut self,
        proc: &Dir,
        at: Duration,
        moved: &[ProcessId],
        buffer: &mut Vec<u8>,
    ) -> Using {
        moved.iter().for_each(|id| self.list(proc, *id));
        self.hidden.retain(|id| proc.has(ProcPath::new(id.pid, "stat").as_c_str()));
        let passed = self.looked.replace(at).map(|before| at.saturating_sub(before));
        let before = std::mem::take(&mut self.before);
        let mut using = Using { some_hidden: !self.hidden.is_empty(), ..Using::default() };
        let now = &mut self.before;
        for (id, files) in &mut self.open {
            files.retain_mut(|file| {
                // A process that ended, a descriptor that was closed, or one that is another
                // file now.
                let Ok(bytes) = file.read(proc, buffer) else { return false };
                // What cannot be read now may be at the next look.
                let Ok(client) = drm_fdinfo::parse(bytes) else { return true };
                let Some((address, number)) = client.address.zip(client.number) else {
                    return false;
                };
                let key = (address.to_vec(), number);
                let earlier = before.get(&key).zip(passed);
                // Whoever has it open again, or was given it, has it not for itself.
                now.entry(key).or_insert_with(|| {
                    let using = using.by(address, *id);
                    using.add_memory(&client);
                    let Some((before, passed)) = earlier else { return client.engines };
                    using.add_work(before, &client.engines, passed);
                    std::array::from_fn(|kind| highest(&before[kind], &client.engines[kind]))
                });
                true
            });
        }
        self.open.retain(|(_, files)| !files.is_empty());
        using
    }

    /// Looks for the files of GPUs that a process has open.
    fn list(&mut self, proc: &Dir, id: ProcessId) {
        self.open.retain(|(known, _)| *known != id);
        self.hidden.remove(&id);
        let mut files = Vec::new();
        let listed = proc.each_name(ProcPath::new(id.pid, "fd").as_c_str(), |name| {
            let descriptor = name.to_string_lossy();
            let link = CString::new(format!("{}/fd/{descriptor}", id.pid)).unwrap_or_default();
            if proc.link(&link).is_some_and(|target| target.starts_with(b"/dev/dri/")) {
                let path = format!("{}/fdinfo/{descriptor}", id.pid);
                files.extend(CString::new(path).map(|path| KeptAt::new(path, &self.allowance)));
            }
        });
        match listed {
            Ok(()) if files.is_empty() => {}
            Ok(()) => {
                let age = |id: &ProcessId| (id.started, id.pid);
                let place = self.open.partition_point(|(known, _)| age(known) < age(&id));
                self.open.insert(place, (id, files));
            }
            Err(error) if error.is_denied() => drop(self.hidden.insert(id)),
            // It has ended.
            Err(_) => {}
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
fn highest(before: &Work, now: &Work) -> Work {
    Work {
        nanoseconds: before.nanoseconds.max(now.nanoseconds),
        cycles: before.cycles.max(now.cycles),
        total_cycles: now.total_cycles.or(before.total_cycles),
        capacity: now.capacity,
    }
}
