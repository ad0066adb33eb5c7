//! Builds a report from manifest, summary, processes and charts.

use super::{
    Document, ProcessTimeline, ReportChapter, ReportKind, ReportTable, facts, figures, gpus, tables,
};
use crate::quantity::Units;
use crate::record::Manifest;
use crate::record::manifest::Origin;
use crate::report::process_table::ListedProcesses;
use crate::report::typed;
use crate::summary::Summary;

impl Document {
    /// The report of a run from its manifest, summary, processes and charts.
    pub fn of(
        manifest: &Manifest,
        summary: &Summary,
        participants: &ListedProcesses,
        chapters: Vec<ReportChapter>,
        units: Units,
    ) -> Document {
        let command = summary.run.command.as_ref();
        let tables = [
            tables::programs(summary, units),
            tables::processes(participants, summary, units),
            gpus::each(summary, units),
            gpus::processes(summary, units),
            tables::phases(summary, units),
            tables::nodes(summary, units),
            tables::left(summary),
        ];
        let charts = chapters.iter().flat_map(|chapter| &chapter.charts);
        let timeline = ProcessTimeline::of(participants, charts, summary.run.measured(), units);
        let figures = figures::table(summary, !participants.processes.is_empty(), units);
        Document {
            title: summary.run.name.clone(),
            command: command.map(|words| typed(words.iter().map(String::as_str))),
            page_header: facts::page_header(manifest, summary),
            header: facts::header(manifest, summary),
            verdict: facts::verdict(summary, units),
            findings: facts::findings(summary),
            bars: facts::bars(manifest, summary, units),
            figures: figures.table,
            figure_ids: figures.ids,
            important_figures: figures.important,
            chapters,
            timeline,
            tables: tables
                .into_iter()
                .filter(|table: &ReportTable| !table.rows.is_empty())
                .collect(),
            hardware: facts::hardware(manifest, summary, units),
            monitor: facts::monitor(summary, units),
            missing: missing(summary),
            made_by: format!("weigh {}", Origin::default().version),
            kind: ReportKind::Run,
        }
    }
}

/// What could not be measured and why; each sentence once.
fn missing(summary: &Summary) -> Vec<String> {
    let mut missing: Vec<String> = Vec::new();
    for sentence in summary.monitor.faults.iter().cloned().chain(figures::unknown(summary)) {
        if !missing.contains(&sentence) {
            missing.push(sentence);
        }
    }
    missing
}
