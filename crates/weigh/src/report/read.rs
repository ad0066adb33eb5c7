//! Reads a recording once for all parts of a report.

use super::document::{ReportChapter, marks};
use super::gpus::worth_reporting;
use super::{Document, ProcessTable};
use crate::catalog::all_groups;
use crate::plot::{Gallery, Gatherer};
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
    let mut accumulator = Accumulator::of(recording);
    let mut process_table = ProcessTable::new(manifest);
    let mut gatherer = Gatherer::new(manifest, &groups, &[]).in_units(units);
    let end = recording.entries().last().map_or(f64::INFINITY, |entry| entry.seconds);
    let frames = recording.replay(&groups, |frame| {
        accumulator.frame(frame);
        process_table.frame(frame);
        gatherer.frame(frame, &accumulator);
        progress((frame.at() / end).min(1.0));
    })?;
    let summary = accumulator.finish(frames.live());
    let mut participants = process_table.finish(frames.live(), summary.run.measured());
    let losses = recording.losses();
    if losses.concern_processes() || losses.are_changes() {
        participants.processes.iter_mut().for_each(|process| process.is_cpu_exact = false);
    }
    let worth_reporting = worth_reporting(&summary);
    let chapters =
        chapters(gatherer.finish(&summary.figures), &manifest.host.name, worth_reporting);
    let mut document = Document::of(manifest, &summary, &participants, chapters, units);
    document.tables.extend(Some(marks(recording.entries())).filter(|marks| !marks.rows.is_empty()));
    Ok(document)
}

/// The charts of the run, of GPUs, of its node and of weigh itself. GPUs that are not worth
/// reporting come after the node.
fn chapters(gallery: Gallery, host: &str, gpus_worth_reporting: bool) -> Vec<ReportChapter> {
    let chapter = |title: String, charts| ReportChapter { title, charts };
    let mut all = [
        chapter("The run".to_owned(), gallery.run),
        chapter("GPUs over time".to_owned(), gallery.gpus),
        chapter(format!("Node {host}"), gallery.node),
        chapter("weigh itself".to_owned(), gallery.own),
    ];
    if !gpus_worth_reporting {
        all.swap(1, 2);
    }
    all.into_iter().filter(|chapter| !chapter.charts.is_empty()).collect()
}
