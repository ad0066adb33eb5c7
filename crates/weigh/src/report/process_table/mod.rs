//! The processes of a run. What programs they ran is in the summary.
//!
//! Fed by a replay of the recording, beside the summary's accumulator. A process that did not run
//! has no row for that tick, so its values are carried forward. Memory grows with the running
//! processes: of the others only the heaviest are retained.

mod listed;
mod program;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use listed::ExitedProcesses;

use crate::catalog::Scope;
use crate::catalog::metrics::{ProcessIo, ProcessMemory};
use crate::model::{End, Entity, ProcessId, Table, Tick, Usage};
use crate::record::{Entry, Event, Manifest, RunEnd};
use crate::summary::main_exit::MainExit;
use crate::summary::own_cpu::OwnCpu;

/// The processes of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ListedProcesses {
    /// Processes, those with most CPU time first.
    pub processes: Vec<Process>,
    /// How many processes are not listed.
    pub processes_left_out: u64,
}

/// One process of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    /// Which one.
    pub id: ProcessId,
    /// The kernel's name for it.
    pub name: String,
    /// Its command line, as one would type it; `None` when it is not recorded.
    pub command: Option<String>,
    /// When it was first sampled, in seconds since the run began.
    pub first_sampled: f64,
    /// When it exited; `None` when it outlived the recording.
    pub exited_at: Option<f64>,
    /// CPU time of its own, from its last sample or from its exit.
    pub cpu_seconds: Option<f64>,
    /// Whether that is all it used: from its exit, and not from a sample before it.
    pub is_cpu_exact: bool,
    /// Its largest resident size.
    pub largest_bytes: Option<u64>,
    /// Bytes that it and its reaped children have read.
    pub read_bytes: Option<u64>,
    /// Bytes that they have written.
    pub written_bytes: Option<u64>,
    /// How it exited; `None` when its parent reaped it and not weigh.
    pub end: Option<End>,
}

/// Collects the processes of a run, moment by moment.
#[derive(Debug)]
pub struct ProcessTable {
    main_exit: MainExit,
    alive: HashMap<ProcessId, (Process, OwnCpu)>,
    exited: ExitedProcesses,
}

impl ProcessTable {
    /// No process yet.
    pub fn new(manifest: &Manifest) -> ProcessTable {
        let mains = manifest.mains();
        ProcessTable {
            main_exit: MainExit::of(&mains),
            alive: HashMap::new(),
            exited: ExitedProcesses::of(mains),
        }
    }

    /// Applies a tick.
    pub fn tick(&mut self, tick: &Tick) {
        let Some(table) = tick.table(Scope::Process) else { return };
        for (row, entity) in table.entities().iter().enumerate() {
            let Entity::Process(id) = entity else { continue };
            let at = tick.at.as_secs_f64();
            // Its start event may be lost.
            let (process, cpu) = self
                .alive
                .entry(*id)
                .or_insert_with(|| (Process::new(*id, "?", at), OwnCpu::default()));
            cpu.row(table, row, at);
            process.cpu_seconds = cpu.sampled().map(|[_, _, together]| together);
            process.update(table, row);
            self.main_exit.row(*id, table, row);
        }
    }

    /// Applies an event.
    pub fn event(&mut self, entry: &Entry) {
        let at = entry.seconds;
        match &entry.event {
            Event::ProcessStart { pid, started, name, command, .. }
            | Event::ProcessExec { pid, started, name, command, .. } => {
                let id = ProcessId { pid: *pid, started: *started };
                self.execs(id, name, command.as_deref(), at);
            }
            Event::ProcessExit { pid, started, end, usage, cpu_seconds, memory_peak_bytes } => {
                let id = ProcessId { pid: *pid, started: *started };
                if let Some((process, _)) = self.alive.get_mut(&id) {
                    process.largest_bytes = process.largest_bytes.max(*memory_peak_bytes);
                }
                self.ended(id, *end, *usage, *cpu_seconds, at);
            }
            Event::RunEnd(RunEnd { account: Some(account), .. }) => {
                for (main, size) in self.main_exit.own(account) {
                    self.exited.raise_main_size(main, size);
                }
            }
            _ => {}
        }
    }

    /// A process runs a program from here on.
    fn execs(&mut self, id: ProcessId, name: &str, command: Option<&[String]>, at: f64) {
        // A process that is about to exit has only an empty argument left.
        let command = command.filter(|words| words.iter().any(|word| !word.is_empty()));
        let (process, _) =
            self.alive.entry(id).or_insert_with(|| (Process::new(id, name, at), OwnCpu::default()));
        process.name = program::short_name(name);
        process.command = command.map(program::typed);
    }

    fn ended(
        &mut self,
        id: ProcessId,
        end: Option<End>,
        usage: Option<Usage>,
        cpu_seconds: Option<f64>,
        at: f64,
    ) {
        let Some((mut process, cpu)) = self.alive.remove(&id) else { return };
        process.exited_at = Some(at);
        process.end = end;
        if let Some(cpu) = cpu.ended(usage.as_ref(), cpu_seconds, at) {
            process.cpu_seconds = Some(cpu.times[2]);
            process.is_cpu_exact = cpu.is_exact;
        }
        if let Some(usage) = usage
            && !self.main_exit.ended(id, &usage)
        {
            process.largest_bytes = process.largest_bytes.or(Some(usage.largest_rss_bytes));
        }
        self.exited.push(process);
    }

    /// The processes of a run of so many seconds.
    pub fn finish(mut self, duration: f64) -> ListedProcesses {
        let mut left: Vec<Process> = self.alive.into_values().map(|(process, _)| process).collect();
        left.sort_by_key(|process| process.id);
        left.into_iter().for_each(|process| self.exited.push(process));
        let (mut processes, processes_left_out) = self.exited.finish();
        for process in &mut processes {
            // Time starts just before exec, and the last sample is after the exit.
            process.first_sampled = process.first_sampled.min(duration);
            process.exited_at = process.exited_at.map(|exited_at| exited_at.min(duration));
        }
        ListedProcesses { processes, processes_left_out }
    }
}

impl Process {
    fn new(id: ProcessId, name: &str, at: f64) -> Process {
        Process {
            id,
            name: name.to_owned(),
            command: None,
            first_sampled: at,
            exited_at: None,
            cpu_seconds: None,
            is_cpu_exact: false,
            largest_bytes: None,
            read_bytes: None,
            written_bytes: None,
            end: None,
        }
    }

    /// Applies a row about it.
    fn update(&mut self, table: &Table, row: usize) {
        let memory = table.get::<ProcessMemory>(row);
        self.largest_bytes = self.largest_bytes.max(memory.peak.max(memory.rss));
        let io = table.get::<ProcessIo>(row);
        self.read_bytes = io.read.or(self.read_bytes);
        self.written_bytes = io.written.or(self.written_bytes);
    }
}
