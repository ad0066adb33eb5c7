//! What a run used, as pytyche's `ResourceSummary.to_dict()` reports it.
//!
//! Keys, their order and one decimal are pytyche's; the numbers are weigh's. What is not known is
//! null, where pytyche has 0.0: a GPU without a power sensor did not use zero watts.
//!
//! With several GPUs, peaks are those of one GPU, and means are over all GPUs, as in pytyche, whose
//! rows are of all GPUs. GPUs that the run could not use are left out here.

use super::cpu;
use crate::catalog::metrics::NodeCpu;
use crate::catalog::{Scope, all_groups};
use crate::compat::python::{PythonValue, rounded};
use crate::record::{self, Moment, Recording};
use crate::summary::{Accumulator, GpuSummary};

/// What a run used. What is not known is missing.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ResourceSummary {
    /// The most memory of one GPU that was in use, in MiB.
    pub peak_vram_mb: Option<f64>,
    /// How busy GPUs were on average, in percent.
    pub gpu_util_mean_pct: Option<f64>,
    /// How busy a GPU was at most.
    pub gpu_util_max_pct: Option<f64>,
    /// How busy the memory of GPUs was on average, in percent.
    pub mem_util_mean_pct: Option<f64>,
    /// How busy the memory of a GPU was at most.
    pub mem_util_max_pct: Option<f64>,
    /// The power of a GPU on average.
    pub power_watts_mean: Option<f64>,
    /// The most power of a GPU.
    pub power_watts_max: Option<f64>,
    /// CPU time of the machine in user mode, in percent of all there was.
    pub cpu_usr_mean_pct: Option<f64>,
    /// CPU time of the machine with nothing to do, in percent of all there was.
    pub cpu_idle_mean_pct: Option<f64>,
}

impl ResourceSummary {
    /// The summary as pytyche's `to_dict()` gives it: unknown values are null, and memory utilization
    /// is left out when it is zero or unknown.
    pub fn to_dict(&self) -> PythonValue {
        let entry = |name: &str, number: Option<f64>| {
            (name.to_owned(), PythonValue::real(number.map(|number| rounded(number, 1))))
        };
        let mut entries = vec![
            entry("peak_vram_mb", self.peak_vram_mb),
            entry("gpu_util_mean_pct", self.gpu_util_mean_pct),
            entry("gpu_util_max_pct", self.gpu_util_max_pct),
            entry("power_watts_mean", self.power_watts_mean),
            entry("power_watts_max", self.power_watts_max),
            entry("cpu_usr_mean_pct", self.cpu_usr_mean_pct),
            entry("cpu_idle_mean_pct", self.cpu_idle_mean_pct),
        ];
        if self.mem_util_mean_pct.is_some_and(|mean| mean > 0.0) {
            entries.push(entry("mem_util_mean_pct", self.mem_util_mean_pct));
            entries.push(entry("mem_util_max_pct", self.mem_util_max_pct));
        }
        PythonValue::Map(entries)
    }

    /// The summary of GPUs, without CPUs.
    pub fn of_gpus<'a>(gpus: impl Iterator<Item = &'a GpuSummary> + Clone) -> ResourceSummary {
        let most =
            |of: fn(&GpuSummary) -> Option<f64>| gpus.clone().filter_map(of).reduce(f64::max);
        let mean = |of: fn(&GpuSummary) -> Option<f64>| {
            let known: Vec<f64> = gpus.clone().filter_map(of).collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
        };
        let percent = |ratio: Option<f64>| ratio.map(|ratio| 100.0 * ratio);
        const MIB: f64 = 1_048_576.0;
        ResourceSummary {
            peak_vram_mb: most(|gpu| gpu.memory_peak_bytes).map(|bytes| bytes / MIB),
            gpu_util_mean_pct: percent(mean(|gpu| gpu.utilization_mean_ratio)),
            gpu_util_max_pct: percent(most(|gpu| gpu.utilization_peak_ratio)),
            mem_util_mean_pct: percent(mean(|gpu| gpu.memory_utilization_mean_ratio)),
            mem_util_max_pct: percent(most(|gpu| gpu.memory_utilization_peak_ratio)),
            power_watts_mean: mean(|gpu| gpu.power_mean_watts),
            power_watts_max: most(|gpu| gpu.power_peak_watts),
            cpu_usr_mean_pct: None,
            cpu_idle_mean_pct: None,
        }
    }
}

/// What a recorded run used.
pub fn resources(recording: &Recording) -> Result<ResourceSummary, record::Error> {
    let mut accumulator = Accumulator::for_recording(recording);
    let mut first_and_last: Option<[NodeCpu; 2]> = None;
    let frames = recording.replay(&all_groups(), |frame| {
        accumulator.frame(frame);
        if let Moment::Tick(tick) = frame.moment {
            let node = tick.table(Scope::Node).filter(|table| !table.is_empty());
            let now: Option<NodeCpu> = node.map(|table| table.get(0));
            if let Some(now) = now.filter(|now| now.busy_and_all().is_some()) {
                first_and_last = Some([first_and_last.map_or(now, |[first, _]| first), now]);
            }
        }
    })?;
    let summary = accumulator.finish(frames.live());
    let shares = first_and_last.and_then(|[first, last]| cpu::shares(&first, &last));
    Ok(ResourceSummary {
        cpu_usr_mean_pct: shares.map(|shares| 100.0 * shares.user),
        cpu_idle_mean_pct: shares.map(|shares| 100.0 * shares.idle),
        ..ResourceSummary::of_gpus(summary.gpus.iter().filter(|gpu| gpu.is.is_expected()))
    })
}
