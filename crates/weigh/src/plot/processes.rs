//! The processes of a run, tracked from row to row.
//!
//! A process that did not run has no row for that tick: its values are carried forward. Sums are
//! updated incrementally, so a tick costs what its rows cost, however many processes there are.

use std::collections::HashMap;

use super::programs::Programs;
use super::sums::ProcessMetricSums;
use crate::catalog::metrics::{AddressSpace, ProcessMemory};
use crate::catalog::{Metric, Row};
use crate::model::{Cells, Column, Entity, ProcessId, Table, program_name};
use crate::record::{Entry, Event};

/// All running processes, and their sums.
#[derive(Debug)]
pub(super) struct PlottedProcesses {
    alive: HashMap<ProcessId, PlottedProcess>,
    /// The name of each, and its parent.
    names: HashMap<ProcessId, (String, u32)>,
    sums: ProcessMetricSums,
    /// The same by program.
    pub programs: Programs,
}

/// A running process.
#[derive(Debug)]
pub(super) struct PlottedProcess {
    /// Which program or process it is counted for.
    pub slot: usize,
    /// Its last sampled values, in the order of the table's columns; NaN when not known.
    pub values: Vec<f64>,
    /// What is counted for it, for each measure of [`Programs`].
    pub counted: Vec<f64>,
    /// Whether its memory is counted for another process, whose address space it uses.
    shares_memory: bool,
}

impl PlottedProcesses {
    /// No process yet, with these columns.
    pub(super) fn new(metrics: &[&'static Metric], programs: Programs) -> PlottedProcesses {
        let (alive, names) = (HashMap::new(), HashMap::new());
        PlottedProcesses { alive, names, sums: ProcessMetricSums::new(metrics), programs }
    }

    /// The name of a process of the run.
    pub(super) fn name(&self, id: &ProcessId) -> Option<String> {
        self.names.get(id).map(|(name, _)| name.clone())
    }

    /// Applies the rows of a tick.
    pub(super) fn rows(&mut self, table: &Table) {
        for (row, entity) in table.entities().iter().enumerate() {
            let Entity::Process(id) = entity else { continue };
            if !self.alive.contains_key(id) {
                self.started(*id, table.columns().len());
            }
            let Some(member) = self.alive.get_mut(id) else { continue };
            let otherwise = member.memory_if_missing(table, row);
            for (column, cells) in table.columns().iter().enumerate() {
                let is_memory = table.metrics()[column].group == ProcessMemory::GROUP;
                if let Some(value) = number(cells, row).or(otherwise.filter(|_| is_memory)) {
                    self.sums.change(column, member.values[column], value);
                    member.values[column] = value;
                }
            }
            self.programs.changed(member);
        }
    }

    fn started(&mut self, id: ProcessId, columns: usize) {
        let name = self.names.get(&id).map_or("?", |(name, _)| name);
        let slot = self.programs.slot(id, name);
        self.follow_merges();
        let counted = self.programs.started(slot);
        self.alive.insert(
            id,
            PlottedProcess { slot, values: vec![f64::NAN; columns], counted, shares_memory: false },
        );
    }

    /// Slots may have been merged.
    fn follow_merges(&mut self) {
        for (from, into) in self.programs.take_merges() {
            for member in self.alive.values_mut() {
                if member.slot == from {
                    member.slot = into;
                } else if member.slot > from {
                    member.slot -= 1;
                }
            }
        }
    }

    /// Applies an event.
    pub(super) fn event(&mut self, entry: &Entry) {
        match &entry.event {
            Event::ProcessStart { pid, started, parent, name, command, tool } => {
                let id = ProcessId { pid: *pid, started: *started };
                let program = || program_name(name, command.as_deref());
                self.names.insert(id, (tool.clone().unwrap_or_else(program), *parent));
            }
            Event::ProcessExec { pid, started, name, command, tool } => {
                let id = ProcessId { pid: *pid, started: *started };
                let program = || program_name(name, command.as_deref());
                self.execs(id, tool.clone().unwrap_or_else(program));
            }
            Event::ProcessExit { pid, started, usage, .. } => {
                let id = ProcessId { pid: *pid, started: *started };
                let parent = self.names.remove(&id).map(|(_, parent)| parent);
                if let Some(member) = self.alive.remove(&id) {
                    let parent_is_here = || self.alive.keys().any(|one| Some(one.pid) == parent);
                    let stays = usage.is_some() || (parent.is_some() && !parent_is_here());
                    self.sums.exited(&member.values, stays);
                    self.programs.exit(&member);
                }
            }
            _ => {}
        }
    }

    fn execs(&mut self, id: ProcessId, name: String) {
        if let Some(mut member) = self.alive.remove(&id) {
            member.slot = self.programs.execs(&member, id, &name);
            self.follow_merges();
            self.alive.insert(id, member);
        }
        self.names.entry(id).or_default().0 = name;
    }

    /// The sum of each metric now.
    pub(super) fn sums(&mut self) -> &[f64] {
        self.sums.now(self.alive.len())
    }
}

impl PlottedProcess {
    /// Its memory where a row has none: zero while it is counted for another process, and not known
    /// when that has just exited.
    fn memory_if_missing(&mut self, table: &Table, row: usize) -> Option<f64> {
        let now = table.get::<ProcessMemory>(row).address_space?;
        let is_shared = now == AddressSpace::Shared;
        let was_shared = std::mem::replace(&mut self.shares_memory, is_shared);
        match (was_shared, is_shared) {
            (_, true) => Some(0.0),
            (true, false) => Some(f64::NAN),
            (false, false) => None,
        }
    }
}

/// A cell as a number; symbols have none.
pub(super) fn number(column: &Column, row: usize) -> Option<f64> {
    match &column.cells {
        Cells::U64(cells) if column.present[row] => Some(cells[row] as f64),
        Cells::F64(cells) if column.present[row] => Some(cells[row]),
        _ => None,
    }
}
