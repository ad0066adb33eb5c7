//! The processes of a run as they are drawn: sums of each metric, and parts by program.
//!
//! Sums are updated incrementally, so a tick costs what its rows cost, however many processes there
//! are.

use super::programs::Programs;
use super::sums::ProcessMetricSums;
use crate::catalog::Metric;
use crate::model::live::{LiveProcess, LiveProcesses, PerProcess, ProcessValues};
use crate::model::{Cells, Column, ProcessId};
use crate::record::{Entry, Event};

/// All running processes, and their sums.
#[derive(Debug)]
pub(super) struct PlottedProcesses {
    alive: PerProcess<PlottedProcess>,
    columns: ProcessColumnNumbers,
    /// The values of a row, and those before it; NaN when not known.
    now: Vec<f64>,
    before: Vec<f64>,
    sums: ProcessMetricSums,
    /// The same by program.
    pub programs: Programs,
}

/// A running process.
#[derive(Debug)]
pub(super) struct PlottedProcess {
    /// Which program or process it is counted for.
    pub slot: usize,
    /// What is counted for it, for each measure of [`Programs`].
    pub counted: Vec<f64>,
}

impl PlottedProcesses {
    /// No process yet, with these columns.
    pub(super) fn new(metrics: &[&'static Metric], programs: Programs) -> PlottedProcesses {
        let unknown = vec![f64::NAN; metrics.len()];
        PlottedProcesses {
            alive: PerProcess::default(),
            columns: ProcessColumnNumbers::of(metrics),
            now: unknown.clone(),
            before: unknown,
            sums: ProcessMetricSums::new(metrics),
            programs,
        }
    }

    /// Applies the rows of a tick.
    pub(super) fn rows(&mut self, live: &LiveProcesses) {
        for (_, process) in live.in_rows() {
            if process.is_new {
                self.started(process);
            }
            let Some(member) = self.alive.get_mut(process) else { continue };
            self.columns.fill(&process.values, &mut self.now);
            self.columns.fill(&process.previous, &mut self.before);
            for (column, (before, now)) in self.before.iter().zip(&self.now).enumerate() {
                self.sums.change(column, *before, *now);
            }
            self.programs.changed(member, &self.now);
        }
    }

    fn started(&mut self, process: &LiveProcess) {
        let slot = self.programs.slot(process.id, &process.program);
        self.follow_merges();
        let counted = self.programs.started(slot);
        self.alive.get_or_insert_with(process, || PlottedProcess { slot, counted });
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
    pub(super) fn event(&mut self, entry: &Entry, live: &LiveProcesses) {
        let alive =
            |pid: &u32, started: &u64| live.get(&ProcessId { pid: *pid, started: *started });
        match &entry.event {
            Event::ProcessExec { pid, started, .. } => {
                let Some(process) = alive(pid, started) else { return };
                if let Some(mut member) = self.alive.remove(process) {
                    member.slot = self.programs.execs(&member, process.id, &process.program);
                    self.follow_merges();
                    self.alive.get_or_insert_with(process, || member);
                }
            }
            Event::ProcessExit { pid, started, usage, .. } => {
                let Some(process) = alive(pid, started) else { return };
                if let Some(member) = self.alive.remove(process) {
                    let parent = process.parent;
                    let is_here = |pid| live.with_pid(pid).is_some_and(|one| one.is_sampled);
                    let stays = usage.is_some() || parent.is_some_and(|pid| !is_here(pid));
                    self.columns.fill(&process.values, &mut self.now);
                    self.sums.exited(&self.now, stays);
                    self.programs.exit(&member);
                }
            }
            _ => {}
        }
    }

    /// All processes were sampled, and the run has used so much CPU time in all.
    pub(super) fn tick(&mut self, live: &LiveProcesses, at: f64, run_cpu: f64) {
        let resident = |process: &LiveProcess| process.values.memory.rss.unwrap_or(0);
        let largest = live.sampled().max_by_key(|process| resident(process));
        let largest = largest.and_then(|process| {
            Some((self.alive.get_mut(process)?.slot, resident(process) as f64))
        });
        self.programs.tick(at, run_cpu, largest);
    }

    /// The sum of each metric over so many processes now.
    pub(super) fn sums(&mut self, sampled: usize) -> &[f64] {
        self.sums.now(sampled)
    }
}

/// The column of each value of a process.
#[derive(Debug)]
struct ProcessColumnNumbers(Vec<Option<usize>>);

impl ProcessColumnNumbers {
    fn of(metrics: &[&'static Metric]) -> ProcessColumnNumbers {
        let mut columns = Vec::new();
        ProcessValues::default().each_number(|metric, _| {
            columns.push(metrics.iter().position(|column| *column == metric));
        });
        ProcessColumnNumbers(columns)
    }

    fn fill(&self, values: &ProcessValues, row: &mut [f64]) {
        let mut columns = self.0.iter();
        values.each_number(|_, value| {
            if let Some(column) = columns.next().copied().flatten() {
                row[column] = value.unwrap_or(f64::NAN);
            }
        });
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
