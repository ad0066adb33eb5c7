//! Collectors: one file for each source, each owning its groups of metrics.
//!
//! A collector is asked once what it can do here ([`Probe`]) and then once a
//! tick. When it fails it loses its values ([`Fault::Skip`]) or its place
//! ([`Fault::Retire`]); the run never notices.

pub mod budget;
pub mod cgroup;
mod chosen;
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
pub mod network;
pub mod own;
mod pace;
pub mod packets;
pub mod paging;
pub mod power_meter;
pub mod pressure;
pub mod process;
pub mod processes;
pub mod rule;
mod select;
pub mod sockets;
pub mod task_clock;
mod turns;
mod watching;

pub use select::{Absence, Selection, select};

use crate::catalog::{Metric, Row};
use crate::host::{self, Host};
use crate::sample::Tick;
use crate::settings::Settings;

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

/// One source of metrics, as `--collect`, `--skip` and `weigh doctor` know it.
pub struct Source {
    /// Its name.
    pub name: &'static str,
    /// What it measures, in a few words.
    pub about: &'static str,
    /// The groups of metrics it owns.
    pub groups: &'static [&'static [Metric]],
    /// What it can do here.
    pub probe: fn(&Host) -> Probe,
    /// The collector, for sources that need to know nothing of the run.
    pub collector: Option<Make>,
    /// Whether it must be asked for by name.
    pub on_request: bool,
    /// Whether every Linux has it: when it cannot be read, that is a fault and not a fact.
    pub everywhere: bool,
    /// Descriptors that it keeps open at most. Those of processes are counted apart, because they
    /// take what is left.
    pub descriptors: usize,
}

/// Every source there is. A new one is a line here and a file beside this one.
pub const SOURCES: &[Source] = &[
    processes::SOURCE,
    task_clock::SOURCE,
    cgroup::SOURCE,
    cpu::SOURCE,
    cpu::PER_CPU,
    memory::SOURCE,
    network::SOURCE,
    sockets::SOURCE,
    packets::SOURCE,
    infiniband::SOURCE,
    disk::SOURCE,
    filesystem::SOURCE,
    energy::SOURCE,
    power_meter::SOURCE,
    gpu::SOURCE,
    pressure::SOURCE,
    paging::SOURCE,
    frequency::SOURCE,
    own::SOURCE,
];

/// Sources of the whole machine's counters, which are also looked at before a command begins:
/// what it does between its exec and the first tick is theirs to tell.
///
/// Those that have only levels gain nothing by it. Those that may keep whoever asks waiting
/// (power meters, throttle counts of many cores) would delay the command.
pub const BEFORE_EXEC: &[Source] = &[
    cpu::SOURCE,
    cpu::PER_CPU,
    network::SOURCE,
    infiniband::SOURCE,
    disk::SOURCE,
    energy::SOURCE,
    pressure::SOURCE,
    paging::SOURCE,
];

/// How processes that weigh did not start are noticed. No metrics come from these, so they are
/// not in [`SOURCES`], and nobody collects or skips them.
pub const WATCHING: &[Source] = &[watching::CONNECTOR, watching::TASKSTATS];

/// Descriptors that all of these keep open at most, whatever the run is.
pub const DESCRIPTORS: usize = sum_of_descriptors(SOURCES) + sum_of_descriptors(WATCHING);

const fn sum_of_descriptors(sources: &[Source]) -> usize {
    let (mut sum, mut place) = (0, 0);
    while place < sources.len() {
        sum += sources[place].descriptors;
        place += 1;
    }
    sum
}

/// Every metric there is, in the order of its tables.
pub fn catalogue() -> impl Iterator<Item = &'static Metric> {
    SOURCES.iter().flat_map(|source| source.groups).copied().flatten()
}

/// Puts a failed parse beside its file's name.
fn malformed(dir: &host::Dir, file: &std::ffi::CStr) -> impl Fn(crate::parse::Malformed) -> Fault {
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
pub fn examine(source: &Source, host: &Host) -> Probe {
    match source.name {
        name if name == gpu::SOURCE.name => gpu::examine(host),
        name if name == energy::SOURCE.name => energy::examine(host),
        _ => (source.probe)(host),
    }
}

/// The groups that a set of sources fills.
pub fn groups(sources: &[&'static Source]) -> Vec<&'static [Metric]> {
    sources.iter().flat_map(|source| source.groups).copied().collect()
}

/// The metrics of every collector there is, for reading recordings.
pub fn all_groups() -> Vec<&'static [Metric]> {
    groups(&SOURCES.iter().collect::<Vec<_>>())
}

/// A group's metrics, for a source's list.
const fn group<R: Row>() -> &'static [Metric] {
    R::METRICS
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_metrics_share_a_column_or_a_name() {
        let mut columns = HashSet::new();
        for metric in catalogue() {
            assert!(columns.insert((metric.scope, metric.column())), "{}", metric.name());
        }
    }

    #[test]
    fn every_metric_explains_itself() {
        for metric in catalogue() {
            assert!(metric.help.ends_with('.'), "{}: {}", metric.name(), metric.help);
            assert!(!metric.label.is_empty() && !metric.source.is_empty(), "{}", metric.name());
        }
    }
}
