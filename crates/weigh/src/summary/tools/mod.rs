//! The tools of a run: what all processes of one program used together.
//!
//! A process counts for the program it runs at the moment; an interpreter is called by
//! its script. A process that did not run has no row for that tick, so what it had is
//! carried on. Sums are kept up to date by what changed: a tick costs what its rows
//! cost, however many processes there are. Of very many tools the heaviest are kept and
//! the others counted together.
//!
//! What surprised us: the CPU time of a process that is seen for the first time may be
//! more than the time since it was seen. Its life began when it was started, which its
//! start time tells, and not when somebody looked.

mod list;
mod running;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;

use list::List;
use serde::{Deserialize, Serialize};

use super::figure::Method;
use super::main_exit::MainExit;
use super::own_cpu::{OwnCpu, difference};
use super::sample_times::SampleTimes;
use crate::catalog::metrics::ProcessState;
use crate::model::live::{LastKnownMemory, start_seconds};
use crate::model::{Entity, ProcessId, Table, Usage, program_name};
use crate::record::{Entry, Event, Manifest};
use crate::text::ellipsize;
pub(crate) use list::by_weight;
use running::Sizes;

/// All processes of a run that ran one program.
///
/// What is unknown is null. Memory is sampled: a peak between two looks may have been higher.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Tool {
    /// What it is called: the program, or the script that an interpreter runs.
    pub name: String,
    /// How many programs this is: 1, but for the last entry, when the lightest of very many
    /// are together in it.
    pub programs: u64,
    /// How many processes ran it, at some time of their lives.
    pub instances: u64,
    /// The most at once; null in the entry for the lightest of very many.
    pub instances_peak: Option<u64>,
    /// How often a process of it was there when everybody was looked at.
    pub samples: u64,
    /// From the first coming to the last going.
    pub duration_seconds: Option<f64>,
    /// CPU time of its processes while they ran it, as far as they were sampled.
    pub cpu_time_seconds: Option<f64>,
    /// Exact when the end of each of its processes told all it used; else sampled, and what a
    /// process used after its last sample is not in it. Estimated when the recording has lost who
    /// ran what, or was changed.
    pub cpu_time_method: Option<Method>,
    /// The same in user mode.
    pub cpu_user_seconds: Option<f64>,
    /// The same in the kernel.
    pub cpu_system_seconds: Option<f64>,
    /// Cores that they kept busy, over the duration; null when that is too short to say.
    pub cpu_cores_mean: Option<f64>,
    /// The most cores they kept busy between two looks.
    pub cpu_cores_peak: Option<f64>,
    /// The largest size of one of them, as the kernel remembers it.
    pub instance_memory_peak_bytes: Option<u64>,
    /// The largest private memory (USS) of one of them.
    pub instance_uss_peak_bytes: Option<u64>,
    /// The largest sum of their sizes at one moment: proportional where that is known, and
    /// else resident; never below the largest of them.
    pub memory_peak_bytes: Option<u64>,
    /// The largest sum of resident memory, shared pages counted for each; never below the
    /// largest of them.
    pub memory_rss_peak_bytes: Option<u64>,
    /// The largest sum of proportional memory (PSS).
    pub memory_pss_peak_bytes: Option<u64>,
    /// The largest sum of private memory (USS).
    pub memory_uss_peak_bytes: Option<u64>,
}

impl Tool {
    /// Whether it is the entry for the lightest of very many.
    pub fn is_others(&self) -> bool {
        self.instances_peak.is_none()
    }
}

/// What the entry for the lightest of very many tools is called.
pub const OTHERS: &str = "others";

/// Nobody reads a longer name.
const LONGEST_NAME: usize = 60;

/// The tool of a process of this kernel name and command line, unless it was said which.
pub fn tool_name(name: &str, command: Option<&[String]>, said: Option<&str>) -> String {
    let name = said.map_or_else(|| program_name(name, command), str::to_owned);
    ellipsize(&name, LONGEST_NAME)
}

/// Counts what each tool uses, moment by moment.
#[derive(Debug)]
pub(crate) struct Tools {
    /// Clock ticks from boot to the run's zero.
    zero: u64,
    main_exit: MainExit,
    /// The tools of the commands' processes when they ended.
    main_tools: HashMap<ProcessId, String>,
    members: HashMap<ProcessId, ToolProcess>,
    list: List,
}

/// A process that is alive.
#[derive(Debug, Default)]
struct ToolProcess {
    /// The place of the tool it runs.
    tool: usize,
    /// Whether there was a row about it.
    is_seen: bool,
    /// Its CPU time when it was last sampled, and when that was, or when it started.
    cpu: OwnCpu,
    looked: f64,
    memory: LastKnownMemory,
    /// What of it is in the sums of its tool.
    counted: Sizes,
}

impl Tools {
    /// Of a run that is about to begin.
    pub(crate) fn of(manifest: &Manifest) -> Tools {
        let sample_times = SampleTimes::new(manifest.is_merged());
        Tools {
            zero: manifest.zero(),
            main_exit: MainExit::of(&manifest.mains()),
            main_tools: HashMap::new(),
            members: HashMap::new(),
            list: List::new(sample_times, machine_cores(manifest)),
        }
    }

    /// Takes in the rows of a tick.
    pub(crate) fn rows(&mut self, table: &Table, at: f64) {
        for (row, entity) in table.entities().iter().enumerate() {
            let Entity::Process(id) = entity else { continue };
            let member = match self.members.entry(*id) {
                Place::Occupied(place) => place.into_mut(),
                // Its introduction is lost.
                Place::Vacant(place) => {
                    let born = self.list.possible(start_seconds(*id, self.zero), at);
                    place.insert(ToolProcess::new(self.list.joined("?", born), born))
                }
            };
            member.renew(table, row, at, &mut self.list);
            self.main_exit.row(*id, table, row);
        }
        // Only now: in the middle of a tick some are as they were and some as they are.
        self.list.settle();
        if let Some(moved) = self.list.make_room() {
            self.members.values_mut().for_each(|member| member.tool = moved[member.tool]);
        }
    }

    /// Everybody was looked at.
    pub(crate) fn sample_completed(&mut self, at: f64) {
        self.list.sample_completed(at);
    }

    /// Takes in something that happened.
    pub(crate) fn event(&mut self, entry: &Entry) {
        let at = entry.seconds;
        match &entry.event {
            Event::ProcessStart { pid, started, name, command, tool, .. }
            | Event::ProcessExec { pid, started, name, command, tool } => {
                let id = ProcessId { pid: *pid, started: *started };
                self.runs(id, &tool_name(name, command.as_deref(), tool.as_deref()), at);
            }
            Event::ProcessExit { pid, started, usage, cpu_seconds, memory_peak_bytes, .. } => {
                let id = ProcessId { pid: *pid, started: *started };
                if let Some(member) = self.members.get(&id) {
                    self.list.grew(member.tool, *memory_peak_bytes);
                }
                self.ended(id, usage.as_ref(), *cpu_seconds, at);
            }
            Event::RunEnd(end) => {
                for (main, size) in self.main_exit.own(end) {
                    if let Some(tool) = self.main_tools.get(&main) {
                        self.list.named_grew(tool, size);
                    }
                }
            }
            _ => {}
        }
    }

    /// A process runs a program from here on.
    fn runs(&mut self, id: ProcessId, tool: &str, at: f64) {
        match self.members.entry(id) {
            // It is still the same process of the same tool.
            Place::Occupied(place) if self.list.name(place.get().tool) == tool => {}
            Place::Occupied(place) => {
                let member = place.into_mut();
                self.list.left(member.tool, &member.counted, member.is_seen, at);
                // Where one program ends and the next begins is between two samples.
                self.list.is_sampled(member.tool);
                // What the last program had is not this one's.
                let ToolProcess { is_seen, cpu, looked, .. } = *member;
                let tool = self.list.joined(tool, at);
                self.list.is_sampled(tool);
                *member = ToolProcess { is_seen, cpu, ..ToolProcess::new(tool, looked) };
                if is_seen {
                    self.list.seen(tool);
                }
            }
            Place::Vacant(place) => {
                let born = self.list.possible(start_seconds(id, self.zero), at);
                place.insert(ToolProcess::new(self.list.joined(tool, born), born));
            }
        }
    }

    fn ended(&mut self, id: ProcessId, usage: Option<&Usage>, clock: Option<f64>, at: f64) {
        let Some(member) = self.members.remove(&id) else { return };
        let cpu = member.cpu.ended(usage, clock, at);
        if let Some(cpu) = cpu {
            let before = member.cpu.sampled().unwrap_or_default();
            self.list.used(member.tool, difference(cpu.times, before), (member.looked, at));
        }
        if !cpu.is_some_and(|cpu| cpu.is_exact) {
            self.list.is_sampled(member.tool);
        }
        if let Some(usage) = usage {
            if self.main_exit.ended(id, usage) {
                self.main_tools.insert(id, self.list.name(member.tool).to_owned());
            } else if !member.is_seen {
                self.list.grew(member.tool, Some(usage.largest_rss_bytes));
            }
        }
        self.list.left(member.tool, &member.counted, member.is_seen, at);
    }

    /// The tools of a run of so many seconds, those with most CPU time first, and the others.
    pub(crate) fn finish(self, duration: f64) -> Vec<Tool> {
        self.list.finish(duration)
    }
}

/// The cores of the machine, or of all machines; no bound where that is not known.
pub(crate) fn machine_cores(manifest: &Manifest) -> f64 {
    match manifest.host.cores {
        0 => f64::INFINITY,
        cores => f64::from(cores),
    }
}

impl ToolProcess {
    /// A process that runs a tool and was started then.
    fn new(tool: usize, born: f64) -> ToolProcess {
        ToolProcess { tool, looked: born, ..ToolProcess::default() }
    }

    /// Takes in a row about it.
    fn renew(&mut self, table: &Table, row: usize, at: f64, list: &mut List) {
        if !std::mem::replace(&mut self.is_seen, true) {
            list.seen(self.tool);
        }
        if let Some(used) = self.cpu.row(table, row, at) {
            list.used(self.tool, used, (self.looked, at));
            self.looked = at;
        }
        let now = self.sizes(table, row, list);
        if now != self.counted {
            list.resized(self.tool, &self.counted, &now);
            self.counted = now;
        }
    }

    /// What it has now, by its row and, where that has nothing, by the one before.
    fn sizes(&mut self, table: &Table, row: usize, list: &mut List) -> Sizes {
        let threads = table.get::<ProcessState>(row).threads.or(self.counted.threads);
        let Some(memory) = self.memory.update(table, row) else {
            self.memory = LastKnownMemory::default();
            return Sizes { threads, ..Sizes::default() };
        };
        list.grew(self.tool, memory.peak.max(memory.rss));
        list.private(self.tool, memory.uss);
        let (rss, pss, uss) = (self.memory.rss, self.memory.pss(), self.memory.uss());
        Sizes { rss, pss, uss, size: pss.or(rss), threads }
    }
}
