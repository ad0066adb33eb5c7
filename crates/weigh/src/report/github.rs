//! A report as a short block for a comment on a pull request or a step's summary.

use std::fmt::Write;

use super::document::{Cell, Document, Fact, important, row_of};
use super::markdown::{LONGEST_CELL, findings, rows};
use crate::quantity;
use crate::words::markdown::{code, plain};
use crate::words::shortened;

/// More programs than these are for the full report.
const MOST_PROGRAMS: usize = 8;

/// The report in a few lines: for `$GITHUB_STEP_SUMMARY` and comments of a CI.
pub fn github(document: &Document) -> String {
    let exit = named(&document.header, "Exit");
    let mut out =
        format!("### {}: {}\n\n| | |\n| --- | --- |\n", plain(&document.title), plain(exit));
    for (label, value) in lines(document) {
        let _ = writeln!(out, "| **{label}** | {} |", plain(&value));
    }
    out.push('\n');
    findings(&mut out, &document.findings, "");
    out.push_str("<details>\n<summary>More</summary>\n\n");
    if let Some(command) = &document.command {
        let _ = writeln!(out, "{}\n", code(&shortened(command, LONGEST_CELL)));
    }
    if let Some(programs) = document.tables.iter().find(|table| table.name == "programs") {
        rows(&mut out, programs, MOST_PROGRAMS);
    }
    // The head says where it ran, and the lines above how it went.
    let machine = document.hardware.iter().filter(|fact| fact.label != "Host");
    let facts: Vec<String> = document
        .header
        .iter()
        .filter(|fact| !["Exit", "Duration"].contains(&fact.label.as_str()))
        .chain(machine)
        .map(|fact| format!("{}: {}", plain(&fact.label), plain(&fact.value)))
        .collect();
    let _ = writeln!(out, "{}\n", facts.join(" · "));
    for sentence in &document.missing {
        let _ = writeln!(out, "- {}", plain(sentence));
    }
    if !document.missing.is_empty() {
        out.push('\n');
    }
    let _ = writeln!(out, "</details>\n\nMade by {}.", plain(&document.made_by));
    out
}

/// What matters, a line each.
fn lines(document: &Document) -> Vec<(&'static str, String)> {
    let cell =
        |name: &str, place: usize| -> Option<&Cell> { row_of(&document.figures, name)?.get(place) };
    let text = |name: &str, place: usize| cell(name, place).map_or("–", |cell| &cell.text);
    let value = |name: &str| text(name, 1);
    let method = |name: &str| text(name, 2);
    let cores = document
        .bars
        .iter()
        .find(|bar| bar.label == "CPU")
        .and_then(|bar| Some(format!(", {} ({})", bar.note, quantity::ratio(bar.share?))));
    let bound = match (cell("memory_peak_bytes", 4), cell("memory_peak_bytes", 1)) {
        (Some(Cell { number: Some(_), text: upper }), Some(value)) if *upper != value.text => {
            format!(", certainly not above {upper}")
        }
        (Some(Cell { number: None, .. }), Some(Cell { number: Some(_), .. })) => {
            ", or more".to_owned()
        }
        _ => String::new(),
    };
    let own = |label: &str| named(&document.monitor, label);
    let mut lines = vec![
        ("Time", value("duration_seconds").to_owned()),
        (
            "CPU time",
            format!(
                "{} ({}){}",
                value("cpu_time_seconds"),
                method("cpu_time_seconds"),
                cores.unwrap_or_default()
            ),
        ),
        (
            "Memory, peak",
            format!("{} ({}){bound}", value("memory_peak_bytes"), method("memory_peak_bytes")),
        ),
    ];
    lines.extend(gpus(document));
    lines.extend([
        ("I/O", format!("{} read, {} written", value("io_read_bytes"), value("io_written_bytes"))),
        ("Processes", format!("{}, {} at once", value("processes"), value("processes_peak"))),
        (
            "weigh itself",
            format!("{} CPU, {} of one core", own("CPU time"), own("Share of one core")),
        ),
    ]);
    lines
}

/// What matters of GPUs, where there are any worth telling: what is known of it.
fn gpus(document: &Document) -> Vec<(&'static str, String)> {
    let bar = document.bars.iter().find(|bar| bar.label == "GPU");
    let of = bar.map(|bar| format!(", {}", bar.note)).unwrap_or_default();
    let wanted = [
        ("GPU memory, peak", "gpu_memory_peak_bytes", ""),
        ("GPU busy", "gpu_utilization_mean_ratio", &*of),
        ("GPU energy", "gpu_energy_joules", ""),
    ];
    let line = |(label, name, more): (&'static str, &str, &str)| {
        let row = row_of(&document.figures, name)?;
        // Those that are not worth telling are among the others.
        important(&document.figures).find(|one| one.as_slice() == row)?;
        let (value, method) = (row.get(1)?, row.get(2)?);
        value.number.map(|_| (label, format!("{} ({}){more}", value.text, method.text)))
    };
    wanted.into_iter().filter_map(line).collect()
}

/// What a fact says.
fn named<'a>(facts: &'a [Fact], label: &str) -> &'a str {
    facts.iter().find(|fact| fact.label == label).map_or("–", |fact| &fact.value)
}
