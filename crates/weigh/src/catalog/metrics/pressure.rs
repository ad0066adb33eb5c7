//! Pressure stall information (PSI) of the machine.

use crate::catalog::{Row, Source, SourceId, metrics};

metrics! {
    /// Time in which tasks of the machine stalled, since boot.
    pub struct NodePressure in Node / "pressure", "Pressure" {
        /// Time in which at least one task waited for a CPU.
        cpu_some: Counter f64 SecondsInState, "Some wait for a CPU", from "/proc/pressure/cpu some";
        /// Time in which at least one task waited for memory.
        memory_some: Counter f64 SecondsInState, "Some wait for memory", from "/proc/pressure/memory some";
        /// Time in which all tasks that had work waited for memory.
        memory_full: Counter f64 SecondsInState, "All wait for memory", from "/proc/pressure/memory full";
        /// Time in which at least one task waited for storage.
        io_some: Counter f64 SecondsInState, "Some wait for storage", from "/proc/pressure/io some";
        /// Time in which all tasks that had work waited for storage.
        io_full: Counter f64 SecondsInState, "All wait for storage", from "/proc/pressure/io full";
    }
}

/// What `--collect` and `--skip` call this source.
pub const SOURCE: Source = Source {
    id: SourceId::Pressure,
    name: "pressure",
    about: "time in which tasks waited for CPU, memory or storage",
    groups: &[NodePressure::METRICS],
    on_request: false,
    everywhere: false,
};
