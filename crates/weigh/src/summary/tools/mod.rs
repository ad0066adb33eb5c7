//! The tools of a run: what all processes of one program used together.
//!
//! A process counts for the program it runs at the time; an interpreter is named by its script. Sums
//! are updated incrementally: a tick costs what its rows cost, however many processes there are. Of
//! very many tools the heaviest are kept and the others counted together.
//!
//! What surprised us: the CPU time in the first sample of a process may be more than the time since
//! the last tick. The process began at its start time, and not at its first sample.

mod list;
mod running;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use list::List;
use serde::{Deserialize, Serialize};

use super::figure::Method;
use super::main_exit::MainExit;
use super::sample_times::SampleTimes;
use crate::catalog::metrics::ProcessMemory;
use crate::model::live::{LiveProcess, LiveProcesses, PerProcess, start_seconds};
use crate::model::own_cpu::difference;
use crate::model::{ProcessId, Table, Usage};
use crate::record::{Entry, Event, Manifest, RunEnd};
use crate::text::ellipsize;
pub(crate) use list::by_weight;
use running::ToolSizes;

/// All processes of a run that ran one program.
///
/// What is unknown is null. Memory is sampled: a peak between two ticks may have been higher.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Tool {
    /// Its name: the program, or the script that an interpreter runs.
    pub name: String,
    /// How many programs this is: 1, but for the last entry, when the lightest of very many
    /// are together in it.
    pub programs: u64,
    /// How many processes ran it, at some time.
    pub instances: u64,
    /// The most at once; null in the entry for the lightest of very many.
    pub instances_peak: Option<u64>,
    /// At how many complete ticks a process of it was alive, summed over its processes.
    pub samples: u64,
    /// From the first start to the last exit.
    pub duration_seconds: Option<f64>,
    /// CPU time of its processes while they ran it, as far as they were sampled.
    pub cpu_time_seconds: Option<f64>,
    /// Exact when the exit of each of its processes reported all it used; else sampled, and what a
    /// process used after its last sample is not in it. Estimated when the recording has lost which
    /// process ran what, or was corrupted.
    pub cpu_time_method: Option<Method>,
    /// The same in user mode.
    pub cpu_user_seconds: Option<f64>,
    /// The same in the kernel.
    pub cpu_system_seconds: Option<f64>,
    /// Cores used, over the duration; null when that is too short.
    pub cpu_cores_mean: Option<f64>,
    /// The most cores used between two ticks.
    pub cpu_cores_peak: Option<f64>,
    /// The largest size of one of them, by the kernel's high-water mark.
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

/// The name of the entry for the lightest of very many tools.
pub const OTHERS: &str = "others";

/// No reader needs a longer name.
const LONGEST_NAME: usize = 60;

/// The tool of a process that runs this program.
pub fn tool_name(program: &str) -> String {
    ellipsize(program, LONGEST_NAME)
}

/// Counts what each tool uses, tick by tick.
#[derive(Debug, Clone)]
pub(crate) struct Tools {
    /// Clock ticks from boot to the run's zero.
    zero: u64,
    main_exit: MainExit,
    /// The tools of the commands' processes at their exit.
    main_tools: HashMap<ProcessId, String>,
    members: PerProcess<ToolProcess>,
    list: List,
}

/// A live process of a tool.
#[derive(Debug, Default, Clone)]
struct ToolProcess {
    /// The index of the tool it runs.
    tool: usize,
    /// When its CPU time was last sampled, or when it started.
    sampled_at: f64,
    /// Its part of the sums of its tool.
    counted: ToolSizes,
}

impl Tools {
    /// Of a run that is about to begin.
    pub(crate) fn of(manifest: &Manifest) -> Tools {
        let sample_times = SampleTimes::new(manifest.is_merged());
        Tools {
            zero: manifest.zero(),
            main_exit: MainExit::of(&manifest.mains()),
            main_tools: HashMap::new(),
            members: PerProcess::default(),
            list: List::new(sample_times, machine_cores(manifest)),
        }
    }

    /// Adds the rows of a tick.
    pub(crate) fn rows(&mut self, table: &Table, live: &LiveProcesses, at: f64) {
        for (row, process) in live.in_rows() {
            // Its start event may be lost.
            let member = self.members.get_or_insert_with(process, || {
                let start = self.list.possible(start_seconds(process.id, self.zero), at);
                ToolProcess::new(self.list.joined(&tool_name(&process.program), start), start)
            });
            member.renew(process, &table.get(row), at, &mut self.list);
            self.main_exit.row(process.id, table, row);
        }
        // Only now: in the middle of a tick some have old values and some new ones.
        self.list.settle();
        if let Some(moved) = self.list.cut_if_long() {
            self.members.values_mut().for_each(|member| member.tool = moved[member.tool]);
        }
    }

    /// All processes were sampled.
    pub(crate) fn sample_completed(&mut self, at: f64) {
        self.list.sample_completed(at);
    }

    /// Adds an event.
    pub(crate) fn event(&mut self, entry: &Entry, live: &LiveProcesses) {
        let at = entry.seconds;
        match &entry.event {
            Event::ProcessStart { pid, started, .. } | Event::ProcessExec { pid, started, .. } => {
                let process = live.get(&ProcessId { pid: *pid, started: *started });
                process.into_iter().for_each(|process| self.runs(process, at));
            }
            Event::ProcessExit { pid, started, usage, cpu_seconds, memory_peak_bytes, .. } => {
                let Some(process) = live.get(&ProcessId { pid: *pid, started: *started }) else {
                    return;
                };
                if let Some(member) = self.members.get_mut(process) {
                    self.list.raise_size(member.tool, *memory_peak_bytes);
                }
                self.ended(process, usage.as_ref(), *cpu_seconds, at);
            }
            Event::RunEnd(RunEnd { final_counters: Some(counters), .. }) => {
                for (main, size) in self.main_exit.own(counters) {
                    if let Some(tool) = self.main_tools.get(&main) {
                        self.list.raise_size_of(tool, size);
                    }
                }
            }
            _ => {}
        }
    }

    /// A process runs its program from here on.
    fn runs(&mut self, process: &LiveProcess, at: f64) {
        let tool = tool_name(&process.program);
        let Some(member) = self.members.get_mut(process) else {
            let start = self.list.possible(start_seconds(process.id, self.zero), at);
            let member = ToolProcess::new(self.list.joined(&tool, start), start);
            self.members.get_or_insert_with(process, || member);
            return;
        };
        // It is still the same process of the same tool.
        if self.list.name(member.tool) == tool {
            return;
        }
        self.list.left(member.tool, &member.counted, process.is_sampled, at);
        // The exec is between two samples.
        self.list.is_sampled(member.tool);
        let tool = self.list.joined(&tool, at);
        self.list.is_sampled(tool);
        // The values of the last program are not this one's.
        *member = ToolProcess::new(tool, member.sampled_at);
        if process.is_sampled {
            self.list.has_row(tool);
        }
    }

    fn ended(&mut self, process: &LiveProcess, usage: Option<&Usage>, clock: Option<f64>, at: f64) {
        let Some(member) = self.members.remove(process) else { return };
        let cpu = process.own_cpu.ended(usage, clock, at);
        if let Some(cpu) = cpu {
            let before = process.own_cpu.sampled().unwrap_or_default();
            self.list.used(member.tool, difference(cpu.times, before), (member.sampled_at, at));
        }
        if !cpu.is_some_and(|cpu| cpu.is_exact) {
            self.list.is_sampled(member.tool);
        }
        if let Some(usage) = usage {
            if self.main_exit.ended(process.id, usage) {
                self.main_tools.insert(process.id, self.list.name(member.tool).to_owned());
            } else if !process.is_sampled {
                self.list.raise_size(member.tool, Some(usage.largest_rss_bytes));
            }
        }
        self.list.left(member.tool, &member.counted, process.is_sampled, at);
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
    fn new(tool: usize, start: f64) -> ToolProcess {
        ToolProcess { tool, sampled_at: start, ..ToolProcess::default() }
    }

    /// Adds a row of it, which has this memory.
    fn renew(&mut self, process: &LiveProcess, row: &ProcessMemory, at: f64, list: &mut List) {
        if process.is_new {
            list.has_row(self.tool);
        }
        if let Some(used) = process.used {
            list.used(self.tool, used, (self.sampled_at, at));
            self.sampled_at = at;
        }
        // A zombie has no memory, and neither has a process in the middle of an exec.
        let mut now = ToolSizes { threads: process.values.state.threads, ..ToolSizes::default() };
        if row.rss != Some(0) {
            list.raise_size(self.tool, row.peak.max(row.rss));
            list.private(self.tool, row.uss);
            let memory = &process.program_memory;
            (now.rss, now.pss, now.uss) = (memory.rss, memory.pss(), memory.uss());
            now.size = now.pss.or(now.rss);
        }
        if now != self.counted {
            list.resized(self.tool, &self.counted, &now);
            self.counted = now;
        }
    }
}
