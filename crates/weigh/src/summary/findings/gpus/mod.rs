//! GPUs that nobody used, that waited for work, that were full, held back or broken.
//!
//! Of GPUs that the run could use alone, and mostly of those that it did use: a machine's
//! others are other people's. How busy a GPU is, is whoever's, so a GPU that was idle was idle
//! for the run, too. A card that is lost during the run is a fault, and told as one.
//!
//! What surprised us: the parts of a divided card do not say how busy they are, and have memory
//! of their own; heat, power and errors are the whole card's. So memory is told of parts, the
//! rest of wholes, and nothing of both.

#[cfg(test)]
mod tests;
mod work;

use serde_json::json;

use super::super::gpus::Gpu;
use super::super::group::CgroupUsage;
use super::super::node::Node;
use super::super::{Finding, Severity, Summary};
use super::{LONG_ENOUGH, finding};
use crate::catalog::metrics::gpu::{is_whole, name_there, whole_of};
use crate::quantity::{self, Units};
use crate::record::Target;

/// A GPU above this was at work.
const AT_WORK: f64 = 0.2;

/// Memory that is nearly full. What a processor sets apart for the GPU in it is small, always
/// full, and not all it has.
const FULL: f64 = 0.95;
const SMALL_BYTES: f64 = 2.0 * (1u64 << 30) as f64;

/// Heat should not hold a card back at all; its power often does, when there is much to do.
const HEAT_SHARE: f64 = 0.1;
const POWER_SHARE: f64 = 0.5;

/// GPUs that are named one by one.
const MOST_NAMED: usize = 5;

/// Everything worth saying about GPUs.
pub(super) fn of(summary: &Summary, node: &Node, group: &CgroupUsage) -> Vec<Finding> {
    // Programs that come and go were given no GPUs.
    if matches!(summary.run.target, Some(Target::Programs { .. })) {
        return Vec::new();
    }
    let gpus = OfRun { all: &summary.gpus };
    let long = |least: f64| summary.run.measured() >= least;
    [
        gpus.idle(summary).filter(|_| long(LONG_ENOUGH)),
        gpus.waited(summary, node, group),
        gpus.nearly_full(),
        gpus.too_hot().filter(|_| long(LONG_ENOUGH)),
        gpus.out_of_power().filter(|_| long(LONG_ENOUGH)),
        gpus.memory_errors(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What to type for a card, by who made it: others tell nothing that is found here.
fn by_maker(gpu: &Gpu, nvidia: &'static str, amd: &'static str) -> &'static str {
    if name_there(&gpu.is.name).starts_with("amd") { amd } else { nvidia }
}

/// The GPUs, as far as they are the run's.
struct OfRun<'a> {
    all: &'a [Gpu],
}

impl<'a> OfRun<'a> {
    /// Whole ones that the run could use.
    fn expected(&self) -> impl Iterator<Item = &'a Gpu> {
        self.all.iter().filter(|gpu| gpu.is.is_expected())
    }

    fn parts(&self, whole: &Gpu) -> impl Iterator<Item = &'a Gpu> {
        let is_part = |part: &&Gpu| whole_of(&part.is.name) == whole.is.name;
        self.all.iter().filter(|gpu| !is_whole(&gpu.is.name)).filter(is_part)
    }

    /// Whether a process of the run was on it, or on a part of it.
    fn is_used(&self, whole: &Gpu) -> bool {
        let mut both = std::iter::once(whole).chain(self.parts(whole));
        both.any(|gpu| !gpu.processes.is_empty())
    }

    /// Those that the run used. In a container nobody knows whose processes are on a GPU, and
    /// others are not shown to it: then those that were at work.
    fn used(&self) -> Vec<&'a Gpu> {
        let used: Vec<&Gpu> = self.expected().filter(|gpu| self.is_used(gpu)).collect();
        let is_at_work = |gpu: &&Gpu| {
            gpu.processes_unknown_peak > Some(0) && gpu.utilization_mean_ratio >= Some(AT_WORK)
        };
        if used.is_empty() { self.expected().filter(is_at_work).collect() } else { used }
    }

    fn nearly_full(&self) -> Option<Finding> {
        // Of a divided card each part has its own.
        let undivided = self.used().into_iter().filter(|gpu| self.parts(gpu).next().is_none());
        let parts = self.expected().flat_map(|whole| self.parts(whole));
        let parts = parts.filter(|part| !part.processes.is_empty());
        let fill = |gpu: &&Gpu| {
            let total = gpu.is.memory_bytes? as f64;
            let left = gpu.memory_free_least_bytes? as f64 / total;
            Some(1.0 - left).filter(|_| total >= SMALL_BYTES)
        };
        let full: Vec<&Gpu> =
            undivided.chain(parts).filter(|gpu| fill(gpu) >= Some(FULL)).collect();
        let worst = most(&full, |gpu| fill(&gpu))?;
        let bytes = |value: f64| quantity::bytes(value, Units::Binary);
        let (used, total) = (worst.memory_peak_bytes?, worst.is.memory_bytes? as f64);
        finding(
            "gpu.memory_nearly_full",
            // Some frameworks take nearly all of it before they need it.
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
            "A little more and it fails: smaller batches, or a larger card. If the framework takes \
             memory ahead of need, see what it needs: TF_FORCE_GPU_ALLOW_GROWTH=true, \
             XLA_PYTHON_CLIENT_PREALLOCATE=false",
        )
    }

    fn too_hot(&self) -> Option<Finding> {
        let (held, worst) = self.held_back(|gpu| gpu.throttled_by_heat_seconds, HEAT_SHARE)?;
        let warmest = worst.temperature_peak_celsius;
        let reached = warmest.map_or_else(String::new, |degrees| format!(" up to {degrees:.0} °C"));
        finding(
            "gpu.throttled",
            Severity::Warning,
            format!(
                "Heat{reached} held {} back {}.{}",
                worst.is.name,
                time(worst.throttled_by_heat_seconds?, worst.observed_seconds?),
                others(&held, worst, "It held back, too,")
            ),
            json!({
                "by": "heat",
                "gpus": names(&held),
                "seconds": worst.throttled_by_heat_seconds,
                "observed_seconds": worst.observed_seconds,
                "temperature_celsius": warmest,
            }),
            &format!(
                "Times of this run do not compare with others; look at the cooling: {}",
                by_maker(worst, "nvidia-smi -q -d TEMPERATURE,PERFORMANCE", "rocm-smi --showtemp")
            ),
        )
    }

    fn out_of_power(&self) -> Option<Finding> {
        let (held, worst) = self.held_back(|gpu| gpu.throttled_by_power_seconds, POWER_SHARE)?;
        let limit = worst.is.power_limit_watts;
        let limited =
            limit.map_or_else(String::new, |watts| format!(" ({})", quantity::scaled(watts, "W")));
        finding(
            "gpu.throttled",
            Severity::Note,
            format!(
                "The power it may take{limited} held {} back {}.{}",
                worst.is.name,
                time(worst.throttled_by_power_seconds?, worst.observed_seconds?),
                others(&held, worst, "It held back, too,")
            ),
            json!({
                "by": "power",
                "gpus": names(&held),
                "seconds": worst.throttled_by_power_seconds,
                "observed_seconds": worst.observed_seconds,
                "limit_watts": limit,
            }),
            &format!(
                "Ordinary for a card with much to do; whether its limit was lowered: {}",
                by_maker(worst, "nvidia-smi -q -d POWER", "rocm-smi --showmaxpower")
            ),
        )
    }

    /// Those that were held back for so much of the time, and which of them most.
    fn held_back(
        &self,
        seconds: fn(&Gpu) -> Option<f64>,
        least: f64,
    ) -> Option<(Vec<&'a Gpu>, &'a Gpu)> {
        let share = |gpu: &Gpu| {
            let observed = gpu.observed_seconds.filter(|time| *time >= LONG_ENOUGH)?;
            Some(seconds(gpu)? / observed)
        };
        let used = self.used().into_iter();
        let held: Vec<&Gpu> = used.filter(|gpu| share(gpu) >= Some(least)).collect();
        let worst = most(&held, share)?;
        Some((held, worst))
    }

    fn memory_errors(&self) -> Option<Finding> {
        let bad = self.expected().filter(|gpu| gpu.memory_errors_uncorrected >= Some(1.0));
        let bad: Vec<&Gpu> = bad.collect();
        let worst = most(&bad, |gpu| gpu.memory_errors_uncorrected)?;
        let errors: f64 = bad.iter().filter_map(|gpu| gpu.memory_errors_uncorrected).sum();
        let were = if errors == 1.0 { "error" } else { "errors" };
        let nvidia = "nvidia-smi -q -d ECC,PAGE_RETIREMENT,ROW_REMAPPER";
        let look = by_maker(worst, nvidia, "rocm-smi --showrasinfo");
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
                "Results may be wrong: run it again elsewhere, and have the card seen to: {look}"
            ),
        )
    }
}

/// The one with the largest value, the first of equals.
fn most<'a>(gpus: &[&'a Gpu], of: impl Fn(&'a Gpu) -> Option<f64>) -> Option<&'a Gpu> {
    let values = gpus.iter().rev().filter_map(|gpu| Some((*gpu, of(gpu)?)));
    values.max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(gpu, _)| gpu)
}

fn time(seconds: f64, of: f64) -> String {
    format!("for {}, {} of the time", quantity::seconds(seconds), quantity::ratio(seconds / of))
}

fn names<'a>(gpus: &[&'a Gpu]) -> Vec<&'a str> {
    gpus.iter().map(|gpu| gpu.is.name.as_str()).collect()
}

fn named(gpus: &[&Gpu]) -> String {
    let mut named: Vec<String> =
        names(gpus).into_iter().take(MOST_NAMED).map(str::to_owned).collect();
    if gpus.len() > MOST_NAMED {
        named.push(format!("and {} more", gpus.len() - MOST_NAMED));
    }
    named.join(", ")
}

/// A sentence on the others of which the same is true.
fn others(gpus: &[&Gpu], told: &Gpu, words: &str) -> String {
    let rest: Vec<&Gpu> = gpus.iter().copied().filter(|gpu| gpu.is.name != told.is.name).collect();
    if rest.is_empty() { String::new() } else { format!(" {words} {}.", named(&rest)) }
}
