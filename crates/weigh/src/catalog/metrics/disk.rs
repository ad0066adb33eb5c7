//! Disks.

use crate::catalog::{Row, Source, SourceId, metrics};

metrics! {
    /// I/O of one disk since boot.
    pub struct DiskIo in Disk / "io", "Disks" {
        /// Bytes read from it.
        read: Counter u64 Bytes, "Read", from "/proc/diskstats sectors read × 512";
        /// Bytes written to it.
        written: Counter u64 Bytes, "Written", from "/proc/diskstats sectors written × 512";
        /// Completed reads.
        reads: Counter u64 One, "Reads", from "/proc/diskstats reads completed";
        /// Completed writes.
        writes: Counter u64 One, "Writes", from "/proc/diskstats writes completed";
        /// Time that reads took, from request to completion, summed over requests.
        read_time: Counter f64 SecondsInState, "Time of reads", from "/proc/diskstats time reading";
        /// Time that writes took, from request to completion, summed over requests.
        write_time: Counter f64 SecondsInState, "Time of writes", from "/proc/diskstats time writing";
        /// Time in which it had requests in flight.
        busy: Counter f64 SecondsInState, "Busy", from "/proc/diskstats time doing I/Os";
    }
}

/// What `--collect` and `--skip` call this source.
pub const SOURCE: Source = Source {
    id: SourceId::Disk,
    name: "disk",
    about: "disks: bytes, operations, busy time",
    groups: &[DiskIo::METRICS],
    on_request: false,
    everywhere: false,
};
