//! What perfmon would have written about a job, from a recording of each node: its metrics as JSON,
//! the same as tables, and its log file. Its plots are in `pictures`.
//!
//! One module for each of its groups of metrics (`cpu`, `nv_gpu`, `meta_data`), and what groups
//! share: rows of all hosts (`group_rows`), JSON to the byte (`json`), tables (`frame`), and which
//! samples have a row (`seconds`). perfmon ran on every node and its master merged the files of all
//! nodes; here each recording is of one node, or of several.
//!
//! What surprised us: the host of a GPU's lists is called `gpu-<i>.<host>`, and `host_names` has
//! those names, because its reader looks each of them up. `sampling_frequency` is an interval.

mod cpu;
mod frame;
mod group_rows;
mod json;
mod log;
mod meta_data;
mod nv_gpu;
mod pictures;
mod seconds;
mod spooled_rows;
#[cfg(test)]
mod tests;
mod totals;

pub use pictures::pictures;

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use super::row_spacing::RowSpacing;
use crate::destination::{self, OutputFile};
use crate::export::{Error, ExportFormat, Exported, unfinished};
use crate::record::{Recording, files};
use group_rows::GroupRows;
use nv_gpu::NvidiaGpus;
use seconds::Seconds;

/// The groups of metrics.
const CPU: &str = "cpu_metrics";
const NV_GPU_GROUP: &str = "nv_gpu_metrics";

/// Files below the output directory.
const META_DATA: &str = "metrics/meta_data.json";
const CPU_FILE: &str = "metrics/cpu_metrics.json";
const NV_GPU: &str = "metrics/nv_gpu_metrics.json";

/// Writes what perfmon would have written into a directory, from the recording of each node, and
/// its tables in these formats.
///
/// Existing files are only replaced with `force`. Memory does not grow with the length of
/// the recordings. There must be at most one recording of each host.
pub fn export(
    recordings: &[Recording],
    formats: &[ExportFormat],
    directory: &Path,
    force: bool,
) -> Result<Exported, Error> {
    if files::is_recording(directory) {
        return Err(Error::IntoRecording { path: directory.to_owned() });
    }
    if recordings.is_empty() {
        return Err(Error::NoRuns { why: "no recording is given".to_owned() });
    }
    let mut hosts = HashSet::new();
    for host in recordings.iter().flat_map(hosts_of) {
        if !hosts.insert(host.clone()) {
            return Err(Error::SameHost { host });
        }
    }
    for file in [META_DATA, CPU_FILE, NV_GPU, log::FILE] {
        OutputFile::check(&directory.join(file), force)?;
    }
    let mut export = PerfmonExport {
        directory,
        force,
        formats,
        step: step(recordings),
        is_alone: recordings.len() == 1,
        exported: Exported::default(),
    };
    export.note_losses(recordings);
    // A recording of several nodes has no machine's own values of each of them.
    let (nodes, merged): (Vec<&Recording>, Vec<&Recording>) =
        recordings.iter().partition(|recording| !recording.manifest().is_merged());
    for recording in merged {
        let why = "is of several nodes: name a directory with the recording of each node";
        export.exported.missing.push(format!("{CPU} has no {}: it {why}", host(recording)));
    }
    if !nodes.is_empty() {
        let document = meta_data::document(&nodes);
        let path = directory.join(META_DATA);
        let document = document.map_err(|source| Error::file(&path, source))?;
        export.exported.files.push(destination::write(&path, &document, force)?);
        export.cpu(&nodes)?;
    }
    if recordings.iter().any(nv_gpu::has_any) {
        export.gpus(recordings)?;
    }
    let path = directory.join(log::FILE);
    let log = log::text(recordings);
    export.exported.files.push(destination::write(&path, log.as_bytes(), force)?);
    Ok(export.exported)
}

/// An export that is going on.
struct PerfmonExport<'a> {
    directory: &'a Path,
    force: bool,
    formats: &'a [ExportFormat],
    step: Duration,
    /// Whether there is one recording, which needs no name.
    is_alone: bool,
    exported: Exported,
}

impl PerfmonExport<'_> {
    /// What a message is about, where there are several recordings.
    fn named(&self, recording: &Recording, what: &str) -> String {
        if self.is_alone { what.to_owned() } else { format!("{}: {what}", host(recording)) }
    }

    /// What recordings lost, and GPUs that perfmon does not know.
    fn note_losses(&mut self, recordings: &[Recording]) {
        for recording in recordings {
            let mut lost = unfinished(recording);
            lost.extend(nv_gpu::left_out(recording));
            let lines = lost.into_iter().map(|what| self.named(recording, &what));
            let lines: Vec<String> = lines.collect();
            self.exported.missing.extend(lines);
        }
    }

    fn cpu(&mut self, nodes: &[&Recording]) -> Result<(), Error> {
        let (file, mut rows) = self.create(CPU_FILE, cpu::columns())?;
        for recording in nodes {
            cpu::add(recording, self.seconds(recording), file.directory(), &mut rows)?;
            if !rows.hosts().any(|one| one == host(recording)) {
                let what = self.named(recording, "no sample was a row: the recording is too short");
                self.exported.missing.push(what);
            }
        }
        self.finish(CPU, file, rows, "nodes")
    }

    fn gpus(&mut self, recordings: &[Recording]) -> Result<(), Error> {
        let (file, mut rows) = self.create(NV_GPU, nv_gpu::columns())?;
        for recording in recordings {
            if nv_gpu::has_any(recording) {
                let seconds = self.seconds(recording);
                let cards = NvidiaGpus::of(recording, seconds, file.directory())?;
                cards.add_to(&mut rows).map_err(|source| Error::file(file.path(), source))?;
            } else if nv_gpu::left_out(recording).is_empty() {
                let why = nv_gpu::why_none(recording);
                self.exported.missing.push(self.named(recording, &why));
            }
        }
        self.finish(NV_GPU_GROUP, file, rows, "GPUs")
    }

    fn seconds(&self, recording: &Recording) -> Seconds {
        Seconds::new(recording.manifest().started, RowSpacing::of(self.step))
    }

    fn create(
        &self,
        name: &str,
        columns: Vec<group_rows::ListColumn>,
    ) -> Result<(OutputFile, GroupRows), Error> {
        let path = self.directory.join(name);
        let file = OutputFile::create(&path, self.force)?;
        let rows = GroupRows::create(columns, file.directory());
        let rows = rows.map_err(|source| Error::file(&path, source))?;
        Ok((file, rows))
    }

    fn finish(
        &mut self,
        group: &str,
        file: OutputFile,
        mut rows: GroupRows,
        hosts: &str,
    ) -> Result<(), Error> {
        let path = file.path().to_owned();
        let failed = |source| Error::file(&path, source);
        self.exported.missing.extend(rows.missing(hosts));
        let out = file.file().map_err(failed)?;
        rows.write_json(out, self.step.as_secs_f64()).map_err(failed)?;
        self.exported.files.push(file.keep()?);
        if !self.formats.is_empty() {
            let written = frame::write(group, &mut rows, self.formats, self.directory, self.force)?;
            self.exported.files.extend(written);
        }
        Ok(())
    }
}

/// The hosts of a recording: several, if it is merged.
fn hosts_of(recording: &Recording) -> Vec<String> {
    if recording.manifest().is_merged() {
        return nv_gpu::hosts(recording).into_iter().collect();
    }
    vec![host(recording).to_owned()]
}

fn host(recording: &Recording) -> &str {
    &recording.manifest().host.name
}

/// How far apart rows are: the longest sampling interval of all recordings. Times are whole
/// seconds, so it is at least one second.
fn step(recordings: &[Recording]) -> Duration {
    const SHORTEST: Duration = Duration::from_secs(1);
    let intervals = recordings.iter().map(|recording| recording.manifest().interval_seconds);
    let known = intervals.filter_map(|seconds| Duration::try_from_secs_f64(seconds).ok());
    known.fold(SHORTEST, Duration::max)
}
