//! Processes that the kernel tells of at the moment they come, change or go.
//!
//! Nobody has to be looked for then. And because a process has one thread when it has just
//! been forked or has called exec, a clock can be put on it that counts all it uses and is
//! read after its end: one that lives for less than a tick has its CPU time all the same.

use std::time::Duration;

use super::Processes;
use crate::collect::process::{Clock, Process, Sharing};
use crate::host::{Host, ProcPath};
use crate::model::{Change, ProcessId, Program, Tick};
use crate::parse;

/// How long a process that was forked may take to become what it will be.
const SOON: Duration = Duration::from_millis(100);

/// A process that is over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Departed {
    /// Which one.
    pub id: ProcessId,
    /// All CPU time of its own, if a clock was on it.
    pub cpu_seconds: Option<f64>,
    /// Whether all it ever used is meant: it did not run before anybody looked.
    pub is_ours: bool,
}

/// Nobody knows who it was: it was over before anybody looked.
struct Gone;

/// Somebody who is meant, and was not told of yet.
pub(super) struct Fresh {
    met: Duration,
    process: Process,
    parent: u32,
    program: Program,
}

impl Processes {
    /// The kernel tells who comes and goes from now on, which is so many clock ticks after
    /// boot: a look is taken only once.
    pub fn are_told(&mut self, now: u64) {
        self.is_told = true;
        self.came = now;
    }

    /// The kernel tells no longer.
    pub fn are_told_no_more(&mut self) {
        self.is_told = false;
        self.some_was_lost();
    }

    /// Some of what the kernel told was lost: everybody has to be looked for once more.
    pub fn some_was_lost(&mut self) {
        self.has_looked = false;
        self.unseen = true;
    }

    /// A process was made.
    pub fn forked(&mut self, host: &Host, at: Duration, parent: u32, child: u32) {
        if let Some(tree) = self.members.tree() {
            tree.was_born(parent, child);
        }
        // It is what its parent is. Most become something else at once, and are not told of
        // before they had the time.
        let is_parent = |process: &Process| process.id.pid == parent;
        if self.list.iter().any(is_parent)
            || self.fresh.iter().any(|one| is_parent(&one.process))
            || self.missed.contains(&parent)
        {
            match self.meet(host, at, child) {
                Ok(Some(fresh)) => self.fresh.push(fresh),
                // Gone already, perhaps not without children of its own.
                Ok(None) | Err(Gone) => self.missed.push(child),
            }
        }
    }

    /// A process became another program.
    pub fn executed(&mut self, host: &Host, tick: &mut Tick, pid: u32) {
        self.fresh.retain(|fresh| fresh.process.id.pid != pid);
        self.missed.retain(|missed| *missed != pid);
        if !self.members.tree().is_some_and(|tree| tree.has(pid)) {
            return;
        }
        let Some(place) = self.list.iter().position(|process| process.id.pid == pid) else {
            match self.meet(host, tick.at, pid) {
                Ok(Some(mut fresh)) => {
                    // Exec gives a process an address space of its own.
                    fresh.process.sharing = Sharing::Nobody;
                    self.welcome(tick, fresh);
                    self.look_at_last(host, tick);
                }
                Ok(None) => {}
                // It may have been one of those that are meant.
                Err(Gone) => self.unseen = true,
            }
            return;
        };
        let id = self.list[place].id;
        match self.program(host, pid) {
            Some(program) => {
                self.list[place].sharing = Sharing::Nobody;
                self.list[place].note_program(&program);
                if self.list[place].clock.is_none() {
                    self.put_clock_on(host, place);
                }
                self.list[place].look(host, &mut self.tools, tick, || {});
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
    pub fn ended(&mut self, host: &Host, tick: &mut Tick, pid: u32) -> Option<Departed> {
        self.missed.retain(|missed| *missed != pid);
        if let Some(tree) = self.members.tree() {
            tree.has_ended(pid);
        }
        if let Some(place) = self.fresh.iter().position(|fresh| fresh.process.id.pid == pid) {
            let fresh = self.fresh.remove(place);
            self.welcome(tick, fresh);
        }
        let place = self.list.iter().position(|process| process.id.pid == pid)?;
        let mut process = self.list.remove(place);
        process.look(host, &mut self.tools, tick, || {});
        self.footprint.note_change();
        Some(Departed {
            id: process.id,
            cpu_seconds: process.clock.as_mut().and_then(Clock::read),
            is_ours: process.id.started >= self.came,
        })
    }

    /// Takes in those who were forked and stayed what they were.
    pub(super) fn welcome_fresh(&mut self, tick: &mut Tick) {
        let (fresh, settled) =
            std::mem::take(&mut self.fresh).into_iter().partition(|one| tick.at < one.met + SOON);
        self.fresh = fresh;
        Vec::into_iter(settled).for_each(|one| self.welcome(tick, one));
    }

    fn welcome(&mut self, tick: &mut Tick, fresh: Fresh) {
        let Fresh { process, parent, program, .. } = fresh;
        if !self.list.iter().any(|known| known.id == process.id) {
            tick.changes.push(Change::Came { id: process.id, parent, program });
            self.list.push(process);
            self.footprint.note_change();
        }
    }

    /// Puts a clock on somebody who has one thread, unless it ran before anybody looked: then
    /// what the clock says is not what it used since.
    pub(super) fn put_clock_on(&mut self, host: &Host, place: usize) {
        let process = &mut self.list[place];
        if self.is_told && process.id.started >= self.came {
            process.clock = Clock::on(host, process.id.pid, &mut self.tools.buffer);
        }
    }

    fn look_at_last(&mut self, host: &Host, tick: &mut Tick) {
        if let Some(process) = self.list.last_mut() {
            process.look(host, &mut self.tools, tick, || {});
        }
    }

    /// Puts a clock on somebody who was just told of, if it is meant.
    fn meet(&mut self, host: &Host, met: Duration, pid: u32) -> Result<Option<Fresh>, Gone> {
        let path = ProcPath::new(pid, "stat");
        let read = host.proc.read(path.as_c_str(), &mut self.tools.buffer);
        let Some(stat) = read.ok().and_then(|bytes| parse::stat::parse(bytes).ok()) else {
            return Err(Gone);
        };
        let (id, parent) = (ProcessId { pid, started: stat.started }, stat.parent);
        let Some(program) = self.program(host, pid) else { return Ok(None) };
        let mut process = self.known(id, parent, &program);
        process.clock = Clock::on(host, pid, &mut self.tools.buffer);
        Ok(Some(Fresh { met, process, parent, program }))
    }
}
