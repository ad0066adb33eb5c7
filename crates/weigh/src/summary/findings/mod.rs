//! What the figures mean: sentences with their evidence, and advice to paste.
//!
//! A rule reports only what is certain enough to be worth a person's time.

pub(super) mod bottleneck;
mod free_space;
mod gpus;
mod memory_growth;
mod pressure;

use serde_json::{Map, Value, json};

use super::cgroup::CgroupUsage;
use super::memory_growth::SteadyGrowth;
use super::node::Node;
use super::{Finding, NamedProcess, Severity, Summary};
use crate::catalog::FigureId;
use crate::model::batch_job::Scheduler;
use crate::model::{numbering, signal_name};
use crate::quantity;
use crate::record::StopReason;

/// Shorter runs give no findings on how a machine was used.
const LONG_ENOUGH: f64 = 5.0;

/// Processes that the kernel killed by the OOM killer.
pub(super) struct Killing {
    /// How many, in the cgroup of the run.
    pub kills: u64,
    /// Those of the run that were killed, as far as it was reported.
    pub victims: Vec<NamedProcess>,
}

/// All findings on a run.
pub(super) fn of(
    summary: &Summary,
    expected_cores: Option<f64>,
    killing: Option<Killing>,
    node: &Node,
    cgroup: &CgroupUsage,
    growth: Option<SteadyGrowth>,
) -> Vec<Finding> {
    let for_memory = killing.and_then(|killing| killed_for_memory(summary, &killing));
    let near_limit = memory_near_limit(summary).filter(|_| for_memory.is_none());
    [
        not_complete(summary),
        // The reason is more useful than the exit status.
        if for_memory.is_some() { for_memory } else { killed(summary) },
        exited_counts(summary),
        idle_cores(summary, expected_cores),
        memory_nearly_full(summary),
        near_limit,
        growth.and_then(|growth| memory_growth::of(summary, &growth)),
        free_space::nearly_full(node.free_space),
        free_space::few_files_left(node.files),
        ticks_missed(summary),
    ]
    .into_iter()
    .flatten()
    .chain(pressure::of(summary, node, cgroup))
    .chain(gpus::of(summary, node, cgroup))
    .collect()
}

fn finding(
    code: &str,
    severity: Severity,
    sentence: String,
    evidence: Value,
    advice: &str,
) -> Option<Finding> {
    let evidence = if let Value::Object(evidence) = evidence { evidence } else { Map::new() };
    Some(Finding { code: code.to_owned(), severity, sentence, evidence, advice: advice.to_owned() })
}

fn value(summary: &Summary, id: FigureId) -> Option<f64> {
    summary.figures.value(id)
}

fn not_complete(summary: &Summary) -> Option<Finding> {
    if summary.run.complete {
        return None;
    }
    if summary.run.ended.is_some() {
        return finding(
            "run.not_whole",
            Severity::Warning,
            "The recording of this run is incomplete: rows or events are missing.".to_owned(),
            json!({"faults": summary.monitor.faults}),
            "What is not marked exact is a lower bound.",
        );
    }
    finding(
        "run.not_complete",
        Severity::Warning,
        "The end of this run is not recorded: the monitor was killed, or it is still running."
            .to_owned(),
        json!({"last_seconds": summary.run.duration_seconds}),
        "Totals are those of the last tick; run it again for exact ones.",
    )
}

/// Whether it is in a SLURM job, whose options are then worth naming.
fn is_in_slurm(summary: &Summary) -> bool {
    scheduler(summary) == Some(Scheduler::Slurm)
}

/// The batch system that started the run, as far as that is recorded.
fn scheduler(summary: &Summary) -> Option<Scheduler> {
    summary.job.as_ref().map(|job| job.scheduler)
}

/// Advice, with the options to use where the run is in a SLURM job.
fn with_slurm(summary: &Summary, advice: &str, typed: &str) -> String {
    if is_in_slurm(summary) { format!("{advice}: {typed}") } else { format!("{advice}.") }
}

fn killed(summary: &Summary) -> Option<Finding> {
    let number = summary.run.signal?;
    let stopped = |code: &str, sentence: &str| {
        finding(code, Severity::Note, sentence.to_owned(), json!({"signal": number}), "")
    };
    let advice = match number {
        libc::SIGINT => return stopped("run.interrupted", "It was interrupted (SIGINT)."),
        libc::SIGPIPE => {
            return stopped(
                "run.pipe_closed",
                "The reader of its output closed the pipe (SIGPIPE).",
            );
        }
        libc::SIGKILL => {
            "If you did not kill it, check for the kernel's OOM killer: dmesg | grep -i 'killed process'"
        }
        libc::SIGSEGV | libc::SIGBUS | libc::SIGABRT => {
            "Look at its core dump: coredumpctl gdb, or run it under gdb."
        }
        _ => "",
    };
    finding(
        "run.killed",
        Severity::Problem,
        format!("It was killed by {}.", signal_name(number)),
        json!({"signal": number}),
        advice,
    )
}

fn killed_for_memory(summary: &Summary, killing: &Killing) -> Option<Finding> {
    let victims: Vec<String> =
        killing.victims.iter().map(|one| format!("{} ({})", one.name, one.pid)).collect();
    // An exit status is only reported to the process that reaps it, and that is mostly the parent.
    let whom = match (victims.is_empty(), killing.kills) {
        (false, _) => victims.join(", "),
        (true, 1) => "a process in its cgroup".to_owned(),
        (true, kills) => format!("{kills} processes in its cgroup"),
    };
    let limit = summary.host.tight_memory_limit_bytes();
    let allowed = limit.map_or_else(String::new, |limit| {
        let limit = quantity::bytes(limit as f64, quantity::Units::Binary);
        format!(": the limit of its cgroup is {limit}")
    });
    finding(
        "memory.killed",
        Severity::Problem,
        format!("The kernel killed {whom} by the OOM killer{allowed}."),
        json!({
            "kills": killing.kills,
            "pids": killing.victims.iter().map(|one| one.pid).collect::<Vec<_>>(),
            "limit_bytes": limit,
            "run_bytes": value(summary, FigureId::MemoryPeak),
        }),
        &with_slurm(summary, "Give it more memory, or let it use less at once", "#SBATCH --mem=…"),
    )
}

fn exited_counts(summary: &Summary) -> Option<Finding> {
    let left = &summary.processes.still_running;
    // A user who stops monitoring knows that the processes keep running.
    if left.is_empty() || !matches!(summary.run.stopped, None | Some(StopReason::Ended)) {
        return None;
    }
    let named =
        left.iter().take(5).map(|left| format!("{} ({})", left.name, numbering::shown(left.pid)));
    let mut named: Vec<String> = named.collect();
    if left.len() > named.len() {
        named.push(format!("and {} more", left.len() - named.len()));
    }
    finding(
        "run.left_behind",
        Severity::Warning,
        format!("Still running after the end: {}.", named.join(", ")),
        json!({"pids": left.iter().map(|process| process.pid).collect::<Vec<_>>()}),
        "What they use from now on is not counted; --wait-all waits for them.",
    )
}

fn idle_cores(summary: &Summary, expected: Option<f64>) -> Option<Finding> {
    // Programs monitored by name were not given the machine.
    if summary.run.is_of_programs() {
        return None;
    }
    let cores = expected.unwrap_or(summary.host.cores_allowed);
    let used = value(summary, FigureId::CpuCoresMean)?;
    let peak = value(summary, FigureId::CpuCoresPeak)?;
    let idle = cores - used;
    if summary.run.measured() < LONG_ENOUGH || cores < 2.0 || used > cores / 2.0 || idle < 1.0 {
        return None;
    }
    let enough = peak.max(used).ceil().clamp(1.0, cores);
    // A run that used all its cores at some time needs them.
    if enough >= cores {
        return None;
    }
    // Cores that other processes kept busy were not available.
    let machine = summary.parts.system.figures.get(FigureId::CpuUtilizationMean);
    let busy = machine.and_then(|share| share.value).unwrap_or(0.0);
    if (1.0 - busy) * f64::from(summary.host.cores) < idle / 2.0 {
        return None;
    }
    // A run that requested no cores has not requested too many.
    let asked = scheduler(summary).is_some();
    let advice = match asked {
        true => {
            let typed = format!("#SBATCH --cpus-per-task={enough}");
            with_slurm(summary, "Ask for fewer cores", &typed)
        }
        false => String::new(),
    };
    finding(
        "cpu.idle_cores",
        if asked || expected.is_some() { Severity::Warning } else { Severity::Note },
        format!(
            "It kept {used:.2} of {cores} cores busy on average, {peak:.2} at the sampled peak."
        ),
        json!({"cores": cores, "cores_mean": used, "cores_peak": peak}),
        &advice,
    )
}

fn memory_nearly_full(summary: &Summary) -> Option<Finding> {
    let total = summary.host.memory_bytes? as f64;
    let used = summary.parts.system.figures.get(FigureId::MemoryUsedPeak)?.value?;
    let own = value(summary, FigureId::MemoryPeak)?;
    if used < total * 0.95 {
        return None;
    }
    let units = quantity::Units::Binary;
    finding(
        "memory.nearly_full",
        Severity::Warning,
        format!(
            "The machine's memory was nearly full: {} of {} in use, {} of it by this run.",
            quantity::bytes(used, units),
            quantity::bytes(total, units),
            quantity::bytes(own, units)
        ),
        json!({"used_bytes": used, "total_bytes": total, "run_bytes": own}),
        "Run it where there is more memory, or with less at once.",
    )
}

fn memory_near_limit(summary: &Summary) -> Option<Finding> {
    let limit = summary.host.tight_memory_limit_bytes()? as f64;
    let used = value(summary, FigureId::MemoryPeak)?;
    // The limit is that of weigh's own cgroup, which does not apply to other processes. Page cache
    // is dropped when memory is needed.
    let needed = value(summary, FigureId::MemoryWithoutCachePeak).unwrap_or(used);
    if summary.run.target.is_some() || used.min(needed) < limit * 0.95 {
        return None;
    }
    let units = quantity::Units::Binary;
    finding(
        "memory.near_limit",
        Severity::Warning,
        format!(
            "It used {} of the {} that its cgroup may use.",
            quantity::bytes(used, units),
            quantity::bytes(limit, units)
        ),
        json!({"used_bytes": used, "limit_bytes": limit}),
        &with_slurm(
            summary,
            "A little more and the kernel ends it: give it more memory, or let it use less at once",
            "#SBATCH --mem=…",
        ),
    )
}

fn ticks_missed(summary: &Summary) -> Option<Finding> {
    let (missed, taken) = (summary.monitor.ticks_missed, summary.monitor.ticks);
    if missed * 10 <= taken + missed {
        return None;
    }
    finding(
        "monitor.ticks_missed",
        Severity::Note,
        format!("{missed} of {} ticks were missed.", taken + missed),
        json!({"missed": missed, "taken": taken}),
        "Choose a longer interval: -i 1s",
    )
}
