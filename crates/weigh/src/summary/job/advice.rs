//! What the figures of a job mean: nodes that others waited for, nodes and GPUs that did nothing,
//! and memory that should have been requested.
//!
//! The memory that a job needs is anonymous and shared memory; page cache is dropped when memory is
//! needed, however much of it there was. The node with the most decides.

use serde_json::{Map, Value, json};

use super::{JobSummary, NodeState, NodeSummary};
use crate::catalog::FigureId;
use crate::model::batch_job::Scheduler;
use crate::quantity::{self, Units};
use crate::summary::{Finding, Severity};

/// Shorter jobs give no findings on how nodes were used.
const LONG_ENOUGH: f64 = 5.0;

/// A node works longer than others by this part of the time, and by these seconds.
const LONGER_SHARE: f64 = 0.1;
const LONGER_SECONDS: f64 = 10.0;

/// A node uses far fewer cores than others: less than this part of what the middle one uses.
const FAR_FEWER: f64 = 0.5;

/// Below this share of its cores a node has done nothing.
const IDLE: f64 = 0.01;

/// Shares of the requested memory from which on it was nearly not enough, and below which it was far
/// too much.
const NEARLY_ALL: f64 = 0.9;
const FAR_TOO_MUCH: f64 = 0.5;

/// Less memory is not worth a change of a script.
const WORTH_BYTES: f64 = (1u64 << 30) as f64;

/// What to request more than was needed.
const RESERVE: f64 = 1.2;

/// How many nodes a sentence names.
const NAMED: usize = 4;

/// All findings on a job.
pub(super) fn of(summary: &JobSummary) -> Vec<Finding> {
    let mut findings: Vec<Finding> = [nearly_all_memory(summary)].into_iter().flatten().collect();
    findings.extend(unread(summary));
    if summary.duration_seconds >= LONG_ENOUGH {
        findings.extend(stragglers(summary));
        findings.extend(few_cores(summary));
        findings.extend(idle_nodes(summary));
    }
    findings.extend(idle_gpus(summary));
    // What it needs in the end is not known yet.
    if !summary.is_running && summary.duration_seconds >= LONG_ENOUGH {
        findings.extend(too_much_memory(summary));
    }
    findings
}

fn finding(
    code: &str,
    severity: Severity,
    sentence: String,
    evidence: Value,
    advice: impl Into<String>,
) -> Option<Finding> {
    let evidence = if let Value::Object(evidence) = evidence { evidence } else { Map::new() };
    Some(Finding { code: code.to_owned(), severity, sentence, evidence, advice: advice.into() })
}

/// The first names, and how many more there are.
pub(crate) fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let shown = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Nodes that were recorded to their end, and on which something ran.
fn worked(summary: &JobSummary) -> impl Iterator<Item = &NodeSummary> {
    let is_known = |node: &&NodeSummary| {
        matches!(node.state, NodeState::Ended | NodeState::Recording)
            && node.processes.is_some_and(|count| count > 0)
    };
    summary.nodes.iter().filter(is_known)
}

/// The value in the middle; of an even number, the mean of both.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        _ if values.is_empty() => None,
        1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

/// Nodes that worked when most others had nothing to do any more.
fn stragglers(summary: &JobSummary) -> Option<Finding> {
    let ends = worked(summary).filter_map(|node| Some((node, node.worked_until_seconds?)));
    let ends: Vec<(&NodeSummary, f64)> = ends.collect();
    let middle = median(ends.iter().map(|(_, end)| *end).collect())?;
    let longer = LONGER_SECONDS.max(summary.duration_seconds * LONGER_SHARE);
    let late: Vec<&(&NodeSummary, f64)> =
        ends.iter().filter(|(_, end)| *end > middle + longer).collect();
    let last = late.iter().map(|(_, end)| *end).reduce(f64::max)?;
    let names = named(late.iter().map(|(node, _)| node.name.as_str()));
    let (by, middle) = (quantity::seconds(last - middle), quantity::seconds(middle));
    finding(
        "job.stragglers",
        Severity::Warning,
        format!(
            "{names} worked up to {by} longer than most of the {} nodes, which had hardly anything to do after {middle}.",
            ends.len()
        ),
        json!({"nodes": late.iter().map(|(node, end)| json!({"node": node.name, "worked_until_seconds": end})).collect::<Vec<_>>()}),
        "Divide the work into smaller pieces, or by what each takes.",
    )
}

/// Nodes that used far fewer cores than others.
fn few_cores(summary: &JobSummary) -> Option<Finding> {
    let cores = |node: &NodeSummary| node.figures.value(FigureId::CpuCoresMean);
    let used: Vec<(&NodeSummary, f64)> =
        worked(summary).filter_map(|node| Some((node, cores(node)?))).collect();
    let middle = median(used.iter().map(|(_, cores)| *cores).collect())?;
    if used.len() < 3 || middle < 0.5 {
        return None;
    }
    let few: Vec<&(&NodeSummary, f64)> =
        used.iter().filter(|(node, cores)| *cores < middle * FAR_FEWER && !is_idle(node)).collect();
    if few.is_empty() {
        return None;
    }
    let names = named(few.iter().map(|(node, _)| node.name.as_str()));
    let least = few.iter().map(|(_, cores)| *cores).fold(f64::INFINITY, f64::min);
    finding(
        "job.few_cores",
        Severity::Note,
        format!("{names} used far fewer cores ({least:.2}) than the other nodes ({middle:.2})."),
        json!({"median_cores": middle, "least_cores": least}),
        "If the work is divided equally, look at what those nodes waited for: their own reports are \
         weigh report JOBDIR/NODE.",
    )
}

/// Whether processes of the job ran on a node, and used hardly any CPU time.
fn is_idle(node: &NodeSummary) -> bool {
    let used = node.figures.value(FigureId::CpuCoresMean);
    node.processes == Some(0)
        || used.zip(node.cores()).is_some_and(|(used, cores)| used < cores * IDLE)
}

fn idle_nodes(summary: &JobSummary) -> Option<Finding> {
    let recorded = summary.nodes.iter().filter(|node| node.duration_seconds.is_some());
    let idle: Vec<&str> =
        recorded.clone().filter(|node| is_idle(node)).map(|node| node.name.as_str()).collect();
    if idle.is_empty() {
        return None;
    }
    let (count, all) = (idle.len(), recorded.count());
    finding(
        "job.idle_nodes",
        Severity::Warning,
        format!("{count} of {all} recorded nodes did nothing: {}.", named(idle.iter().copied())),
        json!({"nodes": idle}),
        "Request fewer nodes, or check that the launcher starts ranks on all of them.",
    )
}

/// GPUs that were requested, and on which nothing ran.
fn idle_gpus(summary: &JobSummary) -> Option<Finding> {
    let requested: u64 =
        summary.nodes.iter().filter_map(|node| node.requested.gpus).map(u64::from).sum();
    let of_job = summary.nodes.iter().flat_map(|node| &node.gpus);
    let used = of_job.clone().filter(|gpu| gpu.is_idle == Some(false)).count() as u64;
    let unknown = of_job.clone().filter(|gpu| gpu.is_idle.is_none()).count();
    let measured = of_job.count() as u64;
    let all = if requested > 0 { requested } else { measured };
    // A node without a recording may have used its GPUs.
    let is_known = summary.nodes.iter().all(|node| {
        node.requested.gpus.is_none_or(|count| count == 0)
            || node.gpus.len() as u64 >= u64::from(node.requested.gpus.unwrap_or(0))
            || node.processes == Some(0)
    });
    if all == 0 || used >= all || unknown > 0 || !is_known {
        return None;
    }
    let idle = all - used;
    let mut where_: Vec<&str> = Vec::new();
    for node in &summary.nodes {
        let busy = node.gpus.iter().filter(|gpu| gpu.is_idle == Some(false)).count();
        let has = node.requested.gpus.map_or(node.gpus.len(), |count| count as usize);
        if busy < has {
            where_.push(&node.name);
        }
    }
    finding(
        "job.idle_gpus",
        Severity::Warning,
        format!("{idle} of {all} GPUs never ran anything: on {}.", named(where_)),
        json!({"idle": idle, "gpus": all}),
        "Request fewer GPUs, or give each rank one of them.",
    )
}

/// Nodes whose recording cannot be read.
fn unread(summary: &JobSummary) -> Option<Finding> {
    let unreadable = summary.nodes.iter().filter(|node| node.unreadable.is_some());
    let unreadable: Vec<&NodeSummary> = unreadable.collect();
    let why = unreadable.first()?.unreadable.as_deref().unwrap_or_default();
    let names = named(unreadable.iter().map(|node| node.name.as_str()));
    finding(
        "job.unreadable",
        Severity::Warning,
        format!("The recording of {names} cannot be read: {why}."),
        json!({"nodes": unreadable.iter().map(|node| &node.name).collect::<Vec<_>>()}),
        "All figures are without it.",
    )
}

/// The memory that a job needs on a node.
pub(crate) struct MemoryNeed<'a> {
    pub(crate) node: &'a NodeSummary,
    /// Without page cache.
    pub(crate) bytes: f64,
    /// What was requested of that node.
    pub(crate) requested: Option<f64>,
}

/// The memory that a job needs: of the node with the most. `None` where the kernel does not say what
/// is page cache.
pub(crate) fn memory_need(summary: &JobSummary) -> Option<MemoryNeed<'_>> {
    let need = summary.figure(FigureId::MemoryWithoutCachePeak)?;
    let node = summary.node(&need.max_node)?;
    let requested = node.requested.memory_bytes.map(|bytes| bytes as f64);
    Some(MemoryNeed { node, bytes: need.max, requested })
}

fn nearly_all_memory(summary: &JobSummary) -> Option<Finding> {
    let MemoryNeed { node, bytes, requested } = memory_need(summary)?;
    let requested = requested.filter(|requested| bytes >= requested * NEARLY_ALL)?;
    finding(
        "job.memory_nearly_full",
        Severity::Warning,
        format!(
            "{} needed {} of the {} that were requested, page cache not counted: a little more and \
             the kernel ends the job.",
            node.name,
            shown(bytes),
            shown(requested)
        ),
        json!({"node": node.name, "needed_bytes": bytes, "requested_bytes": requested}),
        format!("Request more: {}", request(summary, bytes)),
    )
}

fn too_much_memory(summary: &JobSummary) -> Option<Finding> {
    let MemoryNeed { node, bytes, requested } = memory_need(summary)?;
    let is_far = |requested: &f64| {
        bytes < requested * FAR_TOO_MUCH && requested - bytes * RESERVE > WORTH_BYTES
    };
    let requested = requested.filter(is_far)?;
    // What a node that is not recorded to its end needed is not known.
    if summary.nodes.iter().any(|node| node.state != NodeState::Ended) {
        return None;
    }
    finding(
        "job.memory_requested",
        Severity::Note,
        format!(
            "No node needed more than {} of the {} that were requested of each; that was {}.",
            shown(bytes),
            shown(requested),
            node.name
        ),
        json!({"node": node.name, "needed_bytes": bytes, "requested_bytes": requested}),
        format!("The next one may start earlier with less: {}", request(summary, bytes)),
    )
}

fn shown(bytes: f64) -> String {
    quantity::bytes(bytes, Units::Binary)
}

/// What to write into the script to have so much memory and a reserve.
fn request(summary: &JobSummary, bytes: f64) -> String {
    let gib = (bytes * RESERVE / WORTH_BYTES).ceil().max(1.0);
    match summary.job.as_ref().map(|job| job.scheduler) {
        Some(Scheduler::Slurm) => format!("#SBATCH --mem={gib}G"),
        Some(Scheduler::Pbs) => format!("#PBS -l select=…:mem={gib}gb"),
        _ => format!("{gib} GiB for each node"),
    }
}
