//! A report as one self-contained HTML page: no network, no server, no other file.
//!
//! The charts are the same SVG as in the PDF; `page.css` colours them, and the script adds zoom and
//! values by mouse, touch and keyboard. Without the script every number and every chart is still
//! there.
//!
//! What surprised us: a Content-Security-Policy in a `meta` element also applies to a page opened
//! from disk, so even a name that escaped all escaping could not load anything.

mod chart_json;
mod escape;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use askama::Template;

use self::chart_json::ChartsJson;
use super::document::{Bar, Document, ReportTable};
use crate::plot::svg::{self, SvgOptions};
use crate::plot::{Chart, ChartForm, ChartSeries};
use crate::quantity;
use crate::summary::Severity;
use crate::text::ellipsize;

/// Why a page could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The template could not be filled.
    #[error("cannot fill the page: {0}")]
    Template(#[from] askama::Error),
    /// The charts could not be written for the script.
    #[error("cannot write the charts of the page: {0}")]
    Charts(#[from] serde_json::Error),
}

/// The style of the page.
const STYLE: &str = include_str!("page.css");

/// The page's script, in dependency order.
const SCRIPT: &str = concat!(
    include_str!("quantity.js"),
    include_str!("axis.js"),
    include_str!("picture.js"),
    include_str!("chart.js"),
    include_str!("together.js"),
    include_str!("page.js"),
);

/// As wide as the page's column, so that charts are not scaled.
const CHART_SIZE: SvgOptions = SvgOptions { width: 860.0, height: 280.0, standalone: false };

/// Heat map rows that all have labels; with more rows only some have.
const NAMED_ROWS: usize = 64;

/// The height of a chart; rows of a heat map are high enough for their labels.
fn height(chart: &Chart) -> f64 {
    let rows =
        if chart.form == ChartForm::Heatmap { chart.series.len().min(NAMED_ROWS) } else { 0 };
    CHART_SIZE.height.max(rows as f64 * 13.0 + 60.0)
}

/// A report as a page.
pub fn html(document: &Document) -> Result<String, Error> {
    let mut anchors = Anchors::default();
    let mut drawn = ChartsJson::default();
    let mut contents = Vec::new();
    let mut lists =
        |title: &str, anchor: &str| contents.push((anchor.to_owned(), title.to_owned()));

    let figures = HtmlTable::of(&document.figures, &mut anchors);
    lists(&document.figures.title, &figures.anchor);
    let mut chapters = Vec::new();
    let mut place = 0;
    for chapter in &document.chapters {
        let anchor = anchors.make(&chapter.title);
        lists(&chapter.title, &anchor);
        let mut charts = Vec::new();
        for chart in &chapter.charts {
            drawn.push(chart);
            let svg = svg::draw(chart, SvgOptions { height: height(chart), ..CHART_SIZE });
            charts.push(HtmlChart {
                anchor: anchors.make(&format!("chart-{}", chart.name)),
                place,
                chart,
                svg,
            });
            place += 1;
        }
        chapters.push(HtmlChapter { title: &chapter.title, anchor, charts });
    }
    let tables: Vec<HtmlTable> =
        document.tables.iter().map(|table| HtmlTable::of(table, &mut anchors)).collect();
    tables.iter().for_each(|listed| lists(&listed.table.title, &listed.anchor));

    let drawn = escape::json_in_script(&serde_json::to_string(&drawn)?);
    let levels = document.bars.iter().map(HtmlBar::of).collect();
    let (style, script) = (STYLE, SCRIPT);
    let page =
        HtmlPage { document, contents, levels, figures, chapters, tables, drawn, style, script };
    Ok(page.render()?)
}

#[derive(Template)]
#[template(path = "report/html/report.html")]
struct HtmlPage<'a> {
    document: &'a Document,
    /// Table of contents: anchor and title.
    contents: Vec<(String, String)>,
    levels: Vec<HtmlBar<'a>>,
    figures: HtmlTable<'a>,
    chapters: Vec<HtmlChapter<'a>>,
    tables: Vec<HtmlTable<'a>>,
    drawn: String,
    style: &'static str,
    script: &'static str,
}

struct HtmlChapter<'a> {
    title: &'a str,
    anchor: String,
    charts: Vec<HtmlChart<'a>>,
}

struct HtmlChart<'a> {
    anchor: String,
    /// Its index in the script's data.
    place: usize,
    chart: &'a Chart,
    svg: String,
}

impl HtmlChart<'_> {
    /// The legend: index and series, the topmost area first. Heat maps have labels at the axis
    /// instead.
    fn legend(&self) -> Vec<(usize, &ChartSeries)> {
        let mut series: Vec<(usize, &ChartSeries)> = self.chart.series.iter().enumerate().collect();
        if self.is_heatmap() {
            series.clear();
        } else if self.is_stacked() {
            series.reverse();
        }
        series
    }

    fn is_stacked(&self) -> bool {
        self.chart.form.is_stacked()
    }

    fn is_heatmap(&self) -> bool {
        self.chart.form == ChartForm::Heatmap
    }

    /// The value of the brightest cell.
    fn brightest(&self) -> String {
        self.chart.scale.shown(self.chart.brightest())
    }
}

struct HtmlTable<'a> {
    anchor: String,
    table: &'a ReportTable,
}

impl HtmlTable<'_> {
    fn of<'a>(table: &'a ReportTable, anchors: &mut Anchors) -> HtmlTable<'a> {
        HtmlTable { anchor: anchors.make(&table.name), table }
    }

    /// The class of a column's cells; empty for plain text.
    fn class(&self, column: usize) -> &'static str {
        match self.table.columns.get(column) {
            Some(column) if column.is_number => "number",
            Some(column) if column.is_name => "whole",
            _ => "",
        }
    }

    /// Whether it has so many columns that they must be narrow.
    fn is_wide(&self) -> bool {
        self.table.columns.len() > 8
    }
}

struct HtmlBar<'a> {
    bar: &'a Bar,
    /// As text.
    share: String,
    /// The length of the bar in percent, at most 100.
    reach: Option<f64>,
}

impl HtmlBar<'_> {
    fn of(bar: &Bar) -> HtmlBar<'_> {
        let share = bar.share.map_or_else(|| "unknown".to_owned(), quantity::ratio);
        let reach = bar.share.map(|share| (share.clamp(0.0, 1.0) * 1000.0).round() / 10.0);
        HtmlBar { bar, share, reach }
    }

    /// Whether it is nearly full: fine for a CPU, a risk for memory; drawn stronger.
    fn is_full(&self) -> bool {
        self.reach.is_some_and(|reach| reach >= 90.0)
    }
}

/// Unique anchors of the page.
#[derive(Default)]
struct Anchors(BTreeSet<String>);

/// Anchors that the template itself has.
const FIXED: [&str; 6] = ["machine", "monitor", "missing", "drawn", "top", "keys"];

impl Anchors {
    fn make(&mut self, name: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let plain: String = name.chars().map(plain).collect();
        // A letter first: some readers accept nothing else.
        let plain = if plain.starts_with(|c: char| c.is_ascii_alphabetic()) {
            plain
        } else {
            format!("at-{plain}")
        };
        let mut anchor = plain.clone();
        let mut number = 1;
        while FIXED.contains(&anchor.as_str()) || !self.0.insert(anchor.clone()) {
            number += 1;
            anchor = format!("{plain}-{number}");
        }
        anchor
    }
}

/// Longer cells are folded; command lines may have thousands of characters.
const LONG: usize = 90;

/// The beginning of a text that is folded.
fn beginning(text: &str) -> Option<String> {
    (text.chars().count() > LONG).then(|| ellipsize(text, LONG / 2))
}

/// The class of a severity.
fn tone(severity: Option<&Severity>) -> &'static str {
    match severity {
        None => "well",
        Some(Severity::Note) => "note",
        Some(Severity::Warning) => "warning",
        Some(Severity::Problem) => "problem",
    }
}
