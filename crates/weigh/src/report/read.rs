//! Reads a recording once for all parts of a report.

use super::document::{LEADING_CHAPTER, OWN_CHAPTER, ReportChapter, marks};
use super::gpus::worth_reporting;
use super::{Document, ProcessTable};
use crate::catalog::all_groups;
use crate::plot::{CPU, ChartBuilder, MEMORY, RunCharts};
use crate::quantity::Units;
use crate::record::{Error, Recording};
use crate::summary::Accumulator;

/// The report of a recording. `progress` gets the part that is read, from 0 to 1.
pub fn read(
    recording: &Recording,
    units: Units,
    mut progress: impl FnMut(f64),
) -> Result<Document, Error> {
    let (manifest, groups) = (recording.manifest(), all_groups());
    let mut accumulator = Accumulator::for_recording(recording);
    let mut process_table = ProcessTable::new(manifest);
    let mut chart_builder = ChartBuilder::new(manifest, &groups, &[]).in_units(units);
    let end = recording.entries().last().map_or(f64::INFINITY, |entry| entry.seconds);
    let frames = recording.replay(&groups, |frame| {
        accumulator.frame(frame);
        process_table.frame(frame);
        chart_builder.frame(frame, &accumulator);
        progress((frame.at() / end).min(1.0));
    })?;
    let summary = accumulator.finish(frames.live());
    let mut processes = process_table.finish(frames.live(), summary.run.measured());
    let losses = recording.losses();
    if losses.concern_processes() || losses.are_changes() {
        processes.processes.iter_mut().for_each(|process| process.is_cpu_exact = false);
    }
    let worth_reporting = worth_reporting(&summary);
    let chapters =
        chapters(chart_builder.finish(&summary.figures), &manifest.host.name, worth_reporting);
    let mut document = Document::of(manifest, &summary, &processes, chapters, units);
    document.tables.extend(Some(marks(recording.entries())).filter(|marks| !marks.rows.is_empty()));
    Ok(document)
}

/// How many charts of GPUs are among the first.
const LEADING_OF_GPUS: usize = 2;

/// First the charts that every run is judged by, then those of the run, of GPUs, of its node and of
/// weigh itself. GPUs that are not worth reporting come after the node.
fn chapters(run_charts: RunCharts, host: &str, gpus_worth_reporting: bool) -> Vec<ReportChapter> {
    let RunCharts { mut run, mut gpus, node, own } = run_charts;
    let mut leading = Vec::new();
    for name in [CPU, MEMORY] {
        let place = run.iter().position(|chart| chart.name == name);
        leading.extend(place.map(|place| run.remove(place)));
    }
    if gpus_worth_reporting {
        leading.extend(gpus.drain(..gpus.len().min(LEADING_OF_GPUS)));
    }
    let mut all = vec![
        ReportChapter::of("The run".to_owned(), run),
        ReportChapter::of("GPUs over time".to_owned(), gpus),
        ReportChapter::of(format!("Node {host}"), node),
        ReportChapter::of(OWN_CHAPTER.to_owned(), own),
    ];
    if !gpus_worth_reporting {
        all.swap(1, 2);
    }
    // In their own order, also where one is flat.
    all.insert(0, ReportChapter { title: LEADING_CHAPTER.to_owned(), charts: leading });
    all.into_iter().filter(|chapter| !chapter.charts.is_empty()).collect()
}
