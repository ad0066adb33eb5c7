//! What processes have of AMD's GPUs for computing (ROCm), whoever they are.
//!
//! Source: `/sys/class/kfd/kfd/proc/PID/{vram_GPU,stats_GPU/cu_occupancy}` and
//! `/sys/class/kfd/kfd/topology/nodes/`, for everybody.
//!
//! What surprised us: `fdinfo` does not count the time of queues that programs fill by
//! themselves, as ROCm's do, so how much of a GPU computes for somebody is told here alone. The
//! memory is in `fdinfo`'s, too: the larger of both counts, not the sum. `cu_occupancy` is no
//! number that the kernel has: it asks every shader engine of the card, register by register and
//! under the driver's locks. So it is read for processes of the run alone, and others have their
//! memory. `sdma_GPU` is not read, because it makes the kernel walk through the queues of the
//! process under its locks. The pids are those of the machine.

use std::ffi::{CStr, CString};

use super::super::pids::Pids;
use super::super::visible::{self, Nodes};
use super::clients::Clients;
use super::using::User;
use crate::catalog::metrics::GpuShare;
use crate::host::{Dir, Error};
use crate::model::ProcessId;
use crate::parse::attribute;

const PROCESSES: &CStr = c"class/kfd/kfd/proc";

/// A GPU, or a part of one, as the driver for computing knows it.
#[derive(Debug, PartialEq, Eq)]
struct Node {
    /// Its number in the names of files.
    number: u64,
    /// Where it is on the bus.
    address: Vec<u8>,
    compute_units: Option<u64>,
    /// What ROCm calls it.
    uuid: Option<String>,
}

impl Node {
    /// What a process has of it. A file of a GPU that it does not use says zero, or is not there.
    fn share(
        &self,
        sys: &Dir,
        pid: u32,
        is_of_the_run: bool,
        buffer: &mut Vec<u8>,
    ) -> Option<GpuShare> {
        let directory = format!("class/kfd/kfd/proc/{pid}");
        let memory = number(sys, &format!("{directory}/vram_{}", self.number), buffer);
        let memory = memory.filter(|bytes| *bytes > 0)?;
        let path = format!("{directory}/stats_{}/cu_occupancy", self.number);
        let occupied = self.compute_units.filter(|_| is_of_the_run);
        let occupied = occupied.and_then(|all| Some((number(sys, &path, buffer)?, all)));
        let occupancy = occupied.filter(|(taken, all)| taken <= all && *all > 0);
        Some(GpuShare {
            memory: Some(memory),
            occupancy: occupancy.map(|(taken, all)| taken as f64 / all as f64),
            ..GpuShare::default()
        })
    }
}

/// All GPUs that compute.
#[derive(Debug)]
pub(super) struct Kfd {
    /// In the order of their numbers.
    nodes: Vec<Node>,
    /// Whether there are some that a control group hides.
    some_hidden: bool,
    pids: Pids,
}

/// Who computes, found at one look: on which GPU, who it is in our `/proc`, and what it has.
#[derive(Debug, Default)]
pub(super) struct Computing {
    each: Vec<(Vec<u8>, Option<ProcessId>, GpuShare)>,
}

impl Kfd {
    /// Looks which GPUs there are.
    pub(super) fn find(sys: &Dir, proc: &Dir, buffer: &mut Vec<u8>) -> Kfd {
        let listed = sys.names(c"class/kfd/kfd/topology/nodes").unwrap_or_default();
        let mut places: Vec<u64> =
            listed.iter().filter_map(|name| name.to_str().ok()?.parse().ok()).collect();
        // As ROCm counts them: "10" is behind "2".
        places.sort_unstable();
        let (mut nodes, mut some_hidden) = (Vec::new(), false);
        for place in places {
            match node(sys, place, buffer) {
                Ok(node) => nodes.extend(node),
                Err(error) => some_hidden |= error.is_denied(),
            }
        }
        Kfd { nodes, some_hidden, pids: Pids::of(proc) }
    }

    /// What ROCm sees of these cards.
    pub(super) fn nodes(&self, cards: &[&[u8]]) -> Nodes {
        let each = self.nodes.iter().map(|node| visible::Node {
            card: cards.iter().position(|address| *address == node.address),
            uuid: node.uuid.clone(),
        });
        Nodes { each: each.collect(), some_hidden: self.some_hidden }
    }

    /// Looks who computes. In a container that has only its own pids nobody can be told from
    /// another, and nobody is.
    pub(super) fn look(
        &self,
        sys: &Dir,
        proc: &Dir,
        clients: &Clients,
        buffer: &mut Vec<u8>,
    ) -> Computing {
        let mut computing = Computing::default();
        if self.nodes.is_empty() || matches!(self.pids, Pids::Foreign(_)) {
            return computing;
        }
        for name in sys.names(PROCESSES).unwrap_or_default() {
            let Some(pid) = name.to_str().ok().and_then(|name| name.parse().ok()) else { continue };
            let id = self.pids.process(proc, pid, buffer);
            let is_of_the_run = id.is_some_and(|id| clients.are_of(id));
            let first = computing.each.len();
            for node in &self.nodes {
                let Some(share) = node.share(sys, pid, is_of_the_run, buffer) else { continue };
                let mut theirs = computing.each[first..].iter_mut();
                match theirs.find(|(address, ..)| *address == node.address) {
                    // Parts of one card, each a node, with units that are not the card's.
                    Some((.., whole)) => {
                        let memory = whole.memory.zip(share.memory);
                        whole.memory = memory.map(|(one, other)| one.saturating_add(other));
                        whole.occupancy = None;
                    }
                    None => computing.each.push((node.address.clone(), id, share)),
                }
            }
        }
        computing
    }
}

impl Computing {
    fn on<'a>(&'a self, address: &'a [u8]) -> impl Iterator<Item = (Option<ProcessId>, GpuShare)> {
        let here = self.each.iter().filter(move |(place, ..)| place == address);
        here.map(|(_, id, share)| (*id, *share))
    }

    /// How many on the card of this address are nobody that we see.
    pub(super) fn unknown(&self, address: &[u8]) -> u64 {
        self.on(address).filter(|(id, _)| id.is_none()).count() as u64
    }

    /// Adds those on the card of this address to those who are known to use it.
    /// What they have there they have asked for, however little it is.
    pub(super) fn add_to(&self, address: &[u8], users: &mut Vec<User>) {
        for (id, computes) in self.on(address) {
            let Some(id) = id else { continue };
            match users.iter_mut().find(|user| user.id == id) {
                Some(User { share, uses, .. }) => {
                    share.memory = share.memory.max(computes.memory);
                    share.occupancy = computes.occupancy;
                    *uses = true;
                }
                None => users.push(User { id, share: computes, uses: true }),
            }
        }
    }
}

/// Reads a node; nothing when it has no GPU. Processors are nodes, too, of the number zero.
fn node(sys: &Dir, place: u64, buffer: &mut Vec<u8>) -> Result<Option<Node>, Error> {
    let path = |file: &str| {
        CString::new(format!("class/kfd/kfd/topology/nodes/{place}/{file}")).unwrap_or_default()
    };
    let number = attribute::number(sys.read(&path("gpu_id"), buffer)?).unwrap_or(0);
    let properties = sys.read(&path("properties"), buffer)?;
    let property = |key| attribute::line_value(properties, key)?.parse::<u64>().ok();
    let engines = property("simd_count ");
    if number == 0 || engines == Some(0) {
        return Ok(None);
    }
    let units = engines.zip(property("simd_per_cu "));
    let compute_units = units.and_then(|(all, per_unit)| all.checked_div(per_unit));
    let on_bus = property("location_id ").map(|on_bus| (property("domain ").unwrap_or(0), on_bus));
    let address = on_bus.map(|(domain, on_bus)| address(domain, on_bus)).unwrap_or_default();
    let unique = property("unique_id ").filter(|unique| *unique > 0);
    let uuid = unique.map(|unique| format!("GPU-{unique:016x}"));
    Ok(Some(Node { number, address, compute_units, uuid }))
}

fn number(sys: &Dir, path: &str, buffer: &mut Vec<u8>) -> Option<u64> {
    let path = CString::new(path).ok()?;
    attribute::number(sys.read(&path, buffer).ok()?).ok()
}

/// Where a GPU is on the bus, as everybody else writes it. The upper half of the place is the
/// number of the part, of a card that is divided.
fn address(domain: u64, place: u64) -> Vec<u8> {
    let (bus, device, function) = (place >> 8 & 0xff, place >> 3 & 0x1f, place & 7);
    format!("{domain:04x}:{bus:02x}:{device:02x}.{function}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::{FakeHost, as_unprivileged};

    #[test]
    fn nodes_are_in_the_order_of_their_numbers_and_those_that_are_hidden_are_noticed() {
        let mut fake = FakeHost::new();
        for (place, number, bus) in [(0, 0, 0), (2, 7, 0x41), (10, 9, 0x29), (11, 8, 0x42)] {
            let directory = format!("class/kfd/kfd/topology/nodes/{place}");
            let properties = format!("simd_count 440\nlocation_id {}\nunique_id 255\n", bus << 8);
            fake = fake
                .sys(&format!("{directory}/gpu_id"), &format!("{number}\n"))
                .sys(&format!("{directory}/properties"), &properties);
        }
        let find = || Kfd::find(&fake.host().sys, &fake.host().proc, &mut Vec::new());
        assert!(!find().nodes(&[]).some_hidden);
        fake.deny_sys("class/kfd/kfd/topology/nodes/11/gpu_id");
        let nodes = as_unprivileged(|| find().nodes(&[b"0000:29:00.0", b"0000:41:00.0"]));
        let cards: Vec<_> = nodes.each.iter().map(|node| node.card).collect();
        assert_eq!((cards.as_slice(), nodes.some_hidden), (&[Some(1), Some(0)][..], true));
        assert_eq!(nodes.each[0].uuid.as_deref(), Some("GPU-00000000000000ff"));
    }

    #[test]
    fn places_are_written_as_the_bus_writes_them() {
        assert_eq!(address(0, 0x2900), b"0000:29:00.0");
        assert_eq!(address(1, 0x1000_c1fb), b"0001:c1:1f.3");
    }
}
