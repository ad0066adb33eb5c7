//! Swap traffic and OOM kills of the machine.

use crate::catalog::{Row, Source, SourceId, metrics};

metrics! {
    /// Swap traffic and OOM kills of the machine since boot.
    pub struct NodePaging in Node / "paging", "Swapping" {
        /// Bytes swapped in.
        swapped_in: Counter u64 Bytes, "Swapped in", from "/proc/vmstat pswpin × page size";
        /// Bytes swapped out.
        swapped_out: Counter u64 Bytes, "Swapped out", from "/proc/vmstat pswpout × page size";
        /// Out-of-memory kills.
        oom_kills: Counter u64 One, "OOM kills", from "/proc/vmstat oom_kill";
    }
}

/// What `--collect` and `--skip` call this source.
pub const SOURCE: Source = Source {
    id: SourceId::Paging,
    name: "paging",
    about: "swap traffic, out-of-memory kills",
    groups: &[NodePaging::METRICS],
    on_request: false,
    everywhere: false,
};
