//! Hardware and software counters of the kernel (`perf_event_open`), as declarations: which events
//! there are, which of them are counted together, and what is derived from them.
//!
//! Nothing is opened or counted here. Events that the kernel names itself are in [`generic`]; those
//! of a microarchitecture are in a file of [`tables`], written to be read and extended by people.
//! [`named`] reads the events that users write.
//!
//! Sources of event codes may only be permissively licensed ones: intel/perfmon (BSD-3-Clause),
//! ARM-software/data (Apache-2.0) and libpfm4 (MIT). Each table names its own.

mod derived;
mod formula;
pub mod generic;
mod group;
pub mod named;
pub mod tables;

pub use derived::{Derived, DerivedId, DerivedUnit, Trust, arithmetic_intensity, flops};
pub use formula::{Formula, FormulaError};
pub use group::{EventGroup, GroupId, UnknownGroup};

/// `PERF_TYPE_HARDWARE` of `<linux/perf_event.h>`: events that the kernel knows for every processor.
pub const PERF_TYPE_HARDWARE: u32 = 0;
/// `PERF_TYPE_SOFTWARE`: events of the kernel itself.
pub const PERF_TYPE_SOFTWARE: u32 = 1;
/// `PERF_TYPE_TRACEPOINT`.
pub const PERF_TYPE_TRACEPOINT: u32 = 2;
/// `PERF_TYPE_HW_CACHE`: cache events that the kernel knows.
pub const PERF_TYPE_HW_CACHE: u32 = 3;
/// `PERF_TYPE_RAW`: events of the core by the numbers of its manual.
pub const PERF_TYPE_RAW: u32 = 4;

/// One event as the kernel takes it.
///
/// Several events of one name are parts of one count: the same event on several memory controllers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CounterEvent {
    /// The name that formulas and files use.
    pub name: String,
    /// `perf_event_attr.type`.
    pub kind: u32,
    /// `perf_event_attr.config`.
    pub config: u64,
    /// `perf_event_attr.config1`.
    pub config1: u64,
    /// `perf_event_attr.config2`.
    pub config2: u64,
    /// What it can be opened on.
    pub scope: EventScope,
    /// The counters that it takes.
    pub slots: Slots,
}

/// What an event can be opened on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum EventScope {
    /// A task: it counts what the run does, without privileges at `perf_event_paranoid` 2.
    Task,
    /// The machine: it counts what everybody does, and needs `perf_event_paranoid` 0 or root.
    Machine {
        /// The CPUs to open it on: one for each part of the machine that has the counter.
        cpus: Vec<u32>,
    },
}

/// The counters of a core that an event takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Slots {
    /// None: the kernel counts.
    Software,
    /// This fixed counter where the core has it, else a programmable one.
    Fixed(FixedCounter),
    /// One programmable counter.
    Programmable,
    /// Two adjacent programmable counters: AMD's events of more than 15 a cycle.
    Paired,
    /// A part of the fixed counter `slots`, which has to lead its group.
    TopDown,
    /// A counter outside the cores.
    Uncore,
}

/// A counter that can count one event only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FixedCounter {
    /// Instructions retired.
    Instructions,
    /// Cycles at the current clock.
    Cycles,
    /// Issue slots: Intel since Ice Lake.
    Slots,
}
