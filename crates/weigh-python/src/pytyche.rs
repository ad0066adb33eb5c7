//! `weigh.compat.pytyche`: the tables of a monitor, and their summary.

use std::path::PathBuf;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use weigh::compat::python::{PythonValue, dumps_line};
use weigh::compat::pytyche::{self, ResourceSummary, import};
use weigh::export;
use weigh::record::Recording;

/// Adds the functions of this file to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(pytyche_export_tables, module)?)?;
    module.add_function(wrap_pyfunction!(pytyche_summary, module)?)
}

/// Writes the tables of a recorded run, in place of older ones; returns their paths.
#[pyfunction]
fn pytyche_export_tables(
    py: Python<'_>,
    recording: PathBuf,
    directory: PathBuf,
) -> PyResult<Vec<PathBuf>> {
    let exported = py.detach(|| -> Result<export::Exported, export::Error> {
        let recording = Recording::open(&recording)?;
        pytyche::export_tables(&recording, &directory, true)
    });
    let exported = exported.map_err(|error| PyOSError::new_err(error.to_string()))?;
    Ok(exported.files)
}

/// The summary of tables, as the fields of pytyche's `ResourceSummary`; null is not known.
#[pyfunction]
#[pyo3(signature = (gpu, cpu, dmon))]
fn pytyche_summary(
    py: Python<'_>,
    gpu: Option<PathBuf>,
    cpu: Option<PathBuf>,
    dmon: Option<PathBuf>,
) -> PyResult<String> {
    let imported =
        py.detach(|| import::read_files(gpu.as_deref(), cpu.as_deref(), dmon.as_deref()));
    let imported = imported.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let ResourceSummary {
        peak_vram_mb,
        gpu_util_mean_pct,
        gpu_util_max_pct,
        mem_util_mean_pct,
        mem_util_max_pct,
        power_watts_mean,
        power_watts_max,
        cpu_usr_mean_pct,
        cpu_idle_mean_pct,
    } = imported.resources();
    let fields = [
        ("peak_vram_mb", peak_vram_mb),
        ("gpu_util_mean_pct", gpu_util_mean_pct),
        ("gpu_util_max_pct", gpu_util_max_pct),
        ("mem_util_mean_pct", mem_util_mean_pct),
        ("mem_util_max_pct", mem_util_max_pct),
        ("power_watts_mean", power_watts_mean),
        ("power_watts_max", power_watts_max),
        ("cpu_usr_mean_pct", cpu_usr_mean_pct),
        ("cpu_idle_mean_pct", cpu_idle_mean_pct),
    ];
    let fields = fields.map(|(name, value)| (name, PythonValue::real(value)));
    Ok(dumps_line(&PythonValue::map(fields)))
}
