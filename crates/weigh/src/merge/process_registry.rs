//! Who is followed, and by which recordings: a process that several saw comes and goes once.

use std::collections::{HashMap, HashSet};

use super::layout::Place;
use crate::model::ProcessId;
use crate::record::Event;

/// Everybody who is there.
#[derive(Debug, Default)]
pub(super) struct ProcessRegistry {
    there: HashMap<ProcessId, RegisteredProcess>,
    /// Those who ended and may be told of once more, by somebody who did not see it yet.
    gone: HashSet<ProcessId>,
}

/// A process, and who follows it.
#[derive(Debug)]
struct RegisteredProcess {
    program: RegisteredProgram,
    by: Vec<usize>,
}

/// What a process runs, as events tell it.
#[derive(Debug, Clone, PartialEq)]
struct RegisteredProgram {
    name: String,
    command: Option<Vec<String>>,
    tool: Option<String>,
}

impl ProcessRegistry {
    /// What happened to a process according to one of the recordings, as it is told of all
    /// together; `None` when it has been told.
    pub(super) fn told(&mut self, event: &Event, by: usize, place: &Place) -> Option<Event> {
        match event {
            Event::ProcessStart { pid, started, parent, name, command, tool } => {
                let id = ProcessId { pid: *pid, started: *started };
                let parent = ProcessId { pid: *parent, started: 0 };
                let parent = parent.moved(place.namespace, 0).pid;
                let program = RegisteredProgram::new(name, command, tool);
                self.comes(id.moved(place.namespace, place.ahead), parent, program, by)
            }
            Event::ProcessExec { pid, started, name, command, tool } => {
                let id = ProcessId { pid: *pid, started: *started };
                let program = RegisteredProgram::new(name, command, tool);
                self.becomes(id.moved(place.namespace, place.ahead), program, by)
            }
            Event::ProcessExit { pid, started, end, usage, cpu_seconds, memory_peak_bytes } => {
                let id = ProcessId { pid: *pid, started: *started };
                let id = id.moved(place.namespace, place.ahead);
                self.there.remove(&id);
                let is_news = !place.is_shared || self.gone.insert(id);
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

    fn comes(
        &mut self,
        id: ProcessId,
        parent: u32,
        program: RegisteredProgram,
        by: usize,
    ) -> Option<Event> {
        if self.has_gone(id) {
            return None;
        }
        if self.there.contains_key(&id) {
            return self.becomes(id, program, by);
        }
        let RegisteredProgram { name, command, tool } = program.clone();
        self.there.insert(id, RegisteredProcess { program, by: vec![by] });
        let (pid, started) = (id.pid, id.started);
        Some(Event::ProcessStart { pid, started, parent, name, command, tool })
    }

    fn becomes(&mut self, id: ProcessId, program: RegisteredProgram, by: usize) -> Option<Event> {
        if self.has_gone(id) {
            return None;
        }
        if let Some(known) = self.there.get_mut(&id) {
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

    /// Whether somebody saw the end of a process that several follow.
    pub(super) fn has_gone(&self, id: ProcessId) -> bool {
        self.gone.contains(&id)
    }

    /// Whether a process of this number is there.
    pub(super) fn has(&self, pid: u32) -> bool {
        self.there.keys().any(|id| id.pid == pid)
    }

    /// One of the recordings has ended: nothing more is known of those whom nobody else follows.
    pub(super) fn leaves(&mut self, by: usize) -> Vec<Event> {
        let mut gone = Vec::new();
        self.there.retain(|id, followed| {
            followed.by.retain(|one| *one != by);
            if followed.by.is_empty() {
                gone.push(*id);
            }
            !followed.by.is_empty()
        });
        gone.sort_unstable();
        gone.into_iter().map(|id| Event::ended(id, None, None)).collect()
    }
}

impl RegisteredProgram {
    fn new(name: &str, command: &Option<Vec<String>>, tool: &Option<String>) -> RegisteredProgram {
        RegisteredProgram { name: name.to_owned(), command: command.clone(), tool: tool.clone() }
    }
}
