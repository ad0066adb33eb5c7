//! Collectors: one file for each source, each owning its groups of metrics.
//!
//! A source is probed once ([`Probe`]) and its collector then called once a tick. When it fails it
//! loses the values of the tick ([`Fault::Skip`]) or is removed ([`Fault::Retire`]); the run goes
//! on.

pub mod budget;
pub mod cgroup;
mod collectors;
pub mod cpu;
pub mod disk;
pub mod energy;
mod existing_threads;
pub mod filesystem;
pub mod frequency;
#[cfg(test)]
pub(crate) mod golden;
pub mod gpu;
pub mod infiniband;
pub mod members;
pub mod memory;
mod min_interval;
mod missing;
pub mod network;
mod notifiers;
pub mod own;
pub mod packets;
pub mod paging;
pub mod perf;
pub mod power_meter;
pub mod pressure;
pub mod process;
pub mod processes;
mod program_filter;
pub mod pss_uss;
pub mod rule;
mod select;
pub mod sockets;
pub mod task_clock;
mod unwrap32;

pub use collectors::Collectors;
pub use missing::MissingParts;
pub use notifiers::NOTIFIERS;
pub use select::{Selection, select};

use crate::catalog::SourceId;
use crate::host::{self, Host};
use crate::model::Tick;
use crate::model::settings::Settings;
use processes::ProcessCollector;

/// A source of values that is sampled once a tick.
pub trait Collector {
    /// Puts its current values into the tick.
    fn sample(&mut self, context: &Context<'_>, tick: &mut Tick) -> Result<(), Fault>;

    /// The parts of its source that it cannot read, while it goes on with the others.
    fn missing(&mut self) -> Option<&mut MissingParts> {
        None
    }
}

/// What a collector may use to sample.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The machine.
    pub host: &'a Host,
    /// The processes of the run, once they were sampled in this tick; `None` when nothing samples
    /// them.
    pub processes: Option<&'a ProcessCollector>,
}

impl<'a> Context<'a> {
    /// A machine on which the processes of the run are not known.
    pub fn of(host: &'a Host) -> Context<'a> {
        Context { host, processes: None }
    }
}

/// An error of a collector.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// No values this time; try again at the next tick.
    #[error("{0}")]
    Skip(String),
    /// No more values.
    #[error("{0}")]
    Retire(String),
}

impl From<host::Error> for Fault {
    /// A missing file or denied permission is permanent; other errors may pass.
    fn from(error: host::Error) -> Fault {
        if error.is_gone() || error.is_denied() {
            Fault::Retire(error.to_string())
        } else {
            Fault::Skip(error.to_string())
        }
    }
}

/// Whether a source is available on this machine.
pub enum Probe {
    /// It is available.
    Ready,
    /// It does not exist on this machine.
    Absent {
        /// Why.
        why: String,
    },
    /// It exists, and this user may not read it.
    Denied {
        /// Why not.
        why: String,
        /// What to type to change it.
        hint: String,
    },
}

/// Makes a collector.
pub type Make = fn(&Settings) -> Box<dyn Collector>;

/// The implementation of a source.
pub struct Provider {
    /// The source.
    pub id: SourceId,
    /// Whether it is available here.
    pub probe: fn(&Host) -> Probe,
    /// The collector, for sources that need no information about the run.
    pub collector: Option<Make>,
    /// The most descriptors it keeps open. Those of processes are counted separately, because they
    /// use what is left.
    pub descriptors: usize,
}

/// The provider of every source, in the order of `catalog::SOURCES`.
pub const PROVIDERS: &[Provider] = &[
    processes::PROVIDER,
    task_clock::PROVIDER,
    perf::PROVIDER,
    cgroup::PROVIDER,
    cpu::PROVIDER,
    cpu::PER_CPU,
    memory::PROVIDER,
    network::PROVIDER,
    sockets::PROVIDER,
    packets::PROVIDER,
    infiniband::PROVIDER,
    disk::PROVIDER,
    filesystem::PROVIDER,
    energy::PROVIDER,
    power_meter::PROVIDER,
    gpu::PROVIDER,
    pressure::PROVIDER,
    paging::PROVIDER,
    frequency::PROVIDER,
    own::PROVIDER,
];

/// Sources with counters of the whole machine, which are also sampled before exec, so that they
/// include what the command does between exec and the first tick.
///
/// Gauges gain nothing by it. Sources that may be slow to read (power meters, throttle counts of
/// many cores) would delay the command.
pub const BEFORE_EXEC: [SourceId; 8] = [
    SourceId::Cpu,
    SourceId::PerCpu,
    SourceId::Network,
    SourceId::Infiniband,
    SourceId::Disk,
    SourceId::Energy,
    SourceId::Pressure,
    SourceId::Paging,
];

/// The most descriptors that all sources keep open, for any run.
pub const DESCRIPTORS: usize = {
    let (mut sum, mut place) = (notifiers::DESCRIPTORS, 0);
    while place < PROVIDERS.len() {
        sum += PROVIDERS[place].descriptors;
        place += 1;
    }
    sum
};

/// The provider of this source.
pub fn provider(id: SourceId) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|provider| provider.id == id)
}

/// A parse error with the path of its file.
fn malformed(
    dir: &host::Dir,
    file: &std::ffi::CStr,
) -> impl Fn(crate::parse::MalformedFile) -> Fault {
    let path = dir.path(file);
    move |source| Fault::from(host::Error::Parse { path: path.clone(), source })
}

/// A probe of a file of the machine that every user may read, as soon as it can be opened.
fn openable(dir: &host::Dir, file: &std::ffi::CStr) -> Probe {
    dir.check(file).map_or_else(|error| unreadable(&error), |()| Probe::Ready)
}

/// A probe that only has to read one file.
fn readable(dir: &host::Dir, file: &std::ffi::CStr) -> Probe {
    dir.read(file, &mut Vec::new()).map_or_else(|error| unreadable(&error), |_| Probe::Ready)
}

/// The probe of a file that could not be read.
fn unreadable(error: &host::Error) -> Probe {
    match error.is_denied() {
        true => Probe::Denied {
            why: error.to_string(),
            hint: "run weigh outside the container or sandbox that hides it".to_owned(),
        },
        false => Probe::Absent { why: error.to_string() },
    }
}

/// Probes a source thoroughly, which may take a while.
///
/// A run uses the probe alone, because the command waits for it.
pub fn examine(provider: &Provider, host: &Host) -> Probe {
    match provider.id {
        SourceId::Gpu => gpu::examine(host),
        SourceId::Energy => energy::examine(host),
        SourceId::Perf => perf::examine(host),
        _ => (provider.probe)(host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::SOURCES;

    #[test]
    fn every_source_has_its_provider_in_the_same_order() {
        let providers = PROVIDERS.iter().map(|provider| provider.id);
        assert!(providers.eq(SOURCES.iter().map(|source| source.id)));
    }
}
