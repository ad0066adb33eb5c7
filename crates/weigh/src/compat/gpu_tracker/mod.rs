//! What gpu-tracker 5.0.1 would have written: its result as JSON and text, and its
//! tracking file as CSV and SQLite.
//!
//! Names, order, units and layout are gpu-tracker's to the byte; the numbers are weigh's.
//! [`sub_track`] reads such files, as `gpu-tracker sub-track` does.

mod gpu;
mod json;
mod selection;
pub mod sub_track;
mod sums;
#[cfg(test)]
pub(crate) mod tests;
mod text;
pub mod timepoints;
pub mod tracking;
pub mod units;
pub mod usage;

use std::path::{Path, PathBuf};

use timepoints::{Peaks, Timepoint, TimepointBuilder};
use units::{RamUnit, TimeUnit};

use crate::catalog::all_groups;
use crate::compat::python::PythonValue;
use crate::destination::{self, OutputFile};
use crate::record::{self, Manifest, Recording};
use crate::summary::{Accumulator, Summary};
pub use selection::{check_brand, choose_gpus};
pub use usage::ResourceUsage;

/// Why something could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The recording cannot be read.
    #[error(transparent)]
    Recording(#[from] record::Error),
    /// A file cannot be used.
    #[error("{}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the kernel reported.
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("{0}")]
    Write(String),
    /// The file already exists.
    #[error("File {} already exists. Set overwrite to True to overwrite the existing file.", path.display())]
    Exists {
        /// Which one.
        path: PathBuf,
    },
    /// SQLite could not write or read a file, or is not built in.
    #[error("{}: {why}", path.display())]
    Sqlite {
        /// Which one.
        path: PathBuf,
        /// What SQLite reported.
        why: String,
    },
    /// The extension of a tracking file is not known.
    #[error("Invalid file name: \"{}\". Valid file extensions are \".csv\" and \".sqlite\".", path.display())]
    Extension {
        /// Which one.
        path: PathBuf,
    },
    /// A line of a file is malformed.
    #[error("{}, line {line}: {why}", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A file does not hold the results of an analysis.
    #[error("{}: {why}", path.display())]
    NotResults {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// An invalid request, in gpu-tracker's wording.
    #[error("{0}")]
    Invalid(String),
}

impl From<destination::Error> for Error {
    fn from(error: destination::Error) -> Error {
        match error {
            destination::Error::Exists { path } => Error::Exists { path },
            destination::Error::Write { path, source } => Error::File { path, source },
        }
    }
}

impl Error {
    /// Makes errors of one file.
    fn file(path: &Path) -> impl Fn(std::io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::File { path: path.clone(), source }
    }
}

/// Units, expected cores and chosen GPUs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GpuTrackerOptions {
    /// The unit of memory.
    pub ram_unit: RamUnit,
    /// The unit of GPU memory.
    pub gpu_ram_unit: RamUnit,
    /// The unit of time.
    pub time_unit: TimeUnit,
    /// Cores that were expected to be busy; default: those of the recording, else those of the
    /// machine.
    pub expected_cores: Option<f64>,
    /// UUIDs of the GPUs whose utilization counts; default: the GPUs that the run could use.
    /// Memory, capacity and number are those of all GPUs.
    pub gpu_uuids: Option<Vec<String>>,
}

/// What can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GpuTrackerFormat {
    /// The result as JSON: `gpu-tracker.json`.
    Json,
    /// The result as text: `gpu-tracker.txt`.
    Text,
    /// Every sample as CSV: `tracking.csv`.
    Csv,
    /// Every sample as SQLite: `tracking.sqlite`.
    Sqlite,
}

impl GpuTrackerFormat {
    /// The name of the file.
    pub const fn file_name(self) -> &'static str {
        match self {
            GpuTrackerFormat::Json => "gpu-tracker.json",
            GpuTrackerFormat::Text => "gpu-tracker.txt",
            GpuTrackerFormat::Csv => "tracking.csv",
            GpuTrackerFormat::Sqlite => "tracking.sqlite",
        }
    }
}

/// Writes what gpu-tracker would have written about a run into a directory; returns the paths.
///
/// Files are written whole or not at all; an existing one is only replaced with `force`.
pub fn export(
    recording: &Recording,
    options: &GpuTrackerOptions,
    formats: &[GpuTrackerFormat],
    directory: &Path,
    force: bool,
) -> Result<Vec<PathBuf>, Error> {
    let paths: Vec<PathBuf> =
        formats.iter().map(|format| directory.join(format.file_name())).collect();
    paths.iter().try_for_each(|path| OutputFile::check(path, force))?;
    let of = |wanted: GpuTrackerFormat| {
        formats.iter().position(|format| *format == wanted).map(|place| paths[place].as_path())
    };
    let trackers: Vec<&Path> =
        [GpuTrackerFormat::Csv, GpuTrackerFormat::Sqlite].into_iter().filter_map(of).collect();
    let usage = track(recording, options, &trackers, force)?;
    if let Some(path) = of(GpuTrackerFormat::Json) {
        destination::write(path, usage.to_json().as_bytes(), force)?;
    }
    if let Some(path) = of(GpuTrackerFormat::Text) {
        destination::write(path, usage.to_text().as_bytes(), force)?;
    }
    Ok(paths)
}

/// Number of GPUs of the machine that gpu-tracker would count; `None` when it is not known.
pub fn gpu_count(recording: &Recording) -> Option<u64> {
    gpu::GpuCounts::in_recording(recording, None).count
}

/// The text of a result, from its JSON: as `gpu-tracker -f text` prints it.
pub fn text_of_json(usage: &str) -> Result<String, Error> {
    let json: serde_json::Value =
        serde_json::from_str(usage).map_err(|error| Error::Invalid(error.to_string()))?;
    Ok(text::of_usage(PythonValue::of_json(&json)))
}

/// Reads a recording once: writes these tracking files (`.csv` or `.sqlite`, by extension) and
/// returns what the run used.
pub fn track(
    recording: &Recording,
    options: &GpuTrackerOptions,
    files: &[&Path],
    force: bool,
) -> Result<ResourceUsage, Error> {
    let options = options.of_run(recording.manifest());
    let constants = tracking::Constants::of(recording, &options);
    let mut writers = Vec::new();
    for path in files {
        OutputFile::check(path, force)?;
        writers.push(tracking::TrackingWriter::create(path, &constants, force)?);
    }
    let mut failed = None;
    let (summary, peaks) = replay(recording, &options, |timepoint| {
        let row = constants.row(timepoint);
        if failed.is_none() {
            failed = writers.iter_mut().find_map(|writer| writer.row(&row).err());
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    writers.into_iter().try_for_each(tracking::TrackingWriter::finish)?;
    Ok(ResourceUsage::of(&summary, &peaks, &options))
}

/// Reads a recording once: calls `each` for every timepoint and returns summary and peaks.
pub fn replay(
    recording: &Recording,
    options: &GpuTrackerOptions,
    mut each: impl FnMut(&Timepoint),
) -> Result<(Summary, Peaks), record::Error> {
    let mut accumulator = Accumulator::for_recording(recording);
    let mut timepoints = TimepointBuilder::new(recording.manifest(), options.gpu_uuids.as_deref());
    let groups = all_groups();
    let frames = recording.replay(&groups, |frame| {
        accumulator.frame(frame);
        timepoints.frame(frame, &mut each);
    })?;
    let summary = accumulator.finish(frames.live());
    let peaks = timepoints.finish(usage::mean_cores(&summary), each);
    Ok((summary, peaks))
}

impl GpuTrackerOptions {
    /// The same options, with the expected cores of the run where none are given.
    fn of_run(&self, manifest: &Manifest) -> GpuTrackerOptions {
        let cores = self.expected_cores.or(manifest.expected_cores);
        GpuTrackerOptions { expected_cores: cores, ..self.clone() }
    }

    /// Cores that were expected to be busy, on a machine with this many.
    fn cores(&self, machine: u32) -> f64 {
        self.expected_cores.unwrap_or(f64::from(machine))
    }
}
