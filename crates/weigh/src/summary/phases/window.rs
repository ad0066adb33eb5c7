//! What is kept of one phase: a few peaks while it lasts, and how much the counters rose.

use super::look::{Boundary, Look, Rise, rise};
use crate::host::wait::{End, Usage};
use crate::record::events::Account;
use crate::sample::ProcessId;
use crate::summary::alive::{Levels, Sums};
use crate::summary::ceiling::Ceilings;
use crate::summary::curve::{Mean, Peak, Rate};

/// One phase, under way or ended. Its size does not depend on how long it lasted.
#[derive(Debug)]
pub struct Window {
    pub id: String,
    pub name: String,
    pub parent: Option<String>,
    /// Where the phase around it is among the windows.
    pub around: Option<usize>,
    pub start: f64,
    /// Nothing when nobody told of its end.
    pub end: Option<f64>,
    /// The process of its command, once that is known.
    pub command: Option<ProcessId>,
    /// Whether phases that are neither around it nor inside it ran at the same time.
    pub shared: bool,
    pub usage: Option<Usage>,
    pub account: Option<Account>,
    pub exit: Option<End>,
    pub extent: Extent,
    pub measured: Option<Measured>,
}

/// Peaks during a phase: of its command's processes when it has one, else of the whole run.
#[derive(Debug, Default)]
pub struct Extent {
    pub levels: Levels,
    /// The largest single process.
    pub largest: Peak,
    pub memory: Mean,
    /// CPU time from look to look.
    pub cores: Rate,
    /// What the memory of the whole run was not above.
    pub ceilings: Ceilings,
    /// How many processes of its command were seen.
    pub members: u64,
}

impl Extent {
    /// Forgets all but what bounds the whole run: from here on the command alone counts.
    pub fn begin_with_the_command(&mut self, members: u64) {
        let ceilings = std::mem::take(&mut self.ceilings);
        *self = Extent { ceilings, members, ..Extent::default() };
    }

    /// Takes in what was seen at a look.
    pub fn see(&mut self, seen: &Seen, at: f64) {
        seen.sums.into_part(&mut self.levels, at);
        if let Some(largest) = seen.largest {
            self.largest.see(largest as f64, at);
        }
        if let Some(memory) = seen.sums.memory {
            self.memory.see(memory, at);
        }
        if let Some(cpu) = seen.cpu {
            self.cores.see(cpu, at);
        }
    }
}

/// What was seen at a look of the processes that count for a phase.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen {
    pub sums: Sums,
    pub largest: Option<u64>,
    pub cpu: Option<f64>,
}

/// How much the run's counters rose during a phase.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// By the run's task clock.
    pub clock: Option<Rise>,
    /// By the sum over processes.
    pub summed: Option<Rise>,
    /// User and system time, by the sum over processes.
    pub split: (f64, f64),
    pub io: Option<[Rise; 6]>,
    /// CPU time of the machine that went to interrupts and other guests.
    pub elsewhere: f64,
    /// The most processes at either end, each of which the kernel cuts off at its clock ticks.
    pub alive: usize,
}

impl Measured {
    /// From the looks around both ends, on a machine with so many cores.
    pub fn between(start: &Boundary, end: &Boundary, cores: f64) -> Measured {
        let of = |counter: fn(&Look) -> Option<f64>| rise(start, end, counter, Some(cores));
        let part = |counter: fn(&Look) -> f64| {
            rise(start, end, |look| Some(counter(look)), Some(cores)).map_or(0.0, |rise| rise.value)
        };
        let io = |which: usize| rise(start, end, |look| Some(look.io?[which]), None);
        let last = end.after.unwrap_or(end.before);
        Measured {
            clock: of(|look| look.clock),
            summed: of(|look| look.summed),
            split: (part(|look| look.split.0), part(|look| look.split.1)),
            io: io(0).map(|first| std::array::from_fn(|which| io(which).unwrap_or(first))),
            elsewhere: (last.elsewhere - start.before.elsewhere).max(0.0),
            alive: start.after.unwrap_or(start.before).alive.max(last.alive),
        }
    }
}
