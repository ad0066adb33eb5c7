//! Swap traffic and OOM kills of the machine.

use crate::catalog::{Row, Source, SourceId, metrics};

metrics! {
    /// What the memory of the machine went through since boot.
    pub struct NodePaging in Node / "paging", "Swapping" {
        /// Bytes fetched from swap.
        swapped_in: Counter u64 Bytes, "Swapped in", from "/proc/vmstat pswpin × page size";
        /// Bytes put into swap.
        swapped_out: Counter u64 Bytes, "Swapped out", from "/proc/vmstat pswpout × page size";
        /// Processes that the kernel killed because memory ran out.
        oom_kills: Counter u64 One, "OOM kills", from "/proc/vmstat oom_kill";
    }
}

/// What `--collect` and `--skip` call this source.
pub const SOURCE: Source = Source {
    id: SourceId::Paging,
    name: "paging",
    about: "swap traffic, processes ended by the OOM killer",
    groups: &[NodePaging::METRICS],
    on_request: false,
    everywhere: false,
};
