//! The content of a report: the HTML page, Markdown and PDF are made from this.
//!
//! Text here is unescaped, process names and labels included: each document format escapes it.

mod facts;
mod figures;
mod fill;
mod gpus;
mod job;
mod tables;
#[cfg(test)]
mod tests;
mod timeline;

pub use job::id as job_id;
pub(super) use tables::marks;
pub use timeline::{ProcessTimeline, TimelineBar, TimelineRow, TimelineRowOf};

use crate::catalog::FigureId;
use crate::plot::Chart;
use crate::quantity;
use crate::summary::Severity;

/// A report of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The run's name.
    pub title: String,
    /// Its command line; `None` when it is not recorded.
    pub command: Option<String>,
    /// Who ran it, when and where, for the header of every PDF page.
    pub page_header: PageHeader,
    /// When, where, how long, labels.
    pub header: Vec<Fact>,
    /// The outcome in one sentence.
    pub verdict: Verdict,
    /// Findings, and what to do about them.
    pub findings: Vec<Advice>,
    /// Utilisation of CPU and memory, and of GPUs where there are any.
    pub bars: Vec<Bar>,
    /// Every figure, with its method and bounds.
    pub figures: ReportTable,
    /// The figure of each row.
    pub figure_ids: Vec<FigureId>,
    /// How many rows, from the first on, are important.
    pub important_figures: usize,
    /// The charts: what every run is judged by first, then of the run, of each node and of weigh
    /// itself.
    pub chapters: Vec<ReportChapter>,
    /// When phases and processes ran; `None` when there are none.
    pub timeline: Option<ProcessTimeline>,
    /// Programs, processes, phases, nodes: the tables that are not empty.
    pub tables: Vec<ReportTable>,
    /// The machine.
    pub hardware: Vec<Fact>,
    /// What the monitor itself cost.
    pub monitor: Vec<Fact>,
    /// What could not be measured and why; a sentence each.
    pub missing: Vec<String>,
    /// Which weigh made it.
    pub made_by: String,
    /// What it is a report of.
    pub kind: ReportKind,
}

/// What a report is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportKind {
    /// One run.
    Run,
    /// A batch job on all its nodes.
    Job,
}

impl ReportKind {
    /// The command that writes all of it, where a format has only what matters.
    #[cfg(feature = "pdf")]
    pub(super) fn full_command(self) -> &'static str {
        match self {
            ReportKind::Run => "weigh report -f pdf --full",
            ReportKind::Job => "weigh job report -f pdf --full",
        }
    }
}

impl Document {
    /// The row of a figure.
    pub(super) fn figure(&self, id: FigureId) -> Option<&[ReportCell]> {
        let place = self.figure_ids.iter().position(|one| *one == id)?;
        self.figures.rows.get(place).map(Vec::as_slice)
    }

    /// The rows of the important figures.
    pub(super) fn important(&self) -> impl Iterator<Item = &Vec<ReportCell>> {
        self.figures.rows.iter().take(self.important_figures)
    }

    /// The rows of the other figures by topic.
    #[cfg(feature = "html")]
    pub(super) fn topics(&self) -> Vec<(&'static str, Vec<Vec<ReportCell>>)> {
        let mut topics: Vec<(&str, Vec<Vec<ReportCell>>)> = Vec::new();
        let rows = self.figures.rows.iter().enumerate().skip(self.important_figures);
        for (place, row) in rows {
            let topic = figures::topic(self.figure_ids.get(place).copied());
            match topics.iter_mut().find(|(known, _)| *known == topic) {
                Some((_, rows)) => rows.push(row.clone()),
                None => topics.push((topic, vec![row.clone()])),
            }
        }
        topics.sort_by_key(|(topic, _)| figures::TOPICS.iter().position(|one| one == topic));
        topics
    }
}

/// The header of every PDF page.
#[derive(Debug, Clone, PartialEq)]
pub struct PageHeader {
    /// The batch job's id, or the run's own.
    pub job: String,
    /// Who ran it; `None` when it is not recorded.
    pub user: Option<String>,
    /// On how many nodes.
    pub nodes: usize,
    /// The day it began, by UTC.
    pub date: String,
}

/// The title of the charts that every run is judged by.
pub(super) const LEADING_CHAPTER: &str = "At a glance";

/// The title of the charts of weigh itself.
pub(super) const OWN_CHAPTER: &str = "weigh itself";

/// A group of charts.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportChapter {
    /// What they are of.
    pub title: String,
    /// The charts, the most important first, those in which little happened last.
    pub charts: Vec<Chart>,
}

impl ReportChapter {
    /// A chapter with its quiet charts last.
    pub(super) fn of(title: String, mut charts: Vec<Chart>) -> ReportChapter {
        charts.sort_by_key(Chart::is_quiet);
        ReportChapter { title, charts }
    }

    /// The charts in which something happened, and those in which hardly anything did.
    #[cfg(any(feature = "html", feature = "pdf"))]
    pub(super) fn active_and_quiet(&self) -> (Vec<&Chart>, Vec<&Chart>) {
        self.charts.iter().partition(|chart| !chart.is_quiet())
    }
}

/// A label and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// The label.
    pub label: String,
    /// Its text.
    pub value: String,
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Verdict {
    /// Its severity; `None` for success.
    pub severity: Option<Severity>,
    /// In one sentence.
    pub sentence: String,
    /// What explains it: bottleneck, peak of memory, GPUs, longest phase; those that are known.
    pub reasons: Vec<Fact>,
    /// Which process had the most memory at the peak, in a few words.
    pub peak_process: Option<String>,
}

/// The label of the reason that says what limited a run.
pub(super) const BOTTLENECK: &str = "Bottleneck";

/// Something found, and what to do about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// How much it matters.
    pub severity: Severity,
    /// What was found.
    pub sentence: String,
    /// What to do; may be empty.
    pub advice: String,
}

/// The utilisation of a resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// What.
    pub label: String,
    /// The ratio, from 0 to 1; `None` when unknown.
    pub share: Option<f64>,
    /// The numbers behind it, or why they are unknown.
    pub note: String,
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportTable {
    /// A short lower-case name: its anchor in a page.
    pub name: String,
    /// What it lists.
    pub title: String,
    /// How to read it; may be empty.
    pub note: String,
    /// Its columns.
    pub columns: Vec<ReportColumn>,
    /// Its rows: a cell for each column.
    pub rows: Vec<Vec<ReportCell>>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportColumn {
    /// Its header.
    pub label: String,
    /// Whether it holds numbers, which are right-aligned.
    pub is_number: bool,
    /// Whether it holds names that may differ at their end only: they get more space, and are cut
    /// in the middle.
    pub is_name: bool,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportCell {
    /// Its text.
    pub text: String,
    /// The sort key, when it holds a number.
    pub number: Option<f64>,
}

impl Fact {
    fn new(label: &str, value: impl Into<String>) -> Fact {
        Fact { label: label.to_owned(), value: value.into() }
    }
}

impl ReportColumn {
    fn text(label: &str) -> ReportColumn {
        ReportColumn { label: label.to_owned(), is_number: false, is_name: false }
    }

    fn number(label: &str) -> ReportColumn {
        ReportColumn { is_number: true, ..ReportColumn::text(label) }
    }

    fn name(label: &str) -> ReportColumn {
        ReportColumn { is_name: true, ..ReportColumn::text(label) }
    }
}

impl ReportCell {
    fn text(text: impl Into<String>) -> ReportCell {
        ReportCell { text: text.into(), number: None }
    }

    /// A formatted number; a dash when unknown.
    fn number(number: Option<f64>, show: impl Fn(f64) -> String) -> ReportCell {
        ReportCell { text: number.map_or_else(|| "–".to_owned(), show), number }
    }

    fn count(number: u64) -> ReportCell {
        ReportCell::number(Some(number as f64), quantity::count)
    }
}
