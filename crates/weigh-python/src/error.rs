//! What goes wrong, as the exceptions that a Python program expects.

use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyProcessLookupError, PyValueError};
use pyo3::{PyErr, create_exception};
use weigh::listing::NotFound;
use weigh::{export, plot, record, report, run};

create_exception!(
    weigh,
    Error,
    pyo3::exceptions::PyException,
    "weigh could not do what was asked; the text says why."
);

/// An error of the library on its way to Python: made without the GIL.
pub(crate) enum Raised {
    /// An argument is wrong.
    Value(String),
    /// There is no such file, name or id.
    NotFound(String),
    /// There is no such process.
    NoProcess(String),
    /// The kernel refused something.
    System(i32, String),
    /// Anything else.
    Other(String),
}

impl From<Raised> for PyErr {
    fn from(raised: Raised) -> PyErr {
        match raised {
            Raised::Value(text) => PyValueError::new_err(text),
            Raised::NotFound(text) => PyFileNotFoundError::new_err(text),
            Raised::NoProcess(text) => PyProcessLookupError::new_err(text),
            // Two arguments: Python makes PermissionError and its relatives of them.
            Raised::System(errno, text) => PyOSError::new_err((errno, text)),
            Raised::Other(text) => Error::new_err(text),
        }
    }
}

impl From<run::Error> for Raised {
    fn from(error: run::Error) -> Raised {
        let text = error.to_string();
        match error {
            run::Error::Settings(_) => Raised::Value(text),
            run::Error::NoProcess { .. } => Raised::NoProcess(text),
            run::Error::Process { source, .. } | run::Error::System { source, .. } => {
                source.raw_os_error().map_or_else(
                    || Raised::Other(text.clone()),
                    |errno| Raised::System(errno, text.clone()),
                )
            }
            run::Error::Command(run::CommandError::NotFound { .. }) => Raised::NotFound(text),
            run::Error::Recording(error) => error.into(),
            _ => Raised::Other(text),
        }
    }
}

impl From<record::Error> for Raised {
    fn from(error: record::Error) -> Raised {
        let text = error.to_string();
        match error.errno() {
            Some(errno) => Raised::System(errno, text),
            None => Raised::Other(text),
        }
    }
}

impl From<NotFound> for Raised {
    fn from(error: NotFound) -> Raised {
        Raised::NotFound(error.to_string())
    }
}

impl From<export::Error> for Raised {
    fn from(error: export::Error) -> Raised {
        match error {
            export::Error::NoTable { .. } => Raised::Value(error.to_string()),
            export::Error::Recording(error) => error.into(),
            error => Raised::Other(error.to_string()),
        }
    }
}

impl From<plot::Error> for Raised {
    fn from(error: plot::Error) -> Raised {
        match error {
            plot::Error::NoChart { .. } => Raised::Value(error.to_string()),
            plot::Error::Recording(error) => error.into(),
            plot::Error::Nothing { .. } => Raised::Other(error.to_string()),
        }
    }
}

impl From<report::html::Error> for Raised {
    fn from(error: report::html::Error) -> Raised {
        Raised::Other(error.to_string())
    }
}

impl From<report::pdf::Error> for Raised {
    fn from(error: report::pdf::Error) -> Raised {
        Raised::Other(error.to_string())
    }
}

impl From<serde_json::Error> for Raised {
    fn from(error: serde_json::Error) -> Raised {
        Raised::Value(error.to_string())
    }
}
