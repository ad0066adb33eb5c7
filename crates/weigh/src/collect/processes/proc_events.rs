//! Processes reported by events of the kernel: fork, exec and exit.
//!
//! No listing is needed then. And because a process has one thread right after fork or exec, a task
//! clock can be attached that counts all it uses and is read after its exit: a process that lives
//! for less than a tick still has its CPU time.

use std::time::Duration;

use super::ProcessCollector;
use crate::collect::process::{ProcessClock, ProcessReader, Sharing};
use crate::host::{Host, ProcPath};
use crate::model::{Change, ProcessId, Program, Tick};
use crate::parse;

/// How long a forked process may take to call exec.
const SETTLE_TIME: Duration = Duration::from_millis(100);

/// A process that has exited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExitedProcess {
    /// Its id.
    pub id: ProcessId,
    /// All CPU time of its own, if it had a task clock.
    pub cpu_seconds: Option<f64>,
    /// Whether all its usage counts: it did not run before weigh attached.
    pub is_ours: bool,
}

/// It exited before it could be read.
struct AlreadyExited;

/// A forked process that matches, and whose start was not reported yet.
pub(super) struct NewFork {
    forked_at: Duration,
    process: ProcessReader,
    parent: u32,
    program: Program,
}

impl ProcessCollector {
    /// Process events are received from now on (in clock ticks since boot): processes are listed
    /// only once.
    pub fn enable_events(&mut self, now: u64) {
        self.has_events = true;
        self.events_since = now;
        self.attach_clocks(now);
    }

    /// Every process that starts from now on (in clock ticks since boot) gets a task clock.
    pub fn attach_clocks(&mut self, now: u64) {
        self.clocks_since = Some(now);
    }

    /// Process events are no longer received.
    pub fn disable_events(&mut self) {
        self.has_events = false;
        self.events_overrun();
    }

    /// Events were dropped: all processes have to be listed again.
    pub fn events_overrun(&mut self) {
        self.has_listed = false;
        self.may_have_missed = true;
    }

    /// A process was forked.
    pub fn forked(&mut self, host: &Host, at: Duration, parent: u32, child: u32) {
        if let Some(tree) = self.members.tree() {
            tree.forked(parent, child);
        }
        // It runs its parent's program. Most call exec at once, so its start is not reported before
        // it had the time.
        let is_parent = |process: &ProcessReader| process.id.pid == parent;
        if self.list.iter().any(is_parent)
            || self.new_forks.iter().any(|one| is_parent(&one.process))
            || self.missed_forks.contains(&parent)
        {
            match self.new_fork(host, at, child) {
                Ok(Some(fork)) => self.new_forks.push(fork),
                // It has exited already, and may have forked others before.
                Ok(None) | Err(AlreadyExited) => self.missed_forks.push(child),
            }
        }
    }

    /// A process called exec.
    pub fn executed(&mut self, host: &Host, tick: &mut Tick, pid: u32) {
        self.new_forks.retain(|fork| fork.process.id.pid != pid);
        self.missed_forks.retain(|missed| *missed != pid);
        if !self.members.tree().is_some_and(|tree| tree.has(pid)) {
            return;
        }
        let Some(place) = self.list.iter().position(|process| process.id.pid == pid) else {
            match self.new_fork(host, tick.at, pid) {
                Ok(Some(mut fork)) => {
                    // exec gives a process an address space of its own.
                    fork.process.sharing = Sharing::NotShared;
                    self.add_fork(tick, fork);
                    self.read_last(host, tick);
                }
                Ok(None) => {}
                // It may have been a process that matches.
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
                tick.changes.push(Change::Exec { id, program });
            }
            None => {
                self.list.remove(place);
                tick.changes.push(Change::Exited { id, cpu_seconds: None });
            }
        }
        self.pss_uss.note_change();
    }

    /// A process has exited: reads what is left of it, and returns it if it was measured.
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
        self.pss_uss.note_change();
        Some(ExitedProcess {
            id: process.id,
            cpu_seconds: process.clock.as_mut().and_then(ProcessClock::read),
            is_ours: process.id.started >= self.events_since,
        })
    }

    /// Adds forked processes that did not call exec.
    pub(super) fn add_settled_forks(&mut self, tick: &mut Tick) {
        let (recent, settled) = std::mem::take(&mut self.new_forks)
            .into_iter()
            .partition(|one| tick.at < one.forked_at + SETTLE_TIME);
        self.new_forks = recent;
        Vec::into_iter(settled).for_each(|one| self.add_fork(tick, one));
    }

    fn add_fork(&mut self, tick: &mut Tick, fork: NewFork) {
        let NewFork { process, parent, program, .. } = fork;
        if !self.list.iter().any(|known| known.id == process.id) {
            tick.changes.push(Change::Started { id: process.id, parent, program });
            self.list.push(process);
            self.pss_uss.note_change();
        }
    }

    /// Attaches a task clock to a process, unless it ran before weigh attached: then the clock would
    /// include earlier usage.
    pub(super) fn attach_clock(&mut self, host: &Host, place: usize) {
        let process = &mut self.list[place];
        if self.clocks_since.is_some_and(|since| process.id.started >= since) {
            process.clock = ProcessClock::on(host, process.id.pid, &mut self.context);
        }
    }

    fn read_last(&mut self, host: &Host, tick: &mut Tick) {
        if let Some(process) = self.list.last_mut() {
            process.read(host, &mut self.context, tick, || {});
        }
    }

    /// Attaches a task clock to a process that was just reported, if it matches.
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
        process.clock = ProcessClock::on(host, pid, &mut self.context);
        Ok(Some(NewFork { forked_at, process, parent, program }))
    }
}
