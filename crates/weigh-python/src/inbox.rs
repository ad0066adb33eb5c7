//! Phases and marks of a program that another weigh measures: sent through the pipe of the
//! recording in a directory.
//!
//! Used under `weigh run -- python …`, by workers, and after fork: nothing of the parent's session
//! is touched, so that no lock that was held at the fork is waited for.

use std::path::PathBuf;
use std::time::Duration;

use pyo3::prelude::*;
use weigh::record::Event;
use weigh::record::events::EventData;
use weigh::run::phase;

use crate::error::Raised;

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(send_phase_start, module)?)?;
    module.add_function(wrap_pyfunction!(send_phase_end, module)?)?;
    module.add_function(wrap_pyfunction!(send_mark, module)?)
}

/// Begins a phase of this id.
#[pyfunction]
#[pyo3(signature = (directory, id, name, parent=None, data=None))]
fn send_phase_start(
    py: Python<'_>,
    directory: PathBuf,
    id: String,
    name: String,
    parent: Option<String>,
    data: Option<&str>,
) -> PyResult<()> {
    send(py, directory, Event::PhaseStart { id, name, parent }, data)
}

/// Ends the phase of this id.
#[pyfunction]
fn send_phase_end(py: Python<'_>, directory: PathBuf, id: String) -> PyResult<()> {
    send(py, directory, Event::PhaseEnd { id, usage: None, end: None, account: None }, None)
}

/// Adds a mark.
#[pyfunction]
#[pyo3(signature = (directory, text, data=None))]
fn send_mark(py: Python<'_>, directory: PathBuf, text: String, data: Option<&str>) -> PyResult<()> {
    send(py, directory, Event::Mark { text }, data)
}

/// The object that a text of JSON is.
pub(crate) fn object(data: Option<&str>) -> Result<Option<EventData>, Raised> {
    Ok(data.map(serde_json::from_str).transpose()?)
}

fn send(py: Python<'_>, directory: PathBuf, event: Event, data: Option<&str>) -> PyResult<()> {
    let data = object(data)?;
    py.detach(|| patiently(|| phase::send_of_program(&directory, event.clone(), data.clone())))
        .map_err(PyErr::from)
}

/// A full pipe is emptied within a tick of the monitor: a lost end would leave a phase open. It is
/// waited for no longer than a program can spare.
fn patiently(mut send: impl FnMut() -> Result<(), weigh::record::Error>) -> Result<(), Raised> {
    const FULL: i32 = 11;
    const PAUSE: Duration = Duration::from_millis(1);
    const MOST: u32 = 20;
    let mut pauses = 0;
    loop {
        match send() {
            Err(error) if error.errno() == Some(FULL) && pauses < MOST => {
                std::thread::sleep(PAUSE);
                pauses += 1;
            }
            sent => return Ok(sent?),
        }
    }
}
