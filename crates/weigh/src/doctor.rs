//! What can be measured on a machine, what cannot, and what to type to change it.

use std::path::Path;

use serde::Serialize;

use crate::catalog::{SOURCES, Source, SourceId};
use crate::collect::{NOTIFIERS, Probe, examine, gpu, provider};
use crate::counters::tables::{self, Microarchitecture, MissingGroup};
use crate::counters::{EventGroup, GroupId};
use crate::host::Host;
use crate::host::hardware::Live;
use crate::host::hardware::surroundings::LimitsOf;
use crate::model::hardware::{Hardware, Surroundings};
use crate::model::{Facts, Gpu};

pub use crate::host::Error;

/// The files of the machine that this process runs on.
pub const HERE: &str = "/";

/// Probes every source of the machine whose files are below `root`: [`HERE`], or a captured one.
///
/// GPU drivers are called, which may take seconds.
pub fn examine_machine(root: &Path) -> Result<Examination, Error> {
    Ok(Examination::of(&Host::at(root)?))
}

/// The hardware of the machine whose files are below `root`, and, `with_limits`, the limits of a run
/// on it.
pub fn describe_machine(root: &Path, with_limits: bool) -> Result<Machine, Error> {
    let host = Host::at(root)?;
    let live = if root == Path::new(HERE) { Live::here() } else { Live::elsewhere() };
    Ok(Machine {
        host: Facts::of(&host),
        hardware: Hardware::of(&host.root, live),
        surroundings: with_limits
            .then(|| Surroundings::of(&host.root, LimitsOf::Own, live.variable)),
    })
}

/// Whether this machine has a GPU driver that weigh can query. The driver is not called.
pub fn has_gpu_driver() -> bool {
    let gpu = provider(SourceId::Gpu);
    let host = Host::at(Path::new(HERE)).ok();
    gpu.zip(host).is_some_and(|(gpu, host)| matches!((gpu.probe)(&host), Probe::Ready))
}

/// The GPUs of this machine, as far as their drivers answer: that may take seconds.
///
/// A driver's library stays in the process that has loaded it.
pub fn gpus() -> Vec<Gpu> {
    Host::at(Path::new(HERE)).map(|host| gpu::devices(&host)).unwrap_or_default()
}

/// The groups of hardware counters of the machine whose files are below `root`, with the events that
/// its processor and its drivers have for them.
pub fn counter_groups(root: &Path) -> Result<CounterGroups, Error> {
    let host = Host::at(root)?;
    let cpu = Hardware::of(&host.root, Live::elsewhere()).cpu;
    let table = cpu.microarchitecture.as_deref().and_then(tables::of);
    let all = GroupId::ALL.iter();
    let groups = all.flat_map(|id| tables::groups(*id, table.as_ref(), &host.sys)).collect();
    Ok(CounterGroups { table, groups })
}

/// What can be asked of the hardware counters of a machine.
#[derive(Debug)]
pub struct CounterGroups {
    /// What is known of its microarchitecture.
    pub table: Option<Microarchitecture>,
    /// Each group, or why there is none. Whether the kernel opens its events is not known here.
    pub groups: Vec<Result<EventGroup, MissingGroup>>,
}

/// The hardware of a machine, and the limits of a run on it.
#[derive(Debug, Serialize)]
pub struct Machine {
    /// The machine.
    pub host: Facts,
    /// Its parts.
    pub hardware: Hardware,
    /// The limits of this process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surroundings: Option<Surroundings>,
}

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
    fn of(host: &Host) -> Examination {
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
