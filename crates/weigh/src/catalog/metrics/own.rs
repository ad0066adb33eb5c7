//! What weigh itself uses.

use crate::catalog::{Row, Source, SourceId, metrics};

metrics! {
    /// Usage of weigh so far.
    pub struct OwnCost in Own / "cost", "What weigh used" {
        /// CPU time in user mode.
        user: Counter f64 Seconds, "User time", from "getrusage ru_utime";
        /// CPU time in the kernel.
        system: Counter f64 Seconds, "System time", from "getrusage ru_stime";
        /// CPU time of the sampling thread; the rest is that of the recording.
        sampling: Counter f64 Seconds, "Sampling", from "clock_gettime CLOCK_THREAD_CPUTIME_ID";
        /// Peak resident memory.
        memory_peak: Gauge u64 Bytes, "Peak memory", from "/proc/self/status VmHWM";
    }
}

metrics! {
    /// Whether ticks were on time.
    pub struct OwnTicks in Own / "ticks", "Ticks of weigh" {
        /// Ticks.
        taken: Counter u64 One, "Ticks", from "weigh";
        /// Ticks that were skipped, because the one before took too long.
        missed: Counter u64 One, "Missed ticks", from "weigh";
    }
}

/// What `--collect` and `--skip` call this source.
pub const SOURCE: Source = Source {
    id: SourceId::Own,
    name: "own",
    about: "what weigh itself uses",
    groups: &[OwnCost::METRICS, OwnTicks::METRICS],
    on_request: false,
    everywhere: true,
};
