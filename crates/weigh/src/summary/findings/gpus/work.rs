//! GPUs without work: unused, or waiting for the rest of the run.

use crate::catalog::FigureId;
use serde_json::json;

use super::super::super::cgroup::CgroupUsage;
use super::super::super::gpus::GpuSummary;
use super::super::super::node::Node;
use super::super::super::{Finding, Severity, Summary};
use super::super::pressure::IO_FULL;
use super::super::{finding, value, with_slurm};
use super::{AT_WORK, RunGpus, named, names};
use crate::quantity;

/// A GPU below both was unused: drivers wake theirs up now and then.
const IDLE_MEAN: f64 = 0.01;
const IDLE_PEAK: f64 = 0.05;

/// Programs load data for a while before a GPU has work.
const MIN_SECONDS: f64 = 30.0;

/// Share of its cores from which a run has none left to prepare work.
const CORES_BUSY: f64 = 0.9;

impl RunGpus<'_> {
    /// Some were unused, beside others that were used.
    pub(super) fn idle(&self, summary: &Summary) -> Option<Finding> {
        let used = self.used();
        // A GPU of another model, as the one in the processor, is not for the same work.
        let is_alike = |gpu: &&GpuSummary| used.iter().any(|used| used.is.model == gpu.is.model);
        let candidates: Vec<&GpuSummary> = self.expected().filter(is_alike).collect();
        let idle: Vec<&GpuSummary> = candidates
            .iter()
            .copied()
            .filter(|gpu| gpu.is.usable == Some(true) && gpu.processes_peak == Some(0))
            .filter(|gpu| gpu.utilization_mean_ratio.is_some_and(|mean| mean < IDLE_MEAN))
            .filter(|gpu| gpu.utilization_peak_ratio.is_some_and(|peak| peak < IDLE_PEAK))
            .collect();
        if idle.is_empty() {
            return None;
        }
        let were = if idle.len() == 1 { "was" } else { "were" };
        finding(
            "gpu.idle",
            Severity::Warning,
            format!(
                "{} of {} GPUs that it could use {were} not used at all: {}.",
                idle.len(),
                candidates.len(),
                named(&idle)
            ),
            json!({"gpus": candidates.len(), "idle": names(&idle)}),
            &with_slurm(
                summary,
                "Ask for fewer GPUs, or spread the work over all of them",
                &format!("#SBATCH --gpus={}", candidates.len() - idle.len()),
            ),
        )
    }

    /// The run had memory on some, and little work for them.
    pub(super) fn waited(
        &self,
        summary: &Summary,
        node: &Node,
        cgroup: &CgroupUsage,
    ) -> Option<Finding> {
        let has_memory =
            |gpu: &&GpuSummary| gpu.processes.iter().any(|user| user.memory_peak_bytes > Some(0));
        let reporting = self.expected().filter(has_memory);
        let (gpus, means): (Vec<&GpuSummary>, Vec<f64>) =
            reporting.filter_map(|gpu| Some((gpu, gpu.utilization_mean_ratio?))).unzip();
        let mean = means.iter().sum::<f64>() / means.len().max(1) as f64;
        let is_long = summary.run.measured() >= MIN_SECONDS;
        if gpus.is_empty() || !is_long || mean >= AT_WORK {
            return None;
        }
        let cores = value(summary, FigureId::CpuCoresMean);
        let stalled = cgroup.waiting.io.share().or(node.waiting.io.share());
        let (why, advice) = reason(summary, cores, stalled);
        let whose = if gpus.len() == 1 { "The GPU" } else { "The GPUs" };
        let were = if gpus.len() == 1 { "was" } else { "were" };
        finding(
            "gpu.waited",
            Severity::Warning,
            format!(
                "{whose} it had memory on ({}) {were} busy for {} of the time only{why}.",
                named(&gpus),
                quantity::ratio(mean)
            ),
            json!({
                "gpus": names(&gpus),
                "utilization_mean_ratio": mean,
                "cpu_cores_mean": cores,
                "cores_allowed": summary.host.cores_allowed,
                "io_waited_share": stalled,
            }),
            &advice,
        )
    }
}

/// What else was short while GPUs waited, and what to do about it.
pub(super) fn reason(
    summary: &Summary,
    cores: Option<f64>,
    stalled: Option<f64>,
) -> (String, String) {
    let allowed = summary.host.cores_allowed;
    let busy = |cores: f64| format!(", while it kept {cores:.2} of {allowed} cores busy");
    if let Some(cores) = cores.filter(|cores| *cores >= allowed * CORES_BUSY) {
        let advice = "All its cores were busy: use more of them, or prepare data once and \
                      ahead, or on the GPU";
        return (busy(cores), with_slurm(summary, advice, "#SBATCH --cpus-per-gpu=…"));
    }
    if let Some(share) = stalled.filter(|share| *share >= IO_FULL) {
        let why = format!(
            ", while everything that had work waited for storage for {} of it",
            quantity::ratio(share)
        );
        let advice = "Read from faster storage, or larger blocks ahead";
        return (why, with_slurm(summary, advice, "cp -r data $SLURM_TMPDIR"));
    }
    let advice = "More workers that prepare data, or larger batches, keep it busier: \
                  DataLoader(num_workers=…, pin_memory=True); where the time goes: nsys profile";
    (cores.map_or_else(String::new, busy), advice.to_owned())
}
