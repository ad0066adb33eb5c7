//! What processes have of AMD's GPUs for computing (ROCm), also those of other users.
//!
//! Source: `/sys/class/kfd/kfd/proc/PID/{vram_GPU,stats_GPU/cu_occupancy}` and
//! `/sys/class/kfd/kfd/topology/nodes/`, for all users.
//!
//! What surprised us: `fdinfo` does not count the time of user-mode queues, as ROCm's are, so the
//! occupancy by a process is found here alone. The memory is in `fdinfo`'s, too: the larger of both
//! counts, not the sum. `cu_occupancy` is not a counter of the kernel: it reads every shader engine
//! of the GPU, register by register and under the driver's locks. So it is read for processes of
//! the run alone, and of others only the memory. `sdma_GPU` is not read, because it makes the
//! kernel walk through the queues of the process under its locks. The pids are those of the
//! machine.

use std::ffi::{CStr, CString};

use super::super::pids::Pids;
use super::super::visible::{RocmNode, RocmNodes};
use super::clients::Clients;
use super::usage::DrmProcess;
use crate::catalog::metrics::GpuProcessUsage;
use crate::host::{Dir, Error};
use crate::model::ProcessId;
use crate::parse::attribute;

const PROCESSES: &CStr = c"class/kfd/kfd/proc";

/// A GPU, or a partition of one, as KFD lists it.
#[derive(Debug, PartialEq, Eq)]
struct KfdNode {
    /// Its number in file names.
    gpu_id: u64,
    /// Its PCI address.
    address: Vec<u8>,
    compute_units: Option<u64>,
    /// Its UUID, as ROCm has it.
    uuid: Option<String>,
}

impl KfdNode {
    /// What a process has of it. The file of a GPU that it does not use is zero, or missing.
    fn share(
        &self,
        sys: &Dir,
        pid: u32,
        is_of_the_run: bool,
        buffer: &mut Vec<u8>,
    ) -> Option<GpuProcessUsage> {
        let directory = format!("class/kfd/kfd/proc/{pid}");
        let memory = number(sys, &format!("{directory}/vram_{}", self.gpu_id), buffer);
        let memory = memory.filter(|bytes| *bytes > 0)?;
        let path = format!("{directory}/stats_{}/cu_occupancy", self.gpu_id);
        let occupied = self.compute_units.filter(|_| is_of_the_run);
        let occupied = occupied.and_then(|all| Some((number(sys, &path, buffer)?, all)));
        let occupancy = occupied.filter(|(units, all)| units <= all && *all > 0);
        Some(GpuProcessUsage {
            memory: Some(memory),
            occupancy: occupancy.map(|(units, all)| units as f64 / all as f64),
            ..GpuProcessUsage::default()
        })
    }
}

/// All nodes of KFD.
#[derive(Debug)]
pub(super) struct Kfd {
    /// In the order of their numbers.
    nodes: Vec<KfdNode>,
    /// Whether a cgroup hides others.
    some_hidden: bool,
    pids: Pids,
}

/// The processes of KFD at one poll: PCI address of the GPU, process in our `/proc`, and share.
#[derive(Debug, Default)]
pub(super) struct KfdProcesses {
    each: Vec<(Vec<u8>, Option<ProcessId>, GpuProcessUsage)>,
}

impl Kfd {
    /// Lists the nodes.
    pub(super) fn open(sys: &Dir, proc: &Dir, buffer: &mut Vec<u8>) -> Kfd {
        let listed = sys.names(c"class/kfd/kfd/topology/nodes").unwrap_or_default();
        let mut numbers: Vec<u64> =
            listed.iter().filter_map(|name| name.to_str().ok()?.parse().ok()).collect();
        // In ROCm's order: "10" is after "2".
        numbers.sort_unstable();
        let (mut nodes, mut some_hidden) = (Vec::new(), false);
        for number in numbers {
            match read_node(sys, number, buffer) {
                Ok(node) => nodes.extend(node),
                Err(error) => some_hidden |= error.is_denied(),
            }
        }
        Kfd { nodes, some_hidden, pids: Pids::of(proc) }
    }

    /// The nodes that ROCm sees of the GPUs with these addresses.
    pub(super) fn nodes(&self, gpus: &[&[u8]]) -> RocmNodes {
        let each = self.nodes.iter().map(|node| RocmNode {
            gpu: gpus.iter().position(|address| *address == node.address),
            uuid: node.uuid.clone(),
        });
        RocmNodes { each: each.collect(), some_hidden: self.some_hidden }
    }

    /// Lists the processes. In a container that has only its own pids none can be resolved, and
    /// none is listed.
    pub(super) fn poll(
        &self,
        sys: &Dir,
        proc: &Dir,
        clients: &Clients,
        buffer: &mut Vec<u8>,
    ) -> KfdProcesses {
        let mut computing = KfdProcesses::default();
        if self.nodes.is_empty() || matches!(self.pids, Pids::Foreign(_)) {
            return computing;
        }
        for name in sys.names(PROCESSES).unwrap_or_default() {
            let Some(pid) = name.to_str().ok().and_then(|name| name.parse().ok()) else { continue };
            let id = self.pids.resolve(proc, pid, buffer);
            let is_of_the_run = id.is_some_and(|id| clients.may_be_of(id));
            let first = computing.each.len();
            for node in &self.nodes {
                let Some(share) = node.share(sys, pid, is_of_the_run, buffer) else { continue };
                let mut of_process = computing.each[first..].iter_mut();
                match of_process.find(|(address, ..)| *address == node.address) {
                    // Partitions of one GPU, each a node; their units are not those of the GPU.
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

impl KfdProcesses {
    fn on<'a>(
        &'a self,
        address: &'a [u8],
    ) -> impl Iterator<Item = (Option<ProcessId>, GpuProcessUsage)> {
        let here = self.each.iter().filter(move |(gpu, ..)| gpu == address);
        here.map(|(_, id, share)| (*id, *share))
    }

    /// How many on the GPU of this address are not in our `/proc`.
    pub(super) fn unknown(&self, address: &[u8]) -> u64 {
        self.on(address).filter(|(id, _)| id.is_none()).count() as u64
    }

    /// Adds those on the GPU of this address to those that are known to use it. They allocated
    /// what they have, however little it is.
    pub(super) fn add_to(&self, address: &[u8], processes: &mut Vec<DrmProcess>) {
        for (id, computes) in self.on(address) {
            let Some(id) = id else { continue };
            match processes.iter_mut().find(|process| process.id == id) {
                Some(DrmProcess { share, uses, .. }) => {
                    share.memory = share.memory.max(computes.memory);
                    share.occupancy = computes.occupancy;
                    *uses = true;
                }
                None => processes.push(DrmProcess { id, share: computes, uses: true }),
            }
        }
    }
}

/// Reads a node; nothing when it has no GPU. CPUs are nodes, too, with the ID zero.
fn read_node(sys: &Dir, number: u64, buffer: &mut Vec<u8>) -> Result<Option<KfdNode>, Error> {
    let path = |file: &str| {
        CString::new(format!("class/kfd/kfd/topology/nodes/{number}/{file}")).unwrap_or_default()
    };
    let gpu_id = attribute::number(sys.read(&path("gpu_id"), buffer)?).unwrap_or(0);
    let properties = sys.read(&path("properties"), buffer)?;
    let property = |key| attribute::line_value(properties, key)?.parse::<u64>().ok();
    let engines = property("simd_count ");
    if gpu_id == 0 || engines == Some(0) {
        return Ok(None);
    }
    let units = engines.zip(property("simd_per_cu "));
    let compute_units = units.and_then(|(all, per_unit)| all.checked_div(per_unit));
    let domain = property("domain ").unwrap_or(0);
    let address = property("location_id ").map(|location| address(domain, location));
    let unique = property("unique_id ").filter(|unique| *unique > 0);
    let uuid = unique.map(|unique| format!("GPU-{unique:016x}"));
    Ok(Some(KfdNode { gpu_id, address: address.unwrap_or_default(), compute_units, uuid }))
}

fn number(sys: &Dir, path: &str, buffer: &mut Vec<u8>) -> Option<u64> {
    let path = CString::new(path).ok()?;
    attribute::number(sys.read(&path, buffer).ok()?).ok()
}

/// The PCI address of a location ID. The upper half of that is the partition of the GPU.
fn address(domain: u64, location: u64) -> Vec<u8> {
    let (bus, device, function) = (location >> 8 & 0xff, location >> 3 & 0x1f, location & 7);
    format!("{domain:04x}:{bus:02x}:{device:02x}.{function}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::{FakeHost, as_unprivileged};

    #[test]
    fn nodes_are_in_numeric_order_and_hidden_ones_are_detected() {
        let mut fake = FakeHost::new();
        for (number, gpu_id, bus) in [(0, 0, 0), (2, 7, 0x41), (10, 9, 0x29), (11, 8, 0x42)] {
            let directory = format!("class/kfd/kfd/topology/nodes/{number}");
            let properties = format!("simd_count 440\nlocation_id {}\nunique_id 255\n", bus << 8);
            fake = fake
                .sys(&format!("{directory}/gpu_id"), &format!("{gpu_id}\n"))
                .sys(&format!("{directory}/properties"), &properties);
        }
        let open = || Kfd::open(&fake.host().sys, &fake.host().proc, &mut Vec::new());
        assert!(!open().nodes(&[]).some_hidden);
        fake.deny_sys("class/kfd/kfd/topology/nodes/11/gpu_id");
        let nodes = as_unprivileged(|| open().nodes(&[b"0000:29:00.0", b"0000:41:00.0"]));
        let gpus: Vec<_> = nodes.each.iter().map(|node| node.gpu).collect();
        assert_eq!((gpus.as_slice(), nodes.some_hidden), (&[Some(1), Some(0)][..], true));
        assert_eq!(nodes.each[0].uuid.as_deref(), Some("GPU-00000000000000ff"));
    }

    #[test]
    fn location_id_becomes_a_pci_address() {
        assert_eq!(address(0, 0x2900), b"0000:29:00.0");
        assert_eq!(address(1, 0x1000_c1fb), b"0001:c1:1f.3");
    }
}
