//! A process of a run with its last known values.
//!
//! A process that did not run since the last tick has no row, and its PSS and USS are read less
//! often still: every value is carried forward until the next one is read. Which values there are
//! follows from the declarations in `catalog::metrics::process`.

use crate::catalog::Row;
use crate::catalog::metrics::{
    Doing, ProcessCpu, ProcessEvents, ProcessIo, ProcessMemory, ProcessState,
};
use crate::model::{CLOCK_TICKS, ProcessId, Table};

/// The last known values of a process.
#[derive(Debug, Clone, Copy, Default)]
pub struct LiveProcess {
    /// CPU time.
    pub cpu: ProcessCpu,
    /// Memory.
    pub memory: ProcessMemory,
    /// I/O.
    pub io: ProcessIo,
    /// Page faults and context switches.
    pub events: ProcessEvents,
    /// Threads, open files, state.
    pub state: ProcessState,
}

impl LiveProcess {
    /// Takes the values of a row; what the row does not have is carried forward.
    pub fn update(&mut self, table: &Table, row: usize) {
        update(&mut self.cpu, table, row);
        update(&mut self.memory, table, row);
        update(&mut self.io, table, row);
        update(&mut self.events, table, row);
        update(&mut self.state, table, row);
    }

    /// CPU time of its own, without its children.
    pub fn own_cpu(&self) -> Option<f64> {
        Some(self.cpu.user? + self.cpu.system?)
    }

    /// CPU time of the children it has reaped.
    pub fn children_cpu(&self) -> Option<f64> {
        Some(self.cpu.children_user? + self.cpu.children_system?)
    }
}

fn update<R: Row>(last: &mut R, table: &Table, row: usize) {
    let mut now = table.get::<R>(row);
    now.carry_forward(last);
    *last = now;
}

/// The memory of a process as far as it is known to have it now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LastKnownMemory {
    /// Resident memory.
    pub rss: Option<u64>,
    pss: Option<u64>,
    uss: Option<u64>,
}

impl LastKnownMemory {
    /// That of a process that has exited.
    pub const RELEASED: LastKnownMemory =
        LastKnownMemory { rss: Some(0), pss: Some(0), uss: Some(0) };

    /// Takes the memory of a row, and returns it; `None`, and nothing changes, where the process
    /// has none.
    ///
    /// A zombie has a resident size of 0, and so has a process in the middle of an exec: its memory
    /// is gone, which says nothing of what it had.
    pub fn update(&mut self, table: &Table, row: usize) -> Option<ProcessMemory> {
        let memory = table.get::<ProcessMemory>(row);
        if memory.rss == Some(0) {
            return None;
        }
        self.rss = memory.rss.or(self.rss);
        self.pss = memory.pss.or(self.pss);
        self.uss = memory.uss.or(self.uss);
        Some(memory)
    }

    /// Proportional memory. It may be older than the resident size, and is never above that.
    pub fn pss(&self) -> Option<u64> {
        self.pss.map(|pss| self.rss.map_or(pss, |rss| pss.min(rss)))
    }

    /// Private memory, in the same way.
    pub fn uss(&self) -> Option<u64> {
        self.uss.map(|uss| self.rss.map_or(uss, |rss| uss.min(rss)))
    }
}

/// Whether a process has exited and was not reaped yet.
pub fn has_exited(state: &ProcessState) -> bool {
    state.doing == Some(Doing::ZOMBIE)
}

/// When a process was started, in seconds since the run began at this clock tick, as near as the
/// kernel says.
pub fn start_seconds(id: ProcessId, zero: u64) -> f64 {
    (id.started as f64 - zero as f64) / CLOCK_TICKS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Scope;
    use crate::model::{Entity, Tick};

    const ID: ProcessId = ProcessId { pid: 7, started: 250 };

    fn row(memory: ProcessMemory) -> Tick {
        let mut tick = Tick::new(&[ProcessMemory::METRICS, ProcessCpu::METRICS]);
        tick.put(Entity::Process(ID), &memory);
        tick
    }

    #[test]
    fn value_without_a_cell_is_carried_forward() {
        let mut live = LiveProcess::default();
        let full = ProcessMemory { rss: Some(9), pss: Some(7), ..ProcessMemory::default() };
        live.update(row(full).table(Scope::Process).unwrap(), 0);
        let partial = ProcessMemory { rss: Some(8), ..ProcessMemory::default() };
        live.update(row(partial).table(Scope::Process).unwrap(), 0);
        assert_eq!((live.memory.rss, live.memory.pss, live.memory.uss), (Some(8), Some(7), None));
    }

    #[test]
    fn zombie_keeps_the_memory_it_had_and_a_share_is_never_above_the_resident_size() {
        let mut held = LastKnownMemory::default();
        let full = ProcessMemory { rss: Some(9), pss: Some(7), ..ProcessMemory::default() };
        assert!(held.update(row(full).table(Scope::Process).unwrap(), 0).is_some());
        let shrunk = ProcessMemory { rss: Some(5), ..ProcessMemory::default() };
        assert!(held.update(row(shrunk).table(Scope::Process).unwrap(), 0).is_some());
        let gone = ProcessMemory { rss: Some(0), ..ProcessMemory::default() };
        assert!(held.update(row(gone).table(Scope::Process).unwrap(), 0).is_none());
        assert_eq!((held.rss, held.pss()), (Some(5), Some(5)));
    }

    #[test]
    fn start_is_relative_to_the_beginning_of_the_run() {
        assert_eq!(start_seconds(ID, 200), 0.5);
    }
}
