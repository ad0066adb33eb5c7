//! Memory and swap of the machine.

use crate::catalog::{Row, Source, SourceId, metrics};

metrics! {
    /// Memory of the whole machine.
    pub struct NodeMemory in Node / "memory", "Memory of the machine" {
        /// Total memory.
        total: Gauge u64 Bytes, "Total", from "/proc/meminfo MemTotal";
        /// Unused memory.
        free: Gauge u64 Bytes, "Free", from "/proc/meminfo MemFree";
        /// Memory that programs could still get without swapping.
        available: Gauge u64 Bytes, "Available", from "/proc/meminfo MemAvailable";
        /// Page cache of files.
        cached: Gauge u64 Bytes, "Cached", from "/proc/meminfo Cached";
        /// Page cache of block devices.
        buffers: Gauge u64 Bytes, "Buffers", from "/proc/meminfo Buffers";
        /// Memory of tmpfs and of shared memory.
        shared: Gauge u64 Bytes, "Shared", from "/proc/meminfo Shmem";
        /// Total swap space.
        swap_total: Gauge u64 Bytes, "Swap", from "/proc/meminfo SwapTotal";
        /// Free swap space.
        swap_free: Gauge u64 Bytes, "Swap free", from "/proc/meminfo SwapFree";
        /// Huge pages of hugetlbfs, in use or not.
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
