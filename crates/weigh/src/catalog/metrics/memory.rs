//! Memory and swap of the machine.

use crate::catalog::{Row, Source, SourceId, metrics};

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

/// What `--collect` and `--skip` call this source.
pub const SOURCE: Source = Source {
    id: SourceId::Memory,
    name: "memory",
    about: "memory and swap of the machine",
    groups: &[NodeMemory::METRICS],
    on_request: false,
    everywhere: true,
};
