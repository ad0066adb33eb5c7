//! Tables for other tools.
//!
//! A table is a sequence of Arrow batches (`tables`): a stream of the recording as it is, or a
//! small table made from its events. It may be cut to a time window, turned into rates and
//! resampled (`pipeline`); then a [`Sink`] for each file format writes it, a batch at a time, so
//! that memory does not grow with the recording and several formats cost one reading. A file gets
//! its final name only when it is complete (`destination`).
#![allow(clippy::disallowed_methods, reason = "exported files are the user's, not the machine's")]

pub mod column;
#[cfg(feature = "parquet")]
mod dataset;
mod formats;
mod grid;
mod lagged_rate;
mod out_cell;
mod own_cpu;
mod pipeline;
mod rates;
mod run_table;
#[cfg(feature = "parquet")]
mod runs;
mod shape;
mod step_mean;
mod table_batches;
mod table_builder;
mod tables;
#[cfg(test)]
pub(crate) mod tests;
mod window;

use std::path::{Path, PathBuf};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

#[cfg(feature = "parquet")]
pub use dataset::dataset;
pub use formats::ExportFormat;
pub(crate) use formats::TableFiles;
pub use table_batches::{TableBatches, table, tables_of};
pub use tables::{TableDescription, descriptions as table_descriptions, names as table_names};
pub use window::TimeBound;

use crate::destination;
use crate::record::{self, Recording, files};
use formats::ExportFiles;
use pipeline::Pipeline;
use tables::ExportTable;

/// Why a file could not be written, without its path.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A file that tables are written into, one after the other, a batch at a time.
pub trait Sink {
    /// Begins a table; the rows up to the next one are its own.
    fn begin(&mut self, table: &str, schema: &SchemaRef) -> Result<(), Cause>;
    /// Writes rows of the table that was begun last.
    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Cause>;
    /// Writes what is left. The file is complete when it returns.
    fn finish(self: Box<Self>) -> Result<(), Cause>;
}

/// What to export, and how.
#[derive(Debug, Clone, Default)]
pub struct ExportOptions {
    /// File formats.
    pub formats: Vec<ExportFormat>,
    /// Tables by name; `None` for all that are not empty.
    pub tables: Option<Vec<String>>,
    /// Counters as rates.
    pub rates: bool,
    /// Resample to this step.
    pub resample: Option<Duration>,
    /// Only from this time on.
    pub from: Option<TimeBound>,
    /// Only up to this time.
    pub to: Option<TimeBound>,
    /// Only during phases of this name.
    pub phase: Option<String>,
    /// Replace existing files.
    pub force: bool,
    /// Escape CSV text that a spreadsheet would take as a formula.
    pub spreadsheet_safe: bool,
}

/// The result of an export.
#[derive(Debug, Default)]
pub struct Exported {
    /// The files that were written.
    pub files: Vec<PathBuf>,
    /// What of the recording is missing in them.
    pub missing: Vec<String>,
}

/// Progress of an export.
#[derive(Debug, Clone, Copy)]
pub struct ExportProgress {
    /// Rows read so far.
    pub rows: u64,
    /// Rows in total.
    pub of: u64,
}

/// An export that failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The recording cannot be read.
    #[error(transparent)]
    Recording(#[from] record::Error),
    /// There is no such table.
    #[error("there is no table {name}; there are {}", table_names().collect::<Vec<_>>().join(", "))]
    NoTable {
        /// The name.
        name: String,
    },
    /// The recording does not have this table.
    #[error("{why}")]
    NotRecorded {
        /// The table, and why.
        why: String,
    },
    /// There is no such phase.
    #[error("the run has no phase {name}; it has {}", if there.is_empty() { "none".to_owned() } else { there.join(", ") })]
    NoPhase {
        /// The name.
        name: String,
        /// The phases that it has.
        there: Vec<String>,
    },
    /// The start is not before the end.
    #[error("--from is not before --to")]
    EmptyWindow,
    /// The resampling step is too short.
    #[error("a grid needs steps of at least a millisecond")]
    NoStep,
    /// A table of the recording is invalid.
    #[error("{0}")]
    Rows(#[from] Cause),
    /// The files would mix with those of a recording.
    #[error("{} is a recording", path.display())]
    IntoRecording {
        /// Which directory.
        path: PathBuf,
    },
    /// Two recordings are of the same host.
    #[error("two of the recordings are of {host}")]
    SameHost {
        /// Which one.
        host: String,
    },
    /// None of many runs can be exported.
    #[error("no run there can be read: {why}")]
    NoRuns {
        /// What is wrong with the last one.
        why: String,
    },
    /// A file already exists.
    #[error("{} already exists", path.display())]
    Exists {
        /// Which one.
        path: PathBuf,
    },
    /// A file could not be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: Cause,
    },
}

impl From<destination::Error> for Error {
    fn from(error: destination::Error) -> Error {
        match error {
            destination::Error::Exists { path } => Error::Exists { path },
            destination::Error::Write { path, source } => Error::file(&path, source),
        }
    }
}

impl Error {
    pub(crate) fn file(path: &Path, source: std::io::Error) -> Error {
        Error::Write { path: path.to_owned(), source: source.into() }
    }
}

/// Writes the tables of a recording into files of a directory.
pub fn export(
    recording: &Recording,
    options: &ExportOptions,
    directory: &Path,
    mut progress: impl FnMut(ExportProgress),
) -> Result<Exported, Error> {
    if files::is_recording(directory) {
        return Err(Error::IntoRecording { path: directory.to_owned() });
    }
    let (tables, mut missing) = chosen(recording, options)?;
    missing.extend(unfinished(recording));
    let pipeline = Pipeline::of(recording, options)?;
    let names: Vec<&str> = tables.iter().map(|table| table.name).collect();
    let mut files = ExportFiles::plan(&options.formats, &names, directory, options.force)?;
    files.spreadsheet_safe = options.spreadsheet_safe;
    let of = tables.iter().map(|table| table.rows).sum();
    let mut rows = 0;
    for table in tables {
        let lost = pipeline.write_table(table, &mut files, |more| {
            rows += more;
            progress(ExportProgress { rows, of });
        })?;
        missing.extend(lost);
    }
    let files = files.finish()?;
    if files.is_empty() {
        missing.push("there was nothing to export".to_owned());
    }
    Ok(Exported { files, missing })
}

fn chosen<'a>(
    recording: &'a Recording,
    options: &ExportOptions,
) -> Result<(Vec<ExportTable<'a>>, Vec<String>), Error> {
    for name in options.tables.iter().flatten() {
        if !table_names().any(|there| there == name) {
            return Err(Error::NoTable { name: name.clone() });
        }
    }
    tables::of(recording, options.tables.as_deref())
}

/// What is missing: the recorded end, and losses of the recording.
pub(crate) fn unfinished(recording: &Recording) -> Vec<String> {
    let ended = recording.entries().iter().any(|entry| entry.event.is_last());
    let mut missing = Vec::new();
    if !ended {
        let why = "the end of the run is not recorded: it is still running, or weigh was killed";
        missing.push(why.to_owned());
    }
    missing.extend(recording.losses().sentences().map(str::to_owned));
    missing
}

/// A time of the run in seconds since 1970, rounded once.
pub(crate) fn unix_seconds(started: jiff::Timestamp, seconds: f64) -> f64 {
    const SECOND: i128 = 1_000_000_000;
    let nanoseconds = unix_nanoseconds(started, seconds);
    nanoseconds.div_euclid(SECOND) as f64 + nanoseconds.rem_euclid(SECOND) as f64 / 1e9
}

pub(crate) fn unix_nanoseconds(started: jiff::Timestamp, seconds: f64) -> i128 {
    started.as_nanosecond().saturating_add((seconds * 1e9).round() as i128)
}
