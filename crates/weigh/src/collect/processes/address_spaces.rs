//! Processes that share one address space: their memory is counted once.
//!
//! A vfork child (posix_spawn, CPython's subprocess, Go, Java) uses its parent's memory until exec,
//! and `/proc` shows all of it as its own. The kernel is queried ([`crate::host::AddressSpaces`])
//! before the process is read: a process with an address space of its own keeps it, so it is
//! checked once, and one that shares is checked at every tick until it does not.
//!
//! Where kcmp is refused, two processes whose `status` has the same memory to the kilobyte share
//! it: after a fork the parent's page tables are copied only in part.

use super::ProcessCollector;
use crate::collect::process::Sharing;
use crate::host::{Host, ProcPath};
use crate::model::ProcessId;

impl ProcessCollector {
    /// Updates which processes share an address space, where that may have changed.
    pub(super) fn update_address_spaces(&mut self, host: &Host) {
        // Old owners that left an address space, and the processes that are counted instead.
        let mut successors: Vec<(ProcessId, ProcessId)> = Vec::new();
        // In order of start: a parent is decided before its children.
        for place in 0..self.list.len() {
            let (id, before) = (self.list[place].id, self.list[place].sharing);
            let now = match before {
                Sharing::NotShared => continue,
                Sharing::Unknown => self.shared_by_child(host, id, self.list[place].parent),
                Sharing::With(owner) => {
                    let others = successors.iter().filter(|(left, _)| *left == owner);
                    let mut owners =
                        std::iter::once(owner).chain(others.map(|(_, successor)| *successor));
                    owners
                        .find(|one| self.is_shared(host, id, *one))
                        .map_or(Sharing::NotShared, Sharing::With)
                }
            };
            if let (Sharing::With(owner), Sharing::NotShared) = (before, now) {
                successors.push((owner, id));
                // Its memory is not known yet, and it may be asleep.
                self.list[place].force_next_read();
            }
            if before != now {
                self.pss_uss.note_change();
            }
            self.list[place].sharing = now;
        }
    }

    /// The sharing of a process that has not been compared with its parent yet.
    fn shared_by_child(&self, host: &Host, id: ProcessId, parent: u32) -> Sharing {
        let parent = self.list.iter().find(|process| process.id.pid == parent);
        match parent.filter(|parent| self.is_shared(host, id, parent.id)) {
            Some(parent) => match parent.sharing {
                Sharing::With(owner) => Sharing::With(owner),
                _ => Sharing::With(parent.id),
            },
            None => Sharing::NotShared,
        }
    }

    /// Whether two measured processes share one address space.
    fn is_shared(&self, host: &Host, child: ProcessId, owner: ProcessId) -> bool {
        if !self.list.iter().any(|process| process.id == owner) {
            return false;
        }
        match host.address_spaces.is_shared(child.pid, owner.pid) {
            Ok(is_shared) => is_shared,
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => false,
            Err(_) => have_same_memory(host, child.pid, owner.pid),
        }
    }
}

/// Whether `status` has the same memory for two processes. Threads of the owner may run meanwhile,
/// so it is read until it is stable.
fn have_same_memory(host: &Host, child: u32, owner: u32) -> bool {
    const TRIES: usize = 3;
    let memory = |pid: u32| {
        let mut buffer = Vec::new();
        let status = host.proc.read(ProcPath::new(pid, "status").as_c_str(), &mut buffer).ok()?;
        memory_lines(status).map(<[u8]>::to_vec)
    };
    for _ in 0..TRIES {
        let (before, of_child, after) = (memory(owner), memory(child), memory(owner));
        if before.is_none() || of_child.is_none() || before == after {
            return of_child.is_some() && of_child == before;
        }
    }
    false
}

/// The lines of `status` from `VmPeak` to `Threads`; a zombie has none.
fn memory_lines(status: &[u8]) -> Option<&[u8]> {
    let line = |key: &[u8]| status.windows(key.len()).position(|bytes| bytes == key);
    let (first, last) = (line(b"\nVmPeak:")?, line(b"\nThreads:")?);
    status.get(first..last)
}
