//! A report as a short block for a comment on a pull request or a step's summary.

use std::fmt::Write;

use super::document::{BOTTLENECK, Document, Fact, ReportCell};
use super::markdown::{LONGEST_CELL, findings, rows};
use crate::catalog::FigureId;
use crate::quantity;
use crate::text::ellipsize;
use crate::text::markdown::{code, plain};

/// More programs are in the full report.
const MAX_PROGRAMS: usize = 8;

/// The report in a few lines, for `$GITHUB_STEP_SUMMARY` and comments by CI.
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
        let _ = writeln!(out, "{}\n", code(&ellipsize(command, LONGEST_CELL)));
    }
    if let Some(programs) = document.tables.iter().find(|table| table.name == "programs") {
        rows(&mut out, programs, MAX_PROGRAMS);
    }
    // The header says where it ran, and the lines above how it went.
    let machine = document.hardware.iter().filter(|fact| fact.label != "Host");
    let facts: Vec<String> = document
        .header
        .iter()
        .filter(|fact| !["Exit", "Duration", "Measured for"].contains(&fact.label.as_str()))
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

/// The main figures, a line each.
fn lines(document: &Document) -> Vec<(&'static str, String)> {
    let cell = |id, place: usize| -> Option<&ReportCell> { document.figure(id)?.get(place) };
    let text = |id, place: usize| cell(id, place).map_or("–", |cell| &cell.text);
    let value = |id| text(id, 1);
    let method = |id| text(id, 2);
    let cores = document
        .bars
        .iter()
        .find(|bar| bar.label == "CPU")
        .and_then(|bar| Some(format!(", {} ({})", bar.note, quantity::ratio(bar.share?))));
    let bound = match (cell(FigureId::MemoryPeak, 4), cell(FigureId::MemoryPeak, 1)) {
        (Some(ReportCell { number: Some(_), text: upper }), Some(value))
            if *upper != value.text =>
        {
            format!(", at most {upper}")
        }
        _ => String::new(),
    };
    let process = document.verdict.peak_process.as_ref();
    let process = process.map_or_else(String::new, |had| format!("; {had}"));
    // Sampled counts are lower bounds.
    let at_least = |id| match (cell(id, 1), cell(id, 4)) {
        (Some(ReportCell { number: Some(_), text }), Some(ReportCell { number: None, .. })) => {
            format!("at least {text}")
        }
        _ => value(id).to_owned(),
    };
    let measured = cell(FigureId::Measured, 1)
        .map_or_else(String::new, |cell| format!(", measured for {}", cell.text));
    let own = |label: &str| named(&document.monitor, label);
    let mut lines = vec![
        ("Time", format!("{}{measured}", value(FigureId::Duration))),
        (
            "CPU time",
            format!(
                "{} ({}){}",
                value(FigureId::CpuTime),
                method(FigureId::CpuTime),
                cores.unwrap_or_default()
            ),
        ),
        (
            "Memory, peak",
            format!(
                "{} ({}){bound}{process}",
                at_least(FigureId::MemoryPeak),
                method(FigureId::MemoryPeak)
            ),
        ),
    ];
    let reasons = document.verdict.reasons.iter();
    let bottleneck = reasons.filter(|reason| reason.label == BOTTLENECK);
    lines.extend(bottleneck.map(|reason| (BOTTLENECK, reason.value.clone())));
    lines.extend(gpus(document));
    lines.extend([
        (
            "I/O",
            format!("{} read, {} written", value(FigureId::IoRead), value(FigureId::IoWritten)),
        ),
        (
            "Processes",
            format!(
                "{}, peak {}",
                at_least(FigureId::Processes),
                at_least(FigureId::ProcessesPeak)
            ),
        ),
        (
            "weigh itself",
            format!("{} CPU, {} of one core", own("CPU time"), own("Share of one core")),
        ),
    ]);
    lines
}

/// The main GPU figures, where GPUs are worth reporting.
fn gpus(document: &Document) -> Vec<(&'static str, String)> {
    let bar = document.bars.iter().find(|bar| bar.label == "GPU");
    let of = bar.map(|bar| format!(", {}", bar.note)).unwrap_or_default();
    let wanted = [
        ("GPU memory, peak", FigureId::GpuMemoryPeak, ""),
        ("GPU busy", FigureId::GpuUtilizationMean, &*of),
        ("GPU energy", FigureId::GpuEnergy, ""),
    ];
    let line = |(label, id, more): (&'static str, FigureId, &str)| {
        let row = document.figure(id)?;
        // Figures of GPUs not worth reporting are not among the important ones.
        document.important().find(|one| one.as_slice() == row)?;
        let (value, method) = (row.get(1)?, row.get(2)?);
        value.number.map(|_| (label, format!("{} ({}){more}", value.text, method.text)))
    };
    wanted.into_iter().filter_map(line).collect()
}

/// The value of a fact.
fn named<'a>(facts: &'a [Fact], label: &str) -> &'a str {
    facts.iter().find(|fact| fact.label == label).map_or("–", |fact| &fact.value)
}
