//! One GPU, and the processes of the run on it, as the summary has them.

use serde::{Deserialize, Serialize};

use super::super::figure::whole_when_whole;
use crate::model;

/// What one GPU did during the run, whoever used it. What is not known is null.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Gpu {
    /// What it is.
    #[serde(flatten)]
    pub is: model::Gpu,
    /// The most memory that was in use at once.
    #[serde(serialize_with = "whole_when_whole")]
    pub memory_peak_bytes: Option<f64>,
    /// When that was, since the run began.
    pub memory_peak_at_seconds: Option<f64>,
    /// The least memory that was free. The driver keeps some for itself, so this and what is in
    /// use need not be all there is.
    pub memory_free_least_bytes: Option<u64>,
    /// Share of the time in which something was computed.
    pub utilization_mean_ratio: Option<f64>,
    /// The highest share that was seen.
    pub utilization_peak_ratio: Option<f64>,
    /// Share of the time in which memory was read or written.
    #[serde(default)]
    pub memory_utilization_mean_ratio: Option<f64>,
    /// The highest share that was seen.
    #[serde(default)]
    pub memory_utilization_peak_ratio: Option<f64>,
    /// Power on average.
    pub power_mean_watts: Option<f64>,
    /// The most power that was seen.
    pub power_peak_watts: Option<f64>,
    /// Energy.
    pub energy_joules: Option<f64>,
    /// The highest temperature that was seen.
    pub temperature_peak_celsius: Option<f64>,
    /// Time it was held back by its heat, between the first look and the last.
    pub throttled_by_heat_seconds: Option<f64>,
    /// Time it was held back by the power it may take.
    pub throttled_by_power_seconds: Option<f64>,
    /// Time between the first look and the last.
    pub observed_seconds: Option<f64>,
    /// Errors of its memory that could not be corrected, between those looks.
    #[serde(serialize_with = "whole_when_whole")]
    pub memory_errors_uncorrected: Option<f64>,
    /// The most processes that were on it at once, of whomever.
    pub processes_peak: Option<u64>,
    /// The same, of those who are not to be found in `/proc`: a container hides them.
    pub processes_unknown_peak: Option<u64>,
    /// The processes of the run on it, those with most memory first.
    pub processes: Vec<GpuUser>,
}

impl Gpu {
    /// Whether it is one of those that `gpus_busy_mean` is of: the run could use it, and it said
    /// how busy it was.
    pub fn says_how_busy(&self) -> bool {
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
    /// The most memory of the GPU it had; null when the driver does not tell.
    pub memory_peak_bytes: Option<u64>,
    /// Share of the multiprocessors' time that was its own, on average while it was on it.
    pub utilization_mean_ratio: Option<f64>,
}
