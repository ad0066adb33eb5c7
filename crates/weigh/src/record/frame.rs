//! Frames: the moments of a run, each with the live processes and their carried values.
//!
//! A frame is what every reader gets, from a recording ([`super::Recording::replay`]) and from the
//! monitor while the run goes on. One event or one tick makes a frame. The start or exec of a
//! process is already applied to `live` when readers get its frame; a process that exits is still
//! in it, with its last values.

use super::{Entry, Event, Moment};
use crate::catalog::Scope;
use crate::model::live::LiveProcesses;
use crate::model::{ProcessId, Tick, program_name};

/// A moment of a run.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// What was sampled, or what happened.
    pub moment: Moment<'a>,
    /// The live processes.
    pub live: &'a LiveProcesses,
}

impl Frame<'_> {
    /// When it was, in seconds since the run began.
    pub fn at(&self) -> f64 {
        match self.moment {
            Moment::Tick(tick) => tick.at.as_secs_f64(),
            Moment::Event(entry) => entry.seconds,
        }
    }
}

/// Makes frames of ticks and events.
#[derive(Debug, Default)]
pub struct Frames {
    live: LiveProcesses,
}

impl Frames {
    /// Makes the frame of a tick or an event.
    pub fn moment(&mut self, moment: Moment<'_>, each: impl FnOnce(&Frame<'_>)) {
        match moment {
            Moment::Tick(tick) => self.tick(tick, each),
            Moment::Event(entry) => self.event(entry, each),
        }
    }

    /// Makes the frame of a tick.
    pub fn tick(&mut self, tick: &Tick, each: impl FnOnce(&Frame<'_>)) {
        self.live.rows(tick.table(Scope::Process), tick.at.as_secs_f64());
        each(&Frame { moment: Moment::Tick(tick), live: &self.live });
    }

    /// Makes the frame of an event.
    pub fn event(&mut self, entry: &Entry, each: impl FnOnce(&Frame<'_>)) {
        let mut exits = None;
        match &entry.event {
            Event::ProcessStart { pid, started, parent, name, command, tool } => {
                let id = ProcessId { pid: *pid, started: *started };
                self.live.start(id, *parent, name, program(name, command, tool));
            }
            Event::ProcessExec { pid, started, name, command, tool } => {
                let id = ProcessId { pid: *pid, started: *started };
                self.live.exec(id, name, program(name, command, tool));
            }
            Event::ProcessExit { pid, started, .. } => {
                exits = Some(ProcessId { pid: *pid, started: *started });
            }
            _ => {}
        }
        each(&Frame { moment: Moment::Event(entry), live: &self.live });
        if let Some(id) = exits {
            self.live.exit(id);
        }
    }

    /// The live processes now, or at the end.
    pub fn live(&self) -> &LiveProcesses {
        &self.live
    }
}

/// What a process runs: the tool it counts for, where one was set, or its program.
fn program(name: &str, command: &Option<Vec<String>>, tool: &Option<String>) -> String {
    tool.clone().unwrap_or_else(|| program_name(name, command.as_deref()))
}
