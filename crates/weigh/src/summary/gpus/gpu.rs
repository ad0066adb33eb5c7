//! One GPU, and the processes of the run on it, as the summary has them.

use serde::{Deserialize, Serialize};

use super::super::figure::whole_when_whole;
use crate::model;

/// One GPU during the run, by all processes. What is not known is null.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GpuSummary {
    /// What it is.
    #[serde(flatten)]
    pub is: model::Gpu,
    /// Peak memory in use.
    #[serde(serialize_with = "whole_when_whole")]
    pub memory_peak_bytes: Option<f64>,
    /// When that was, since the start of the run.
    pub memory_peak_at_seconds: Option<f64>,
    /// The least free memory. The driver reserves some, so free and used need not add up to all.
    pub memory_free_least_bytes: Option<u64>,
    /// Mean utilization.
    pub utilization_mean_ratio: Option<f64>,
    /// Peak utilization.
    pub utilization_peak_ratio: Option<f64>,
    /// Mean utilization of the memory bus.
    #[serde(default)]
    pub memory_utilization_mean_ratio: Option<f64>,
    /// Peak utilization of the memory bus.
    #[serde(default)]
    pub memory_utilization_peak_ratio: Option<f64>,
    /// Mean power.
    pub power_mean_watts: Option<f64>,
    /// Peak power.
    pub power_peak_watts: Option<f64>,
    /// Energy.
    pub energy_joules: Option<f64>,
    /// Peak temperature.
    pub temperature_peak_celsius: Option<f64>,
    /// Time it was thermally throttled, between the first poll and the last.
    pub throttled_by_heat_seconds: Option<f64>,
    /// Time it was throttled by its power limit.
    pub throttled_by_power_seconds: Option<f64>,
    /// Time between the first poll and the last.
    pub observed_seconds: Option<f64>,
    /// Uncorrected memory errors between those polls.
    #[serde(serialize_with = "whole_when_whole")]
    pub memory_errors_uncorrected: Option<f64>,
    /// The most processes on it at once, also of other users.
    pub processes_peak: Option<u64>,
    /// The same, of those that are not in `/proc`: a container hides them.
    pub processes_unknown_peak: Option<u64>,
    /// The processes of the run on it, those with most memory first.
    pub processes: Vec<GpuUser>,
}

impl GpuSummary {
    /// Whether it is in `gpus_busy_mean`: the run could use it, and its utilization is known.
    pub fn has_utilization(&self) -> bool {
        self.is.is_expected() && self.utilization_mean_ratio.is_some()
    }
}

/// A process of the run on one GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuUser {
    /// Its pid.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its peak GPU memory; null when the driver does not report it.
    pub memory_peak_bytes: Option<u64>,
    /// Mean utilization of the multiprocessors by it, while it was on the GPU.
    pub utilization_mean_ratio: Option<f64>,
}
