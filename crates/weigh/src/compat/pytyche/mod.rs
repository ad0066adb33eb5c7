//! What the run_monitor of pytyche 0.2.1 would have written: `cpu_metrics.csv` of its
//! HWMonitor, `hw_metrics.csv` and `hw_dmon.csv` where there are GPUs, and the lines of its
//! RunLog; and what its `ResourceSummary` would have reported ([`resources`]).
//!
//! Names, columns, digits and the order of keys are pytyche's to the byte; the numbers are
//! weigh's. Times are written as pytyche does, in UTC and truncated to milliseconds, and are from
//! one clock in all files, so phases can be matched with rows.
//!
//! What surprised us: `RunLog.write` gets the path from its caller, so the log has no fixed name.
//! Here it is `run_log.jsonl`. pytyche's summary is a mean over rows, whatever time a row stands
//! for; that is why rows are an interval apart here, also where weigh sampled more often.

mod cpu;
mod gpus;
pub mod import;
mod log;
mod resources;
#[cfg(test)]
mod tests;

use std::path::Path;

use crate::catalog::all_groups;

pub use resources::{ResourceSummary, resources};

use super::row_spacing::RowSpacing;
use crate::catalog::Scope;
use crate::destination::{Lines, OutputFile};
use crate::export::{Error, Exported, unfinished, unix_nanoseconds};
use crate::record::{Moment, Recording, files};
use crate::summary::{Accumulator, Summary};
use cpu::Sampler;
use gpus::Tables;

/// The file with a row for each interval.
const CPU: &str = "cpu_metrics.csv";
/// The names of its columns.
const HEADER: &str = "timestamp,usr_pct,idle_pct";
/// The file with a line for each phase and event.
const LOG: &str = "run_log.jsonl";

/// Writes what pytyche's HWMonitor and RunLog would have written about a run into a directory.
///
/// All files are complete before the first is renamed into place; an existing one is only
/// replaced with `force`. Memory does not grow with the length of the recording.
pub fn export(recording: &Recording, directory: &Path, force: bool) -> Result<Exported, Error> {
    write(recording, directory, force, true)
}

/// Writes only the tables of the HWMonitor, without the lines of a RunLog. As pytyche, it writes no
/// table of CPUs that has no row.
pub fn export_tables(
    recording: &Recording,
    directory: &Path,
    force: bool,
) -> Result<Exported, Error> {
    write(recording, directory, force, false)
}

fn write(
    recording: &Recording,
    directory: &Path,
    force: bool,
    with_log: bool,
) -> Result<Exported, Error> {
    if files::is_recording(directory) {
        return Err(Error::IntoRecording { path: directory.to_owned() });
    }
    let whole_gpus = gpus::whole_gpus(recording.entries());
    let of_gpus: &[&str] = if whole_gpus.is_empty() { &[] } else { &gpus::FILES };
    let of_log: &[&str] = if with_log { &[LOG] } else { &[] };
    for name in [CPU].iter().chain(of_log).chain(of_gpus) {
        OutputFile::check(&directory.join(name), force)?;
    }
    let begin = |name: &str| Lines::create(OutputFile::create(&directory.join(name), force)?, "\n");
    let spacing = RowSpacing::every(recording.manifest().interval_seconds);
    let mut table = begin(CPU)?;
    let log = with_log.then(|| begin(LOG)).transpose()?;
    let of_gpus = if whole_gpus.is_empty() {
        None
    } else {
        Some(Tables::create(whole_gpus, spacing, begin)?)
    };
    let (mut sampler, mut of_gpus) = (Sampler::new(spacing), of_gpus);
    let summary = track(recording, &mut table, &mut sampler, of_gpus.as_mut())?;
    let log = log.map(|mut lines| -> Result<Lines, Error> {
        log::lines(recording, &summary).iter().try_for_each(|line| lines.line(line))?;
        Ok(lines)
    });
    let log = log.transpose()?;
    let mut exported = Exported { files: Vec::new(), missing: unfinished(recording) };
    if with_log || sampler.has_rows() {
        exported.files.push(table.finish()?);
    }
    exported.missing.extend(sampler.missing());
    match of_gpus.map(Tables::finish).transpose()? {
        Some(Ok(files)) => exported.files.extend(files),
        Some(Err(why)) => exported.missing.push(why),
        None => {}
    }
    if let Some(lines) = log {
        exported.files.push(lines.finish()?);
        exported.missing.extend(log::missing(&summary));
    }
    Ok(exported)
}

/// Reads the recording once: writes the tables, and returns what the run used.
fn track(
    recording: &Recording,
    table: &mut Lines,
    sampler: &mut Sampler,
    mut of_gpus: Option<&mut Tables>,
) -> Result<Summary, Error> {
    let manifest = recording.manifest();
    let mut accumulator = Accumulator::for_recording(recording);
    table.line(HEADER)?;
    let mut written = Ok(());
    let mut each = |row: cpu::CpuRow| {
        let time = timestamp(manifest.started, row.at.as_secs_f64());
        let (user, idle) = (100.0 * row.shares.user, 100.0 * row.shares.idle);
        table.line(&format!("{time},{user:.1},{idle:.1}"))
    };
    let frames = recording.replay(&all_groups(), |frame| {
        accumulator.frame(frame);
        if let (Moment::Tick(tick), true) = (frame.moment, written.is_ok()) {
            let node = tick.table(Scope::Node).filter(|table| !table.is_empty());
            if let Some(row) = node.and_then(|table| sampler.sample(tick.at, table.get(0))) {
                written = each(row).map_err(Error::from);
            }
            if let (Ok(()), Some(tables)) = (&written, &mut of_gpus) {
                written = tables.sample(tick, manifest.started);
            }
        }
    })?;
    written?;
    sampler.only().map_or(Ok(()), each)?;
    Ok(accumulator.finish(frames.live()))
}

/// A moment of a run as `datetime.isoformat(timespec="milliseconds")` writes it.
fn timestamp(started: jiff::Timestamp, seconds: f64) -> String {
    moment(started, seconds).strftime("%Y-%m-%dT%H:%M:%S%.3f+00:00").to_string()
}

/// A moment of a run, clamped to the range of timestamps.
fn moment(started: jiff::Timestamp, seconds: f64) -> jiff::Timestamp {
    let [least, most] =
        [jiff::Timestamp::MIN, jiff::Timestamp::MAX].map(jiff::Timestamp::as_nanosecond);
    let nanoseconds = unix_nanoseconds(started, seconds).clamp(least, most);
    jiff::Timestamp::from_nanosecond(nanoseconds).unwrap_or(started)
}
