//! Sources: where metrics come from, as `--collect`, `--skip` and `weigh doctor` name them.
//!
//! A source is declared beside its metrics (`catalog::metrics`); what reads it is a
//! `collect::Provider` of the same id.

use super::metrics::run_totals::DERIVED;
use super::{Metric, metrics};

/// Which source this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SourceId {
    /// Processes of the run.
    Process,
    /// The perf task clock of the run.
    TaskClock,
    /// Hardware counters of the run.
    Perf,
    /// A cgroup.
    Cgroup,
    /// All CPUs together.
    Cpu,
    /// Each CPU.
    PerCpu,
    /// Memory of the machine.
    Memory,
    /// Network devices.
    Network,
    /// TCP connections of the run.
    Sockets,
    /// Packets of the run's own cgroup.
    Packets,
    /// InfiniBand ports.
    Infiniband,
    /// Disks.
    Disk,
    /// The file system of the working directory.
    Filesystem,
    /// RAPL energy counters.
    Energy,
    /// Power meters.
    PowerMeter,
    /// GPUs.
    Gpu,
    /// Pressure stall information.
    Pressure,
    /// Swap traffic and OOM kills.
    Paging,
    /// CPU frequencies.
    Frequency,
    /// weigh itself.
    Own,
}

/// One source of metrics.
#[derive(Debug)]
pub struct Source {
    /// Its identity.
    pub id: SourceId,
    /// Its name on the command line and in `run.json`.
    pub name: &'static str,
    /// What it measures, in a few words.
    pub about: &'static str,
    /// The groups of metrics it owns.
    pub groups: &'static [&'static [Metric]],
    /// Whether it must be requested by name.
    pub on_request: bool,
    /// Whether every Linux has it: a read error is then a fault, not a property of the machine.
    pub everywhere: bool,
}

/// Every source. A new one is a line here, a file in `catalog::metrics` and one in `collect`.
pub const SOURCES: &[Source] = &[
    metrics::process::SOURCE,
    metrics::task_clock::SOURCE,
    metrics::perf::SOURCE,
    metrics::cgroup::SOURCE,
    metrics::cpu::SOURCE,
    metrics::cpu::PER_CPU,
    metrics::memory::SOURCE,
    metrics::network::SOURCE,
    metrics::sockets::SOURCE,
    metrics::packets::SOURCE,
    metrics::infiniband::SOURCE,
    metrics::disk::SOURCE,
    metrics::filesystem::SOURCE,
    metrics::energy::SOURCE,
    metrics::power_meter::SOURCE,
    metrics::gpu::SOURCE,
    metrics::pressure::SOURCE,
    metrics::paging::SOURCE,
    metrics::frequency::SOURCE,
    metrics::own::SOURCE,
];

impl SourceId {
    /// The source's name on the command line and in `run.json`.
    pub fn name(self) -> &'static str {
        SOURCES.iter().find(|source| source.id == self).map_or("", |source| source.name)
    }
}

/// Every metric, collected or derived, in the order of its tables.
pub fn catalogue() -> impl Iterator<Item = &'static Metric> {
    let collected = SOURCES.iter().flat_map(|source| source.groups);
    collected.chain(DERIVED).copied().flatten()
}

/// The groups of these sources.
pub fn groups<'s>(sources: impl IntoIterator<Item = &'s Source>) -> Vec<&'static [Metric]> {
    sources.into_iter().flat_map(|source| source.groups).copied().collect()
}

/// The groups of every source, for reading recordings.
pub fn all_groups() -> Vec<&'static [Metric]> {
    groups(SOURCES)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::catalog::Row;

    #[test]
    fn no_two_metrics_share_a_column_or_a_name() {
        let mut columns = HashSet::new();
        for metric in catalogue() {
            assert!(columns.insert((metric.scope, metric.column())), "{}", metric.name());
        }
    }

    #[test]
    fn metric_of_a_field_is_found_by_the_field() {
        let pss = metrics::ProcessMemory::metric(|row| &mut row.pss).unwrap();
        assert_eq!(pss.name(), "process.memory.pss");
        let doing = metrics::ProcessState::metric(|row| &mut row.doing).unwrap();
        assert_eq!(doing.name(), "process.state.doing");
    }

    #[test]
    fn every_metric_explains_itself() {
        for metric in catalogue() {
            assert!(metric.help.ends_with('.'), "{}: {}", metric.name(), metric.help);
            assert!(!metric.label.is_empty() && !metric.source.is_empty(), "{}", metric.name());
        }
    }

    #[test]
    fn no_two_sources_share_an_id_or_a_name() {
        let ids: HashSet<_> = SOURCES.iter().map(|source| source.id).collect();
        let names: HashSet<_> = SOURCES.iter().map(|source| source.name).collect();
        assert_eq!((ids.len(), names.len()), (SOURCES.len(), SOURCES.len()));
    }
}
