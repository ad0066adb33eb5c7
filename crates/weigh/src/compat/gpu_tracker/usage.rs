//! What a run used, in the shape of gpu-tracker's `ResourceUsage`.
//!
//! Where gpu-tracker is wrong the numbers differ: memory that processes share counts once, the
//! time is the run's and not that of the last sample, and a mean is CPU time by duration. What
//! was not measured is missing (`null`), never zero.

use super::timepoints::Peaks;
use super::{GpuTrackerOptions, gpu};
use crate::catalog::FigureId;
use crate::summary::{Part, Summary};

/// What a run used.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceUsage {
    /// The most memory.
    pub max_ram: MaxRam,
    /// The most memory of GPUs.
    pub max_gpu_ram: MaxGpuRam,
    /// Cores.
    pub cpu_utilization: CpuUtilization,
    /// GPUs.
    pub gpu_utilization: GpuUtilization,
    /// Time.
    pub compute_time: ComputeTime,
}

/// The most memory.
#[derive(Debug, Clone, PartialEq)]
pub struct MaxRam {
    /// Its unit.
    pub unit: &'static str,
    /// The memory of the machine.
    pub system_capacity: Option<f64>,
    /// In use on the machine, by all processes.
    pub system: Option<f64>,
    /// The main process, all others, and all together.
    pub parts: [RssValues; 3],
}

/// Memory of one or more processes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RssValues {
    /// All of it.
    pub total_rss: Option<f64>,
    /// Private memory.
    pub private_rss: Option<f64>,
    /// Shared memory.
    pub shared_rss: Option<f64>,
}

/// The most memory of GPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct MaxGpuRam {
    /// Its unit.
    pub unit: &'static str,
    /// The memory of all GPUs.
    pub system_capacity: Option<f64>,
    /// In use, by all processes.
    pub system: Option<f64>,
    /// The main process, all others, and all together.
    pub parts: [Option<f64>; 3],
}

/// Percent of cores or GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Percentages {
    /// The most, 100 for each unit.
    pub max_sum_percent: Option<f64>,
    /// The most, 100 for all units.
    pub max_hardware_percent: Option<f64>,
    /// On average, 100 for each unit.
    pub mean_sum_percent: Option<f64>,
    /// On average, 100 for all units.
    pub mean_hardware_percent: Option<f64>,
}

/// Cores.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuUtilization {
    /// Cores of the machine.
    pub system_core_count: u32,
    /// Cores that were expected to be busy.
    pub n_expected_cores: f64,
    /// The machine, the main process, all others, and all together.
    pub parts: [Percentages; 4],
    /// Threads of the main process, all others, and all together.
    pub threads: [Option<u64>; 3],
}

/// GPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuUtilization {
    /// GPUs of the machine.
    pub system_gpu_count: Option<u64>,
    /// GPUs that were expected to be busy.
    pub n_expected_gpus: Option<u64>,
    /// How busy they were.
    pub gpu_percentages: Percentages,
}

/// Time.
#[derive(Debug, Clone, PartialEq)]
pub struct ComputeTime {
    /// Its unit.
    pub unit: &'static str,
    /// From exec to exit.
    pub time: f64,
}

fn figure(part: &Part, id: FigureId) -> Option<f64> {
    part.figures.value(id)
}

/// Cores that the machine, the main process, the others, and all together kept busy on average.
pub fn mean_cores(summary: &Summary) -> [Option<f64>; 4] {
    let parts = &summary.parts;
    let duration = Some(summary.run.measured()).filter(|seconds| *seconds > 0.0);
    let mean = |part: &Part| Some(figure(part, FigureId::CpuTime)? / duration?);
    let system = figure(&parts.system, FigureId::CpuUtilizationMean);
    let system = system.map(|ratio| ratio * f64::from(summary.host.cores));
    let all = mean(&parts.combined);
    if is_alone(summary) {
        // What is left beyond the main process is rounding of the kernel's clock ticks.
        return [system, all, all.map(|_| 0.0), all];
    }
    [system, mean(&parts.main), mean(&parts.descendants), all]
}

/// Whether the main process certainly had no others.
fn is_alone(summary: &Summary) -> bool {
    summary.processes.total <= 1 && !summary.processes.may_miss_processes
}

impl ResourceUsage {
    /// What a run used, from its summary and the peaks over its ticks.
    pub fn of(summary: &Summary, peaks: &Peaks, options: &GpuTrackerOptions) -> ResourceUsage {
        let gpu = gpu::of_run(summary, peaks, options.gpu_uuids.as_deref());
        let gpu_ram = |bytes: Option<f64>| bytes.map(|bytes| options.gpu_ram_unit.of_bytes(bytes));
        let percent = |gpus: Option<f64>| gpus.map(|gpus| 100.0 * gpus);
        // The number of GPUs is known wherever anything about them is known.
        let expected = gpu.counted.expected.map_or(0.0, |gpus| gpus as f64);
        ResourceUsage {
            max_ram: max_ram(summary, peaks, options),
            max_gpu_ram: MaxGpuRam {
                unit: options.gpu_ram_unit.name(),
                system_capacity: gpu_ram(gpu.counted.capacity),
                system: gpu_ram(gpu.system),
                parts: gpu.processes.map(gpu_ram),
            },
            cpu_utilization: cpu(summary, peaks, options),
            gpu_utilization: GpuUtilization {
                system_gpu_count: gpu.counted.count,
                n_expected_gpus: gpu.counted.expected,
                gpu_percentages: percentages(
                    percent(gpu.busy_peak),
                    percent(gpu.busy_mean),
                    expected,
                ),
            },
            compute_time: ComputeTime {
                unit: options.time_unit.name(),
                time: options.time_unit.of_seconds(summary.run.duration_seconds),
            },
        }
    }
}

fn max_ram(summary: &Summary, peaks: &Peaks, options: &GpuTrackerOptions) -> MaxRam {
    let parts = &summary.parts;
    let unit = |bytes: Option<f64>| bytes.map(|bytes| options.ram_unit.of_bytes(bytes));
    let private = |part: &Part| figure(part, FigureId::MemoryUssPeak);
    let all = figure(&parts.combined, FigureId::MemoryPeak);
    // The summary also has the size at which the process was reaped.
    let main = if is_alone(summary) { all } else { peaks.main_total };
    // There were no descendants: that is a known zero, unlike what was not read.
    let none = (peaks.main_total.is_some() && !peaks.any_descendants).then_some(0.0);
    let rss = |total, private, shared| RssValues {
        total_rss: unit(total),
        private_rss: unit(private),
        shared_rss: unit(shared),
    };
    MaxRam {
        unit: options.ram_unit.name(),
        system_capacity: unit(summary.host.memory_bytes.map(|bytes| bytes as f64)),
        system: unit(figure(&parts.system, FigureId::MemoryUsedPeak)),
        parts: [
            rss(main, private(&parts.main), peaks.main_shared),
            rss(
                peaks.descendants_total.or(none),
                private(&parts.descendants).or(none),
                peaks.descendants_shared.or(none),
            ),
            rss(all, private(&parts.combined), peaks.combined_shared),
        ],
    }
}

fn cpu(summary: &Summary, peaks: &Peaks, options: &GpuTrackerOptions) -> CpuUtilization {
    let parts = &summary.parts;
    let cores = f64::from(summary.host.cores);
    let expected = options.cores(summary.host.cores);
    let mean = mean_cores(summary);
    let of = |part: usize, units: f64| {
        // A peak below the mean only means that no tick fell into the busy part.
        let peak = match (peaks.cores[part], mean[part]) {
            (Some(peak), Some(mean)) => Some(peak.max(mean)),
            (peak, mean) => peak.or(mean),
        };
        percentages(peak.map(|cores| 100.0 * cores), mean[part].map(|cores| 100.0 * cores), units)
    };
    let threads =
        |part: &Part| figure(part, FigureId::ThreadsPeak).map(|threads| threads.round() as u64);
    let none = (peaks.main_total.is_some() && !peaks.any_descendants).then_some(0);
    CpuUtilization {
        system_core_count: summary.host.cores,
        n_expected_cores: expected,
        parts: [of(0, cores), of(1, expected), of(2, expected), of(3, expected)],
        threads: [
            threads(&parts.main),
            threads(&parts.descendants).or(none),
            threads(&parts.combined),
        ],
    }
}

fn percentages(max: Option<f64>, mean: Option<f64>, units: f64) -> Percentages {
    // Without a GPU the share is zero, not a division by zero.
    let share = |sum: Option<f64>| sum.map(|sum| if units > 0.0 { sum / units } else { 0.0 });
    Percentages {
        max_sum_percent: max,
        max_hardware_percent: share(max),
        mean_sum_percent: mean,
        mean_hardware_percent: share(mean),
    }
}
