//! What processes of the run have of GPUs, by the files that they have open.
//!
//! Source: `/proc/PID/fdinfo/FD` of descriptors whose link (`/proc/PID/fd/FD`) is below
//! `/dev/dri/`, for the owner of the process and root. They are listed when the open files of a
//! process changed; at each poll only those are read, on cached files.
//!
//! What surprised us: a descriptor may be inherited or passed on, so one client is in many
//! processes. It counts for the oldest. Memory that two clients share is in both, and so counted
//! twice. Reading takes a lock of the client's (amdgpu), so it is not done more often than the GPUs
//! are polled. xe wakes the GPU up for the fdinfo of a client, so none is read while the GPU is
//! suspended, or paused so that it can suspend: `/sys/class/drm/NODE/device` has the GPU of a file
//! without reading it.

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::time::Duration;

use super::device::{DrmDevice, address_of};
use super::usage::{ClientCounts, ClientUsage, highest};
use crate::host::{CachedPath, Descriptors, Dir, ProcPath};
use crate::model::ProcessId;
use crate::parse::drm_fdinfo;

/// Files that are cached of clients; further ones are opened each time.
pub(super) const CACHED_FILES: usize = 64;

/// A client: the PCI address of its GPU, and its number there.
type ClientId = (Vec<u8>, u64);

/// The processes that have files of GPUs open.
pub(super) struct Clients {
    proc: Dir,
    sys: Dir,
    /// Their files, oldest process first.
    open: Vec<(ProcessId, Vec<ClientFile>)>,
    /// Processes whose files we may not read.
    hidden: HashSet<ProcessId>,
    before: HashMap<ClientId, ClientCounts>,
    polled_at: Option<Duration>,
    allowance: Descriptors,
}

/// A file of a GPU that a process has open.
struct ClientFile {
    file: CachedPath,
    /// The PCI address of its GPU, when that is known.
    address: Option<Vec<u8>>,
    /// The number of the client, once it was read.
    number: Option<u64>,
}

impl Clients {
    pub(super) fn new(proc: Dir, sys: Dir) -> Clients {
        Clients {
            proc,
            sys,
            open: Vec::new(),
            hidden: HashSet::new(),
            before: HashMap::new(),
            polled_at: None,
            allowance: Descriptors::at_most(CACHED_FILES),
        }
    }

    /// Whether there is a process of the run whose files we may not read.
    pub(super) fn some_are_hidden(&self) -> bool {
        !self.hidden.is_empty()
    }

    /// Whether this is a process of the run that has a GPU open, or may have. One that computes
    /// has: ROCm allocates memory by the same files.
    pub(super) fn may_be_of(&self, id: ProcessId) -> bool {
        self.hidden.contains(&id) || self.open.iter().any(|(known, _)| *known == id)
    }

    /// Lists the files of the processes that changed, and reads all that are of these GPUs.
    pub(super) fn poll(
        &mut self,
        at: Duration,
        changed: &[ProcessId],
        devices: &[DrmDevice],
        buffer: &mut Vec<u8>,
    ) -> ClientUsage {
        changed.iter().for_each(|id| self.list(*id, buffer));
        let proc = &self.proc;
        self.hidden.retain(|id| proc.has(ProcPath::new(id.pid, "stat").as_c_str()));
        let mut poll = ClientPoll {
            proc,
            devices,
            elapsed: self.polled_at.replace(at).map(|before| at.saturating_sub(before)),
            before: std::mem::take(&mut self.before),
            now: HashMap::new(),
            usage: ClientUsage::default(),
        };
        for (id, files) in &mut self.open {
            files.retain_mut(|file| poll.is_client(*id, file, buffer));
        }
        self.open.retain(|(_, files)| !files.is_empty());
        self.before = poll.now;
        poll.usage
    }

    /// Lists the files of GPUs that a process has open.
    fn list(&mut self, id: ProcessId, buffer: &mut Vec<u8>) {
        let known = self.open.iter().position(|(known, _)| *known == id);
        let mut known = known.map(|index| self.open.remove(index).1).unwrap_or_default();
        self.hidden.remove(&id);
        let mut files = Vec::new();
        let listed = self.proc.each_name(ProcPath::new(id.pid, "fd").as_c_str(), |name| {
            let descriptor = name.to_string_lossy();
            let link = CString::new(format!("{}/fd/{descriptor}", id.pid)).unwrap_or_default();
            let target = self.proc.link(&link);
            let node = target.as_ref().and_then(|target| target.strip_prefix(b"/dev/dri/"));
            let path = CString::new(format!("{}/fdinfo/{descriptor}", id.pid));
            let Some((node, path)) = node.zip(path.ok()) else { return };
            let address = address_of(&self.sys, &String::from_utf8_lossy(node), buffer);
            let is_it = |file: &ClientFile| {
                file.file.path() == &*path && (address.is_none() || file.address == address)
            };
            files.push(match known.iter().position(is_it) {
                Some(index) => known.swap_remove(index),
                None => {
                    let file = CachedPath::new(path, &self.allowance);
                    ClientFile { file, address, number: None }
                }
            });
        });
        match listed {
            Ok(()) if files.is_empty() => {}
            Ok(()) => {
                let age = |id: &ProcessId| (id.started, id.pid);
                let index = self.open.partition_point(|(known, _)| age(known) < age(&id));
                self.open.insert(index, (id, files));
            }
            Err(error) if error.is_denied() => drop(self.hidden.insert(id)),
            // It has exited.
            Err(_) => {}
        }
    }
}

/// A poll that is under way.
struct ClientPoll<'a> {
    proc: &'a Dir,
    devices: &'a [DrmDevice],
    /// Time since the poll before.
    elapsed: Option<Duration>,
    before: HashMap<ClientId, ClientCounts>,
    now: HashMap<ClientId, ClientCounts>,
    usage: ClientUsage,
}

impl ClientPoll<'_> {
    /// Adds the usage by one file of a process, and returns whether it is a file of a selected
    /// GPU.
    fn is_client(&mut self, id: ProcessId, file: &mut ClientFile, buffer: &mut Vec<u8>) -> bool {
        let Some(address) = &file.address else { return self.read(id, file, buffer) };
        match self.devices.iter().find(|device| device.card.address == *address) {
            None => false,
            // A new file on a GPU that is awake: a process has just opened it.
            Some(device) if !device.is_suspended() && file.number.is_none() => {
                self.read(id, file, buffer)
            }
            Some(device) if device.fdinfo_keeps_awake() => {
                self.carry_forward(id, file, address, device.is_suspended())
            }
            Some(_) => self.read(id, file, buffer),
        }
    }

    fn read(&mut self, id: ProcessId, file: &mut ClientFile, buffer: &mut Vec<u8>) -> bool {
        // The process exited, or the descriptor was closed or is another file now.
        let Ok(bytes) = file.file.read(self.proc, buffer) else { return false };
        // What cannot be parsed now may be at the next poll.
        let Ok(client) = drm_fdinfo::parse(bytes) else { return true };
        let Some((address, number)) = client.address.zip(client.number) else { return false };
        let key = (address.to_vec(), number);
        (file.address, file.number) = (Some(key.0.clone()), Some(number));
        let before = self.before.get(&key);
        // A client that is open several times, or was passed on, counts once.
        self.now.entry(key).or_insert_with(|| {
            let usage = self.usage.entry(address, id);
            let device = self.devices.iter().find(|device| device.card.address == address);
            let has_both = device.is_some_and(DrmDevice::uses_system_memory);
            let memory = match (client.local, client.system) {
                (Some(local), Some(system)) if has_both => local.checked_add(system),
                // Memory of the GPU; where it has none of its own, system memory.
                (local, system) => local.or(system),
            };
            usage.add_client(memory, &client.engines);
            let mut engines = client.engines;
            if let Some(before) = before {
                // When a suspended GPU woke up is not known.
                if let Some(elapsed) = self.elapsed.filter(|_| !before.was_suspended) {
                    usage.add_work(&before.engines, &client.engines, elapsed);
                }
                engines =
                    std::array::from_fn(|kind| highest(&before.engines[kind], &engines[kind]));
            }
            ClientCounts { memory, engines, was_suspended: false }
        });
        true
    }

    /// Carries the last values of a client forward whose GPU would wake up, or stay awake.
    fn carry_forward(
        &mut self,
        id: ProcessId,
        file: &ClientFile,
        address: &[u8],
        is_suspended: bool,
    ) -> bool {
        if !self.proc.has(file.file.path()) {
            return false;
        }
        let key = file.number.map(|number| (address.to_vec(), number));
        let known = key.and_then(|key| self.before.get(&key).map(|counts| (key, counts)));
        match known {
            None => self.usage.entry(address, id).add_unread(),
            Some((key, counts)) => {
                self.now.entry(key).or_insert_with(|| {
                    let usage = self.usage.entry(address, id);
                    match is_suspended {
                        true => usage.add_suspended(counts),
                        false => usage.add_client(counts.memory, &counts.engines),
                    }
                    ClientCounts { was_suspended: counts.was_suspended || is_suspended, ..*counts }
                });
            }
        }
        true
    }
}
