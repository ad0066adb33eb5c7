//! What the figures mean: sentences with their evidence, and advice to paste.
//!
//! A rule speaks only when it is sure enough to be worth a person's time.

use serde_json::{Map, Value, json};

use super::{Finding, Severity, Summary};
use crate::host::signals;
use crate::quantity;
use crate::record::events::Why;
use crate::sample::numbering;

/// Runs shorter than this say nothing about how a machine was used.
const LONG_ENOUGH: f64 = 5.0;

/// Everything worth saying about a run.
pub fn of(summary: &Summary, expected_cores: Option<f64>) -> Vec<Finding> {
    [
        not_complete(summary),
        killed(summary),
        left_behind(summary),
        idle_cores(summary, expected_cores),
        memory_nearly_full(summary),
        ticks_missed(summary),
    ]
    .into_iter()
    .flatten()
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

fn value(summary: &Summary, name: &str) -> Option<f64> {
    summary.figures.get(name)?.value
}

fn not_complete(summary: &Summary) -> Option<Finding> {
    if summary.run.complete {
        return None;
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

fn killed(summary: &Summary) -> Option<Finding> {
    let number = summary.run.signal?;
    let advice = match number {
        libc::SIGKILL => {
            "If nobody killed it, look for the kernel's out-of-memory killer: dmesg | grep -i 'killed process'"
        }
        libc::SIGSEGV | libc::SIGBUS | libc::SIGABRT => {
            "Look at its core dump: coredumpctl gdb, or run it under gdb."
        }
        _ => "Whoever sent the signal knows why.",
    };
    finding(
        "run.killed",
        Severity::Problem,
        format!("It was killed by {}.", signals::name(number)),
        json!({"signal": number}),
        advice,
    )
}

fn left_behind(summary: &Summary) -> Option<Finding> {
    let left = &summary.processes.left;
    // Whoever stops watching knows that the watched go on.
    if left.is_empty() || !matches!(summary.run.stopped, None | Some(Why::Ended)) {
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
        json!({"pids": left.iter().map(|left| left.pid).collect::<Vec<_>>()}),
        "What they use from now on is not counted; --wait-all waits for them.",
    )
}

fn idle_cores(summary: &Summary, expected: Option<f64>) -> Option<Finding> {
    // Programs that come and go were not given the machine.
    if summary.run.is_of_programs() {
        return None;
    }
    let cores = expected.unwrap_or(summary.host.cores_allowed);
    let used = value(summary, "cpu_cores_mean")?;
    let peak = value(summary, "cpu_cores_peak")?;
    let idle = cores - used;
    if summary.run.duration_seconds < LONG_ENOUGH || cores < 2.0 || used > cores / 2.0 || idle < 1.0
    {
        return None;
    }
    let enough = peak.max(used).ceil().clamp(1.0, cores);
    // A run that had all its cores busy at some time needs them.
    if enough >= cores {
        return None;
    }
    // Cores that others kept busy were not there to be used.
    let machine = summary.parts.system.figures.get("cpu_utilization_mean_ratio");
    let busy = machine.and_then(|share| share.value).unwrap_or(0.0);
    if (1.0 - busy) * f64::from(summary.host.cores) < idle / 2.0 {
        return None;
    }
    finding(
        "cpu.idle_cores",
        Severity::Warning,
        format!(
            "It kept {used:.2} of {cores} cores busy on average, and never more than {peak:.2}."
        ),
        json!({"cores": cores, "cores_mean": used, "cores_peak": peak}),
        &format!("Ask for fewer cores: #SBATCH --cpus-per-task={enough}"),
    )
}

fn memory_nearly_full(summary: &Summary) -> Option<Finding> {
    let total = summary.host.memory_bytes? as f64;
    let used = summary.parts.system.figures.get("memory_used_peak_bytes")?.value?;
    let own = value(summary, "memory_peak_bytes")?;
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

fn ticks_missed(summary: &Summary) -> Option<Finding> {
    let (missed, taken) = (summary.monitor.ticks_missed, summary.monitor.ticks);
    if missed * 10 <= taken + missed {
        return None;
    }
    finding(
        "monitor.ticks_missed",
        Severity::Note,
        format!("{missed} of {} ticks came too late to be taken.", taken + missed),
        json!({"missed": missed, "taken": taken}),
        "Choose a longer interval: -i 1s",
    )
}
