//! What can be measured on a machine, what cannot, and what to type to change it: for
//! `weigh doctor` and for programs.

use serde::Serialize;

use super::{NOTIFIERS, Probe, examine, gpu, provider};
use crate::catalog::{SOURCES, Source, SourceId};
use crate::host::Host;
use crate::model::{Facts, Gpu};

/// The machine, its GPUs, and the state of every source.
#[derive(Debug, Serialize)]
pub struct Examination {
    /// The machine.
    pub host: Facts,
    /// Its GPUs.
    pub gpus: Vec<Gpu>,
    /// Every collector.
    pub collectors: Vec<SourceStatus>,
    /// What reports processes that weigh did not start.
    pub watching: Vec<SourceStatus>,
}

/// Whether a source can be read here.
#[derive(Debug, Serialize)]
pub struct SourceStatus {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// `ready`, `absent` or `denied`.
    pub state: &'static str,
    /// Whether it is only used when it is asked for.
    pub on_request: bool,
    /// Why it cannot be read.
    pub why: Option<String>,
    /// What to type to change that.
    pub hint: Option<String>,
}

impl Examination {
    /// Probes every collector of a machine.
    pub fn of(host: &Host) -> Examination {
        let collectors: Vec<SourceStatus> =
            SOURCES.iter().filter_map(|source| SourceStatus::of(source, host)).collect();
        // A driver that does not answer is not queried again: that takes long.
        let gpu = SourceId::Gpu.name();
        let answers = collectors.iter().any(|one| one.name == gpu && one.state == "ready");
        Examination {
            host: Facts::of(host),
            gpus: if answers { gpu::devices(host) } else { Vec::new() },
            collectors,
            watching: NOTIFIERS
                .iter()
                .map(|one| SourceStatus::new(one.name, one.about, false, (one.probe)(host)))
                .collect(),
        }
    }
}

impl SourceStatus {
    fn of(source: &Source, host: &Host) -> Option<SourceStatus> {
        let probe = examine(provider(source.id)?, host);
        Some(SourceStatus::new(source.name, source.about, source.on_request, probe))
    }

    fn new(
        name: &'static str,
        about: &'static str,
        on_request: bool,
        probe: Probe,
    ) -> SourceStatus {
        let (state, why, hint) = match probe {
            Probe::Ready => ("ready", None, None),
            Probe::Absent { why } => ("absent", Some(why), None),
            Probe::Denied { why, hint } => ("denied", Some(why), Some(hint)),
        };
        SourceStatus { name, about, state, on_request, why, hint }
    }
}
