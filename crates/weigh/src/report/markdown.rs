//! A report as Markdown, for repositories and wikis.
//!
//! What is long stands in `<details>`. Where one reads it without HTML, nothing is lost.

use std::fmt::Write;

use super::document::{Advice, Bar, Column, Document, Fact, IMPORTANT, Table};
use super::escape::{address, code, fenced, plain};
use crate::plot::Chart;
use crate::quantity;
use crate::summary::Severity;

/// More rows of a table nobody reads in a text.
const MOST_ROWS: usize = 30;
/// A longer cell makes a table that does not fit a page.
const LONGEST_CELL: usize = 120;

/// The report as Markdown. `picture` says where the picture of a chart is, relative to the text.
pub fn markdown(document: &Document, picture: impl Fn(&Chart) -> String) -> String {
    let mut out = format!("# {}\n\n", plain(&document.title));
    let severity = document.verdict.severity.map(severity).unwrap_or_default();
    let _ = writeln!(out, "{severity}{}\n", plain(&document.verdict.sentence));
    if let Some(command) = &document.command {
        out.push_str(&fenced(command));
        out.push('\n');
    }
    facts(&mut out, &document.header);
    findings(&mut out, &document.findings, "## What to know\n\n");
    out.push_str("## How full the machine was\n\n");
    bars(&mut out, &document.bars);
    out.push_str("## Figures\n\n");
    let figures = &document.figures;
    short_figures(&mut out, figures);
    out.push_str("<details>\n<summary>All figures</summary>\n\n");
    let _ = writeln!(out, "{}\n", plain(&figures.note));
    rows(&mut out, figures, usize::MAX);
    out.push_str("</details>\n\n");
    for chapter in document.chapters.iter().filter(|chapter| !chapter.charts.is_empty()) {
        let _ = writeln!(out, "## {}\n", plain(&chapter.title));
        for chart in &chapter.charts {
            let _ = writeln!(out, "![{}]({})\n", plain(&chart.title), address(&picture(chart)));
            if !chart.note.is_empty() {
                let _ = writeln!(out, "{}\n", plain(&chart.note));
            }
        }
    }
    for table in &document.tables {
        let _ = writeln!(out, "## {}\n", plain(&table.title));
        rows(&mut out, table, MOST_ROWS);
        if !table.note.is_empty() {
            let _ = writeln!(out, "{}\n", plain(&table.note));
        }
    }
    for (title, list) in [("Hardware", &document.hardware), ("Monitor", &document.monitor)] {
        let _ = writeln!(out, "## {title}\n");
        facts(&mut out, list);
    }
    if !document.missing.is_empty() {
        out.push_str("## Not measured\n\n");
        for sentence in &document.missing {
            let _ = writeln!(out, "- Not known: {}", plain(sentence));
        }
        out.push('\n');
    }
    let _ = writeln!(out, "Made by {}.", plain(&document.made_by));
    out
}

/// How much something matters, as the words before it.
pub(super) fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Problem => "**Problem:** ",
        Severity::Warning => "**Warning:** ",
        Severity::Note => "**Note:** ",
    }
}

/// What was found, as a list.
pub(super) fn findings(out: &mut String, findings: &[Advice], heading: &str) {
    if findings.is_empty() {
        return;
    }
    out.push_str(heading);
    for finding in findings {
        let _ = write!(out, "- {}{}", severity(finding.severity), plain(&finding.sentence));
        if !finding.advice.is_empty() {
            let _ = write!(out, " {}", plain(&finding.advice));
        }
        out.push('\n');
    }
    out.push('\n');
}

fn facts(out: &mut String, facts: &[Fact]) {
    for fact in facts {
        let _ = writeln!(out, "- **{}:** {}", plain(&fact.label), plain(&fact.value));
    }
    out.push('\n');
}

fn bars(out: &mut String, bars: &[Bar]) {
    const CELLS: f64 = 20.0;
    out.push_str("| Part | | Share | |\n| --- | --- | ---: | --- |\n");
    for bar in bars {
        let drawn = bar.share.map(|share| {
            let full = (share * CELLS).round() as usize;
            "█".repeat(full) + &"░".repeat(CELLS as usize - full.min(CELLS as usize))
        });
        let share = bar.share.map_or_else(|| "–".to_owned(), quantity::ratio);
        let drawn = drawn.unwrap_or_default();
        let _ =
            writeln!(out, "| {} | {drawn} | {share} | {} |", plain(&bar.label), plain(&bar.note));
    }
    out.push('\n');
}

/// The figures that most people want, in the columns that they want.
fn short_figures(out: &mut String, figures: &Table) {
    const COLUMNS: usize = 5;
    let first: Vec<_> = figures
        .rows
        .iter()
        .take(IMPORTANT.len())
        .map(|row| row.iter().take(COLUMNS).cloned().collect())
        .collect();
    let columns = figures.columns.iter().take(COLUMNS).cloned().collect();
    rows(out, &Table { columns, rows: first, ..figures.clone() }, usize::MAX);
}

/// The rows of a table, at most so many.
pub(super) fn rows(out: &mut String, table: &Table, most: usize) {
    let mut line = |cells: Vec<String>| {
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    };
    line(table.columns.iter().map(|column| plain(&column.label)).collect());
    let rule = |column: &Column| if column.is_number { "---:" } else { "---" }.to_owned();
    line(table.columns.iter().map(rule).collect());
    for row in table.rows.iter().take(most) {
        let cells = row.iter().zip(&table.columns).map(|(cell, column)| {
            let text = shortened(&cell.text);
            if column.label == "Command" { code(&text) } else { plain(&text) }
        });
        line(cells.collect());
    }
    let more = table.rows.len().saturating_sub(most);
    if more > 0 {
        let _ = write!(out, "\nand {} more\n", quantity::count(more as f64));
    }
    out.push('\n');
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_CELL) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
