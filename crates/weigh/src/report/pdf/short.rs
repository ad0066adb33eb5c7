//! The short report: outcome, the important figures, the charts in which something happened, and
//! the first rows of the tables.
//!
//! How much fits depends on the length of texts from outside, so it is composed with fewer and
//! fewer rows until it has few enough pages.

use super::page::{Composer, LEFT};
use super::style::{FontStyle, Ink};
use super::table::{self, TableExtent};
use super::text::Faces;
use super::{SHORT_PAGES, chart, facts, missing, opening};
use crate::plot::Chart;
use crate::report::Document;
use crate::report::document::{ReportChapter, ReportTable};

/// The most charts: a page of them.
const CHARTS: usize = 4;
/// Tables of a short report, by name.
const TABLES: [&str; 7] =
    ["programs", "phases", "processes", "gpus", "left", "job-nodes", "job-gpus"];
/// How many rows of each table, sentences and findings are tried.
const ROWS: [usize; 5] = [12, 8, 5, 3, 1];
const NOTE: FontStyle = FontStyle::of(8.5).inked(Ink::GREY);

/// The short report, laid out.
pub(super) fn composed<'a>(document: &Document, faces: &'a Faces) -> Composer<'a> {
    let mut composer = Composer::new(faces);
    for rows in ROWS {
        composer = Composer::new(faces);
        compose(&mut composer, document, rows);
        if composer.sheets.len() <= SHORT_PAGES {
            break;
        }
    }
    composer
}

fn compose(composer: &mut Composer, document: &Document, rows: usize) {
    let mut shortened = document.clone();
    shortened.findings.truncate(rows);
    opening::add(composer, &shortened);
    let figures = ReportTable {
        rows: document.important().cloned().collect(),
        note: String::new(),
        ..document.figures.clone()
    };
    if !figures.rows.is_empty() {
        table::add(composer, &figures, TableExtent { rows: usize::MAX, lines: 2 });
    }
    let charts = ReportChapter { title: "Charts".to_owned(), charts: first_charts(document) };
    chart::add(composer, &[charts]);
    for table in document.tables.iter().filter(|table| TABLES.contains(&table.name.as_str())) {
        let table = ReportTable { note: String::new(), ..table.clone() };
        table::add(composer, &table, TableExtent { rows, lines: 1 });
    }
    facts::add(composer, Some("Hardware"), &document.hardware);
    missing(composer, &document.missing, rows);
    composer.gap(10.0);
    composer.ensure_space(NOTE.leading());
    composer.text(
        LEFT,
        NOTE,
        format!("All figures, charts and tables: {}", document.kind.full_command()),
    );
}

/// The charts that every run is judged by, then others in which something happened.
fn first_charts(document: &Document) -> Vec<Chart> {
    let all = || document.chapters.iter();
    let leading = all().take(1).flat_map(|chapter| &chapter.charts);
    let others = all().skip(1).flat_map(|chapter| chapter.active_and_quiet().0);
    leading.chain(others).take(CHARTS).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::super::specimen::{bare, rich, rich_and_hostile};
    use super::*;

    #[test]
    fn short_report_has_at_most_four_pages() {
        let faces = Faces::new().unwrap();
        for document in [bare(), rich(), rich_and_hostile()] {
            let pages = composed(&document, &faces).sheets.len();
            assert!(pages <= SHORT_PAGES, "{pages} pages");
        }
    }

    #[test]
    fn charts_in_which_something_happened_come_first() {
        let charts = first_charts(&rich());
        assert_eq!(charts.len(), CHARTS);
        assert!(charts.iter().all(|chart| !chart.is_quiet()));
    }
}
