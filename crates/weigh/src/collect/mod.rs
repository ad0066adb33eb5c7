//! Collectors: one file for each source, each owning its groups of metrics.
//!
//! A collector is asked once what it can do here ([`Probe`]) and then once a
//! tick. When it fails it loses its values ([`Fault::Skip`]) or its place
//! ([`Fault::Retire`]); the run never notices.

pub mod budget;
pub mod cgroup;
pub mod cpu;
pub mod disk;
pub mod energy;
pub mod filesystem;
pub mod footprint;
pub mod frequency;
#[cfg(test)]
pub(crate) mod golden;
pub mod gpu;
pub mod infiniband;
pub mod members;
pub mod memory;
mod min_interval;
pub mod network;
mod notifiers;
pub mod own;
pub mod packets;
pub mod paging;
pub mod power_meter;
pub mod pressure;
pub mod process;
pub mod processes;
mod program_filter;
pub mod rule;
mod select;
pub mod sockets;
pub mod task_clock;
mod unwrap32;

pub use notifiers::{NOTIFIERS, Notifier};
pub use select::{Absence, Selection, select};

use crate::catalog::SourceId;
use crate::host::{self, Host};
use crate::model::Tick;
use crate::model::settings::Settings;

/// Something that is asked for values once a tick.
pub trait Collector {
    /// Puts what it knows now into the tick.
    fn sample(&mut self, host: &Host, tick: &mut Tick) -> Result<(), Fault>;
}

/// What went wrong in a collector.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// Nothing this time; ask again at the next tick.
    #[error("{0}")]
    Skip(String),
    /// Nothing any more.
    #[error("{0}")]
    Retire(String),
}

impl From<host::Error> for Fault {
    /// What is gone or refused stays so; anything else may pass.
    fn from(error: host::Error) -> Fault {
        if error.is_gone() || error.is_denied() {
            Fault::Retire(error.to_string())
        } else {
            Fault::Skip(error.to_string())
        }
    }
}

/// What a source can do on this machine.
pub enum Probe {
    /// It works.
    Ready,
    /// This machine has no such thing.
    Absent {
        /// Why.
        why: String,
    },
    /// It is there, and this user may not.
    Denied {
        /// Why not.
        why: String,
        /// What to type to change it.
        hint: String,
    },
}

/// Makes a collector.
pub type Make = fn(&Settings) -> Box<dyn Collector>;

/// What reads a source.
pub struct Provider {
    /// The source.
    pub id: SourceId,
    /// What it can do here.
    pub probe: fn(&Host) -> Probe,
    /// The collector, for sources that need to know nothing of the run.
    pub collector: Option<Make>,
    /// Descriptors that it keeps open at most. Those of processes are counted apart, because they
    /// take what is left.
    pub descriptors: usize,
}

/// The provider of every source, in the order of `catalog::SOURCES`.
pub const PROVIDERS: &[Provider] = &[
    processes::PROVIDER,
    task_clock::PROVIDER,
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

/// Sources of the whole machine's counters, which are also looked at before a command begins:
/// what it does between its exec and the first tick is theirs to tell.
///
/// Those that have only levels gain nothing by it. Those that may keep whoever asks waiting
/// (power meters, throttle counts of many cores) would delay the command.
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

/// Descriptors that all sources keep open at most, whatever the run is.
pub const DESCRIPTORS: usize = {
    let (mut sum, mut place) = (notifiers::DESCRIPTORS, 0);
    while place < PROVIDERS.len() {
        sum += PROVIDERS[place].descriptors;
        place += 1;
    }
    sum
};

/// What reads this source.
pub fn provider(id: SourceId) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|provider| provider.id == id)
}

/// Puts a failed parse beside its file's name.
fn malformed(
    dir: &host::Dir,
    file: &std::ffi::CStr,
) -> impl Fn(crate::parse::MalformedFile) -> Fault {
    let path = dir.path(file);
    move |source| Fault::from(host::Error::Parse { path: path.clone(), source })
}

/// The answer of a probe that only has to read one file.
fn readable(dir: &host::Dir, file: &std::ffi::CStr) -> Probe {
    match dir.read(file, &mut Vec::new()) {
        Ok(_) => Probe::Ready,
        Err(error) if error.is_denied() => Probe::Denied {
            why: error.to_string(),
            hint: "run weigh outside the container or sandbox that hides it".to_owned(),
        },
        Err(error) => Probe::Absent { why: error.to_string() },
    }
}

/// What a source can do here, asked as thoroughly as takes a while.
///
/// Its probe alone is what a run asks, and the command waits for that.
pub fn examine(provider: &Provider, host: &Host) -> Probe {
    match provider.id {
        SourceId::Gpu => gpu::examine(host),
        SourceId::Energy => energy::examine(host),
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
