//! Which recordings monitor which process: one in several recordings starts and exits once.

use std::collections::{HashMap, HashSet};

use super::layout::Place;
use crate::model::ProcessId;
use crate::record::Event;

/// All running processes.
#[derive(Debug, Default)]
pub(super) struct ProcessRegistry {
    running: HashMap<ProcessId, RegisteredProcess>,
    /// Those that exited and may be reported again, by a recording that has not recorded it yet.
    exited: HashSet<ProcessId>,
}

/// A process, and the recordings that monitor it.
#[derive(Debug)]
struct RegisteredProcess {
    program: RegisteredProgram,
    by: Vec<usize>,
}

/// What a process runs, as events report it.
#[derive(Debug, Clone, PartialEq)]
struct RegisteredProgram {
    name: String,
    command: Option<Vec<String>>,
    tool: Option<String>,
}

impl ProcessRegistry {
    /// An event of a process in one of the recordings, as the merged recording reports it; `None`
    /// when it was reported before.
    pub(super) fn merge(&mut self, event: &Event, by: usize, place: &Place) -> Option<Event> {
        match event {
            Event::ProcessStart { pid, started, parent, name, command, tool } => {
                let id = ProcessId { pid: *pid, started: *started };
                let parent = ProcessId { pid: *parent, started: 0 };
                let parent = parent.moved(place.namespace, 0).pid;
                let program = RegisteredProgram::new(name, command, tool);
                self.start(id.moved(place.namespace, place.ahead), parent, program, by)
            }
            Event::ProcessExec { pid, started, name, command, tool } => {
                let id = ProcessId { pid: *pid, started: *started };
                let program = RegisteredProgram::new(name, command, tool);
                self.exec(id.moved(place.namespace, place.ahead), program, by)
            }
            Event::ProcessExit { pid, started, end, usage, cpu_seconds, memory_peak_bytes } => {
                let id = ProcessId { pid: *pid, started: *started };
                let id = id.moved(place.namespace, place.ahead);
                self.running.remove(&id);
                let is_news = !place.is_shared || self.exited.insert(id);
                is_news.then_some(Event::ProcessExit {
                    pid: id.pid,
                    started: id.started,
                    end: *end,
                    usage: *usage,
                    cpu_seconds: *cpu_seconds,
                    memory_peak_bytes: *memory_peak_bytes,
                })
            }
            _ => None,
        }
    }

    fn start(
        &mut self,
        id: ProcessId,
        parent: u32,
        program: RegisteredProgram,
        by: usize,
    ) -> Option<Event> {
        if self.has_exited(id) {
            return None;
        }
        if self.running.contains_key(&id) {
            return self.exec(id, program, by);
        }
        let RegisteredProgram { name, command, tool } = program.clone();
        self.running.insert(id, RegisteredProcess { program, by: vec![by] });
        let (pid, started) = (id.pid, id.started);
        Some(Event::ProcessStart { pid, started, parent, name, command, tool })
    }

    fn exec(&mut self, id: ProcessId, program: RegisteredProgram, by: usize) -> Option<Event> {
        if self.has_exited(id) {
            return None;
        }
        if let Some(known) = self.running.get_mut(&id) {
            if !known.by.contains(&by) {
                known.by.push(by);
            }
            if known.program == program {
                return None;
            }
            known.program = program.clone();
        }
        let RegisteredProgram { name, command, tool } = program;
        Some(Event::ProcessExec { pid: id.pid, started: id.started, name, command, tool })
    }

    /// Whether a recording has the exit of a process that several monitor.
    pub(super) fn has_exited(&self, id: ProcessId) -> bool {
        self.exited.contains(&id)
    }

    /// Whether a process of this number runs.
    pub(super) fn has(&self, pid: u32) -> bool {
        self.running.keys().any(|id| id.pid == pid)
    }

    /// One of the recordings has ended: nothing more is known of processes that no other monitors.
    pub(super) fn leaves(&mut self, by: usize) -> Vec<Event> {
        let mut exited = Vec::new();
        self.running.retain(|id, monitored| {
            monitored.by.retain(|one| *one != by);
            if monitored.by.is_empty() {
                exited.push(*id);
            }
            !monitored.by.is_empty()
        });
        exited.sort_unstable();
        exited.into_iter().map(|id| Event::ended(id, None, None)).collect()
    }
}

impl RegisteredProgram {
    fn new(name: &str, command: &Option<Vec<String>>, tool: &Option<String>) -> RegisteredProgram {
        RegisteredProgram { name: name.to_owned(), command: command.clone(), tool: tool.clone() }
    }
}
