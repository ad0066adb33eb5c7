//! What is said in a few words: when and where, how it went, how full the machine was.

use super::{Advice, Bar, Fact, Head, Verdict};
use crate::collect::gpu::is_whole;
use crate::host::signals;
use crate::quantity::{self, Units};
use crate::record::events::Why;
use crate::record::{Manifest, Target};
use crate::summary::{Gpu, Outcome, Severity, Summary};

const NOT_RECORDED: &str = "not recorded";
const NO_GPU: &str = "no GPU was measured";

/// What stands at the head of every page of paper.
pub(super) fn head(manifest: &Manifest, summary: &Summary) -> Head {
    use serde_json::Value;
    let job = summary.job.as_ref().and_then(|job| match job.get("id")? {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    });
    Head {
        job: job.unwrap_or_else(|| summary.run.id.clone()),
        user: manifest.user.clone(),
        nodes: summary.nodes.len().max(1),
        date: summary.run.started.strftime("%Y-%m-%d").to_string(),
    }
}

/// When, where, how long, labels.
pub(super) fn header(manifest: &Manifest, summary: &Summary) -> Vec<Fact> {
    let run = &summary.run;
    let when = |moment: jiff::Timestamp| moment.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    let mut facts = vec![
        Fact::new("Started", when(run.started)),
        Fact::new("Ended", run.ended.map_or_else(|| NOT_RECORDED.to_owned(), when)),
        Fact::new("Duration", quantity::seconds(run.duration_seconds)),
        Fact::new("Exit", outcome(summary)),
        Fact::new("Host", &*summary.host.name),
    ];
    let target = run.target.as_ref().map(|target| {
        let name = if matches!(target, Target::Merged { .. }) { "Merged" } else { "Followed" };
        Fact::new(name, target.words())
    });
    facts.extend(target);
    facts.extend(manifest.user.as_deref().map(|user| Fact::new("User", user)));
    if !run.labels.is_empty() {
        let labels: Vec<String> =
            run.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        facts.push(Fact::new("Labels", labels.join(", ")));
    }
    facts.push(Fact::new("Interval", quantity::seconds(manifest.interval_seconds)));
    facts.push(Fact::new("Run", &*run.id));
    facts
}

/// How the command ended, in a few words.
fn outcome(summary: &Summary) -> String {
    match summary.run.outcome() {
        Outcome::NotRecorded => NOT_RECORDED.to_owned(),
        outcome => outcome.words(),
    }
}

/// The value of a figure of the run.
fn value(summary: &Summary, name: &str) -> Option<f64> {
    summary.figures.get(name)?.value
}

/// The cores a run should have kept busy: those expected, or all it may use.
fn cores(manifest: &Manifest) -> f64 {
    manifest.expected_cores.unwrap_or(manifest.host.cores_allowed)
}

/// How it went, in one sentence.
pub(super) fn verdict(manifest: &Manifest, summary: &Summary, units: Units) -> Verdict {
    let run = &summary.run;
    let after = quantity::seconds(run.duration_seconds);
    let end = match run.outcome() {
        Outcome::Killed(number) => format!("Killed by {} after {after}", signals::name(number)),
        Outcome::Well => format!("Ended well (exit 0) after {after}"),
        Outcome::Failed(code) => format!("Failed (exit {code}) after {after}"),
        Outcome::Followed(Why::Ended) => format!("Ended after it was followed for {after}"),
        Outcome::Followed(_) => format!("Followed for {after}, and going on"),
        Outcome::NotRecorded => format!("Its end is not recorded (it is known for {after})"),
    };
    let busy = value(summary, "cpu_cores_mean").map(|mean| {
        let all = quantity::count(cores(manifest));
        format!("it kept {mean:.2} of {all} cores busy on average")
    });
    let peak = summary.figures.get("memory_peak_bytes");
    let memory = peak.and_then(|peak| peak.value).map(|value| {
        let open = if peak.is_some_and(|peak| peak.upper.is_none()) { " or more" } else { "" };
        format!("its memory reached {}{open}", quantity::bytes(value, units))
    });
    let used: Vec<String> = [busy, memory].into_iter().flatten().collect();
    let sentence = match used.is_empty() {
        true => format!("{end}; what it used is not known."),
        false => format!("{end}; {}.", used.join(", ")),
    };
    let severity = match run.outcome() {
        Outcome::Well | Outcome::Followed(_) => None,
        Outcome::NotRecorded => Some(Severity::Warning),
        Outcome::Failed(_) | Outcome::Killed(_) => Some(Severity::Problem),
    };
    Verdict { severity, sentence }
}

fn weight(severity: &Severity) -> u8 {
    match severity {
        Severity::Note => 0,
        Severity::Warning => 1,
        Severity::Problem => 2,
    }
}

/// What is worth knowing, what matters most first.
pub(super) fn findings(summary: &Summary) -> Vec<Advice> {
    let mut findings: Vec<Advice> = summary
        .findings
        .iter()
        .map(|finding| Advice {
            severity: finding.severity,
            sentence: finding.sentence.clone(),
            advice: finding.advice.clone(),
        })
        .collect();
    findings.sort_by_key(|advice| std::cmp::Reverse(weight(&advice.severity)));
    findings
}

/// How full the machine's parts were.
pub(super) fn bars(manifest: &Manifest, summary: &Summary, units: Units) -> Vec<Bar> {
    let bytes = |value: f64| quantity::bytes(value, units);
    let all = cores(manifest);
    let whose = if manifest.expected_cores.is_some() { " expected" } else { "" };
    let mean = value(summary, "cpu_cores_mean");
    let peak = value(summary, "memory_peak_bytes");
    let memory = summary.host.memory_bytes.map(|bytes| bytes as f64);
    let unknown = |name: &str| {
        let reason = summary.figures.get(name).and_then(|figure| figure.reason.clone());
        reason.unwrap_or_else(|| "it was not measured".to_owned())
    };
    let bar = |label: &str, part: Option<f64>, whole: Option<f64>, note: String| {
        let share = part.zip(whole).map(|(part, whole)| part / whole);
        let share = share.filter(|share| share.is_finite()).map(|share| share.clamp(0.0, 1.0));
        Bar { label: label.to_owned(), share, note }
    };
    let busy = match mean {
        Some(mean) => {
            format!("{mean:.2} of {}{whose} cores busy on average", quantity::count(all))
        }
        None => unknown("cpu_cores_mean"),
    };
    let reached = match (peak, memory) {
        (Some(peak), Some(memory)) => {
            format!("{} of the machine's {} at the peak", bytes(peak), bytes(memory))
        }
        (Some(peak), None) => {
            format!("{} at the peak; the machine's memory is not known", bytes(peak))
        }
        (None, _) => unknown("memory_peak_bytes"),
    };
    vec![
        bar("CPU", mean, Some(all), busy),
        bar("Memory", peak, memory, reached),
        gpu_busy(summary),
        gpu_memory(summary, units),
    ]
}

/// How busy the GPUs were.
fn gpu_busy(summary: &Summary) -> Bar {
    let share = value(summary, "gpu_utilization_mean_ratio");
    // Of those that say how busy they are.
    let count = gpus(summary).filter(|gpu| gpu.utilization_mean_ratio.is_some()).count();
    let mean = value(summary, "gpus_busy_mean");
    let note = match mean {
        Some(mean) => format!("{mean:.2} of {count} GPUs busy on average"),
        None => NO_GPU.to_owned(),
    };
    Bar { label: "GPU".to_owned(), share, note }
}

/// How full the GPUs' memory was.
fn gpu_memory(summary: &Summary, units: Units) -> Bar {
    let used = summary.parts.system.figures.get("gpu_memory_peak_bytes").and_then(|f| f.value);
    // Of those that say how much is in use.
    let telling = gpus(summary).filter(|gpu| gpu.memory_peak_bytes.is_some());
    let all: Option<u64> = telling.map(|gpu| gpu.is.memory_bytes).sum();
    let all = all.filter(|all| *all > 0).map(|all| all as f64);
    let bytes = |value: f64| quantity::bytes(value, units);
    let note = match (used, all) {
        (Some(used), Some(all)) => format!("{} of {} at the peak", bytes(used), bytes(all)),
        _ => NO_GPU.to_owned(),
    };
    let share = used.zip(all).map(|(used, all)| (used / all).clamp(0.0, 1.0));
    Bar { label: "GPU memory".to_owned(), share, note }
}

/// The whole GPUs: what their parts have is in them.
fn gpus(summary: &Summary) -> impl Iterator<Item = &Gpu> {
    summary.gpus.iter().filter(|gpu| is_whole(&gpu.is.name))
}

/// The machine.
pub(super) fn hardware(summary: &Summary, units: Units) -> Vec<Fact> {
    let host = &summary.host;
    let memory = host.memory_bytes.map(|memory| quantity::bytes(memory as f64, units));
    let mut models: Vec<&str> =
        gpus(summary).map(|gpu| gpu.is.model.as_deref().unwrap_or(&gpu.is.name)).collect();
    let count = models.len();
    models.dedup();
    let gpus = match count {
        0 => "none".to_owned(),
        count => format!("{}: {}", quantity::count(count as f64), models.join(", ")),
    };
    vec![
        Fact::new("Host", &*host.name),
        Fact::new("Cores", quantity::count(f64::from(host.cores))),
        Fact::new("Cores allowed", quantity::count(host.cores_allowed)),
        Fact::new("Memory", memory.unwrap_or_else(|| "unknown".to_owned())),
        Fact::new("Kernel", &*host.kernel),
        Fact::new("Architecture", &*host.architecture),
        Fact::new("GPUs", gpus),
    ]
}

/// What the monitor itself cost.
pub(super) fn monitor(summary: &Summary, units: Units) -> Vec<Fact> {
    let monitor = &summary.monitor;
    let unknown = || "unknown".to_owned();
    let memory = monitor.memory_peak_bytes.map(|peak| quantity::bytes(peak as f64, units));
    vec![
        Fact::new("CPU time", quantity::seconds(monitor.cpu_seconds)),
        Fact::new("Share of one core", monitor.cost_ratio.map_or_else(unknown, quantity::ratio)),
        Fact::new("Memory, peak", memory.unwrap_or_else(unknown)),
        Fact::new("Ticks", quantity::count(monitor.ticks as f64)),
        Fact::new("Ticks missed", quantity::count(monitor.ticks_missed as f64)),
    ]
}
