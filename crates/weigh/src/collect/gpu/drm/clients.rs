//! What processes of the run have of GPUs, by the files that they have open.
//!
//! Source: `/proc/PID/fdinfo/FD` of descriptors whose link (`/proc/PID/fd/FD`) is below
//! `/dev/dri/`, for the owner of the process and root. Which they are is looked for when a
//! process's files moved; at each look only those are read, on kept descriptors.
//!
//! What surprised us: a descriptor may be inherited or passed on, so one client is seen in many
//! processes. It counts for the one that was there first. Memory that two clients share is told
//! by both, and so it is counted twice. Reading takes a lock of the client's (amdgpu), which
//! is why it is not done oftener than the cards are asked. xe wakes a card up to say what it did
//! for a client, so nobody is asked while the card sleeps, or is left alone so that it can: which
//! card a file is of is told by `/sys/class/drm/NODE/device`, without reading it.

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::time::Duration;

use super::card::{Card, address_of};
use super::using::{Seen, Using, highest};
use crate::host::{CachedPath, Descriptors, Dir, ProcPath};
use crate::model::ProcessId;
use crate::parse::drm_fdinfo;

/// Descriptors that are kept of clients; further ones are opened each time.
pub(super) const KEPT: usize = 64;

/// A client: where its GPU is, and its number there.
type ClientId = (Vec<u8>, u64);

/// The processes that have files of GPUs open.
pub(super) struct Clients {
    proc: Dir,
    sys: Dir,
    /// Their files, oldest process first.
    open: Vec<(ProcessId, Vec<ClientFile>)>,
    /// Processes into whose files we may not look.
    hidden: HashSet<ProcessId>,
    before: HashMap<ClientId, Seen>,
    looked: Option<Duration>,
    allowance: Descriptors,
}

/// A file of a GPU that a process has open.
struct ClientFile {
    file: CachedPath,
    /// Where its card is on the bus, when that is known.
    address: Option<Vec<u8>>,
    /// Which of that card's clients it is, when it was read.
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
            looked: None,
            allowance: Descriptors::at_most(KEPT),
        }
    }

    /// Whether there is a process of the run into whose files we may not look.
    pub(super) fn some_are_hidden(&self) -> bool {
        !self.hidden.is_empty()
    }

    /// Whether this is a process of the run that has a GPU open, or may have. Who computes has:
    /// ROCm gets its memory by the same files.
    pub(super) fn are_of(&self, id: ProcessId) -> bool {
        self.hidden.contains(&id) || self.open.iter().any(|(known, _)| *known == id)
    }

    /// Looks for files of GPUs where files moved, and reads all of those that are of these cards.
    pub(super) fn look(
        &mut self,
        at: Duration,
        moved: &[ProcessId],
        cards: &[Card],
        buffer: &mut Vec<u8>,
    ) -> Using {
        moved.iter().for_each(|id| self.list(*id, buffer));
        let proc = &self.proc;
        self.hidden.retain(|id| proc.has(ProcPath::new(id.pid, "stat").as_c_str()));
        let mut looking = Looking {
            proc,
            cards,
            passed: self.looked.replace(at).map(|before| at.saturating_sub(before)),
            before: std::mem::take(&mut self.before),
            now: HashMap::new(),
            using: Using::default(),
        };
        for (id, files) in &mut self.open {
            files.retain_mut(|file| looking.is_client(*id, file, buffer));
        }
        self.open.retain(|(_, files)| !files.is_empty());
        self.before = looking.now;
        looking.using
    }

    /// Looks for the files of GPUs that a process has open.
    fn list(&mut self, id: ProcessId, buffer: &mut Vec<u8>) {
        let known = self.open.iter().position(|(known, _)| *known == id);
        let mut known = known.map(|place| self.open.remove(place).1).unwrap_or_default();
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
                Some(place) => known.swap_remove(place),
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
                let place = self.open.partition_point(|(known, _)| age(known) < age(&id));
                self.open.insert(place, (id, files));
            }
            Err(error) if error.is_denied() => drop(self.hidden.insert(id)),
            // It has ended.
            Err(_) => {}
        }
    }
}

/// A look that is under way.
struct Looking<'a> {
    proc: &'a Dir,
    cards: &'a [Card],
    /// Time since the look before.
    passed: Option<Duration>,
    before: HashMap<ClientId, Seen>,
    now: HashMap<ClientId, Seen>,
    using: Using,
}

impl Looking<'_> {
    /// Takes in what a process has by one of its files, and tells whether that is a file of a card
    /// that is asked.
    fn is_client(&mut self, id: ProcessId, file: &mut ClientFile, buffer: &mut Vec<u8>) -> bool {
        let Some(address) = &file.address else { return self.read(id, file, buffer) };
        match self.cards.iter().find(|card| card.place.address == *address) {
            None => false,
            // A file that is new on a card that is awake: somebody has just opened it.
            Some(card) if !card.is_asleep() && file.number.is_none() => self.read(id, file, buffer),
            Some(card) if card.minds_clients() => {
                self.pass_over(id, file, address, card.is_asleep())
            }
            Some(_) => self.read(id, file, buffer),
        }
    }

    fn read(&mut self, id: ProcessId, file: &mut ClientFile, buffer: &mut Vec<u8>) -> bool {
        // A process that ended, a descriptor that was closed, or one that is another file now.
        let Ok(bytes) = file.file.read(self.proc, buffer) else { return false };
        // What cannot be read now may be at the next look.
        let Ok(client) = drm_fdinfo::parse(bytes) else { return true };
        let Some((address, number)) = client.address.zip(client.number) else { return false };
        let key = (address.to_vec(), number);
        (file.address, file.number) = (Some(key.0.clone()), Some(number));
        let before = self.before.get(&key);
        // Whoever has it open again, or was given it, has it not for itself.
        self.now.entry(key).or_insert_with(|| {
            let using = self.using.by(address, id);
            let card = self.cards.iter().find(|card| card.place.address == address);
            let has_both = card.is_some_and(Card::has_memory_of_the_machine);
            let memory = match (client.local, client.system) {
                (Some(local), Some(system)) if has_both => local.checked_add(system),
                // Memory on the GPU; where that has none of its own, memory of the machine.
                (local, system) => local.or(system),
            };
            using.add_client(memory, &client.engines);
            let mut engines = client.engines;
            if let Some(before) = before {
                // Of a card that slept nobody knows when it awoke.
                if let Some(passed) = self.passed.filter(|_| !before.slept) {
                    using.add_work(&before.engines, &client.engines, passed);
                }
                engines =
                    std::array::from_fn(|kind| highest(&before.engines[kind], &engines[kind]));
            }
            Seen { memory, engines, slept: false }
        });
        true
    }

    /// Takes what was known of a client whose card would wake up, or stay awake.
    fn pass_over(
        &mut self,
        id: ProcessId,
        file: &ClientFile,
        address: &[u8],
        is_asleep: bool,
    ) -> bool {
        if !self.proc.has(file.file.path()) {
            return false;
        }
        let key = file.number.map(|number| (address.to_vec(), number));
        let known = key.and_then(|key| self.before.get(&key).map(|seen| (key, seen)));
        match known {
            None => self.using.by(address, id).add_untold(),
            Some((key, seen)) => {
                self.now.entry(key).or_insert_with(|| {
                    let using = self.using.by(address, id);
                    match is_asleep {
                        true => using.add_asleep(seen),
                        false => using.add_client(seen.memory, &seen.engines),
                    }
                    Seen { slept: seen.slept || is_asleep, ..*seen }
                });
            }
        }
        true
    }
}
