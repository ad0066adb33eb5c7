//! All figures of a run in one table, the important ones first.

use super::{ReportCell, ReportColumn, ReportTable};
use crate::catalog::FigureId;
use crate::quantity::{self, Units};
use crate::report::gpus::worth_reporting;
use crate::report::phases::quantity_of;
use crate::report::text::measured_longer;
use crate::summary::{Figure, Figures, Method, Summary};

/// The important figures, in this order.
const IMPORTANT: [FigureId; 11] = [
    FigureId::Duration,
    FigureId::Measured,
    FigureId::CpuTime,
    FigureId::CpuCoresMean,
    FigureId::CpuCoresPeak,
    FigureId::MemoryPeak,
    FigureId::MemoryMean,
    FigureId::IoRead,
    FigureId::IoWritten,
    FigureId::Processes,
    FigureId::ProcessesPeak,
];

/// The important GPU figures, where GPUs are worth reporting.
const IMPORTANT_OF_GPUS: [FigureId; 3] =
    [FigureId::GpuMemoryPeak, FigureId::GpuUtilizationMean, FigureId::GpuEnergy];

const NO_REASON: &str = "no reason was given";

/// The topics in the order of a report.
#[cfg(feature = "html")]
pub(super) const TOPICS: [&str; 9] = [
    "CPU",
    "Hardware counters",
    "Memory",
    "I/O",
    "Network",
    "GPUs",
    "Energy",
    "Processes and kernel",
    "Other figures",
];

/// What a figure is about, in a word; figures of one topic are shown together.
#[cfg(feature = "html")]
pub(super) fn topic(id: Option<FigureId>) -> &'static str {
    match id.map(FigureId::family) {
        Some("cpu") => "CPU",
        Some("instructions" | "branch" | "cache" | "flops" | "arithmetic" | "slots") => {
            "Hardware counters"
        }
        Some("memory" | "swap" | "oom") => "Memory",
        Some("io" | "disk") => "I/O",
        Some("network" | "infiniband") => "Network",
        Some("gpu" | "gpus") => "GPUs",
        Some("energy") => "Energy",
        Some("page" | "context" | "threads" | "files" | "processes") => "Processes and kernel",
        _ => "Other figures",
    }
}

/// The table of figures, the figure of each row, and how many rows are important.
pub(super) struct FigureTable {
    pub(super) table: ReportTable,
    pub(super) ids: Vec<FigureId>,
    pub(super) important: usize,
}

/// The figures of a run; `seen` when any of its processes was sampled.
pub(super) fn table(summary: &Summary, seen: bool, units: Units) -> FigureTable {
    let mut figures = summary.figures.clone();
    figures.extend(counted(summary, seen));
    let of_gpus = if worth_reporting(summary) { &IMPORTANT_OF_GPUS[..] } else { &[] };
    let first = IMPORTANT.iter().chain(of_gpus).copied();
    let mut ids: Vec<FigureId> = first.filter(|id| figures.get(*id).is_some()).collect();
    let important = ids.len();
    // Without GPUs, their figures would repeat one reason.
    let others = figures.iter().map(|(id, _)| id).filter(|id| is_expected(*id, summary));
    ids.extend(others.filter(|id| !ids.contains(id)).collect::<Vec<_>>());
    let row = |id: &FigureId| figures.get(*id).map(|figure| row(*id, figure, units));
    let table = ReportTable {
        name: "figures".to_owned(),
        title: "Figures".to_owned(),
        note: "Exact: counted by the kernel. Sampled: measured at intervals. Estimated: derived \
               from other values. The true value lies between the bounds."
            .to_owned(),
        columns: vec![
            ReportColumn::text("Figure"),
            ReportColumn::number("Value"),
            ReportColumn::text("Method"),
            ReportColumn::number("Lower bound"),
            ReportColumn::number("Upper bound"),
            ReportColumn::number("When"),
            ReportColumn::text("Source"),
        ],
        rows: ids.iter().filter_map(row).collect(),
    };
    FigureTable { table, ids, important }
}

/// Figures that the summary has elsewhere: duration and process counts.
fn counted(summary: &Summary, seen: bool) -> Figures {
    let run = &summary.run;
    let whole = if run.target.is_some() { "while it was monitored" } else { "exec to exit" };
    let duration = match run.ended.is_some() {
        true => Figure::exact(run.duration_seconds, whole),
        false => Figure::sampled(run.duration_seconds, "the last tick")
            .because("the end of the run is not recorded"),
    };
    let (source, processes) = ("/proc", &summary.processes);
    let (total, peak) = (processes.total as f64, processes.peak as f64);
    let (total, peak) = match seen {
        // A summary counts one process even when no process was sampled.
        false => {
            let reason =
                summary.figures.get(FigureId::ThreadsPeak).and_then(|one| one.reason.as_deref());
            let unknown = Figure::unknown(source, reason.unwrap_or(NO_REASON));
            (unknown.clone(), unknown)
        }
        true if processes.may_miss_processes || !run.complete => {
            let why = "processes shorter than the sampling interval may be missing";
            let more = |count| Figure::sampled(count, source).because(why);
            (more(total), more(peak))
        }
        true => (Figure::exact(total, source), Figure::sampled(peak, source)),
    };
    let measured = measured_longer(run).map(|_| {
        Figure::exact(
            run.measured(),
            "exec to the exit of the last process, or the end of the measurement",
        )
    });
    let mut figures = Figures::from([
        (FigureId::Duration, duration),
        (FigureId::Processes, total),
        (FigureId::ProcessesPeak, peak),
    ]);
    figures.extend(measured.map(|measured| (FigureId::Measured, measured)));
    figures
}

fn row(id: FigureId, figure: &Figure, units: Units) -> Vec<ReportCell> {
    let show = |value: f64| quantity_of(id, value, units);
    let value = match figure.value {
        Some(_) => ReportCell::number(figure.value, show),
        None => ReportCell::text("unknown"),
    };
    let reason = match (&figure.reason, figure.value) {
        (Some(reason), _) => Some(reason.as_str()),
        (None, None) => Some(NO_REASON),
        (None, Some(_)) => None,
    };
    let source = match reason {
        Some(reason) if figure.source.is_empty() => reason.to_owned(),
        Some(reason) => format!("{}; {reason}", figure.source),
        None => figure.source.clone(),
    };
    vec![
        ReportCell::text(id.label()),
        value,
        ReportCell::text(figure.method.map_or("–", Method::name)),
        ReportCell::number(figure.lower, show),
        ReportCell::number(figure.upper, show),
        when(figure),
        ReportCell::text(source),
    ]
}

/// When it was reached: a time, or an interval where only that is known.
fn when(figure: &Figure) -> ReportCell {
    let number = figure.at_seconds.or(figure.before_seconds);
    let shown = quantity::seconds;
    let text = match (figure.at_seconds, figure.after_seconds, figure.before_seconds) {
        (None, Some(after), Some(before)) => format!("{} to {}", shown(after), shown(before)),
        (None, None, Some(before)) => format!("before {}", shown(before)),
        (at, _, _) => at.map_or_else(|| "–".to_owned(), shown),
    };
    ReportCell { text, number }
}

/// Whether a run on this machine has a figure: without GPUs, their figures are not missing.
fn is_expected(id: FigureId, summary: &Summary) -> bool {
    !id.is_of_gpus() || !summary.gpus.is_empty()
}

/// The unknown figures grouped by reason, a sentence for each reason.
pub(super) fn unknown(summary: &Summary) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    let unknown = summary.figures.iter().filter(|(_, figure)| figure.value.is_none());
    for (id, figure) in unknown.filter(|(id, _)| is_expected(*id, summary)) {
        let reason = figure.reason.as_deref().unwrap_or(NO_REASON);
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, labels)) => labels.push(id.label()),
            None => reasons.push((reason, vec![id.label()])),
        }
    }
    reasons.into_iter().map(|(reason, labels)| format!("{}: {reason}", labels.join("; "))).collect()
}
