//! A running measurement: `weigh::Session`, with the GIL released wherever it may block.
//!
//! Every call checks first whether this is the process that made it: after fork the locks may be
//! held for ever by threads that the child does not have.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use weigh::model::settings::Destination;
use weigh::run::LiveValues;
use weigh::{PhaseId, RunError, Settings};

use crate::error::Raised;
use crate::inbox::object;

/// A measurement that runs beside the program.
#[pyclass(frozen, module = "weigh._native")]
pub(crate) struct Session {
    owner: u32,
    id: String,
    pid: Option<u32>,
    directory: Option<PathBuf>,
    /// `None` once it is stopped. Its drop in a fork is without effect.
    running: RwLock<Option<weigh::Session>>,
}

/// The settings of a dict; what it does not have is as without weigh.toml.
fn settings(wanted: &Bound<'_, PyDict>) -> PyResult<Settings> {
    let mut settings = Settings::default();
    let mut record = true;
    for (key, value) in wanted {
        match key.extract::<String>()?.as_str() {
            "interval" => {
                let seconds: f64 = value.extract()?;
                let interval = Duration::try_from_secs_f64(seconds);
                settings.interval = interval.map_err(|_| {
                    Raised::Value(format!("an interval of {seconds} seconds is not possible"))
                })?;
            }
            "output" => {
                if let Some(path) = value.extract::<Option<PathBuf>>()? {
                    settings.destination = Destination::Directory(path);
                }
            }
            "record" => record = value.extract()?,
            "name" => settings.name = value.extract()?,
            "labels" => settings.labels = value.extract::<BTreeMap<String, String>>()?,
            "collect" => settings.collect = value.extract()?,
            "skip" => settings.skip = value.extract()?,
            "gpus" => settings.gpus = value.extract()?,
            "budget" => settings.budget = value.extract()?,
            "expected_cores" => settings.expected_cores = value.extract()?,
            "wait_all" => settings.wait_all = value.extract()?,
            "subreaper" => settings.subreaper = value.extract()?,
            "command_lines" => settings.command_lines = value.extract()?,
            "host_root" => settings.host_root = value.extract()?,
            other => return Err(Raised::Value(format!("there is no setting {other}")).into()),
        }
    }
    if !record {
        settings.destination = Destination::Nowhere;
    }
    Ok(settings)
}

fn begun(
    py: Python<'_>,
    wanted: &Bound<'_, PyDict>,
    begin: impl FnOnce(&Settings) -> Result<weigh::Session, RunError> + Send,
) -> PyResult<Session> {
    let settings = settings(wanted)?;
    let session = py.detach(|| begin(&settings)).map_err(Raised::from)?;
    Ok(Session {
        owner: std::process::id(),
        id: session.id().to_owned(),
        pid: session.pid(),
        directory: session.directory().map(Path::to_owned),
        running: RwLock::new(Some(session)),
    })
}

#[pymethods]
impl Session {
    /// Measures this process, and its children from now on.
    #[staticmethod]
    fn current(py: Python<'_>, settings: &Bound<'_, PyDict>) -> PyResult<Session> {
        begun(py, settings, weigh::Session::current)
    }

    /// Measures running processes and their descendants.
    #[staticmethod]
    fn attach(py: Python<'_>, pids: Vec<u32>, settings: &Bound<'_, PyDict>) -> PyResult<Session> {
        begun(py, settings, |settings| weigh::Session::attach(&pids, settings))
    }

    /// Measures all processes in a cgroup and the cgroups below it.
    #[staticmethod]
    fn cgroup(py: Python<'_>, path: PathBuf, settings: &Bound<'_, PyDict>) -> PyResult<Session> {
        begun(py, settings, |settings| weigh::Session::cgroup(&path, settings))
    }

    /// Starts a command and measures it and all it starts.
    #[staticmethod]
    fn spawn(
        py: Python<'_>,
        command: Vec<OsString>,
        settings: &Bound<'_, PyDict>,
    ) -> PyResult<Session> {
        begun(py, settings, |settings| weigh::Session::spawn(&command, settings))
    }

    #[getter]
    fn id(&self) -> &str {
        &self.id
    }

    #[getter]
    fn pid(&self) -> Option<u32> {
        self.pid
    }

    #[getter]
    fn directory(&self) -> Option<String> {
        self.directory.as_ref().map(|path| path.to_string_lossy().into_owned())
    }

    /// Starts a phase, with a JSON object that belongs to it, and returns its id.
    #[pyo3(signature = (name, parent=None, data=None))]
    fn start_phase(
        &self,
        py: Python<'_>,
        name: &str,
        parent: Option<&str>,
        data: Option<&str>,
    ) -> PyResult<String> {
        let (parent, data) = (parent.map(PhaseId::parse), object(data)?);
        self.with(py, |session| {
            session.start_phase(name, parent.as_ref(), data).as_str().to_owned()
        })
    }

    /// Ends a phase.
    fn end_phase(&self, py: Python<'_>, phase: &str) -> PyResult<()> {
        self.with(py, |session| session.end_phase(&PhaseId::parse(phase)))
    }

    /// Marks this moment, with a JSON object that belongs to it.
    #[pyo3(signature = (text, data=None))]
    fn mark(&self, py: Python<'_>, text: &str, data: Option<&str>) -> PyResult<()> {
        let data = object(data)?;
        self.with(py, |session| match data {
            Some(data) => session.mark_with(text, data),
            None => session.mark(text),
        })
    }

    /// Samples now, and returns the summary so far as JSON.
    fn snapshot(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.snapshot_with_values(py)?.0)
    }

    /// The same, and the values of this moment, unless it has ended; `None` is what is not known.
    fn snapshot_with_values(&self, py: Python<'_>) -> PyResult<(String, Option<CurrentValues>)> {
        let snapshot = self.with(py, |session| {
            let (summary, values) = session.snapshot_with_values()?;
            Some((serde_json::to_string(&summary), values.map(|values| current(&values))))
        })?;
        let failed = || Raised::Other("sampling has failed".to_owned());
        let (summary, values) = snapshot.ok_or_else(failed)?;
        Ok((summary.map_err(Raised::from)?, values))
    }

    /// Waits until what is measured has ended, at most so many seconds; returns whether it has.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        // What is too long for a duration has no end.
        let timeout =
            timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok());
        self.with(py, |session| session.wait(timeout))
    }

    /// Stops: the summary as JSON, the directory of the recording, and what failed with it.
    fn stop(&self, py: Python<'_>) -> PyResult<(String, Option<PathBuf>, Vec<String>)> {
        self.check_owner()?;
        let stopped = py.detach(|| -> Result<_, Raised> {
            let running = self.running.write().unwrap_or_else(PoisonError::into_inner).take();
            let outcome = running.ok_or_else(has_stopped)?.stop()?;
            let summary = serde_json::to_string(&outcome.summary)?;
            Ok((summary, outcome.recording, outcome.warnings))
        });
        Ok(stopped?)
    }
}

impl Session {
    fn check_owner(&self) -> Result<(), Raised> {
        match std::process::id() == self.owner {
            true => Ok(()),
            false => Err(RunError::ForkedSession.into()),
        }
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&weigh::Session) -> T + Send,
    ) -> PyResult<T> {
        self.check_owner()?;
        let called = py.detach(|| -> Result<T, Raised> {
            let running: RwLockReadGuard<'_, _> =
                self.running.read().unwrap_or_else(PoisonError::into_inner);
            Ok(call(running.as_ref().ok_or_else(has_stopped)?))
        });
        Ok(called?)
    }
}

/// Values by name, in base units.
type CurrentValues = BTreeMap<&'static str, Option<f64>>;

fn current(values: &LiveValues) -> CurrentValues {
    let count = |count: Option<u64>| count.map(|count| count as f64);
    // A sum of resident memory has a name of its own.
    let memory = values.memory.filter(|memory| !memory.is_upper_bound);
    BTreeMap::from([
        ("cpu_cores", values.cores),
        ("gpu_memory_bytes", count(values.gpu_memory_bytes)),
        ("gpus_busy", values.gpus),
        ("memory_bytes", count(memory.map(|memory| memory.bytes))),
        ("memory_rss_bytes", count(values.memory_rss_bytes)),
        ("processes", count(values.processes)),
        ("threads", count(values.threads)),
    ])
}

fn has_stopped() -> Raised {
    Raised::Other("this session has been stopped".to_owned())
}
