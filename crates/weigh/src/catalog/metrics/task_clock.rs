//! CPU time of the run as a whole, by an inherited perf task clock.

use crate::catalog::{Row, Source, SourceId, metrics};

metrics! {
    /// CPU time of the run as a whole.
    pub struct RunCpu in Run / "cpu", "CPU of the run as the kernel counts it" {
        /// CPU time of every process of the run, exited ones included.
        time: Counter f64 Seconds, "CPU time", from "perf task-clock, inherited";
    }
}

/// What `--collect` and `--skip` call this source.
pub const SOURCE: Source = Source {
    id: SourceId::TaskClock,
    name: "task-clock",
    about: "exact CPU time of the run, also of auto-reaped children",
    groups: &[RunCpu::METRICS],
    on_request: false,
    everywhere: true,
};
