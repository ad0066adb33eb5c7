//! Every figure of a run in one table, those first that most people want.

use super::{Cell, Column, Table};
use crate::quantity::{self, Units};
use crate::report::gpus::are_told;
use crate::report::phases::quantity_of;
use crate::summary::{Figure, Figures, Method, Summary};

/// What most people want to know first, in this order.
const IMPORTANT: [&str; 10] = [
    "duration_seconds",
    "cpu_time_seconds",
    "cpu_cores_mean",
    "cpu_cores_peak",
    "memory_peak_bytes",
    "memory_mean_bytes",
    "io_read_bytes",
    "io_written_bytes",
    "processes",
    "processes_peak",
];

/// And of GPUs, where there are any worth telling.
const IMPORTANT_OF_GPUS: [&str; 3] =
    ["gpu_memory_peak_bytes", "gpu_utilization_mean_ratio", "gpu_energy_joules"];

const NO_REASON: &str = "no reason was given";

/// The figures of a run; `seen` when any of its processes was.
pub(super) fn table(summary: &Summary, seen: bool, units: Units) -> Table {
    let mut figures = summary.figures.clone();
    figures.extend(counted(summary, seen));
    let of_gpus = if are_told(summary) { &IMPORTANT_OF_GPUS[..] } else { &[] };
    let first: Vec<&str> = IMPORTANT.iter().chain(of_gpus).copied().collect();
    let important = first.iter().filter_map(|name| figures.get_key_value(*name));
    let others = figures.iter().filter(|(name, _)| !first.contains(&name.as_str()));
    Table {
        name: "figures".to_owned(),
        title: "Figures".to_owned(),
        note: "Exact: the kernel counted it. Sampled: it was looked at now and then. Estimated: \
               it was derived from something else. The truth lies between the bounds."
            .to_owned(),
        columns: vec![
            Column::text("Figure"),
            Column::number("Value"),
            Column::text("Method"),
            Column::number("Not below"),
            Column::number("Not above"),
            Column::number("When"),
            Column::text("Source"),
        ],
        rows: important.chain(others).map(|(name, figure)| row(name, figure, units)).collect(),
    }
}

/// What the summary says elsewhere.
fn counted(summary: &Summary, seen: bool) -> Figures {
    let run = &summary.run;
    let whole = if run.target.is_some() { "while it was followed" } else { "exec to exit" };
    let duration = match run.complete {
        true => Figure::exact(run.duration_seconds, whole),
        false => Figure::sampled(run.duration_seconds, "the last tick")
            .because("the end of the run is not recorded"),
    };
    let (source, processes) = ("/proc", &summary.processes);
    let (total, peak) = (processes.total as f64, processes.peak as f64);
    let (total, peak) = match seen {
        // A summary counts one process also when nobody was seen.
        false => {
            let reason = summary.figures.get("threads_peak").and_then(|one| one.reason.as_deref());
            let unknown = Figure::unknown(source, reason.unwrap_or(NO_REASON));
            (unknown.clone(), unknown)
        }
        true if processes.some_unseen || !run.complete => {
            let why = "others may have come and gone between two ticks";
            let more = |count| Figure::sampled(count, source).because(why);
            (more(total), more(peak))
        }
        true => (Figure::exact(total, source), Figure::sampled(peak, source)),
    };
    Figures::from([
        ("duration_seconds".to_owned(), duration),
        ("processes".to_owned(), total),
        ("processes_peak".to_owned(), peak),
    ])
}

fn row(name: &str, figure: &Figure, units: Units) -> Vec<Cell> {
    let show = |value: f64| quantity_of(name, value, units);
    let value = match figure.value {
        Some(_) => Cell::number(figure.value, show),
        None => Cell::text("unknown"),
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
        Cell::text(label(name)),
        value,
        Cell::text(figure.method.map_or("–", Method::name)),
        Cell::number(figure.lower, show),
        Cell::number(figure.upper, show),
        Cell::number(figure.at_seconds, quantity::seconds),
        Cell::text(source),
    ]
}

/// The rows of a table of figures that most people want.
pub(in crate::report) fn important(table: &Table) -> impl Iterator<Item = &Vec<Cell>> {
    let names: Vec<String> =
        IMPORTANT.iter().chain(&IMPORTANT_OF_GPUS).map(|one| label(one)).collect();
    let is_important =
        move |row: &&Vec<Cell>| row.first().is_some_and(|cell| names.contains(&cell.text));
    // Those of GPUs that are not worth telling stand further down.
    table.rows.iter().take_while(is_important)
}

/// The row of a figure in a table of figures.
pub(in crate::report) fn row_of<'a>(table: &'a Table, name: &str) -> Option<&'a [Cell]> {
    let label = label(name);
    table
        .rows
        .iter()
        .find(|row| row.first().is_some_and(|cell| cell.text == label))
        .map(Vec::as_slice)
}

/// The figures that have no value, by the reason why: a sentence for each reason.
pub(super) fn unknown(summary: &Summary) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    // A machine without GPUs lacks nothing.
    let is_missed = |name: &str| !name.starts_with("gpu") || !summary.gpus.is_empty();
    let unknown = summary.figures.iter().filter(|(_, figure)| figure.value.is_none());
    for (name, figure) in unknown.filter(|(name, _)| is_missed(name)) {
        let reason = figure.reason.as_deref().unwrap_or(NO_REASON);
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, labels)) => labels.push(label(name)),
            None => reasons.push((reason, vec![label(name)])),
        }
    }
    reasons.into_iter().map(|(reason, labels)| format!("{}: {reason}", labels.join("; "))).collect()
}

/// What people call a figure: `cpu_time_seconds` is "CPU time", `memory_peak_bytes` is
/// "Memory, peak".
pub(super) fn label(name: &str) -> String {
    const UNITS: [&str; 4] = ["seconds", "bytes", "ratio", "joules"];
    const KINDS: [&str; 6] = ["mean", "peak", "major", "minor", "voluntary", "involuntary"];
    let mut label = String::new();
    for word in name.split('_') {
        if UNITS.contains(&word) {
            continue;
        }
        let before = match (label.is_empty(), KINDS.contains(&word)) {
            (true, _) => "",
            (false, true) => ", ",
            (false, false) => " ",
        };
        label.push_str(before);
        match word {
            "cpu" | "pss" | "rss" | "uss" | "gpu" => label.push_str(&word.to_uppercase()),
            "gpus" => label.push_str("GPUs"),
            "io" => label.push_str("I/O"),
            _ if before.is_empty() => {
                label.extend(word.chars().take(1).flat_map(char::to_uppercase));
                label.extend(word.chars().skip(1));
            }
            _ => label.push_str(word),
        }
    }
    label
}
