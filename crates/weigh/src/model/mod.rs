//! One tick: what was measured, of which entity, at one moment.

pub mod batch_job;
pub mod counted_events;
pub mod devices;
mod facts;
mod fault;
pub mod gpu;
pub mod hardware;
pub mod live;
mod name;
pub mod numbering;
pub mod own_cpu;
mod program;
mod rate;
pub mod settings;
mod table;
mod usage;

pub use facts::Facts;
pub use fault::FaultSource;
pub use gpu::Gpu;
pub use name::Name;
pub use program::{base_name, program_name};
pub use rate::{CounterReading, Delta, rate};
pub use table::{Cells, Column, Table};
pub use usage::{End, Io, Usage, signal_name};

use std::time::Duration;

use crate::catalog::metrics::OwnTicks;
use crate::catalog::{Row, Scope};

/// A process: its pid together with its start time, because a pid alone is used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId {
    /// The process id as weigh's own `/proc` shows it.
    pub pid: u32,
    /// Clock ticks between boot and the process's start (`/proc/PID/stat`, field 22).
    pub started: u64,
}

/// Clock ticks in a second, as `/proc` has them: `USER_HZ` is 100 on every machine that weigh
/// is made for.
pub const CLOCK_TICKS: f64 = 100.0;

/// The entity a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Entity {
    /// The only one of its scope: the machine, the run, or weigh itself.
    Single,
    /// One CPU, by its number.
    Cpu(u32),
    /// One process.
    Process(ProcessId),
    /// A named device: a network device, a disk.
    Named(Name),
    /// One process on the GPU of this name.
    OnGpu(Name, ProcessId),
}

/// A process started, called exec or exited.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A process of the run was first sampled.
    Started {
        /// Which one.
        id: ProcessId,
        /// The process that started it, or to which it was reparented.
        parent: u32,
        /// Its name and command line.
        program: Program,
    },
    /// A process called exec.
    Exec {
        /// Which one.
        id: ProcessId,
        /// Its program now.
        program: Program,
    },
    /// A GPU was detected, with its properties.
    Gpu(Box<Gpu>),
    /// A process exited; its parent reaped it.
    Exited {
        /// Which one.
        id: ProcessId,
        /// All CPU time of its own, if it had a task clock.
        cpu_seconds: Option<f64>,
    },
}

/// What a process runs: bytes, because neither need be text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// The kernel's name for it, at most 15 bytes.
    pub name: Vec<u8>,
    /// Its arguments; `None` when they cannot be read or are not recorded.
    pub arguments: Option<Vec<Vec<u8>>>,
    /// The tool it counts for, when one was set and it is not the program's name.
    pub tool: Option<String>,
}

impl Program {
    /// Its arguments as text, as far as they are.
    pub fn line(&self) -> Option<Vec<String>> {
        Some(self.arguments.as_ref()?.iter().map(|word| text(word)).collect())
    }

    /// Its name among programs.
    pub fn called(&self) -> String {
        program_name(&text(&self.name), self.line().as_deref())
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Everything that was measured at one moment, a table for each scope.
#[derive(Debug, Clone)]
pub struct Tick {
    /// When, since the run began.
    pub at: Duration,
    /// When that was, on the monotonic clock; zero where ticks are read from a recording.
    pub zero: Duration,
    /// Starts and exits since the last tick.
    pub changes: Vec<Change>,
    is_complete: bool,
    tables: Vec<Table>,
}

impl Tick {
    /// An empty tick whose tables have the columns of these groups.
    pub fn new(groups: &[&'static [crate::catalog::Metric]]) -> Tick {
        let tables = Scope::ALL
            .into_iter()
            .map(|scope| Table::new(scope, groups))
            .filter(|table| !table.metrics().is_empty())
            .collect();
        Tick {
            at: Duration::ZERO,
            zero: Duration::ZERO,
            changes: Vec::new(),
            is_complete: false,
            tables,
        }
    }

    /// When, on the monotonic clock.
    pub fn moment(&self) -> Duration {
        self.zero + self.at
    }

    /// Clears the rows, keeps the allocations, and starts at another moment.
    pub fn begin(&mut self, at: Duration) {
        self.at = at;
        self.changes.clear();
        self.is_complete = false;
        self.tables.iter_mut().for_each(Table::clear);
    }

    /// Whether every process of the run was sampled: one without a row did not run since the last
    /// complete tick, and its values are carried forward.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Every process of the run was sampled. A recording holds this as the row of weigh's own
    /// ticks, which only complete ticks have.
    pub fn complete(&mut self, ticks: &OwnTicks) {
        self.put(Entity::Single, ticks);
        self.is_complete = true;
    }

    /// Finds out whether it is complete, after its rows were read from a recording.
    pub(crate) fn read_completeness(&mut self) {
        self.is_complete = self.table(Scope::Own).is_some_and(|table| !table.is_empty());
    }

    /// Whether there are no rows and no changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.tables.iter().all(Table::is_empty)
    }

    /// Adds one group of values about one entity.
    ///
    /// A scope that is not collected has no table, and the values are dropped.
    pub fn put<R: Row>(&mut self, entity: Entity, row: &R) {
        if let Some(table) = self.tables.iter_mut().find(|table| table.scope() == R::SCOPE) {
            table.put(self.at, entity, row);
        }
    }

    /// Removes the last row, if it was about this entity: it is not to be measured.
    pub fn remove_last_row(&mut self, entity: Entity) {
        self.tables.iter_mut().for_each(|table| table.remove_last_row(entity));
    }

    /// The tables, one for each collected scope.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// The table of one scope, if it is collected.
    pub fn table(&self, scope: Scope) -> Option<&Table> {
        self.tables.iter().find(|table| table.scope() == scope)
    }

    /// The tables, to be filled from a recording.
    pub(crate) fn table_mut(&mut self, scope: Scope) -> Option<&mut Table> {
        self.tables.iter_mut().find(|table| table.scope() == scope)
    }
}
