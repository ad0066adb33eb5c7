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
use super::document::{
    Bar, Document, Fact, LEADING_CHAPTER, OWN_CHAPTER, ReportCell, ReportTable, TimelineBar,
    TimelineRow,
};
use crate::plot::svg::{self, SvgOptions};
use crate::plot::{Chart, ChartForm, ChartSeries, axis};
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

/// The style of the page: light or dark as the system, or as the reader chose; paper is light.
const STYLE: &str = concat!(
    include_str!("page.css"),
    "\n@media screen and (prefers-color-scheme: dark) {\n  :root:not([data-theme=\"light\"]) {\n",
    include_str!("dark.css"),
    "  }\n}\n@media screen {\n  :root[data-theme=\"dark\"] {\n    color-scheme: dark;\n",
    include_str!("dark.css"),
    "  }\n  :root[data-theme=\"light\"] {\n    color-scheme: light;\n  }\n}\n",
);

/// The script that runs before the page is drawn.
const THEME: &str = include_str!("theme.js");

/// The page's script, in dependency order.
const SCRIPT: &str = concat!(
    include_str!("quantity.js"),
    include_str!("axis.js"),
    include_str!("picture.js"),
    include_str!("chart.js"),
    include_str!("element.js"),
    include_str!("together.js"),
    include_str!("timeline.js"),
    include_str!("download.js"),
    include_str!("large.js"),
    include_str!("link.js"),
    include_str!("page.js"),
);

/// As wide as the page's columns, so that charts are not scaled: two leading charts side by side,
/// three others.
const LEADING_SIZE: SvgOptions = SvgOptions { width: 543.0, height: 200.0, standalone: false };
const SMALL_SIZE: SvgOptions = SvgOptions { width: 347.0, height: 160.0, standalone: false };

/// Heat map rows that all have labels; with more rows only some have.
const NAMED_ROWS: usize = 64;

/// Findings that are not folded.
const FIRST_FINDINGS: usize = 2;

/// How wide the bars of the timeline may be, in pixels.
const TIMELINE_WIDTH: f64 = 770.0;

/// The height of a chart; rows of a heat map are high enough for their labels.
fn height(chart: &Chart, least: f64) -> f64 {
    let rows =
        if chart.form == ChartForm::Heatmap { chart.series.len().min(NAMED_ROWS) } else { 0 };
    least.max(rows as f64 * 13.0 + 60.0)
}

/// A report as a page.
pub fn html(document: &Document) -> Result<String, Error> {
    let mut anchors = Anchors::default();
    let mut drawn = ChartsJson::default();
    let mut contents = Vec::new();
    let mut lists =
        |title: &str, anchor: &str| contents.push((anchor.to_owned(), title.to_owned()));

    let (leading, chapters): (Vec<_>, Vec<_>) =
        document.chapters.iter().partition(|chapter| chapter.title == LEADING_CHAPTER);
    let leading = leading.iter().flat_map(|chapter| &chapter.charts).collect();
    let leading = draw(leading, LEADING_SIZE, &mut drawn, &mut anchors);
    if document.timeline.is_some() {
        lists("Timeline", "timeline");
    }
    lists(&document.figures.title, "figures");
    let (own, chapters): (Vec<_>, Vec<_>) =
        chapters.into_iter().partition(|chapter| chapter.title == OWN_CHAPTER);
    let chapters: Vec<HtmlChapter> = chapters
        .into_iter()
        .map(|chapter| {
            let anchor = anchors.make(&chapter.title);
            lists(&chapter.title, &anchor);
            let (active, quiet) = chapter.active_and_quiet();
            let active = draw(active, SMALL_SIZE, &mut drawn, &mut anchors);
            let quiet = draw(quiet, SMALL_SIZE, &mut drawn, &mut anchors);
            HtmlChapter { title: &chapter.title, anchor, active, quiet }
        })
        .collect();
    let own = own.iter().flat_map(|chapter| &chapter.charts).collect();
    let own = draw(own, SMALL_SIZE, &mut drawn, &mut anchors);
    let tables: Vec<HtmlTable> =
        document.tables.iter().map(|table| HtmlTable::of(table, &mut anchors)).collect();
    tables.iter().for_each(|listed| lists(&listed.table.title, &listed.anchor));

    let part = |title: &str, rows| ReportTable {
        title: title.to_owned(),
        rows,
        ..document.figures.clone()
    };
    let important = part("Most important", document.important().cloned().collect());
    let topics: Vec<ReportTable> =
        document.topics().into_iter().map(|(title, rows)| part(title, rows)).collect();
    let listed = |table| HtmlTable { anchor: String::new(), table };
    let is_in_verdict = |fact: &&Fact| ["Duration", "Exit"].contains(&fact.label.as_str());
    let page = HtmlPage {
        document,
        header: document.header.iter().filter(|fact| !is_in_verdict(fact)).collect(),
        contents,
        levels: document.bars.iter().map(HtmlBar::of).collect(),
        leading,
        rows: timeline_rows(document, false),
        brief_rows: timeline_rows(document, true),
        ticks: document.timeline.as_ref().map(|timeline| ticks(timeline.end)).unwrap_or_default(),
        important: Some(&important).filter(|table| !table.rows.is_empty()).map(listed),
        topics: topics.iter().map(listed).collect(),
        chapters,
        own,
        tables,
        drawn: escape::json_in_script(&serde_json::to_string(&drawn)?),
        style: STYLE,
        theme: THEME,
        script: SCRIPT,
    };
    Ok(page.render()?)
}

/// Draws charts in this size, and adds them to the data of the script.
fn draw<'a>(
    charts: Vec<&'a Chart>,
    size: SvgOptions,
    drawn: &mut ChartsJson,
    anchors: &mut Anchors,
) -> Vec<HtmlChart<'a>> {
    let one = |chart: &'a Chart| HtmlChart {
        anchor: anchors.make(&format!("chart-{}", chart.name)),
        place: drawn.push(chart),
        chart,
        svg: svg::draw(chart, SvgOptions { height: height(chart, size.height), ..size }),
    };
    charts.into_iter().map(one).collect()
}

/// The rows of the timeline that are brief, or those that are not.
fn timeline_rows(document: &Document, brief: bool) -> Vec<&TimelineRow> {
    let rows = document.timeline.iter().flat_map(|timeline| &timeline.rows);
    rows.filter(|row| row.is_brief == brief).collect()
}

/// Ticks of the timeline: time, label, and whether it is at the very end.
fn ticks(end: f64) -> Vec<(f64, String, bool)> {
    let ticks = axis::times(end, TIMELINE_WIDTH).into_iter();
    ticks.map(|tick| (tick.value, tick.label, tick.value > end * 0.97)).collect()
}

#[derive(Template)]
#[template(path = "report/html/report.html")]
struct HtmlPage<'a> {
    document: &'a Document,
    /// The facts that the verdict does not have.
    header: Vec<&'a Fact>,
    /// Table of contents: anchor and title.
    contents: Vec<(String, String)>,
    levels: Vec<HtmlBar<'a>>,
    /// The charts of the first screen.
    leading: Vec<HtmlChart<'a>>,
    /// The rows of the timeline, and those that are folded.
    rows: Vec<&'a TimelineRow>,
    brief_rows: Vec<&'a TimelineRow>,
    /// The time axis of the timeline.
    ticks: Vec<(f64, String, bool)>,
    /// The important figures, and the others by topic.
    important: Option<HtmlTable<'a>>,
    topics: Vec<HtmlTable<'a>>,
    chapters: Vec<HtmlChapter<'a>>,
    /// The charts of weigh itself, folded.
    own: Vec<HtmlChart<'a>>,
    tables: Vec<HtmlTable<'a>>,
    drawn: String,
    style: &'static str,
    theme: &'static str,
    script: &'static str,
}

struct HtmlChapter<'a> {
    title: &'a str,
    anchor: String,
    active: Vec<HtmlChart<'a>>,
    /// Folded.
    quiet: Vec<HtmlChart<'a>>,
}

impl HtmlChapter<'_> {
    fn quiet_names(&self) -> String {
        let titles: Vec<&str> = self.quiet.iter().map(|one| one.chart.title.as_str()).collect();
        ellipsize(&titles.join("; "), LONGEST_LINE)
    }
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

    /// The peak in a sentence: how high, when, and which series had most of it.
    fn peak(&self) -> Option<String> {
        let (chart, drawn) = (self.chart, self.chart.highest().filter(|_| !self.is_heatmap())?);
        let peak = chart.peak.unwrap_or(drawn);
        let said = match chart.form {
            // A count so far is highest in the end.
            ChartForm::Counters | ChartForm::StackedCounters => chart.scale.shown(peak.value),
            _ => format!("Peak {}", peak.describe(chart.scale)),
        };
        let most = chart.largest_at_top().filter(|_| chart.series.len() > 1);
        let Some((series, value)) = most else { return Some(said) };
        let is_most = value > drawn.value / 2.0;
        let part = if is_most { "most of it" } else { "the largest part" };
        let (name, value) = (ellipsize(&series.name, LONGEST_NAME), chart.scale.shown(value));
        // A high-water mark lies between samples: who had how much of it is not known.
        let is_drawn = peak.after.is_none() && peak.at == drawn.at;
        Some(match (is_drawn, self.is_stacked()) {
            (true, true) => format!("{said}, {part} {name} ({value})"),
            (true, false) => format!("{said} ({name})"),
            (false, _) => format!("{said}; at the highest sample {part} was {name} ({value})"),
        })
    }

    /// The value of the brightest cell.
    fn brightest(&self) -> String {
        self.chart.scale.shown(self.chart.brightest())
    }
}

/// The column of the figures that says where a value comes from.
const SOURCE: &str = "Source";
/// Columns of programs, phases and nodes with a bar behind each value.
const WITH_BARS: [&str; 4] = ["Total", "CPU time", "Memory, peak", "Combined peak"];
const TABLES_WITH_BARS: [&str; 3] = ["phases", "programs", "job-nodes"];
/// Columns whose cells are times of the run: links to them.
const MOMENTS: [&str; 2] = ["When", "At"];
/// Longer cells are folded.
const LONG: usize = 90;
const LONGEST_SOURCE: usize = 240;
/// The longest text beside the title of a folded part.
const LONGEST_LINE: usize = 110;
/// The longest name in the caption of a chart.
const LONGEST_NAME: usize = 40;

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
            Some(column) if column.label == SOURCE => "source",
            _ => "",
        }
    }

    /// The length of a bar behind a cell, in percent: its share of the largest in its column.
    fn share(&self, column: usize, cell: &ReportCell) -> Option<f64> {
        let label = self.table.columns.get(column)?.label.as_str();
        let has_bars = TABLES_WITH_BARS.contains(&self.table.name.as_str());
        let largest = || {
            let cells = self.table.rows.iter().filter_map(|row| row.get(column)?.number);
            cells.reduce(f64::max).filter(|largest| *largest > 0.0)
        };
        let share = cell.number.filter(|_| has_bars && WITH_BARS.contains(&label))? / largest()?;
        Some((share.clamp(0.0, 1.0) * 1000.0).round() / 10.0)
    }

    /// Whether a cell is a time of the run.
    fn is_moment(&self, column: usize, cell: &ReportCell) -> bool {
        let label = self.table.columns.get(column).map(|column| column.label.as_str());
        cell.number.is_some() && label.is_some_and(|label| MOMENTS.contains(&label))
    }

    /// The first cells of its rows, for a folded table.
    fn names(&self) -> String {
        let names = self.table.rows.iter().filter_map(|row| row.first());
        let names: Vec<&str> = names.map(|cell| cell.text.as_str()).collect();
        ellipsize(&names.join("; "), LONGEST_LINE)
    }

    /// The beginning of a text that is folded.
    fn beginning(&self, column: usize, text: &str) -> Option<String> {
        // A source is a sentence, a command line may have thousands of characters.
        let most = if self.class(column) == "source" { LONGEST_SOURCE } else { LONG };
        (text.chars().count() > most).then(|| ellipsize(text, most / 2))
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
const FIXED: [&str; 9] =
    ["machine", "monitor", "missing", "drawn", "top", "keys", "timeline", "figures", "charts"];

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

/// The longest command line in the timeline; the table of processes has all of it.
const LONGEST_COMMAND: usize = 120;

/// Whether a command line may need more than two lines; it can be scrolled then.
fn is_long(command: &str) -> bool {
    command.contains('\n') || command.chars().count() > LONG
}

/// A process in the timeline.
fn short(bar: &TimelineBar) -> String {
    let name = ellipsize(&bar.name, LONGEST_COMMAND);
    bar.pid.as_ref().map_or(name.clone(), |pid| format!("{pid} {name}"))
}

/// What is shown at a bar of the timeline.
fn bar_title(bar: &TimelineBar) -> String {
    bar.pid.as_ref().map_or_else(|| bar.note.clone(), |pid| format!("{pid}: {}", bar.note))
}

/// A time to the microsecond.
fn time(seconds: &f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

/// What is missing, in a line: the sentences up to their colons.
fn names(sentences: &[String]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for sentence in sentences {
        let name = sentence.split_once(": ").map_or(sentence.as_str(), |(name, _)| name);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    ellipsize(&names.join("; "), LONGEST_LINE)
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
