//! A report as Markdown, for repositories and wikis.
//!
//! Long parts are in `<details>`. Without HTML nothing is lost.

use std::fmt::Write;

use super::document::{Advice, Bar, Document, Fact, ReportColumn, ReportTable};
use crate::plot::Chart;
use crate::quantity;
use crate::summary::Severity;
use crate::text::ellipsize;
use crate::text::markdown::{address, code, fenced, plain};

/// Most rows of a table.
const MAX_ROWS: usize = 30;
/// A longer cell is cut, so that a table fits a page.
pub(super) const LONGEST_CELL: usize = 120;

/// The report as Markdown. `picture` returns the path of a chart's image, relative to the text.
pub fn markdown(document: &Document, picture: impl Fn(&Chart) -> String) -> String {
    let mut out = format!("# {}\n\n", plain(&document.title));
    let severity = document.verdict.severity.map(severity).unwrap_or_default();
    let _ = writeln!(out, "{severity}{}\n", plain(&document.verdict.sentence));
    facts(&mut out, &document.verdict.reasons);
    if let Some(command) = &document.command {
        out.push_str(&fenced(command));
        out.push('\n');
    }
    facts(&mut out, &document.header);
    findings(&mut out, &document.findings, "## What to know\n\n");
    out.push_str("## Utilisation\n\n");
    bars(&mut out, &document.bars);
    out.push_str("## Figures\n\n");
    let figures = &document.figures;
    short_figures(&mut out, document);
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
        rows(&mut out, table, MAX_ROWS);
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
            let _ = writeln!(out, "- {}", plain(sentence));
        }
        out.push('\n');
    }
    let _ = writeln!(out, "Made by {}.", plain(&document.made_by));
    out
}

/// The prefix of a severity.
pub(super) fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Problem => "**Problem:** ",
        Severity::Warning => "**Warning:** ",
        Severity::Note => "**Note:** ",
    }
}

/// The findings as a list.
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

/// The important figures and columns.
fn short_figures(out: &mut String, document: &Document) {
    const COLUMNS: usize = 5;
    let figures = &document.figures;
    let first: Vec<_> =
        document.important().map(|row| row.iter().take(COLUMNS).cloned().collect()).collect();
    let columns = figures.columns.iter().take(COLUMNS).cloned().collect();
    rows(out, &ReportTable { columns, rows: first, ..figures.clone() }, usize::MAX);
}

/// The rows of a table, at most so many.
pub(super) fn rows(out: &mut String, table: &ReportTable, most: usize) {
    let mut line = |cells: Vec<String>| {
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    };
    line(table.columns.iter().map(|column| plain(&column.label)).collect());
    let rule = |column: &ReportColumn| if column.is_number { "---:" } else { "---" }.to_owned();
    line(table.columns.iter().map(rule).collect());
    for row in table.rows.iter().take(most) {
        let cells = row.iter().zip(&table.columns).map(|(cell, column)| {
            let text = ellipsize(&cell.text, LONGEST_CELL);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ProcessId;
    use crate::plot::chart::{ChartForm, Scale, Timeline};
    use crate::quantity::Units;
    use crate::record::Event;
    use crate::report::document::ReportChapter;
    use crate::report::github;
    use crate::report::tests::{read, work_hard};
    use crate::testing::{FakeRun, MAIN, cpu};

    const NASTY: &str = "<script>alert(1)</script>|`x`[y](javascript:z)\n\n# head\n@team &amp;";

    fn document(run: FakeRun, chapters: Vec<ReportChapter>) -> Document {
        let (manifest, summary, participants) = read(run);
        Document::of(&manifest, &summary, &participants, chapters, Units::Binary)
    }

    /// A run in which everything has a nasty name.
    fn nasty() -> Document {
        let mut run = work_hard();
        run.manifest.name = NASTY.to_owned();
        run.manifest.command = Some(vec![NASTY.to_owned(), "````".to_owned()]);
        run.manifest.labels = [(NASTY.to_owned(), NASTY.to_owned())].into();
        run.manifest.user = Some(NASTY.to_owned());
        run.manifest.host.name = NASTY.to_owned();
        let (name, command) = (NASTY.to_owned(), Some(vec![NASTY.to_owned()]));
        let start =
            Event::ProcessStart { pid: 10, started: 100, parent: 1, name, command, tool: None };
        run.event(0.0, start).sample(1.0, |tick| cpu(tick, MAIN, 1.0, 0.0));
        run.phase_starts(1.0, "1", NASTY);
        let fault = Event::Fault { source: NASTY.to_owned(), why: NASTY.to_owned() };
        run.event(1.0, fault).ends(2.0, |end| end.still_running = vec![10]);
        let chart = Chart {
            name: "a".to_owned(),
            title: NASTY.to_owned(),
            note: NASTY.to_owned(),
            scale: Scale::rate(crate::catalog::Unit::Seconds),
            form: ChartForm::Lines,
            times: Vec::new(),
            series: Vec::new(),
            limits: Vec::new(),
            peak: None,
            timeline: Timeline::default(),
        };
        document(run, vec![ReportChapter { title: NASTY.to_owned(), charts: vec![chart] }])
    }

    /// The text outside of fences.
    fn without_fences(text: &str) -> String {
        let mut fence = None;
        let mut out = String::new();
        for line in text.lines() {
            match (fence, line.split('s').next()) {
                (None, Some(opened)) if opened.len() > 2 && opened.bytes().all(|b| b == b'`') => {
                    fence = Some(opened);
                }
                (Some(open), _) if line == open => fence = None,
                (Some(_), _) => {}
                (None, _) => out.extend([line, "\n"]),
            }
        }
        assert_eq!(fence, None, "a fence is closed");
        out
    }

    #[test]
    fn hostile_names_are_escaped() {
        let document = nasty();
        let full = markdown(&document, |_| "charts/a b.png".to_owned());
        for text in [&full, &github(&document)] {
            let text = without_fences(text);
            assert!(text.contains("&#60;script&#62;"), "{text}");
            let tags = ["details", "/details", "summary", "/summary", "code", "/code"];
            for rest in text.split('<').skip(1) {
                let tag = rest.split('>').next().unwrap_or_default();
                assert!(tags.contains(&tag), "a tag of our own: <{tag}>");
            }
            for line in text.lines().filter(|line| line.starts_with('|')) {
                let columns = line.matches('|').count();
                assert!([3, 5, 6, 7, 8, 10, 11].contains(&columns), "{columns}: {line}");
            }
            assert!(!text.contains('@') && !text.contains('`') && !text.contains("](java"));
            let heads = text.lines().filter(|line| line.trim_start().starts_with('#'));
            assert_eq!(heads.filter(|line| line.trim_start() == "# head").count(), 0, "{text}");
        }
        let full = without_fences(&full);
        assert_eq!(full.matches("](").count(), 1, "one picture and no other link");
        assert!(full.contains("](charts/a%20b.png)"), "{full}");
    }

    #[test]
    fn every_table_row_has_the_same_number_of_cells() {
        let text = markdown(&nasty(), |_| "a.png".to_owned());
        let mut width = None;
        for line in text.lines() {
            let cells = line.starts_with('|').then(|| line.matches('|').count());
            assert!(width.is_none() || cells.is_none() || width == cells, "{line}");
            width = cells;
        }
    }

    #[test]
    fn long_tables_say_how_many_are_left_out() {
        let mut run = work_hard();
        for number in 0..100 {
            let id = ProcessId { pid: 1000 + number, started: 1 };
            run.starts(1.0, id, "tool").sample(1.0, |tick| cpu(tick, id, 1.0, 0.0));
        }
        let text = markdown(&document(run, Vec::new()), |_| String::new());
        assert_eq!(text.matches("<code>tool</code>").count(), MAX_ROWS);
        assert!(text.contains("\nand 70 more\n"), "{text}");
    }

    #[test]
    fn comment_of_an_ordinary_run_is_short() {
        let mut run = work_hard();
        for number in 0..30 {
            let id = ProcessId { pid: 1000 + number, started: 1 };
            run.starts(1.0, id, &format!("tool-{number}"))
                .sample(1.0, |tick| cpu(tick, id, 1.0, 0.0));
        }
        run.ends(8.0, |end| end.reaped.user_seconds = 30.0);
        let text = github(&document(run, Vec::new()));
        assert!(text.lines().count() < 40, "{}", text.lines().count());
        assert!(text.starts_with("### work: exit 0\n"), "{text}");
        let cpu = "| **CPU time** | 1 min 00 s (exact), 7.50 of 4 cores used on average (100 %) |";
        assert!(text.contains(cpu), "{text}");
        assert!(text.contains("| **Processes** | 30, peak at least 30 |"), "{text}");
    }
}
