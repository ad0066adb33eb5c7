//! Memory of the machine.
//!
//! Source: `/proc/meminfo`, readable by everybody. "Used" is what is not
//! available: the page cache can be taken back and is not in use.

use super::{Collector, Fault, Source, group, malformed, readable};
use crate::catalog::metrics;
use crate::host::{Host, Kept};
use crate::parse::meminfo;
use crate::sample::{Entity, Tick};

metrics! {
    /// Memory of the whole machine.
    pub struct NodeMemory in Node / "memory", "Memory of the machine" {
        /// Memory there is.
        total: Gauge u64 Bytes, "Total", from "/proc/meminfo MemTotal";
        /// Memory that nothing is in.
        free: Gauge u64 Bytes, "Free", from "/proc/meminfo MemFree";
        /// Memory that programs could still get without swapping.
        available: Gauge u64 Bytes, "Available", from "/proc/meminfo MemAvailable";
        /// File contents kept in memory.
        cached: Gauge u64 Bytes, "Cached", from "/proc/meminfo Cached";
        /// Block device contents kept in memory.
        buffers: Gauge u64 Bytes, "Buffers", from "/proc/meminfo Buffers";
        /// Memory of tmpfs and of shared memory.
        shared: Gauge u64 Bytes, "Shared", from "/proc/meminfo Shmem";
        /// Swap space there is.
        swap_total: Gauge u64 Bytes, "Swap", from "/proc/meminfo SwapTotal";
        /// Swap space that is free.
        swap_free: Gauge u64 Bytes, "Swap free", from "/proc/meminfo SwapFree";
        /// Huge pages of hugetlbfs there are, in use or not.
        hugetlb: Gauge u64 Bytes, "Huge pages", from "/proc/meminfo Hugetlb";
    }
}

pub(super) const SOURCE: Source = Source {
    name: "memory",
    about: "memory and swap of the machine",
    groups: &[group::<NodeMemory>()],
    probe: |host| readable(&host.proc, c"meminfo"),
    collector: Some(|_| Box::new(Memory { meminfo: Kept::always(), buffer: Vec::new() })),
    on_request: false,
    everywhere: true,
    descriptors: 1,
};

struct Memory {
    meminfo: Kept,
    buffer: Vec<u8>,
}

impl Collector for Memory {
    fn sample(&mut self, host: &Host, tick: &mut Tick) -> Result<(), Fault> {
        let bytes = self.meminfo.read(&host.proc, || c"meminfo", &mut self.buffer)?;
        let memory = meminfo::parse(bytes).map_err(malformed(&host.proc, c"meminfo"))?;
        let row = NodeMemory {
            total: Some(memory.total),
            free: Some(memory.free),
            available: memory.available,
            cached: memory.cached,
            buffers: memory.buffers,
            shared: memory.shared,
            swap_total: memory.swap_total,
            swap_free: memory.swap_free,
            hugetlb: memory.hugetlb,
        };
        tick.put(Entity::Single, &row);
        Ok(())
    }
}
