//! GPUs that were unused, waited for work, were full, throttled or broken.
//!
//! Only of GPUs that the run could use, and mostly of those that it did use: the others are those
//! of other users. Utilization is by all processes, so a GPU that was idle was idle for the run,
//! too. A GPU that is lost during the run is a fault, and reported as one.
//!
//! What surprised us: MIG instances have no utilization, and memory of their own; temperature,
//! power and errors are the whole GPU's. So memory is reported of instances, the rest of whole
//! GPUs, and nothing of both.

#[cfg(test)]
mod tests;
mod work;

use serde_json::json;

use super::super::cgroup::CgroupUsage;
use super::super::gpus::GpuSummary;
use super::super::node::Node;
use super::super::{Finding, Severity, Summary};
use super::{LONG_ENOUGH, finding};
use crate::catalog::metrics::gpu::{is_whole, name_there, whole_of};
use crate::quantity::{self, Units};
use crate::record::Target;

/// Above this utilization a GPU was busy.
const AT_WORK: f64 = 0.2;

/// Memory that is nearly full. The memory that is reserved for a GPU in the processor is small,
/// always full, and not all it has.
const FULL: f64 = 0.95;
const SMALL_BYTES: f64 = 2.0 * (1u64 << 30) as f64;

/// A GPU should not be thermally throttled at all; by its power limit it often is under load.
const THERMAL_SHARE: f64 = 0.1;
const POWER_SHARE: f64 = 0.5;

/// GPUs that are named one by one.
const MAX_NAMED: usize = 5;

/// All findings on GPUs.
pub(super) fn of(summary: &Summary, node: &Node, cgroup: &CgroupUsage) -> Vec<Finding> {
    // Programs that are monitored by name were given no GPUs.
    if matches!(summary.run.target, Some(Target::Programs { .. })) {
        return Vec::new();
    }
    let gpus = RunGpus { all: &summary.gpus };
    let long = |least: f64| summary.run.measured() >= least;
    [
        gpus.idle(summary).filter(|_| long(LONG_ENOUGH)),
        gpus.waited(summary, node, cgroup),
        gpus.nearly_full(),
        gpus.thermally_throttled().filter(|_| long(LONG_ENOUGH)),
        gpus.power_throttled().filter(|_| long(LONG_ENOUGH)),
        gpus.memory_errors(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The GPUs that a run used.
#[derive(Debug, Clone)]
pub(super) struct UsedGpus {
    /// Their utilization on average.
    pub(super) busy: f64,
    pub(super) count: usize,
    /// Their names, in a few words.
    pub(super) named: String,
}

/// Those that the run used and whose utilization is known.
pub(super) fn used_gpus(summary: &Summary) -> Option<UsedGpus> {
    let used = RunGpus { all: &summary.gpus }.used().into_iter();
    let (gpus, means): (Vec<&GpuSummary>, Vec<f64>) =
        used.filter_map(|gpu| Some((gpu, gpu.utilization_mean_ratio?))).unzip();
    let busy = means.iter().sum::<f64>() / means.len() as f64;
    (!gpus.is_empty()).then(|| UsedGpus { busy, count: gpus.len(), named: named(&gpus) })
}

/// The command for a GPU, by vendor: Intel's have none of these values.
fn by_vendor(gpu: &GpuSummary, nvidia: &'static str, amd: &'static str) -> &'static str {
    if name_there(&gpu.is.name).starts_with("amd") { amd } else { nvidia }
}

/// The GPUs of the run.
struct RunGpus<'a> {
    all: &'a [GpuSummary],
}

impl<'a> RunGpus<'a> {
    /// Whole ones that the run could use.
    fn expected(&self) -> impl Iterator<Item = &'a GpuSummary> {
        self.all.iter().filter(|gpu| gpu.is.is_expected())
    }

    fn instances(&self, whole: &GpuSummary) -> impl Iterator<Item = &'a GpuSummary> {
        let is_of_it = |instance: &&GpuSummary| whole_of(&instance.is.name) == whole.is.name;
        self.all.iter().filter(|gpu| !is_whole(&gpu.is.name)).filter(is_of_it)
    }

    /// Whether a process of the run was on it, or on an instance of it.
    fn is_used(&self, whole: &GpuSummary) -> bool {
        let mut both = std::iter::once(whole).chain(self.instances(whole));
        both.any(|gpu| !gpu.processes.is_empty())
    }

    /// Those that the run used. In a container the processes on a GPU are not known, and only its
    /// own GPUs are visible: then those that were busy.
    fn used(&self) -> Vec<&'a GpuSummary> {
        let used: Vec<&GpuSummary> = self.expected().filter(|gpu| self.is_used(gpu)).collect();
        let was_busy = |gpu: &&GpuSummary| {
            gpu.processes_unknown_peak > Some(0) && gpu.utilization_mean_ratio >= Some(AT_WORK)
        };
        if used.is_empty() { self.expected().filter(was_busy).collect() } else { used }
    }

    fn nearly_full(&self) -> Option<Finding> {
        // With MIG each instance has its own.
        let without_mig =
            self.used().into_iter().filter(|gpu| self.instances(gpu).next().is_none());
        let instances = self.expected().flat_map(|whole| self.instances(whole));
        let instances = instances.filter(|instance| !instance.processes.is_empty());
        let fill = |gpu: &&GpuSummary| {
            let total = gpu.is.memory_bytes? as f64;
            let left = gpu.memory_free_least_bytes? as f64 / total;
            Some(1.0 - left).filter(|_| total >= SMALL_BYTES)
        };
        let full: Vec<&GpuSummary> =
            without_mig.chain(instances).filter(|gpu| fill(gpu) >= Some(FULL)).collect();
        let worst = most(&full, |gpu| fill(&gpu))?;
        let bytes = |value: f64| quantity::bytes(value, Units::Binary);
        let (used, total) = (worst.memory_peak_bytes?, worst.is.memory_bytes? as f64);
        finding(
            "gpu.memory_nearly_full",
            // Some frameworks allocate nearly all of it before they need it.
            Severity::Note,
            format!(
                "The memory of {} was nearly full: {} of {} in use at {}.{}",
                worst.is.name,
                bytes(used),
                bytes(total),
                quantity::seconds(worst.memory_peak_at_seconds.unwrap_or(0.0)),
                others(&full, worst, "So was that of")
            ),
            json!({
                "gpus": names(&full),
                "used_bytes": used,
                "total_bytes": total,
                "at_seconds": worst.memory_peak_at_seconds,
            }),
            "With a little more it fails: use smaller batches, or a larger GPU. If the framework \
             allocates memory ahead of need, find out what it needs: TF_FORCE_GPU_ALLOW_GROWTH=true, \
             XLA_PYTHON_CLIENT_PREALLOCATE=false",
        )
    }

    fn thermally_throttled(&self) -> Option<Finding> {
        let (throttled, worst) =
            self.throttled(|gpu| gpu.throttled_by_heat_seconds, THERMAL_SHARE)?;
        let warmest = worst.temperature_peak_celsius;
        let reached =
            warmest.map_or_else(String::new, |degrees| format!(", at up to {degrees:.0} °C"));
        finding(
            "gpu.throttled",
            Severity::Warning,
            format!(
                "{} was thermally throttled {}{reached}.{}",
                worst.is.name,
                time(worst.throttled_by_heat_seconds?, worst.observed_seconds?),
                others(&throttled, worst, "So was")
            ),
            json!({
                "by": "heat",
                "gpus": names(&throttled),
                "seconds": worst.throttled_by_heat_seconds,
                "observed_seconds": worst.observed_seconds,
                "temperature_celsius": warmest,
            }),
            &format!(
                "Times of this run are not comparable with others; check the cooling: {}",
                by_vendor(worst, "nvidia-smi -q -d TEMPERATURE,PERFORMANCE", "rocm-smi --showtemp")
            ),
        )
    }

    fn power_throttled(&self) -> Option<Finding> {
        let (throttled, worst) =
            self.throttled(|gpu| gpu.throttled_by_power_seconds, POWER_SHARE)?;
        let limit = worst.is.power_limit_watts;
        let limited =
            limit.map_or_else(String::new, |watts| format!(" ({})", quantity::scaled(watts, "W")));
        finding(
            "gpu.throttled",
            Severity::Note,
            format!(
                "{} was throttled by its power limit{limited} {}.{}",
                worst.is.name,
                time(worst.throttled_by_power_seconds?, worst.observed_seconds?),
                others(&throttled, worst, "So was")
            ),
            json!({
                "by": "power",
                "gpus": names(&throttled),
                "seconds": worst.throttled_by_power_seconds,
                "observed_seconds": worst.observed_seconds,
                "limit_watts": limit,
            }),
            &format!(
                "Normal for a GPU under full load; check whether its limit was lowered: {}",
                by_vendor(worst, "nvidia-smi -q -d POWER", "rocm-smi --showmaxpower")
            ),
        )
    }

    /// Those that were throttled for so much of the time, and the one that was most.
    fn throttled(
        &self,
        seconds: fn(&GpuSummary) -> Option<f64>,
        min: f64,
    ) -> Option<(Vec<&'a GpuSummary>, &'a GpuSummary)> {
        let share = |gpu: &GpuSummary| {
            let observed = gpu.observed_seconds.filter(|time| *time >= LONG_ENOUGH)?;
            Some(seconds(gpu)? / observed)
        };
        let used = self.used().into_iter();
        let throttled: Vec<&GpuSummary> = used.filter(|gpu| share(gpu) >= Some(min)).collect();
        let worst = most(&throttled, share)?;
        Some((throttled, worst))
    }

    fn memory_errors(&self) -> Option<Finding> {
        let bad = self.expected().filter(|gpu| gpu.memory_errors_uncorrected >= Some(1.0));
        let bad: Vec<&GpuSummary> = bad.collect();
        let worst = most(&bad, |gpu| gpu.memory_errors_uncorrected)?;
        let errors: f64 = bad.iter().filter_map(|gpu| gpu.memory_errors_uncorrected).sum();
        let were = if errors == 1.0 { "error" } else { "errors" };
        let nvidia = "nvidia-smi -q -d ECC,PAGE_RETIREMENT,ROW_REMAPPER";
        let command = by_vendor(worst, nvidia, "rocm-smi --showrasinfo");
        finding(
            "gpu.memory_errors",
            Severity::Warning,
            format!(
                "There {} {} {were} in the memory of {} that could not be corrected.",
                if errors == 1.0 { "was" } else { "were" },
                quantity::count(errors),
                named(&bad)
            ),
            json!({"gpus": names(&bad), "uncorrected": errors}),
            &format!(
                "Results may be wrong: run it again on another machine, and have the GPU checked: {command}"
            ),
        )
    }
}

/// The one with the largest value, the first of equals.
fn most<'a>(
    gpus: &[&'a GpuSummary],
    of: impl Fn(&'a GpuSummary) -> Option<f64>,
) -> Option<&'a GpuSummary> {
    let values = gpus.iter().rev().filter_map(|gpu| Some((*gpu, of(gpu)?)));
    values.max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(gpu, _)| gpu)
}

fn time(seconds: f64, of: f64) -> String {
    format!("for {}, {} of the time", quantity::seconds(seconds), quantity::ratio(seconds / of))
}

fn names<'a>(gpus: &[&'a GpuSummary]) -> Vec<&'a str> {
    gpus.iter().map(|gpu| gpu.is.name.as_str()).collect()
}

fn named(gpus: &[&GpuSummary]) -> String {
    let mut named: Vec<String> =
        names(gpus).into_iter().take(MAX_NAMED).map(str::to_owned).collect();
    if gpus.len() > MAX_NAMED {
        named.push(format!("and {} more", gpus.len() - MAX_NAMED));
    }
    named.join(", ")
}

/// A sentence on the others with the same finding.
fn others(gpus: &[&GpuSummary], named_first: &GpuSummary, start: &str) -> String {
    let rest: Vec<&GpuSummary> =
        gpus.iter().copied().filter(|gpu| gpu.is.name != named_first.is.name).collect();
    if rest.is_empty() { String::new() } else { format!(" {start} {}.", named(&rest)) }
}
