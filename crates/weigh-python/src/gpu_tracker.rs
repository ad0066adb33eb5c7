//! `weigh.compat.gpu_tracker`: results, tracking files and code blocks.
//!
//! Values cross as JSON, in the shape of gpu-tracker's `to_json`.

use std::path::{Path, PathBuf};

use pyo3::exceptions::{PyFileExistsError, PyOSError, PyValueError};
use pyo3::prelude::*;
use weigh::compat::gpu_tracker::sub_track::{self, Sessions, SubTrackingResults, blocks, tracked};
use weigh::compat::gpu_tracker::tracking::{self, MEASURES, TIMESTAMP};
use weigh::compat::gpu_tracker::units::{RamUnit, TimeUnit};
use weigh::compat::gpu_tracker::{self, Error, GpuTrackerOptions};
use weigh::compat::python::{PythonValue, dumps_line};
use weigh::doctor;
use weigh::record::Recording;

/// Adds the functions of this file to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(gpu_tracker_check, module)?)?;
    module.add_function(wrap_pyfunction!(gpu_tracker_has_driver, module)?)?;
    module.add_function(wrap_pyfunction!(gpu_tracker_choose_gpus, module)?)?;
    module.add_function(wrap_pyfunction!(gpu_tracker_track, module)?)?;
    module.add_function(wrap_pyfunction!(gpu_tracker_text, module)?)?;
    module.add_function(wrap_pyfunction!(gpu_tracker_static_data, module)?)?;
    module.add_function(wrap_pyfunction!(gpu_tracker_block_names, module)?)?;
    module.add_function(wrap_pyfunction!(gpu_tracker_combine, module)?)?;
    module.add_function(wrap_pyfunction!(gpu_tracker_timestamp_pairs, module)?)?;
    module.add_function(wrap_pyfunction!(gpu_tracker_timepoints, module)?)?;
    module.add_function(wrap_pyfunction!(gpu_tracker_overall, module)?)?;
    module.add_function(wrap_pyfunction!(gpu_tracker_analyze, module)?)?;
    module.add_function(wrap_pyfunction!(gpu_tracker_results_text, module)?)?;
    module.add_function(wrap_pyfunction!(gpu_tracker_match, module)?)?;
    module.add_function(wrap_pyfunction!(gpu_tracker_compare, module)?)
}

fn raised(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Exists { .. } => PyFileExistsError::new_err(text),
        Error::File { source, .. } => match source.raw_os_error() {
            // As `open` raises it: the number chooses the exception, like FileNotFoundError.
            Some(number) => PyOSError::new_err((number, text)),
            None => PyOSError::new_err(text),
        },
        Error::Write(_) | Error::Sqlite { .. } => PyOSError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

fn units(ram: &str, gpu_ram: &str, time: &str) -> PyResult<(RamUnit, RamUnit, TimeUnit)> {
    let wrong = |error: gpu_tracker::units::BadUnit| PyValueError::new_err(error.to_string());
    Ok((
        RamUnit::parse(ram).map_err(wrong)?,
        RamUnit::parse_gpu(gpu_ram).map_err(wrong)?,
        TimeUnit::parse(time).map_err(wrong)?,
    ))
}

/// Refuses units that do not exist, and a tracking file that cannot be written.
#[pyfunction]
fn gpu_tracker_check(
    ram_unit: &str,
    gpu_ram_unit: &str,
    time_unit: &str,
    tracking_file: Option<PathBuf>,
    overwrite: bool,
) -> PyResult<()> {
    units(ram_unit, gpu_ram_unit, time_unit)?;
    let Some(path) = tracking_file else { return Ok(()) };
    tracking::format_of(&path).map_err(raised)?;
    if path.exists() && !overwrite {
        return Err(raised(Error::Exists { path }));
    }
    Ok(())
}

/// Whether this machine has a GPU driver that weigh can query.
#[pyfunction]
fn gpu_tracker_has_driver(py: Python<'_>) -> bool {
    py.detach(doctor::has_gpu_driver)
}

/// Refuses UUIDs and a brand that this machine does not have. Returns the names of the GPUs to
/// measure, where not all are measured.
#[pyfunction]
#[pyo3(signature = (uuids, brand))]
fn gpu_tracker_choose_gpus(
    py: Python<'_>,
    uuids: Option<Vec<String>>,
    brand: Option<&str>,
) -> PyResult<Option<Vec<String>>> {
    brand.map_or(Ok(()), gpu_tracker::check_brand).map_err(PyValueError::new_err)?;
    if uuids.is_none() && brand.is_none() {
        return Ok(None);
    }
    let gpus = match py.detach(|| doctor::has_gpu_driver().then(doctor::gpus)) {
        // A driver that does not answer now may do so while something is tracked.
        Some(gpus) if gpus.is_empty() => return Ok(None),
        gpus => gpus.unwrap_or_default(),
    };
    gpu_tracker::choose_gpus(&gpus, uuids.as_deref(), brand).map_err(PyValueError::new_err)
}

/// Writes these tracking files, and returns what a recorded run used.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "they are the keywords of gpu-tracker's Tracker")]
fn gpu_tracker_track(
    py: Python<'_>,
    recording: PathBuf,
    ram_unit: &str,
    gpu_ram_unit: &str,
    time_unit: &str,
    expected_cores: Option<f64>,
    gpu_uuids: Option<Vec<String>>,
    files: Vec<PathBuf>,
    overwrite: bool,
) -> PyResult<String> {
    let (ram_unit, gpu_ram_unit, time_unit) = units(ram_unit, gpu_ram_unit, time_unit)?;
    let options =
        GpuTrackerOptions { ram_unit, gpu_ram_unit, time_unit, expected_cores, gpu_uuids };
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let usage = py.detach(|| {
        let recording = Recording::open(&recording)?;
        gpu_tracker::track(&recording, &options, &files, overwrite)
    });
    Ok(dumps_line(&usage.map_err(raised)?.to_value()))
}

/// The text of a result.
#[pyfunction]
fn gpu_tracker_text(usage: &str) -> PyResult<String> {
    gpu_tracker::text_of_json(usage).map_err(raised)
}

/// What is constant in a tracking file.
#[pyfunction]
fn gpu_tracker_static_data(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let tracked = py.detach(|| tracked::read(&path)).map_err(raised)?;
    Ok(dumps_line(&PythonValue::Map(tracked.constants)))
}

/// The names of the code blocks of a sub-tracking file.
#[pyfunction]
fn gpu_tracker_block_names(py: Python<'_>, path: PathBuf) -> PyResult<Vec<String>> {
    let positions = py.detach(|| blocks::positions(&path)).map_err(raised)?;
    let mut names: Vec<String> = positions.into_iter().map(|position| position.name).collect();
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// Combines sub-tracking files.
#[pyfunction]
fn gpu_tracker_combine(py: Python<'_>, files: Vec<PathBuf>, to: PathBuf) -> PyResult<()> {
    py.detach(|| sub_track::combine(&files, &to)).map_err(raised)
}

/// When the calls of a code block began and ended.
#[pyfunction]
fn gpu_tracker_timestamp_pairs(
    py: Python<'_>,
    path: PathBuf,
    name: &str,
) -> PyResult<Vec<(f64, f64)>> {
    let blocks = py.detach(|| {
        if sub_track::is_recording(&path) {
            return blocks::read(&path);
        }
        let mut positions = blocks::positions(&path)?;
        positions.retain(|position| position.name == name);
        blocks::pair(&positions)
    });
    let block = blocks.map_err(raised)?.into_iter().find(|block| block.name == name);
    Ok(block.map(|block| block.calls).unwrap_or_default())
}

/// The columns of a tracking file, with the timepoints within any of these times.
#[pyfunction]
fn gpu_tracker_timepoints(
    py: Python<'_>,
    path: PathBuf,
    pairs: Vec<(f64, f64)>,
) -> PyResult<String> {
    let tracked = py.detach(|| tracked::read(&path)).map_err(raised)?;
    let rows = sub_track::rows_within(&tracked, &pairs);
    let column = |values: &[f64], number: fn(f64) -> PythonValue| {
        PythonValue::List(rows.iter().map(|row| number(values[*row])).collect())
    };
    let mut columns: Vec<(String, PythonValue)> = Vec::new();
    for (name, values) in MEASURES.iter().zip(&tracked.measures) {
        let is_count = name.ends_with("n_threads") && values.iter().all(|value| !value.is_nan());
        let number = if is_count { PythonValue::count } else { PythonValue::Real };
        columns.push(((*name).to_owned(), column(values, number)));
    }
    columns.push((TIMESTAMP.to_owned(), column(&tracked.timestamps, PythonValue::Real)));
    Ok(dumps_line(&PythonValue::Map(columns)))
}

/// Statistics of each measure over a whole tracking file.
#[pyfunction]
fn gpu_tracker_overall(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let tracked = py.detach(|| tracked::read(&path)).map_err(raised)?;
    Ok(dumps_line(&sub_track::by_measure(&sub_track::overall(&tracked))))
}

/// Statistics over a whole tracking file, and over the calls of each code block.
#[pyfunction]
fn gpu_tracker_analyze(
    py: Python<'_>,
    tracking: PathBuf,
    sub_tracking: PathBuf,
) -> PyResult<String> {
    let results = py.detach(|| sub_track::analyze_files(&tracking, &sub_tracking));
    Ok(dumps_line(&results.map_err(raised)?.to_value()))
}

fn results(json: &str) -> PyResult<SubTrackingResults> {
    SubTrackingResults::of_json(json).map_err(PyValueError::new_err)
}

fn sessions(stored: &[(String, String)]) -> PyResult<Sessions> {
    let sessions: PyResult<Vec<_>> =
        stored.iter().map(|(name, json)| Ok((name.clone(), results(json)?))).collect();
    Sessions::new(sessions?).map_err(raised)
}

/// The text of an analysis.
#[pyfunction]
fn gpu_tracker_results_text(json: &str) -> PyResult<String> {
    Ok(results(json)?.to_text())
}

/// Sessions that were matched: names and results.
type Matched = Vec<(String, String)>;

/// Matches the code blocks of sessions; returns them in the order of their blocks, and warnings.
#[pyfunction]
fn gpu_tracker_match(stored: Matched) -> PyResult<(Matched, Vec<String>)> {
    let Sessions { sessions, warnings } = sessions(&stored)?;
    let json = |(name, of): (String, SubTrackingResults)| (name, dumps_line(&of.to_value()));
    Ok((sessions.into_iter().map(json).collect(), warnings))
}

/// Compares sessions by a statistic: as JSON and as text.
#[pyfunction]
fn gpu_tracker_compare(stored: Matched, statistic: &str) -> PyResult<(String, String)> {
    let compared = sessions(&stored)?.compare(statistic).map_err(raised)?;
    Ok((dumps_line(&compared.to_value()), compared.to_text()))
}
