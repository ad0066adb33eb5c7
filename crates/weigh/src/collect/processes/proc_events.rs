//! Processes that the kernel tells of at the moment they come, change or go.
//!
//! Nobody has to be looked for then. And because a process has one thread when it has just
//! been forked or has called exec, a clock can be put on it that counts all it uses and is
//! read after its end: one that lives for less than a tick has its CPU time all the same.

use std::time::Duration;

use super::ProcessCollector;
use crate::collect::process::{ProcessClock, ProcessReader, Sharing};
use crate::host::{Host, ProcPath};
use crate::model::{Change, ProcessId, Program, Tick};
use crate::parse;

/// How long a process that was forked may take to become what it will be.
const SETTLE_TIME: Duration = Duration::from_millis(100);

/// A process that is over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExitedProcess {
    /// Which one.
    pub id: ProcessId,
    /// All CPU time of its own, if a clock was on it.
    pub cpu_seconds: Option<f64>,
    /// Whether all it ever used is meant: it did not run before anybody looked.
    pub is_ours: bool,
}

/// Nobody knows who it was: it was over before anybody looked.
struct AlreadyExited;

/// Somebody who is meant, and was not told of yet.
pub(super) struct NewFork {
    forked_at: Duration,
    process: ProcessReader,
    parent: u32,
    program: Program,
}

impl ProcessCollector {
    /// The kernel tells who comes and goes from now on, which is so many clock ticks after
    /// boot: a look is taken only once.
    pub fn enable_events(&mut self, now: u64) {
        self.has_events = true;
        self.events_since = now;
    }

    /// The kernel tells no longer.
    pub fn disable_events(&mut self) {
        self.has_events = false;
        self.events_overrun();
    }

    /// Some of what the kernel told was lost: everybody has to be looked for once more.
    pub fn events_overrun(&mut self) {
        self.has_listed = false;
        self.may_have_missed = true;
    }

    /// A process was made.
    pub fn forked(&mut self, host: &Host, at: Duration, parent: u32, child: u32) {
        if let Some(tree) = self.members.tree() {
            tree.forked(parent, child);
        }
        // It is what its parent is. Most become something else at once, and are not told of
        // before they had the time.
        let is_parent = |process: &ProcessReader| process.id.pid == parent;
        if self.list.iter().any(is_parent)
            || self.new_forks.iter().any(|one| is_parent(&one.process))
            || self.missed_forks.contains(&parent)
        {
            match self.new_fork(host, at, child) {
                Ok(Some(fork)) => self.new_forks.push(fork),
                // Gone already, perhaps not without children of its own.
                Ok(None) | Err(AlreadyExited) => self.missed_forks.push(child),
            }
        }
    }

    /// A process became another program.
    pub fn executed(&mut self, host: &Host, tick: &mut Tick, pid: u32) {
        self.new_forks.retain(|fork| fork.process.id.pid != pid);
        self.missed_forks.retain(|missed| *missed != pid);
        if !self.members.tree().is_some_and(|tree| tree.has(pid)) {
            return;
        }
        let Some(place) = self.list.iter().position(|process| process.id.pid == pid) else {
            match self.new_fork(host, tick.at, pid) {
                Ok(Some(mut fork)) => {
                    // Exec gives a process an address space of its own.
                    fork.process.sharing = Sharing::NotShared;
                    self.add_fork(tick, fork);
                    self.read_last(host, tick);
                }
                Ok(None) => {}
                // It may have been one of those that are meant.
                Err(AlreadyExited) => self.may_have_missed = true,
            }
            return;
        };
        let id = self.list[place].id;
        match self.program(host, pid) {
            Some(program) => {
                self.list[place].sharing = Sharing::NotShared;
                self.list[place].note_program(&program);
                if self.list[place].clock.is_none() {
                    self.attach_clock(host, place);
                }
                self.list[place].read(host, &mut self.context, tick, || {});
                tick.changes.push(Change::Became { id, program });
            }
            None => {
                self.list.remove(place);
                tick.changes.push(Change::Went { id });
            }
        }
        self.footprint.note_change();
    }

    /// A process is over: looks at what is left of it, and says who it was if it was followed.
    pub fn exited(&mut self, host: &Host, tick: &mut Tick, pid: u32) -> Option<ExitedProcess> {
        self.missed_forks.retain(|missed| *missed != pid);
        if let Some(tree) = self.members.tree() {
            tree.exited(pid);
        }
        if let Some(place) = self.new_forks.iter().position(|fork| fork.process.id.pid == pid) {
            let fork = self.new_forks.remove(place);
            self.add_fork(tick, fork);
        }
        let place = self.list.iter().position(|process| process.id.pid == pid)?;
        let mut process = self.list.remove(place);
        process.read(host, &mut self.context, tick, || {});
        self.footprint.note_change();
        Some(ExitedProcess {
            id: process.id,
            cpu_seconds: process.clock.as_mut().and_then(ProcessClock::read),
            is_ours: process.id.started >= self.events_since,
        })
    }

    /// Takes in those who were forked and stayed what they were.
    pub(super) fn add_settled_forks(&mut self, tick: &mut Tick) {
        let (fork, settled) = std::mem::take(&mut self.new_forks)
            .into_iter()
            .partition(|one| tick.at < one.forked_at + SETTLE_TIME);
        self.new_forks = fork;
        Vec::into_iter(settled).for_each(|one| self.add_fork(tick, one));
    }

    fn add_fork(&mut self, tick: &mut Tick, fork: NewFork) {
        let NewFork { process, parent, program, .. } = fork;
        if !self.list.iter().any(|new_reader| new_reader.id == process.id) {
            tick.changes.push(Change::Came { id: process.id, parent, program });
            self.list.push(process);
            self.footprint.note_change();
        }
    }

    /// Puts a clock on somebody who has one thread, unless it ran before anybody looked: then
    /// what the clock says is not what it used since.
    pub(super) fn attach_clock(&mut self, host: &Host, place: usize) {
        let process = &mut self.list[place];
        if self.has_events && process.id.started >= self.events_since {
            process.clock = ProcessClock::on(host, process.id.pid, &mut self.context.buffer);
        }
    }

    fn read_last(&mut self, host: &Host, tick: &mut Tick) {
        if let Some(process) = self.list.last_mut() {
            process.read(host, &mut self.context, tick, || {});
        }
    }

    /// Puts a clock on somebody who was just told of, if it is meant.
    fn new_fork(
        &mut self,
        host: &Host,
        forked_at: Duration,
        pid: u32,
    ) -> Result<Option<NewFork>, AlreadyExited> {
        let path = ProcPath::new(pid, "stat");
        let read = host.proc.read(path.as_c_str(), &mut self.context.buffer);
        let Some(stat) = read.ok().and_then(|bytes| parse::stat::parse(bytes).ok()) else {
            return Err(AlreadyExited);
        };
        let (id, parent) = (ProcessId { pid, started: stat.started }, stat.parent);
        let Some(program) = self.program(host, pid) else { return Ok(None) };
        let mut process = self.new_reader(id, parent, &program);
        process.clock = ProcessClock::on(host, pid, &mut self.context.buffer);
        Ok(Some(NewFork { forked_at, process, parent, program }))
    }
}
