//! CPU time of the run as a whole, by an inherited perf task clock.

use crate::catalog::{Row, Source, SourceId, metrics};

metrics! {
    /// What the run as a whole has used.
    pub struct RunCpu in Run / "cpu", "CPU of the run as the kernel counts it" {
        /// CPU time of every process of the run, dead or alive.
        time: Counter f64 Seconds, "CPU time", from "perf task-clock, inherited";
    }
}

/// What `--collect` and `--skip` call this source.
pub const SOURCE: Source = Source {
    id: SourceId::TaskClock,
    name: "task-clock",
    about: "exact CPU time of the run, also of children nobody waits for",
    groups: &[RunCpu::METRICS],
    on_request: false,
    everywhere: true,
};
