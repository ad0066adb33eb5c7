//! What a batch job used: each node by its own recording, and all of them together.
//!
//! Every node is summarised by itself, from its own files, one after the other; nothing is merged,
//! so it costs as much memory as one node and a row of the heat map for each, and works while the
//! job runs.

mod advice;
pub mod array;
mod curve;
mod node;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

pub(crate) use advice::{memory_need, named};
pub use curve::NodeCurve;

use super::{Figures, Finding, MonitorCost};
use crate::catalog::FigureId;
use crate::model::batch_job::{BatchJob, JobNode, Requested};
use crate::record::clock::{self, ClockOffset, RecordedClock};
use crate::record::job_directory::{self, JobState, LaunchTimes};
use crate::record::manifest::Origin;
use crate::record::{self, StopReason, files};

/// What a job used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobSummary {
    /// Which weigh made it.
    pub weigh: Origin,
    /// The job; null when no node has recorded it.
    pub job: Option<BatchJob>,
    /// Whether a node is still being recorded: all figures are those so far.
    pub is_running: bool,
    /// Which of its nodes were recorded.
    pub coverage: NodeCoverage,
    /// From the first start of a recorder to the last sample.
    pub duration_seconds: f64,
    /// When the first recorder started.
    pub started: Option<Timestamp>,
    /// Figures of all nodes together, those that are known of at least one.
    pub figures: Vec<CombinedFigure>,
    /// What it means.
    pub findings: Vec<Finding>,
    /// Its nodes, in the scheduler's order.
    pub nodes: Vec<NodeSummary>,
    /// CPU time of all recorders.
    pub monitor_cpu_seconds: f64,
    /// The same for each second of a recorder: the share of one core it took on each node.
    pub monitor_cost_ratio: Option<f64>,
}

/// Which nodes were recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct NodeCoverage {
    /// How many nodes the job has; null when that is not known.
    pub expected: Option<usize>,
    /// How many have a recording.
    pub recorded: usize,
    /// Nodes without a recording, or whose recorder has not written for a while.
    pub silent: Vec<String>,
    /// Recorded nodes on which no process of the job was seen.
    pub idle: Vec<String>,
    /// Nodes whose recording ended before that of others, or has no end although the job is over.
    pub ended_early: Vec<String>,
    /// Nodes whose recording has times without a sample, or has lost some.
    pub with_gaps: Vec<String>,
}

/// How a node's recording stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    /// It has no recording.
    Missing,
    /// It is being recorded.
    Recording,
    /// Its recorder has not written for a while.
    Silent,
    /// Its recording has an end.
    Ended,
    /// Its recording has no end, and the job is over: the recorder was killed, or its node died.
    Lost,
}

/// What one node used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeSummary {
    /// Its name.
    pub name: String,
    /// How its recording stands.
    pub state: NodeState,
    /// Why it ended.
    pub stopped: Option<StopReason>,
    /// When its recording began.
    pub started: Option<Timestamp>,
    /// How far its clock is ahead of that of the reference; null where nothing tells. Its times are
    /// corrected by it.
    pub clock: Option<ClockOffset>,
    /// How long it was recorded.
    pub duration_seconds: Option<f64>,
    /// When its processes last worked, since the job's recording began; null when they hardly did.
    pub worked_until_seconds: Option<f64>,
    /// Times without a sample.
    pub gaps: SampleGaps,
    /// What its recording has lost; a sentence each.
    pub losses: Vec<String>,
    /// What the job requested of it.
    pub requested: Requested,
    /// Its CPUs that the job may use.
    pub cores_allowed: Option<f64>,
    /// Its memory.
    pub memory_bytes: Option<u64>,
    /// How many processes of the job were seen on it.
    pub processes: Option<u64>,
    /// What it used.
    pub figures: Figures,
    /// Its GPUs that the job could use.
    pub gpus: Vec<NodeGpu>,
    /// What the recorder itself used.
    pub monitor: Option<MonitorCost>,
    /// Why its recording cannot be read.
    pub unreadable: Option<String>,
}

/// Times in which a recorder took no sample.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct SampleGaps {
    /// How many there were.
    pub count: u64,
    /// How long they were together.
    pub seconds: f64,
}

/// A GPU of a node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeGpu {
    /// Its name on that node.
    pub name: String,
    /// Its model.
    pub model: Option<String>,
    /// Mean utilization by all processes.
    pub utilization_mean_ratio: Option<f64>,
    /// Peak memory in use by all processes.
    pub memory_peak_bytes: Option<f64>,
    /// Whether no process of the job was seen on it; null when that is not known.
    pub is_idle: Option<bool>,
}

/// A figure over all nodes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CombinedFigure {
    /// Its name.
    pub name: &'static str,
    /// Nodes of which it is known.
    pub nodes: usize,
    /// The sum over nodes.
    pub sum: f64,
    /// The mean over nodes.
    pub mean: f64,
    /// The largest value of a node.
    pub max: f64,
    /// Which node that is.
    pub max_node: String,
    /// How much of the largest value the mean lacks: 0 where all nodes have the same.
    pub imbalance_ratio: Option<f64>,
}

/// Figures that are combined.
const COMBINED: [FigureId; 12] = [
    FigureId::CpuTime,
    FigureId::CpuCoresMean,
    FigureId::MemoryPeak,
    FigureId::MemoryWithoutCachePeak,
    FigureId::IoRead,
    FigureId::IoWritten,
    FigureId::NetworkReceived,
    FigureId::NetworkSent,
    FigureId::GpuMemoryPeak,
    FigureId::GpuUtilizationMean,
    FigureId::GpuEnergy,
    FigureId::ThreadsPeak,
];

/// Recorders do not end in the same second.
const EARLY_SECONDS: f64 = 10.0;

/// A job as it was read: its summary, and each node over time.
#[derive(Debug, Clone, PartialEq)]
pub struct JobReading {
    /// What it used.
    pub summary: JobSummary,
    /// Each node over time, in the order of the summary; those without samples are empty.
    pub curves: Vec<NodeCurve>,
}

impl JobSummary {
    /// Of the directory of a job, at this time of the wall clock.
    pub fn of(directory: &Path, wall: Duration) -> Result<JobSummary, record::Error> {
        Ok(JobReading::of(directory, wall, |_| {})?.summary)
    }

    /// A combined figure.
    pub fn figure(&self, id: FigureId) -> Option<&CombinedFigure> {
        self.figures.iter().find(|figure| figure.name == id.name())
    }

    /// A node by its name.
    pub fn node(&self, name: &str) -> Option<&NodeSummary> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// The CPU time that the requested cores of all recorded nodes could have used.
    pub fn reserved_core_seconds(&self) -> Option<f64> {
        let recorded = self.nodes.iter().filter(|node| node.duration_seconds.is_some());
        recorded.map(|node| Some(node.cores()? * node.duration_seconds?)).sum()
    }
}

impl NodeSummary {
    /// Its cores that the job has: those requested, or all that it may use.
    pub fn cores(&self) -> Option<f64> {
        self.requested.cores.map(f64::from).or(self.cores_allowed)
    }
}

/// The clocks of all nodes, and when the first recording began.
struct JobClocks {
    offsets: HashMap<PathBuf, ClockOffset>,
    began: Option<Timestamp>,
}

impl JobClocks {
    fn of(directory: &Path, recorded: &[PathBuf]) -> JobClocks {
        let read = |path: &PathBuf| Some((path.clone(), RecordedClock::of(path)?));
        let (paths, clocks): (Vec<_>, Vec<_>) = recorded.iter().filter_map(read).unzip();
        let known = clock::offsets(&clocks, LaunchTimes::read(directory).as_ref());
        let began = clocks.iter().zip(&known).map(|(clock, offset)| {
            let ahead = offset.as_ref().map_or(0.0, |offset| offset.corrected_seconds);
            clock.started_less(ahead)
        });
        let began = began.min();
        let offsets = paths.into_iter().zip(known).filter_map(|(path, one)| Some((path, one?)));
        JobClocks { offsets: offsets.collect(), began }
    }
}

/// What is read from the recording of one node.
struct ReadNode {
    summary: NodeSummary,
    curve: NodeCurve,
    job: Option<BatchJob>,
}

impl JobReading {
    /// Of the directory of a job, at this time of the wall clock. `progress` gets the part that is
    /// read, from 0 to 1.
    pub fn of(
        directory: &Path,
        wall: Duration,
        mut progress: impl FnMut(f64),
    ) -> Result<JobReading, record::Error> {
        let now = Timestamp::from_nanosecond(wall.as_nanos() as i128).unwrap_or_default();
        let file = job_directory::read(directory)?;
        let is_over = job_directory::state(directory) == Some(JobState::Stop);
        let recorded = files::recordings(directory)?;
        let clocks = JobClocks::of(directory, &recorded);
        let listed = file.as_ref().map(|file| file.nodes.clone()).unwrap_or_default();
        let mut job = file.map(|file| file.job);
        let mut nodes: Vec<(NodeSummary, NodeCurve)> =
            listed.iter().map(|node| (missing(node), NodeCurve::default())).collect();
        for (done, path) in recorded.iter().rev().enumerate() {
            progress(done as f64 / recorded.len() as f64);
            let read = node::read(path, &clocks, is_over, now);
            let known = nodes[..listed.len()].iter_mut().find(|(one, _)| {
                job_directory::of_node(directory, &one.name).file_name() == path.file_name()
            });
            job = job.or(read.job);
            match known {
                Some((known, curve)) => {
                    let requested = known.requested.or(read.summary.requested);
                    let name = known.name.clone();
                    (*known, *curve) =
                        (NodeSummary { name, requested, ..read.summary }, read.curve);
                }
                None => nodes.push((read.summary, read.curve)),
            }
        }
        let (nodes, curves): (Vec<_>, Vec<_>) = nodes.into_iter().unzip();
        let expected = job
            .as_ref()
            .and_then(|job| job.node_count)
            .map(|count| count as usize)
            .or(Some(listed.len()).filter(|count| *count > 0));
        Ok(JobReading { summary: summary(job, nodes, expected), curves })
    }
}

/// The summary of these nodes.
fn summary(job: Option<BatchJob>, nodes: Vec<NodeSummary>, expected: Option<usize>) -> JobSummary {
    let started = nodes.iter().filter_map(|node| node.started).min();
    let monitor_cpu_seconds =
        nodes.iter().flat_map(|node| &node.monitor).map(|monitor| monitor.cpu_seconds).sum();
    let recorded: f64 = nodes.iter().filter_map(|node| node.duration_seconds).sum();
    let mut summary = JobSummary {
        weigh: Origin::default(),
        job,
        is_running: nodes.iter().any(|node| node.state == NodeState::Recording),
        coverage: coverage(&nodes, expected),
        duration_seconds: nodes.iter().filter_map(|node| end_of(node, started)).fold(0.0, f64::max),
        started,
        figures: COMBINED.iter().filter_map(|id| combined(*id, &nodes)).collect(),
        findings: Vec::new(),
        monitor_cpu_seconds,
        monitor_cost_ratio: (recorded > 0.0).then(|| monitor_cpu_seconds / recorded),
        nodes,
    };
    summary.findings = advice::of(&summary);
    summary
}

/// A node without a recording.
fn missing(node: &JobNode) -> NodeSummary {
    NodeSummary {
        name: node.name.clone(),
        state: NodeState::Missing,
        stopped: None,
        started: None,
        clock: None,
        duration_seconds: None,
        worked_until_seconds: None,
        gaps: SampleGaps::default(),
        losses: Vec::new(),
        requested: node.requested,
        cores_allowed: None,
        memory_bytes: None,
        processes: None,
        figures: Figures::default(),
        gpus: Vec::new(),
        monitor: None,
        unreadable: None,
    }
}

/// When the last sample of a node was, in seconds since this time.
fn end_of(node: &NodeSummary, since: Option<Timestamp>) -> Option<f64> {
    let started = node.started?.as_millisecond() - since?.as_millisecond();
    Some(started as f64 / 1e3 + node.duration_seconds?)
}

fn coverage(nodes: &[NodeSummary], expected: Option<usize>) -> NodeCoverage {
    let since = nodes.iter().filter_map(|node| node.started).min();
    let last = nodes.iter().filter_map(|node| end_of(node, since)).fold(0.0, f64::max);
    let is_silent = |state| matches!(state, NodeState::Missing | NodeState::Silent);
    let is_early = |node: &&NodeSummary| match node.state {
        NodeState::Lost => true,
        NodeState::Ended => end_of(node, since).is_some_and(|end| end + EARLY_SECONDS < last),
        _ => false,
    };
    let names = |of: &dyn Fn(&&NodeSummary) -> bool| {
        nodes.iter().filter(|node| of(node)).map(|node| node.name.clone()).collect()
    };
    NodeCoverage {
        expected,
        recorded: nodes.iter().filter(|node| node.state != NodeState::Missing).count(),
        silent: names(&|node| is_silent(node.state)),
        idle: names(&|node| node.processes == Some(0)),
        ended_early: names(&is_early),
        with_gaps: names(&|node| node.gaps.count > 0 || !node.losses.is_empty()),
    }
}

/// A figure over the nodes of which it is known.
fn combined(id: FigureId, nodes: &[NodeSummary]) -> Option<CombinedFigure> {
    let values: Vec<(f64, &NodeSummary)> =
        nodes.iter().filter_map(|node| Some((node.figures.value(id)?, node))).collect();
    let (max, largest) = values.iter().max_by(|one, other| one.0.total_cmp(&other.0))?;
    let sum: f64 = values.iter().map(|(value, _)| value).sum();
    let mean = sum / values.len() as f64;
    Some(CombinedFigure {
        name: id.name(),
        nodes: values.len(),
        sum,
        mean,
        max: *max,
        max_node: largest.name.clone(),
        imbalance_ratio: (*max > 0.0).then(|| 1.0 - mean / max),
    })
}
