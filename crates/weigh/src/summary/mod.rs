//! What a run used and what it means.
//!
//! [`Accumulator`] is fed tick by tick and event by event: by the monitor while the run goes on, or
//! by [`of`] from a recording. Both give the same summary, so `summary.json` can always be
//! regenerated.

mod accumulate;
mod alive;
mod by_figure;
mod cgroup;
mod core_time;
mod counter_delta;
pub mod counters;
pub(crate) mod curve;
mod device_counter_deltas;
mod evidence;
mod exited_usage;
mod figure;
mod figures;
mod findings;
mod gpus;
mod helpers;
pub mod job;
mod lossy;
pub(crate) mod main_exit;
mod memory_growth;
mod node;
mod outcome;
mod peak_process;
pub mod phases;
mod run_totals;
pub(crate) mod sample_times;
#[cfg(test)]
mod tests;
pub mod tools;
mod tree;
mod upper_bounds;

use serde::{Deserialize, Serialize};

use crate::catalog::all_groups;

pub use accumulate::Accumulator;
pub(crate) use curve::SHORTEST_WINDOW;
pub use figure::{Figure, Figures, Method};
pub use findings::bottleneck::{Bottleneck, BottleneckKind};
pub use gpus::{GpuSummary, GpuUser};
pub(crate) use lossy::process_cpu_method;
pub use outcome::RunOutcome;
pub use peak_process::PeakProcess;
pub(crate) use run_totals::RunTotals;
pub use tools::Tool;

use crate::model::Facts;
use crate::model::batch_job::BatchJob;
use crate::record::StopReason;
use crate::record::manifest::Origin;
use crate::record::{self, Recording, Target};
use figures::NO_END;

/// What a run used, as `summary.json` has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Which weigh made it.
    pub weigh: Origin,
    /// The run.
    pub run: Run,
    /// The machine.
    pub host: Facts,
    /// The batch job.
    pub job: Option<BatchJob>,
    /// What the run used in total.
    pub figures: Figures,
    /// The same, by part.
    pub parts: Parts,
    /// By tool: the program, or the script that an interpreter runs.
    pub tools: Vec<Tool>,
    /// How many processes there were.
    pub processes: Processes,
    /// By GPU, MIG instances included.
    pub gpus: Vec<GpuSummary>,
    /// What perf counted; null when nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<counters::Counters>,
    /// By node; a run has one node yet.
    pub nodes: Vec<serde_json::Value>,
    /// Its phases, the first 1,000 of them.
    pub phases: Vec<Phase>,
    /// How many more there were: they are in the statistics.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub phases_not_listed: u64,
    /// Statistics of all phases, by name, when not all are listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phase_statistics: Vec<phases::PhaseStatistics>,
    /// What the monitor itself used.
    pub monitor: MonitorCost,
    /// What limited it; null in summaries of older versions, and of merged recordings.
    #[serde(default)]
    pub bottleneck: Option<Bottleneck>,
    /// The process that had the most memory at the peak; null when that is not known.
    #[serde(default)]
    pub memory_peak_process: Option<PeakProcess>,
    /// What it means.
    pub findings: Vec<Finding>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Summary {
    /// The findings for people who have read the bottleneck: without a note that only says the same
    /// again.
    pub fn findings_beside_bottleneck(&self) -> impl Iterator<Item = &Finding> {
        let said = self.bottleneck.as_ref().and_then(|bottleneck| bottleneck.kind.finding());
        self.findings.iter().filter(move |finding| {
            let is_note = finding.severity == Severity::Note && finding.advice.is_empty();
            !(is_note && said == Some(finding.code.as_str()))
        })
    }

    /// Statistics of all phases by name, whether all of them are listed or not.
    pub fn named_phases(&self) -> Vec<phases::PhaseStatistics> {
        match self.phase_statistics.is_empty() {
            true => {
                let mut named = phases::statistics(&self.phases);
                if !self.run.complete {
                    named.iter_mut().for_each(phases::PhaseStatistics::are_not_exact);
                }
                named
            }
            false => self.phase_statistics.clone(),
        }
    }
}

/// The run itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its unique id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The command; null when command lines are not recorded.
    pub command: Option<Vec<String>>,
    /// What was monitored; null when weigh started the command.
    #[serde(default)]
    pub target: Option<Target>,
    /// Why monitoring ended; null when weigh started the command.
    #[serde(default)]
    pub stopped: Option<StopReason>,
    /// When it began.
    pub started: jiff::Timestamp,
    /// When it ended; null when that is not known.
    pub ended: Option<jiff::Timestamp>,
    /// From exec to exit; to the last sample when the end is not known.
    pub duration_seconds: f64,
    /// From exec to the end of the measurement: the exit of the last process with `--wait-all`.
    /// Rates and means are over this time. Null in summaries of older versions.
    #[serde(default)]
    pub measured_seconds: Option<f64>,
    /// The exit code; 128 and the signal when one killed it.
    pub exit_code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// Its labels.
    pub labels: std::collections::BTreeMap<String, String>,
    /// Whether the recording is complete, its end too, and nothing of it was lost.
    pub complete: bool,
}

/// The same figures for parts of what was measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Parts {
    /// The command's own process.
    pub main: Part,
    /// Everything it started.
    pub descendants: Part,
    /// Both together.
    pub combined: Part,
    /// The whole machine, by all processes.
    pub system: Part,
}

/// One part.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Part {
    /// Its figures.
    pub figures: Figures,
}

/// How many processes a run had.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Processes {
    /// All known processes.
    pub total: u64,
    /// The most at once.
    pub peak: u64,
    /// Whether more may have started and exited between two ticks.
    #[serde(rename = "some_unseen")]
    pub may_miss_processes: bool,
    /// Those that outlived the command.
    #[serde(rename = "left")]
    pub still_running: Vec<NamedProcess>,
}

/// A process that outlived the command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedProcess {
    /// Its pid.
    pub pid: u32,
    /// Its name.
    pub name: String,
}

/// A phase of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Its unique id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The phase around it.
    pub parent: Option<String>,
    /// When it began, in seconds since the run began.
    pub start_seconds: f64,
    /// How long it lasted; null while it lasts.
    pub duration_seconds: Option<f64>,
    /// CPU time, as `figures` has it with its method and bounds; null when it is not known.
    pub cpu_time_seconds: Option<f64>,
    /// Largest process of its command, from `wait4`; null when it had no command, or one so small
    /// that `wait4` reports the size of weigh itself.
    pub largest_process_bytes: Option<u64>,
    /// The exit code of its command, 128 and the signal when one killed it; null when it had none.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// What it used: its command, when it had one, and else the whole run while it lasted.
    #[serde(default)]
    pub figures: Figures,
}

/// What the monitor itself used.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MonitorCost {
    /// Its CPU time.
    pub cpu_seconds: f64,
    /// Its largest size; null when it could not be read.
    pub memory_peak_bytes: Option<u64>,
    /// Ticks it took.
    pub ticks: u64,
    /// Ticks that were missed.
    pub ticks_missed: u64,
    /// Its CPU time for each second of the run: the share of one core it took.
    pub cost_ratio: Option<f64>,
    /// What it could not measure or write, and why.
    pub faults: Vec<String>,
}

/// Something worth knowing about a run, and what to do about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// A stable name.
    pub code: String,
    /// How much it matters.
    pub severity: Severity,
    /// What was found.
    pub sentence: String,
    /// The numbers behind it.
    pub evidence: serde_json::Map<String, serde_json::Value>,
    /// What to do, ready to be pasted where it makes sense.
    pub advice: String,
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Note,
    /// Something was wasted or is close to going wrong.
    Warning,
    /// Something went wrong.
    Problem,
}

/// The summary of a recording.
pub fn of(recording: &Recording) -> Result<Summary, record::Error> {
    let mut accumulator = Accumulator::for_recording(recording);
    let groups = all_groups();
    let frames = recording.replay(&groups, |frame| accumulator.frame(frame))?;
    Ok(accumulator.finish(frames.live()))
}
