//! `weigh.compat.oasislmf`: the table and the report of one monitor, or of several.

use std::path::{Path, PathBuf};

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use weigh::compat::oasis::{self, ResourceMonitorOptions};
use weigh::merge;
use weigh::program;
use weigh::record::Recording;

/// Adds the functions of this file to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(oasis_export, module)?)
}

/// Writes what these tools used in one recorded run, or in several together, in place of older
/// files; returns the paths of the files.
#[pyfunction]
fn oasis_export(
    py: Python<'_>,
    recordings: Vec<PathBuf>,
    directory: PathBuf,
    tools: Vec<String>,
    report: bool,
) -> PyResult<Vec<PathBuf>> {
    let options = ResourceMonitorOptions { tools: Some(&tools), report, force: true };
    py.detach(|| export(&recordings, &directory, &options)).map_err(PyOSError::new_err)
}

fn export(
    recordings: &[PathBuf],
    directory: &Path,
    options: &ResourceMonitorOptions<'_>,
) -> Result<Vec<PathBuf>, String> {
    let recordings: Result<Vec<Recording>, _> =
        recordings.iter().map(|path| Recording::open(path)).collect();
    let recordings = recordings.map_err(|error| error.to_string())?;
    let write = |recording: &Recording| {
        let done = oasis::export_with(recording, directory, options);
        done.map(|done| done.files).map_err(|error| error.to_string())
    };
    if let [recording] = &recordings[..] {
        return write(recording);
    }
    let place = tempfile::tempdir().map_err(|error| error.to_string())?;
    let merged = merge::merge(&recordings, Some(place.path()), None, program::now(), |_| {});
    let merged = merged.map_err(|error| error.to_string())?;
    write(&Recording::open(&merged.directory).map_err(|error| error.to_string())?)
}
