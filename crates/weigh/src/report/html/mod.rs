//! A report as one page that needs nothing else: no network, no server, no other file.
//!
//! The charts are the same SVG that goes on paper; `page.css` gives it colours, and the
//! script makes it answer to a mouse, a finger and a keyboard. Without the script every
//! number and every chart is there all the same.
//!
//! What surprised us: a policy in a `meta` element binds a page that is opened from a disk,
//! too, so a name that got past all escaping still could not fetch anything.

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

/// The look of the page.
const STYLE: &str = include_str!("page.css");

/// The page's script, in the order in which its parts need each other.
const SCRIPT: &str = concat!(
    include_str!("quantity.js"),
    include_str!("axis.js"),
    include_str!("picture.js"),
    include_str!("chart.js"),
    include_str!("together.js"),
    include_str!("page.js"),
);

/// As wide as the page's column, so that a pixel is a pixel.
const CHART_SIZE: SvgOptions = SvgOptions { width: 860.0, height: 280.0, standalone: false };

/// Rows of cells that are all named; more are as good as a picture of all of them.
const NAMED_ROWS: usize = 64;

/// Rows of cells are so high that each has room for its name.
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
    /// Where what is: an anchor and a title.
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
    /// Where the script finds it.
    place: usize,
    chart: &'a Chart,
    svg: String,
}

impl HtmlChart<'_> {
    /// The series that need a name beside the chart and their places, those that lie on top
    /// first. One alone is what the title says, and rows of cells have names at the axis.
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

    /// What the brightest cell stands for.
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

    /// The class of a column's cells; nothing for plain words.
    fn class(&self, column: usize) -> &'static str {
        match self.table.columns.get(column) {
            Some(column) if column.is_number => "number",
            Some(column) if column.is_name => "whole",
            _ => "",
        }
    }

    /// Whether it has so many columns that each must do with less room.
    fn is_wide(&self) -> bool {
        self.table.columns.len() > 8
    }
}

struct HtmlBar<'a> {
    bar: &'a Bar,
    /// In words.
    share: String,
    /// How far it reaches, in percent; a share above the whole fills it.
    reach: Option<f64>,
}

impl HtmlBar<'_> {
    fn of(bar: &Bar) -> HtmlBar<'_> {
        let share = bar.share.map_or_else(|| "unknown".to_owned(), quantity::ratio);
        let reach = bar.share.map(|share| (share.clamp(0.0, 1.0) * 1000.0).round() / 10.0);
        HtmlBar { bar, share, reach }
    }

    /// Whether it is as good as full: fine for a CPU, a danger for memory, and stronger drawn.
    fn is_full(&self) -> bool {
        self.reach.is_some_and(|reach| reach >= 90.0)
    }
}

/// Names of places in the page, each given out once.
#[derive(Default)]
struct Anchors(BTreeSet<String>);

/// Anchors that the template itself has.
const FIXED: [&str; 6] = ["machine", "monitor", "missing", "drawn", "top", "keys"];

impl Anchors {
    fn make(&mut self, name: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let plain: String = name.chars().map(plain).collect();
        // A letter first: some readers of pages take nothing else.
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

/// The most letters of a cell that stand there at once; command lines may have thousands.
const LONG: usize = 90;

/// The beginning of a text that is too long for a row.
fn beginning(text: &str) -> Option<String> {
    (text.chars().count() > LONG).then(|| ellipsize(text, LONG / 2))
}

/// The class of something good or bad.
fn tone(severity: Option<&Severity>) -> &'static str {
    match severity {
        None => "well",
        Some(Severity::Note) => "note",
        Some(Severity::Warning) => "warning",
        Some(Severity::Problem) => "problem",
    }
}
