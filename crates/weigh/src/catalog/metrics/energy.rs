//! Energy of processors and memory (RAPL).

use crate::catalog::{Row, Source, SourceId, metrics};

metrics! {
    /// Energy of one part of the machine.
    pub struct DomainEnergy in Energy / "domain", "Energy" {
        /// Energy used since some moment before the run.
        used: Counter f64 Joules, "Power", from "/sys/class/powercap/*/energy_uj, or perf power/energy-*";
    }
}

/// What `--collect` and `--skip` call this source.
pub const SOURCE: Source = Source {
    id: SourceId::Energy,
    name: "energy",
    about: "energy of processors and memory (RAPL)",
    groups: &[DomainEnergy::METRICS],
    on_request: false,
    everywhere: false,
};

/// Whether this domain is part of the sum over the machine: it is contained in no other domain.
pub fn is_summed(domain: &str) -> bool {
    match domain.split_once('/') {
        None => domain.starts_with("package-"),
        Some((_, part)) => part == "dram",
    }
}

/// Why energy is unknown where the counters never change.
pub const STAND_STILL: &str = "the energy counters of this machine do not move: a hypervisor \
     shows a power unit that does not count";
