//! What the ResourceMonitor of oasislmf 2.5.8 would have written: `resource_monitor.csv`,
//! and `resource_report/` with a page of Markdown and six pictures.
//!
//! Names, columns, units and layout are oasislmf's to the byte; the numbers are weigh's. A tool is
//! the program a process runs, not any process whose command line contains its name.
//!
//! Its reader gives every row the same weight, so rows are an interval apart.
//!
//! What surprised us: its reader silently leaves out a row with an empty field. So a row whose
//! private memory is not known yet is there for other readers and never counts as zero.

mod csv;
mod markdown;
mod pictures;
mod polls;
mod row_statistics;
#[cfg(test)]
mod tests;

pub use pictures::pictures;

use std::path::Path;

use crate::catalog::{FigureId, all_groups};
use crate::destination::{self, OutputFile};
#[cfg(feature = "png")]
use crate::export::Cause;
use crate::export::{Error, Exported, unfinished};
use crate::record::{Recording, files};
use crate::summary::{Accumulator, Summary};
use csv::ResourceMonitorCsv;
use markdown::ResourceReport;
use polls::PollBuilder;
use row_statistics::RowStatistics;

/// The tools of oasislmf's kernel, which its own monitor matches.
pub const TOOLS: [&str; 12] = [
    "evepy",
    "modelpy",
    "gulpy",
    "fmpy",
    "gulmc",
    "summarypy",
    "plapy",
    "katpy",
    "eltpy",
    "pltpy",
    "aalpy",
    "lecpy",
];

/// The file with a row for each process at each poll.
const CSV: &str = "resource_monitor.csv";
/// The directory of the report.
const REPORT: &str = "resource_report";
/// The report itself.
const PAGE: &str = "resource_report.md";

/// A picture's file, and its heading and caption in the report.
const PICTURES: [(&str, &str, &str); 6] = [
    ("aggregate_uss.png", "Aggregate USS — Private Memory per Tool", "Aggregate USS"),
    ("rss_vs_uss.png", "RSS vs USS — Shared Memory Overhead", "RSS vs USS"),
    ("total_footprint.png", "Total Private Memory Footprint (stacked)", "Total Footprint"),
    ("aggregate_cpu.png", "Aggregate CPU%", "Aggregate CPU"),
    ("cpu_time.png", "Cumulative CPU Time (user + system)", "CPU Time"),
    ("instance_count.png", "Active Instance Count", "Instance Count"),
];

/// The pictures of the report: none where PNG is not built in.
fn shown_pictures() -> &'static [(&'static str, &'static str, &'static str)] {
    if cfg!(feature = "png") { &PICTURES } else { &[] }
}

/// Which of the ResourceMonitor's files are written, and of which programs.
#[derive(Debug, Clone, Copy)]
pub struct ResourceMonitorOptions<'a> {
    /// Programs to report; `None` for all of the run.
    pub tools: Option<&'a [String]>,
    /// Whether the report is written beside the table.
    pub report: bool,
    /// Whether files that exist are replaced.
    pub force: bool,
}

impl ResourceMonitorOptions<'_> {
    fn has(&self, tool: &str) -> bool {
        self.tools.is_none_or(|tools| tools.iter().any(|name| name == tool))
    }
}

/// Writes what the ResourceMonitor would have written about a run into a directory.
///
/// Files are written whole or not at all; an existing one is only replaced with `force`. Memory
/// does not grow with the length of the recording.
pub fn export(recording: &Recording, directory: &Path, force: bool) -> Result<Exported, Error> {
    let options = ResourceMonitorOptions { tools: None, report: true, force };
    export_with(recording, directory, &options)
}

/// The same for some programs of the run, or without the report. If none of these programs ran,
/// nothing is written.
pub fn export_with(
    recording: &Recording,
    directory: &Path,
    options: &ResourceMonitorOptions<'_>,
) -> Result<Exported, Error> {
    if files::is_recording(directory) {
        return Err(Error::IntoRecording { path: directory.to_owned() });
    }
    let report = directory.join(REPORT);
    let (table, page) = (directory.join(CSV), report.join(PAGE));
    let mut all = vec![table.clone()];
    if options.report {
        all.push(page.clone());
        all.extend(shown_pictures().iter().map(|(file, ..)| report.join(file)));
    }
    all.iter().try_for_each(|path| OutputFile::check(path, options.force))?;
    let (mut summary, rows) = track(recording, &table, options)?;
    if is_left_out(&rows, options) {
        all.clear();
    } else if options.report {
        summary.tools.retain(|tool| options.has(&tool.name));
        draw(recording, &report, options)?;
        // Beside the tools the run may have programs that are not reported.
        let peak = match options.tools {
            Some(_) => rows.uss_peak(),
            None => summary.figures.value(FigureId::MemoryUssPeak),
        };
        let page_text = ResourceReport { summary: &summary, rows: &rows, table: &table, peak };
        destination::write(&page, page_text.to_string().as_bytes(), options.force)?;
    }
    let mut missing = unfinished(recording);
    missing.extend(rows.missing());
    Ok(Exported { files: all, missing })
}

/// Whether there is nothing to write: as oasislmf, which creates its table with the first row.
fn is_left_out(rows: &RowStatistics, options: &ResourceMonitorOptions<'_>) -> bool {
    options.tools.is_some() && rows.count == 0
}

/// Reads the recording once: writes the table, and returns what the run used.
fn track(
    recording: &Recording,
    table: &Path,
    options: &ResourceMonitorOptions<'_>,
) -> Result<(Summary, RowStatistics), Error> {
    let mut csv = ResourceMonitorCsv::create(OutputFile::create(table, options.force)?)?;
    let mut accumulator = Accumulator::for_recording(recording);
    let mut polls = PollBuilder::new(recording.manifest());
    let mut rows = RowStatistics::default();
    let mut failed = None;
    let mut each = |row: &polls::PollRow<'_>| {
        if !options.has(row.tool) {
            return;
        }
        rows.add(row);
        if failed.is_none() {
            failed = csv.row(row).err();
        }
    };
    let frames = recording.replay(&all_groups(), |frame| {
        accumulator.frame(frame);
        polls.frame(frame, &mut each);
    })?;
    polls.finish(frames.live(), &mut each);
    if let Some(error) = failed {
        return Err(error);
    }
    if !is_left_out(&rows, options) {
        csv.finish()?;
    }
    Ok((accumulator.finish(frames.live()), rows))
}

#[cfg(feature = "png")]
fn draw(
    recording: &Recording,
    report: &Path,
    options: &ResourceMonitorOptions<'_>,
) -> Result<(), Error> {
    for picture in pictures::pictures_of(recording, |tool| options.has(tool))? {
        let path = report.join(&picture.file);
        let failed = |source: Cause| Error::Write { path: path.clone(), source };
        let pixels = picture.png().map_err(|error| failed(error.into()))?;
        destination::write(&path, &pixels, options.force)?;
    }
    Ok(())
}

#[cfg(not(feature = "png"))]
fn draw(_: &Recording, _: &Path, _: &ResourceMonitorOptions<'_>) -> Result<(), Error> {
    Ok(())
}
