//! The processes of a run. What programs they ran is in the summary.
//!
//! Fed by a replay of the recording, beside the summary's accumulator. Memory grows with the running
//! processes: of the others only the heaviest are retained.

mod listed;
mod program;
#[cfg(test)]
mod tests;

use listed::ExitedProcesses;

use crate::catalog::Scope;
use crate::catalog::metrics::ProcessMemory;
use crate::model::live::{LiveProcess, LiveProcesses, PerProcess};
use crate::model::{End, ProcessId, Tick, Usage};
use crate::record::{Entry, Event, Frame, Manifest, Moment, RunEnd};
use crate::summary::main_exit::MainExit;

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
    /// The program that it ran last, named as in charts.
    pub program: String,
    /// The pid of the process that started it; `None` when its start is not recorded.
    pub parent: Option<u32>,
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
    alive: PerProcess<Process>,
    exited: ExitedProcesses,
}

impl ProcessTable {
    /// No process yet.
    pub fn new(manifest: &Manifest) -> ProcessTable {
        let mains = manifest.mains();
        ProcessTable {
            main_exit: MainExit::of(&mains),
            alive: PerProcess::default(),
            exited: ExitedProcesses::of(mains),
        }
    }

    /// Adds a frame.
    pub fn frame(&mut self, frame: &Frame<'_>) {
        match frame.moment {
            Moment::Tick(tick) => self.tick(tick, frame.live),
            Moment::Event(entry) => self.event(entry, frame.live),
        }
    }

    fn tick(&mut self, tick: &Tick, live: &LiveProcesses) {
        let Some(table) = tick.table(Scope::Process) else { return };
        for (row, process) in live.in_rows() {
            // Its start event may be lost.
            let listed = self
                .alive
                .get_or_insert_with(process, || Process::new(process, tick.at.as_secs_f64()));
            let memory = table.get::<ProcessMemory>(row);
            listed.largest_bytes = listed.largest_bytes.max(memory.peak.max(memory.rss));
            self.main_exit.row(process.id, table, row);
        }
    }

    fn event(&mut self, entry: &Entry, live: &LiveProcesses) {
        let at = entry.seconds;
        let alive =
            |pid: &u32, started: &u64| live.get(&ProcessId { pid: *pid, started: *started });
        match &entry.event {
            Event::ProcessStart { pid, started, name, command, .. }
            | Event::ProcessExec { pid, started, name, command, .. } => {
                let Some(process) = alive(pid, started) else { return };
                let listed = self.alive.get_or_insert_with(process, || Process::new(process, at));
                // A process that is about to exit has only an empty argument left.
                let command =
                    command.as_deref().filter(|words| words.iter().any(|word| !word.is_empty()));
                listed.name = program::short_name(name);
                listed.program.clone_from(&process.program);
                listed.parent = process.parent;
                listed.command = command.map(program::typed);
            }
            Event::ProcessExit { pid, started, end, usage, cpu_seconds, memory_peak_bytes } => {
                let Some(process) = alive(pid, started) else { return };
                let Some(mut listed) = self.alive.remove(process) else { return };
                listed.largest_bytes = listed.largest_bytes.max(*memory_peak_bytes);
                listed.end = *end;
                self.ended(process, listed, usage.as_ref(), *cpu_seconds, at);
            }
            Event::RunEnd(RunEnd { final_counters: Some(counters), .. }) => {
                for (main, size) in self.main_exit.own(counters) {
                    self.exited.raise_main_size(main, size);
                }
            }
            _ => {}
        }
    }

    fn ended(
        &mut self,
        process: &LiveProcess,
        mut listed: Process,
        usage: Option<&Usage>,
        cpu_seconds: Option<f64>,
        at: f64,
    ) {
        listed.last_values(process);
        listed.exited_at = Some(at);
        if let Some(cpu) = process.own_cpu.ended(usage, cpu_seconds, at) {
            listed.cpu_seconds = Some(cpu.times[2]);
            listed.is_cpu_exact = cpu.is_exact;
        }
        if let Some(usage) = usage
            && !self.main_exit.ended(process.id, usage)
        {
            listed.largest_bytes = listed.largest_bytes.or(Some(usage.largest_rss_bytes));
        }
        self.exited.push(listed);
    }

    /// The processes of a run of so many seconds, with those that are alive at its end.
    pub fn finish(mut self, live: &LiveProcesses, duration: f64) -> ListedProcesses {
        for process in live.iter() {
            if let Some(mut listed) = self.alive.remove(process) {
                listed.last_values(process);
                self.exited.push(listed);
            }
        }
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
    fn new(process: &LiveProcess, at: f64) -> Process {
        Process {
            id: process.id,
            name: process.name.clone(),
            program: process.program.clone(),
            parent: process.parent,
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

    /// Sets what it had used when it was last sampled.
    fn last_values(&mut self, process: &LiveProcess) {
        self.cpu_seconds = process.own_cpu.sampled().map(|[_, _, together]| together);
        self.read_bytes = process.values.io.read;
        self.written_bytes = process.values.io.written;
    }
}
