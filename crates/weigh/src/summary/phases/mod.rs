//! The phases of a run: what each used, and what all of one name used.
//!
//! A phase with a command (`weigh phase NAME -- CMD`) knows exactly what its
//! command used, from `wait4`, and its processes are told from all others. One
//! without is a window of the whole run: the difference of the run's counters
//! between its two ends. The monitor looks at both.

mod figures;
mod look;
mod members;
mod memory;
mod statistics;
#[cfg(test)]
mod tests;
mod window;

pub use statistics::{Named, Statistics, statistics};

pub(super) use figures::of_phase;
pub(super) use look::Look;
pub(super) use window::Window;

use super::tree::Tree;
use crate::record::Event;
use crate::sample::ProcessId;
use look::{Boundary, SHARP};
use members::Members;
use window::{Extent, Measured, Seen};

/// A phase that is under way, or whose end has not been looked at yet.
#[derive(Debug)]
struct Open {
    /// Where its window is.
    window: usize,
    start: Boundary,
    end: Option<Boundary>,
}

/// All phases of a run so far.
#[derive(Debug)]
pub(super) struct Phases {
    windows: Vec<Window>,
    open: Vec<Open>,
    members: Members,
    last: Look,
    /// Of the machine: no counter of CPU time rises faster.
    cores: f64,
}

impl Phases {
    /// No phase yet, on a machine with so many cores.
    pub fn new(cores: u32) -> Phases {
        let (windows, open, members) = (Vec::new(), Vec::new(), Members::default());
        Phases { windows, open, members, last: Look::zero(), cores: f64::from(cores.max(1)) }
    }

    /// Takes in what happened to a phase or to a process.
    pub fn event(&mut self, event: &Event, at: f64) {
        match event {
            Event::ProcessStart { pid, started, parent, .. } => {
                let phase = self.members.came(ProcessId { pid: *pid, started: *started }, *parent);
                for window in self.chain(phase) {
                    self.windows[window].extent.members += 1;
                }
            }
            Event::ProcessExit { pid, started, .. } => {
                self.members.went(ProcessId { pid: *pid, started: *started });
            }
            Event::PhaseStart { id, name, parent } => self.begin(id, name, parent.as_deref(), at),
            Event::PhaseCommand { id, pid, started } => {
                if let Some(index) = self.find(id) {
                    let command = ProcessId { pid: *pid, started: *started };
                    let members = self.members.command(command, index);
                    let window = &mut self.windows[index];
                    window.command = Some(command);
                    window.extent.begin_with_the_command(members as u64);
                }
            }
            Event::PhaseEnd { id, usage, end, account } => {
                let Some(index) = self.find(id) else { return };
                let window = &mut self.windows[index];
                window.end = Some(at.max(window.start));
                (window.usage, window.exit, window.account) = (*usage, *end, *account);
                let before = self.last;
                for open in self.open.iter_mut().filter(|open| open.window == index) {
                    open.end = Some(Boundary { at, before, after: None });
                }
            }
            _ => {}
        }
    }

    /// The phase of this id that is under way.
    fn find(&self, id: &str) -> Option<usize> {
        let running = |open: &&Open| open.end.is_none() && self.windows[open.window].id == id;
        self.open.iter().rfind(running).map(|open| open.window)
    }

    /// A window and all around it.
    fn chain(&self, from: Option<usize>) -> Vec<usize> {
        std::iter::successors(from, |window| self.windows[*window].around).collect()
    }

    fn begin(&mut self, id: &str, name: &str, parent: Option<&str>, at: f64) {
        let around = parent.and_then(|parent| self.find(parent));
        let outside = self.chain(around);
        let mut shared = false;
        for open in self.open.iter().filter(|open| open.end.is_none()) {
            if !outside.contains(&open.window) {
                self.windows[open.window].shared = true;
                shared = true;
            }
        }
        self.open.push(Open {
            window: self.windows.len(),
            start: Boundary { at, before: self.last, after: None },
            end: None,
        });
        self.windows.push(Window {
            id: id.to_owned(),
            name: name.to_owned(),
            parent: parent.map(str::to_owned),
            around,
            start: at,
            end: None,
            command: None,
            shared,
            usage: None,
            account: None,
            exit: None,
            extent: Extent::default(),
            measured: None,
        });
    }

    /// Takes in a look at everybody.
    pub fn look(&mut self, look: Look, tree: &Tree) {
        let look = look.not_below(&self.last);
        self.last = look;
        if self.open.is_empty() {
            return;
        }
        let (mut whole, of_commands) = self.seen(tree);
        whole.cpu = look.clock.or(look.summed);
        for (open, of_command) in self.open.iter_mut().zip(&of_commands) {
            let window = &mut self.windows[open.window];
            // What grew since the last look grew in here, if that look was in here.
            let mut seen = if window.command.is_some() { *of_command } else { whole };
            if window.command.is_none() && open.start.after.is_some() {
                seen.largest = seen.largest.max(tree.grown());
            }
            // What is there just after the end was there at the end.
            if open.end.is_none_or(|end| look.at - end.at <= SHARP) {
                window.extent.see(&seen, look.at);
            }
            window.extent.ceilings.join(tree.recent_ceilings());
            open.start.after.get_or_insert(look);
            if let Some(end) = &mut open.end {
                end.after = Some(look);
                window.measured = Some(Measured::between(&open.start, end, self.cores));
            }
        }
        self.open.retain(|open| open.end.is_none());
    }

    /// What is there of the whole run, and of the command of each phase that is under way.
    fn seen(&self, tree: &Tree) -> (Seen, Vec<Seen>) {
        let mut whole = Seen::default();
        let mut of_commands = vec![Seen::default(); self.open.len()];
        for (id, process) in tree.everybody() {
            whole.sums.add(process);
            whole.largest = whole.largest.max(process.resident());
            let mut next = self.members.phase(id);
            while let Some(window) = next {
                if let Some(place) = self.open.iter().position(|open| open.window == window) {
                    let seen = &mut of_commands[place];
                    seen.sums.add(process);
                    // All its life was in the phase, and so was the most it ever had.
                    seen.largest = seen.largest.max(process.ceiling());
                }
                next = self.windows[window].around;
            }
        }
        of_commands.iter_mut().for_each(|seen| seen.cpu = seen.sums.cpu);
        (whole, of_commands)
    }

    /// Every phase, with what is known of those that have no end.
    pub fn finish(mut self) -> Vec<Window> {
        let last = Boundary { at: self.last.at, before: self.last, after: Some(self.last) };
        for open in &self.open {
            let end = open.end.unwrap_or(last);
            let measured = Measured::between(&open.start, &end, self.cores);
            self.windows[open.window].measured = Some(measured);
        }
        self.windows
    }
}
