//! What perfmon would have written about a job: so far the metrics of NVIDIA GPUs,
//! `metrics/nv_gpu_metrics.json`.
//!
//! One module for each of its groups of metrics (`nv_gpu`), and what all groups share: JSON to the
//! byte (`json`), and which samples have a row (`seconds`). perfmon ran on every node and its master
//! merged the files of all nodes; here each recording is of one node, or of several.
//!
//! What surprised us: the host of a GPU's lists is called `gpu-<i>.<host>`, and `host_names` has
//! those names, because its reader looks each of them up. `sampling_frequency` is an interval.

mod json;
mod nv_gpu;
mod pictures;
mod seconds;
mod sections;
mod spooled_rows;
#[cfg(test)]
mod tests;
mod totals;

pub use pictures::pictures;

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use super::row_spacing::RowSpacing;
use crate::destination::OutputFile;
use crate::export::{Error, Exported, unfinished};
use crate::record::{Recording, files};
use nv_gpu::{MissingMetrics, NvidiaGpus};
use seconds::Seconds;
use sections::Sections;

/// The file of the GPUs, below the output directory.
const NV_GPU: &str = "metrics/nv_gpu_metrics.json";

/// Writes what perfmon would have written into a directory, from the recording of each node.
///
/// An existing file is only replaced with `force`. Memory does not grow with the length of
/// the recordings. There must be at most one recording of each host.
pub fn export(recordings: &[Recording], directory: &Path, force: bool) -> Result<Exported, Error> {
    if files::is_recording(directory) {
        return Err(Error::IntoRecording { path: directory.to_owned() });
    }
    let mut hosts = HashSet::new();
    for host in recordings.iter().flat_map(nv_gpu::hosts) {
        if !hosts.insert(host.clone()) {
            return Err(Error::SameHost { host });
        }
    }
    if !recordings.iter().any(nv_gpu::has_any) {
        return Err(recordings.first().map_or_else(no_recording, nv_gpu::why_none));
    }
    let path = directory.join(NV_GPU);
    OutputFile::check(&path, force)?;
    let destination = OutputFile::create(&path, force)?;
    let failed = |source| Error::file(&path, source);
    let (step, is_alone) = (step(recordings), recordings.len() == 1);
    let mut sections = Sections::create(destination.directory()).map_err(failed)?;
    let (mut missing, mut never_reported) = (Vec::new(), MissingMetrics::default());
    for recording in recordings {
        if !nv_gpu::has_any(recording) {
            missing.push(format!("{}: {}", host(recording), nv_gpu::why_none(recording)));
            continue;
        }
        let mut lost = unfinished(recording);
        lost.extend(nv_gpu::left_out(recording));
        let named = |what| format!("{}: {what}", host(recording));
        missing.extend(lost.into_iter().map(|what| if is_alone { what } else { named(what) }));
        let seconds = Seconds::new(recording.manifest().started, RowSpacing::of(step));
        let cards = NvidiaGpus::of(recording, seconds, destination.directory())?;
        cards.write(&mut sections, &mut never_reported).map_err(failed)?;
    }
    if sections.is_empty() {
        return Err(Error::NoNvidiaGpu {
            why: "no sample of an NVIDIA GPU is recorded".to_owned(),
        });
    }
    missing.extend(never_reported.lines());
    let file = destination.file().map_err(failed)?;
    sections.write(file, step.as_secs_f64()).map_err(failed)?;
    Ok(Exported { files: vec![destination.keep()?], missing })
}

fn host(recording: &Recording) -> &str {
    &recording.manifest().host.name
}

fn no_recording() -> Error {
    Error::NoRuns { why: "no recording is given".to_owned() }
}

/// How far apart rows are: the longest sampling interval of all recordings. Times are whole
/// seconds, so it is at least one second.
fn step(recordings: &[Recording]) -> Duration {
    const SHORTEST: Duration = Duration::from_secs(1);
    let intervals = recordings.iter().map(|recording| recording.manifest().interval_seconds);
    let known = intervals.filter_map(|seconds| Duration::try_from_secs_f64(seconds).ok());
    known.fold(SHORTEST, Duration::max)
}
