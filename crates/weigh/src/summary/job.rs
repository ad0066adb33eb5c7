//! What a batch job used: each node by its own recording, and all of them together.
//!
//! Every node is summarised by itself, from its own files; nothing is merged, so it costs as much
//! memory as one node, and works while the job runs.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::{Figures, MonitorCost, Summary, of};
use crate::catalog::FigureId;
use crate::model::batch_job::{BatchJob, JobNode, Requested};
use crate::record::job_directory::{self, JobState};
use crate::record::manifest::Origin;
use crate::record::{self, Recording, StopReason, files};

/// What a job used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobSummary {
    /// Which weigh made it.
    pub weigh: Origin,
    /// The job; null when no node has recorded it.
    pub job: Option<BatchJob>,
    /// Which of its nodes were recorded.
    pub coverage: NodeCoverage,
    /// From the first start of a recorder to the last sample.
    pub duration_seconds: f64,
    /// When the first recorder started.
    pub started: Option<Timestamp>,
    /// Figures of all nodes together, those that are known of at least one.
    pub figures: Vec<CombinedFigure>,
    /// Its nodes, in the scheduler's order.
    pub nodes: Vec<NodeSummary>,
    /// CPU time of all recorders.
    pub monitor_cpu_seconds: f64,
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
    /// How long it was recorded.
    pub duration_seconds: Option<f64>,
    /// What the job requested of it.
    pub requested: Requested,
    /// Its CPUs that the job may use.
    pub cores_allowed: Option<f64>,
    /// How many processes of the job were seen on it.
    pub processes: Option<u64>,
    /// What it used.
    pub figures: Figures,
    /// What the recorder itself used.
    pub monitor: Option<MonitorCost>,
    /// Why its recording cannot be read.
    pub unreadable: Option<String>,
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
const COMBINED: [FigureId; 11] = [
    FigureId::CpuTime,
    FigureId::CpuCoresMean,
    FigureId::MemoryPeak,
    FigureId::IoRead,
    FigureId::IoWritten,
    FigureId::NetworkReceived,
    FigureId::NetworkSent,
    FigureId::GpuMemoryPeak,
    FigureId::GpuUtilizationMean,
    FigureId::GpuEnergy,
    FigureId::ThreadsPeak,
];

/// A recorder writes every two seconds; a file system may take a while.
const SILENT_AFTER_SECONDS: i64 = 60;

/// Recorders do not end in the same second.
const EARLY_SECONDS: f64 = 10.0;

impl JobSummary {
    /// Of the directory of a job, at this time of the wall clock.
    pub fn of(directory: &Path, wall: Duration) -> Result<JobSummary, record::Error> {
        let now = Timestamp::from_nanosecond(wall.as_nanos() as i128).unwrap_or_default();
        let file = job_directory::read(directory)?;
        let is_over = job_directory::state(directory) == Some(JobState::Stop);
        let recorded = files::recordings(directory)?;
        let listed = file.as_ref().map(|file| file.nodes.clone()).unwrap_or_default();
        let mut job = file.map(|file| file.job);
        let mut nodes: Vec<NodeSummary> = listed.iter().map(missing).collect();
        let mut others: Vec<NodeSummary> = Vec::new();
        for path in recorded.iter().rev() {
            let (node, its_job) = node(path, is_over, now);
            let known = nodes.iter_mut().find(|one| {
                job_directory::of_node(directory, &one.name).file_name() == path.file_name()
            });
            job = job.or(its_job);
            match known {
                Some(known) => {
                    let requested = known.requested.or(node.requested);
                    *known = NodeSummary { name: known.name.clone(), requested, ..node };
                }
                None => others.push(node),
            }
        }
        nodes.extend(others);
        let expected = job
            .as_ref()
            .and_then(|job| job.node_count)
            .map(|count| count as usize)
            .or(Some(listed.len()).filter(|count| *count > 0));
        let started = nodes.iter().filter_map(|node| node.started).min();
        Ok(JobSummary {
            weigh: Origin::default(),
            job,
            coverage: coverage(&nodes, expected),
            duration_seconds: nodes
                .iter()
                .filter_map(|node| end_of(node, started))
                .fold(0.0, f64::max),
            started,
            figures: COMBINED.iter().filter_map(|id| combined(*id, &nodes)).collect(),
            monitor_cpu_seconds: nodes
                .iter()
                .flat_map(|node| &node.monitor)
                .map(|m| m.cpu_seconds)
                .sum(),
            nodes,
        })
    }

    /// A combined figure.
    pub fn figure(&self, id: FigureId) -> Option<&CombinedFigure> {
        self.figures.iter().find(|figure| figure.name == id.name())
    }
}

/// A node without a recording.
fn missing(node: &JobNode) -> NodeSummary {
    NodeSummary {
        name: node.name.clone(),
        state: NodeState::Missing,
        stopped: None,
        started: None,
        duration_seconds: None,
        requested: node.requested,
        cores_allowed: None,
        processes: None,
        figures: Figures::default(),
        monitor: None,
        unreadable: None,
    }
}

/// A node by its recording, and the job that this is of.
fn node(path: &Path, is_over: bool, now: Timestamp) -> (NodeSummary, Option<BatchJob>) {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let bare = missing(&JobNode { name, requested: Requested::default() });
    let opened = Recording::open(path);
    let summary = opened
        .as_ref()
        .map_err(ToString::to_string)
        .and_then(|recording| of(recording).map_err(|error| error.to_string()));
    let summary = match summary {
        Ok(summary) => summary,
        Err(why) => return (NodeSummary { unreadable: Some(why), ..bare }, None),
    };
    let Summary { run, host, job, figures, monitor, processes, .. } = summary;
    let written = files::last_written(path).and_then(|at| Timestamp::try_from(at).ok());
    let is_fresh =
        written.is_some_and(|at| now.as_second() - at.as_second() < SILENT_AFTER_SECONDS);
    let state = match run.stopped {
        Some(_) => NodeState::Ended,
        None if is_over => NodeState::Lost,
        None if is_fresh => NodeState::Recording,
        None => NodeState::Silent,
    };
    let node = NodeSummary {
        state,
        stopped: run.stopped,
        started: Some(run.started),
        duration_seconds: Some(run.duration_seconds),
        requested: job.as_ref().map(|job| job.requested).unwrap_or_default(),
        cores_allowed: Some(host.cores_allowed),
        processes: Some(processes.total),
        figures,
        monitor: Some(monitor),
        ..bare
    };
    (node, job)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Figure;

    fn ended(name: &str, cpu: f64, start: i64, seconds: f64) -> NodeSummary {
        let mut node = missing(&JobNode { name: name.to_owned(), requested: Requested::default() });
        node.state = NodeState::Ended;
        node.started = Timestamp::from_second(start).ok();
        node.duration_seconds = Some(seconds);
        node.figures.insert(FigureId::CpuTime, Figure::exact(cpu, "test"));
        node
    }

    #[test]
    fn figures_of_nodes_are_summed_and_their_imbalance_is_told() {
        let nodes = [ended("n1", 10.0, 0, 60.0), ended("n2", 30.0, 0, 60.0)];
        let cpu = combined(FigureId::CpuTime, &nodes).unwrap();
        assert_eq!((cpu.sum, cpu.mean, cpu.max, cpu.max_node.as_str()), (40.0, 20.0, 30.0, "n2"));
        assert!((cpu.imbalance_ratio.unwrap() - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!(combined(FigureId::MemoryPeak, &nodes), None, "it is known of no node");
    }

    #[test]
    fn nodes_that_are_missing_lost_or_early_are_named() {
        let mut lost = ended("n3", 1.0, 0, 60.0);
        lost.state = NodeState::Lost;
        let absent = missing(&JobNode { name: "n4".to_owned(), requested: Requested::default() });
        let mut first = ended("n1", 1.0, 0, 60.0);
        first.processes = Some(0);
        let nodes = [first, ended("n2", 1.0, 5, 20.0), lost, absent];
        let found = coverage(&nodes, Some(4));
        assert_eq!((found.expected, found.recorded), (Some(4), 3));
        assert_eq!(found.idle, ["n1"]);
        assert_eq!(
            (found.silent, found.ended_early),
            (vec!["n4".to_owned()], vec!["n2".to_owned(), "n3".to_owned()])
        );
    }
}
