//! The extension module `weigh._native`: what the Python package calls.
//!
//! Only what Python code cannot do itself is here; the API that people use is in `python/weigh`.
//! Every call that may block releases the GIL, and nothing here ever takes it on its own.

mod error;
mod gpu_tracker;
mod inbox;
mod oasis;
mod pytyche;
mod recording;
mod session;
mod table;

use pyo3::prelude::*;

use crate::error::Raised;

/// What can be measured here, as JSON.
#[pyfunction]
fn doctor(py: Python<'_>) -> PyResult<String> {
    py.detach(|| {
        let here = std::path::Path::new(weigh::doctor::HERE);
        let examined = weigh::doctor::examine_machine(here).map_err(weigh::run::Error::from)?;
        Ok(serde_json::to_string(&examined)?)
    })
    .map_err(Raised::into)
}

/// What the package `weigh` calls.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", module.py().get_type::<error::Error>())?;
    module.add_class::<recording::Recording>()?;
    module.add_class::<session::Session>()?;
    module.add_class::<table::ArrowStream>()?;
    module.add_function(wrap_pyfunction!(doctor, module)?)?;
    inbox::add(module)?;
    gpu_tracker::add(module)?;
    oasis::add(module)?;
    pytyche::add(module)
}
