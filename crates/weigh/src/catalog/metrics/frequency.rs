//! Frequencies of the CPUs and thermal throttling.

use crate::catalog::{Row, Source, SourceId, metrics};

metrics! {
    /// Frequency of the CPUs of the machine.
    pub struct NodeFrequency in Node / "frequency", "Frequency of the CPUs" {
        /// Mean over all CPUs.
        mean: Gauge f64 Hertz, "Mean", from "cpuN/cpufreq/scaling_cur_freq × 1000";
        /// The slowest CPU.
        lowest: Gauge f64 Hertz, "Lowest", from "cpuN/cpufreq/scaling_cur_freq × 1000";
        /// The fastest CPU.
        highest: Gauge f64 Hertz, "Highest", from "cpuN/cpufreq/scaling_cur_freq × 1000";
    }
}

metrics! {
    /// How often CPUs were throttled by temperature since boot.
    pub struct NodeThrottle in Node / "throttle", "Thermal throttling" {
        /// Thermal throttling events of cores, all cores together.
        cores: Counter u64 One, "Cores", from "cpuN/thermal_throttle/core_throttle_count";
        /// Thermal throttling events of packages, all packages together.
        packages: Counter u64 One, "Packages", from "cpuN/thermal_throttle/package_throttle_count";
    }
}

/// What `--collect` and `--skip` call this source.
pub const SOURCE: Source = Source {
    id: SourceId::Frequency,
    name: "frequency",
    about: "frequency of the CPUs, thermal throttling",
    groups: &[NodeFrequency::METRICS, NodeThrottle::METRICS],
    on_request: false,
    everywhere: false,
};
