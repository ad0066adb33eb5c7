//! Who took part in a run: every process, and every program they ran.
//!
//! Fed by a replay of the recording, beside the summary's accumulator. A process
//! that did not run has no row for that tick, so what it had is carried on. Memory
//! grows with the processes that are alive: of the others only the heaviest are kept.
//!
//! What surprised us: `ru_maxrss` of a process is also that of the children it has
//! waited for, and of whatever it was before exec (a vforked one carries its parent's
//! size). So it is taken for the command's own process where neither can be, and for
//! others only when nothing else is known of them.

mod listed;
mod program;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;

use listed::{Gone, Programs};

use crate::catalog::Scope;
use crate::collect::process::{ProcessCpu, ProcessEvents, ProcessIo, ProcessMemory};
use crate::host::wait::{End, Usage};
use crate::record::{Entry, Event, Manifest, program_name};
use crate::sample::{Entity, ProcessId, Table, Tick};

/// Who took part in a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Participants {
    /// Programs, those with most CPU time first.
    pub programs: Vec<Program>,
    /// The programs that are not listed, together.
    pub other_programs: Option<Others>,
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
    /// When it was first seen, in seconds since the run began.
    pub came: f64,
    /// When it was gone; `None` when it outlived the recording.
    pub went: Option<f64>,
    /// CPU time of its own, when it was last looked at.
    pub cpu_seconds: Option<f64>,
    /// Its largest resident size.
    pub largest_bytes: Option<u64>,
    /// Bytes that it and the children it has waited for have read.
    pub read_bytes: Option<u64>,
    /// Bytes that they have written.
    pub written_bytes: Option<u64>,
    /// How it ended; `None` when its parent was told and not weigh.
    pub end: Option<End>,
}

/// All processes that ran one program.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Program {
    /// What it is called.
    pub name: String,
    /// How many processes ran it, at some time of their lives.
    pub processes: u64,
    /// The most at once.
    pub most: u64,
    /// CPU time of all of them, while they ran it.
    pub cpu_seconds: Option<f64>,
    /// The largest size of one of them.
    pub largest_bytes: Option<u64>,
    /// The largest sum of their sizes at one moment: proportional where that is known, and
    /// else resident.
    pub together_bytes: Option<u64>,
}

/// Programs that are not worth a line each.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Others {
    /// How many.
    pub programs: u64,
    /// How many processes ran one of them.
    pub processes: u64,
    /// CPU time of all of them.
    pub cpu_seconds: Option<f64>,
    /// The largest size of one of them.
    pub largest_bytes: Option<u64>,
}

/// Counts who takes part in a run, moment by moment.
#[derive(Debug)]
pub struct Census {
    main: ProcessId,
    /// Whether the command's process has waited for a child.
    main_waited: bool,
    /// The program of the command's process, and the size with which `wait4` gave it back:
    /// the end of the run says whether it is the command's.
    main_exit: Option<(String, u64)>,
    alive: HashMap<ProcessId, Member>,
    gone: Gone,
    programs: Programs,
}

/// A process that is alive.
#[derive(Debug)]
struct Member {
    process: Process,
    /// The place of the program it runs.
    program: usize,
    rss: Option<u64>,
    pss: Option<u64>,
    /// What it adds to its program's sum.
    size: u64,
}

impl Census {
    /// Nobody has come yet.
    pub fn new(manifest: &Manifest) -> Census {
        let main = ProcessId { pid: manifest.pid, started: manifest.process_started };
        Census {
            main,
            main_waited: false,
            main_exit: None,
            alive: HashMap::new(),
            gone: Gone::of(main),
            programs: Programs::default(),
        }
    }

    /// Takes in what was measured at one moment.
    pub fn tick(&mut self, tick: &Tick) {
        let Some(table) = tick.table(Scope::Process) else { return };
        for (row, entity) in table.entities().iter().enumerate() {
            let Entity::Process(id) = entity else { continue };
            let member = match self.alive.entry(*id) {
                Place::Occupied(place) => place.into_mut(),
                // Its introduction is lost.
                Place::Vacant(place) => {
                    let program = self.programs.joined("?");
                    place.insert(Member::new(*id, "?", program, tick.at.as_secs_f64()))
                }
            };
            member.renew(table, row, &mut self.programs);
            if *id == self.main {
                let children = table.get::<ProcessEvents>(row).children_faults;
                self.main_waited |= children.is_some_and(|faults| faults > 0);
            }
        }
        // Only now: in the middle of a tick some are as they were and some as they are.
        self.programs.settle();
        if let Some(moved) = self.programs.make_room() {
            self.alive.values_mut().for_each(|member| member.program = moved[member.program]);
        }
    }

    /// Takes in something that happened.
    pub fn event(&mut self, entry: &Entry) {
        let at = entry.seconds;
        match &entry.event {
            Event::ProcessStart { pid, started, name, command, .. }
            | Event::ProcessExec { pid, started, name, command } => {
                let id = ProcessId { pid: *pid, started: *started };
                self.runs(id, name, command.as_deref(), at);
            }
            Event::ProcessExit { pid, started, end, usage } => {
                let id = ProcessId { pid: *pid, started: *started };
                self.ended(id, *end, *usage, at);
            }
            Event::RunEnd(end) => {
                let Some((program, size)) = self.main_exit.take() else { return };
                if let Some(size) = end.after_exec(size) {
                    self.gone.main_grew(size);
                    self.programs.named_grew(&program, size);
                }
            }
            _ => {}
        }
    }

    /// A process runs a program from here on.
    fn runs(&mut self, id: ProcessId, name: &str, command: Option<&[String]>, at: f64) {
        // Of a process that is about to end nothing but an empty word is left.
        let command = command.filter(|words| words.iter().any(|word| !word.is_empty()));
        let program = self.programs.joined(&program::short_name(&program_name(name, command)));
        let member = match self.alive.entry(id) {
            Place::Occupied(place) => {
                let member = place.into_mut();
                self.programs.left(member.program, member.size);
                // What the last program had is not this one's.
                (member.rss, member.pss, member.size) = (None, None, 0);
                member.program = program;
                member
            }
            Place::Vacant(place) => place.insert(Member::new(id, name, program, at)),
        };
        member.process.name = program::short_name(name);
        member.process.command = command.map(program::typed);
    }

    fn ended(&mut self, id: ProcessId, end: Option<End>, usage: Option<Usage>, at: f64) {
        let Some(Member { mut process, program, size, .. }) = self.alive.remove(&id) else {
            return;
        };
        self.programs.left(program, size);
        process.went = Some(at);
        process.end = end;
        if let Some(usage) = usage {
            if process.cpu_seconds.is_none() {
                process.cpu_seconds = Some(usage.cpu_seconds());
                self.programs.used(program, usage.cpu_seconds());
            }
            if id == self.main && !self.main_waited {
                let program = self.programs.name(program).to_owned();
                self.main_exit = Some((program, usage.largest_rss_bytes));
            } else if process.largest_bytes.is_none() {
                process.largest_bytes = Some(usage.largest_rss_bytes);
                self.programs.grew(program, Some(usage.largest_rss_bytes));
            }
        }
        self.gone.push(process);
    }

    /// Who took part, in a run of so many seconds.
    pub fn finish(mut self, duration: f64) -> Participants {
        let mut left: Vec<Member> = self.alive.into_values().collect();
        left.sort_by_key(|member| member.process.id);
        left.into_iter().for_each(|member| self.gone.push(member.process));
        let (mut processes, processes_left_out) = self.gone.finish();
        for process in &mut processes {
            // Moments are counted from just before exec, and the last look is after the exit.
            process.came = process.came.min(duration);
            process.went = process.went.map(|went| went.min(duration));
        }
        let (programs, other_programs) = self.programs.finish();
        Participants { programs, other_programs, processes, processes_left_out }
    }
}

impl Member {
    fn new(id: ProcessId, name: &str, program: usize, at: f64) -> Member {
        Member {
            process: Process {
                id,
                name: name.to_owned(),
                command: None,
                came: at,
                went: None,
                cpu_seconds: None,
                largest_bytes: None,
                read_bytes: None,
                written_bytes: None,
                end: None,
            },
            program,
            rss: None,
            pss: None,
            size: 0,
        }
    }

    /// Takes in a row about it.
    fn renew(&mut self, table: &Table, row: usize, programs: &mut Programs) {
        let process = &mut self.process;
        let cpu = table.get::<ProcessCpu>(row);
        if let (Some(user), Some(system)) = (cpu.user, cpu.system) {
            let before = process.cpu_seconds.unwrap_or(0.0);
            let now = (user + system).max(before);
            process.cpu_seconds = Some(now);
            programs.used(self.program, now - before);
        }
        let memory = table.get::<ProcessMemory>(row);
        let largest = memory.peak.max(memory.rss);
        process.largest_bytes = process.largest_bytes.max(largest);
        programs.grew(self.program, largest);
        self.rss = memory.rss.or(self.rss);
        self.pss = memory.pss.or(self.pss);
        // A share may be of an older look than the size: it is never above that.
        let share = self.pss.map(|pss| self.rss.map_or(pss, |rss| pss.min(rss)));
        if let Some(size) = share.or(self.rss) {
            programs.resized(self.program, self.size, size);
            self.size = size;
        }
        let io = table.get::<ProcessIo>(row);
        process.read_bytes = io.read.or(process.read_bytes);
        process.written_bytes = io.written.or(process.written_bytes);
    }
}
