//! The short facts of a report: when and where, outcome and what limited it, utilisation, hardware,
//! cost.

use super::{Advice, BOTTLENECK, Bar, Fact, PageHeader, Verdict, gpus};
use crate::catalog::FigureId;
use crate::model::signal_name;
use crate::quantity::{self, Units};
use crate::record::StopReason;
use crate::record::{Manifest, Target};
use crate::report::hardware as machine;
use crate::report::peak_memory;
use crate::report::phases::nested;
use crate::report::text::measured_longer;
use crate::summary::phases::PhaseStatistics;
use crate::summary::{RunOutcome, Severity, Summary};
use crate::text::ellipsize;

const NOT_RECORDED: &str = "not recorded";
const UNKNOWN: &str = "unknown";

/// The longest name of a phase in a sentence.
const LONGEST_NAME: usize = 40;

/// The header of every PDF page.
pub(super) fn page_header(manifest: &Manifest, summary: &Summary) -> PageHeader {
    let job = summary.job.as_ref().and_then(|job| job.id.clone());
    PageHeader {
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
    if let Some(measured) = measured_longer(run) {
        facts.insert(3, Fact::new("Measured for", measured));
    }
    let target = run.target.as_ref().map(|target| {
        let name = if matches!(target, Target::Merged { .. }) { "Merged" } else { "Monitored" };
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

/// How the command ended, as text.
fn outcome(summary: &Summary) -> String {
    match summary.run.outcome() {
        RunOutcome::NotRecorded => NOT_RECORDED.to_owned(),
        outcome => outcome.words(),
    }
}

/// The value of a figure of the run.
pub(super) fn value(summary: &Summary, id: FigureId) -> Option<f64> {
    summary.figures.value(id)
}

/// The outcome in one sentence.
pub(super) fn verdict(summary: &Summary, units: Units) -> Verdict {
    let run = &summary.run;
    let mut after = quantity::seconds(run.duration_seconds);
    if let Some(measured) = measured_longer(run) {
        after.push_str(&format!(" and was measured for {measured}"));
    }
    let end = match run.outcome() {
        RunOutcome::Killed(number) => format!("Killed by {} after {after}", signal_name(number)),
        RunOutcome::Stopped(libc::SIGINT) => format!("Interrupted (SIGINT) after {after}"),
        RunOutcome::Stopped(number) => {
            let name = signal_name(number);
            format!("Ended after {after} because its reader closed the pipe ({name})")
        }
        RunOutcome::Success => format!("Succeeded (exit 0) after {after}"),
        RunOutcome::Failed(code) => format!("Failed (exit {code}) after {after}"),
        RunOutcome::MonitoringEnded(StopReason::Ended) => {
            format!("Ended after it was monitored for {after}")
        }
        RunOutcome::MonitoringEnded(_) => format!("Monitored for {after}, still running"),
        RunOutcome::NotRecorded => format!("Its end is not recorded (it is known for {after})"),
    };
    let bottleneck = summary.bottleneck.as_ref().map(|found| found.sentence.clone());
    let memory = peak_memory::sentence(summary, units);
    let of_gpus = gpus::verdict(summary, units);
    let is_anything_known =
        value(summary, FigureId::CpuTime).is_some() || memory.is_some() || of_gpus.is_some();
    let reasons = [
        (BOTTLENECK, bottleneck),
        ("Memory peak", memory),
        ("GPUs", of_gpus),
        ("Longest phase", longest_phase(summary)),
    ];
    let reasons = reasons.into_iter().filter_map(|(label, text)| Some(Fact::new(label, text?)));
    let reasons = reasons.collect();
    let sentence = match is_anything_known {
        true => format!("{end}."),
        false => format!("{end}; what it used is not known."),
    };
    let severity = match run.outcome() {
        RunOutcome::Success | RunOutcome::MonitoringEnded(_) => None,
        RunOutcome::Stopped(_) => Some(Severity::Note),
        RunOutcome::NotRecorded => Some(Severity::Warning),
        RunOutcome::Failed(_) | RunOutcome::Killed(_) => Some(Severity::Problem),
    };
    let peak_process = peak_memory::process(summary, units);
    Verdict { severity, sentence, reasons, peak_process }
}

/// The phase that took most of the time, of those that are in no other.
fn longest_phase(summary: &Summary) -> Option<String> {
    let named = summary.named_phases();
    let outer = nested(&named).into_iter().filter(|(depth, _)| *depth == 0);
    let phases: Vec<&PhaseStatistics> =
        outer.map(|(_, named)| named).filter(|one| one.count > 0).collect();
    let longest = phases
        .iter()
        .max_by(|one, other| one.covered_seconds.total_cmp(&other.covered_seconds))
        .filter(|_| phases.len() > 1)?;
    let (seconds, all) = (longest.covered_seconds, summary.run.measured());
    let cpu = longest.figures.get(FigureId::CpuTime).and_then(|cpu| cpu.total);
    let cores = cpu.filter(|_| seconds > 0.0).map(|cpu| cpu / seconds);
    let cores = cores.map_or_else(String::new, |cores| format!(", {cores:.2} cores used"));
    let share = quantity::ratio((seconds / all).min(1.0));
    let (name, seconds) = (ellipsize(&longest.name, LONGEST_NAME), quantity::seconds(seconds));
    Some(format!("{name}, {seconds} ({share} of the time){cores}."))
}

fn weight(severity: &Severity) -> u8 {
    match severity {
        Severity::Note => 0,
        Severity::Warning => 1,
        Severity::Problem => 2,
    }
}

/// The findings, the most severe first.
pub(super) fn findings(summary: &Summary) -> Vec<Advice> {
    let mut findings: Vec<Advice> = summary
        .findings_beside_bottleneck()
        .map(|finding| Advice {
            severity: finding.severity,
            sentence: finding.sentence.clone(),
            advice: finding.advice.clone(),
        })
        .collect();
    findings.sort_by_key(|advice| std::cmp::Reverse(weight(&advice.severity)));
    findings
}

/// Utilisation of CPU, memory and GPUs.
pub(super) fn bars(manifest: &Manifest, summary: &Summary, units: Units) -> Vec<Bar> {
    let bytes = |value: f64| quantity::bytes(value, units);
    let all = manifest.cores();
    let expected = if manifest.expected_cores.is_some() { " expected" } else { "" };
    let mean = value(summary, FigureId::CpuCoresMean);
    let peak = value(summary, FigureId::MemoryPeak);
    let memory = summary.host.memory_allowed_bytes().map(|bytes| bytes as f64);
    let limit = summary.host.tight_memory_limit_bytes();
    let unknown = |id| {
        let reason = summary.figures.get(id).and_then(|figure| figure.reason.clone());
        reason.unwrap_or_else(|| "it was not measured".to_owned())
    };
    let bar = |label: &str, part: Option<f64>, whole: Option<f64>, note: String| {
        let share = part.zip(whole).map(|(part, whole)| part / whole);
        let share = share.filter(|share| share.is_finite()).map(|share| share.clamp(0.0, 1.0));
        Bar { label: label.to_owned(), share, note }
    };
    let busy = match mean {
        Some(mean) => {
            format!("{mean:.2} of {}{expected} cores used on average", quantity::count(all))
        }
        None => unknown(FigureId::CpuCoresMean),
    };
    let reached = match (peak, memory) {
        (Some(peak), Some(memory)) if limit.is_some() => {
            format!("{} of the {} its cgroup may use at the peak", bytes(peak), bytes(memory))
        }
        (Some(peak), Some(memory)) => {
            format!("{} of the machine's {} at the peak", bytes(peak), bytes(memory))
        }
        (Some(peak), None) => {
            format!("{} at the peak; the machine's memory is not known", bytes(peak))
        }
        (None, _) => unknown(FigureId::MemoryPeak),
    };
    let mut bars = vec![bar("CPU", mean, Some(all), busy), bar("Memory", peak, memory, reached)];
    if !summary.gpus.is_empty() {
        bars.extend([gpus::busy(summary), gpus::memory(summary, units)]);
    }
    bars
}

/// The machine.
pub(super) fn hardware(manifest: &Manifest, summary: &Summary, units: Units) -> Vec<Fact> {
    let host = &summary.host;
    let memory = host.memory_bytes.map(|memory| quantity::bytes(memory as f64, units));
    let limit = host.tight_memory_limit_bytes();
    let limit = limit.map(|limit| quantity::bytes(limit as f64, units));
    let mut facts = vec![Fact::new("Host", &*host.name)];
    if let Some(hardware) = &manifest.hardware {
        let cpu = &hardware.cpu;
        let model = cpu.model_name.as_deref().unwrap_or(UNKNOWN);
        let design = cpu.microarchitecture.as_deref().unwrap_or(UNKNOWN);
        facts.push(Fact::new("Processor", model));
        facts.push(Fact::new("Microarchitecture", design));
        facts.push(Fact::new("Topology", machine::topology(cpu)));
    }
    facts.extend([
        Fact::new("Cores", quantity::count(f64::from(host.cores))),
        Fact::new("Cores allowed", quantity::count(host.cores_allowed)),
        Fact::new("Memory", memory.unwrap_or_else(|| UNKNOWN.to_owned())),
        Fact::new("Memory allowed", limit.unwrap_or_else(|| "all".to_owned())),
        Fact::new("Kernel", &*host.kernel),
        Fact::new("Architecture", &*host.architecture),
    ]);
    if let Some(hardware) = &manifest.hardware {
        let distribution = hardware.distribution.as_ref();
        let distribution = distribution.and_then(|system| system.name.as_deref());
        facts.push(Fact::new("Distribution", distribution.unwrap_or(UNKNOWN)));
        facts.push(Fact::new("Virtual machine", machine::virtual_machine(hardware)));
        facts.extend(
            hardware.container.as_ref().map(|stated| Fact::new("Container", &*stated.name)),
        );
    }
    facts.push(Fact::new("GPUs", gpus::names(manifest, summary)));
    facts
}

/// What the monitor itself cost.
pub(super) fn monitor(summary: &Summary, units: Units) -> Vec<Fact> {
    let monitor = &summary.monitor;
    let unknown = || UNKNOWN.to_owned();
    let memory = monitor.memory_peak_bytes.map(|peak| quantity::bytes(peak as f64, units));
    vec![
        Fact::new("CPU time", quantity::seconds(monitor.cpu_seconds)),
        Fact::new("Share of one core", monitor.cost_ratio.map_or_else(unknown, quantity::ratio)),
        Fact::new("Memory, peak", memory.unwrap_or_else(unknown)),
        Fact::new("Ticks", quantity::count(monitor.ticks as f64)),
        Fact::new("Ticks missed", quantity::count(monitor.ticks_missed as f64)),
    ]
}
