//! One node of a job, by its own recording.

use std::path::Path;

use jiff::Timestamp;

use super::{JobClocks, NodeCurve, NodeGpu, NodeState, NodeSummary, ReadNode, SampleGaps, missing};
use crate::catalog::all_groups;
use crate::model::batch_job::{JobNode, Requested};
use crate::record::{self, Moment, Recording, files};
use crate::summary::{Accumulator, GpuSummary, Summary};

/// A recorder writes every two seconds; a file system may take a while.
const SILENT_AFTER_SECONDS: i64 = 60;

/// How many intervals a sample may be late, and how many seconds more, before it is a gap.
const LATE_INTERVALS: f64 = 3.0;
const LATE_SECONDS: f64 = 1.0;

/// Reads the recording of a node.
pub(super) fn read(path: &Path, clocks: &JobClocks, is_over: bool, now: Timestamp) -> ReadNode {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let bare = missing(&JobNode { name, requested: Requested::default() });
    let (of_recording, folded) = match folded(path, clocks) {
        Ok(folded) => folded,
        Err(why) => {
            let summary = NodeSummary { unreadable: Some(why.to_string()), ..bare };
            return ReadNode { summary, curve: NodeCurve::default(), job: None };
        }
    };
    let NodeFold { curve, gaps, losses } = folded;
    let Summary { run, host, job, figures, monitor, processes, gpus, .. } = of_recording;
    let written = files::last_written(path).and_then(|at| Timestamp::try_from(at).ok());
    let is_fresh =
        written.is_some_and(|at| now.as_second() - at.as_second() < SILENT_AFTER_SECONDS);
    let state = match run.stopped {
        Some(_) => NodeState::Ended,
        None if is_over => NodeState::Lost,
        None if is_fresh => NodeState::Recording,
        None => NodeState::Silent,
    };
    let summary = NodeSummary {
        state,
        stopped: run.stopped,
        started: Some(run.started),
        clock: clocks.offsets.get(path).cloned(),
        duration_seconds: Some(run.duration_seconds),
        worked_until_seconds: curve.worked_until(),
        gaps,
        losses,
        requested: job.as_ref().map(|job| job.requested).unwrap_or_default(),
        cores_allowed: Some(host.cores_allowed),
        memory_bytes: host.memory_bytes,
        processes: Some(processes.total),
        figures,
        gpus: gpus.iter().filter(|gpu| gpu.is.is_expected()).map(of_gpu).collect(),
        monitor: Some(monitor),
        ..bare
    };
    ReadNode { summary, curve, job }
}

/// What is made of the frames of a node, beside its summary.
struct NodeFold {
    curve: NodeCurve,
    gaps: SampleGaps,
    losses: Vec<String>,
}

fn folded(path: &Path, clocks: &JobClocks) -> Result<(Summary, NodeFold), record::Error> {
    let ahead = clocks.offsets.get(path).map_or(0.0, |offset| offset.corrected_seconds);
    let recording = Recording::open(path)?.with_clock_ahead(ahead);
    let manifest = recording.manifest();
    let offset = seconds_between(clocks.began.unwrap_or(manifest.started), manifest.started);
    let longest = LATE_INTERVALS * manifest.interval_seconds + LATE_SECONDS;
    let mut accumulator = Accumulator::for_recording(&recording);
    let (mut curve, mut gaps, mut last) = (NodeCurve::default(), SampleGaps::default(), 0.0);
    let frames = recording.replay(&all_groups(), |frame| {
        accumulator.frame(frame);
        let Moment::Tick(tick) = frame.moment else { return };
        if !tick.is_complete() {
            return;
        }
        let (at, totals) = (frame.at(), accumulator.totals(frame.live));
        curve.add(offset + at, totals.cpu.cpu.unwrap_or(0.0), memory(&totals), longest);
        if at - last > longest {
            gaps.count += 1;
            gaps.seconds += at - last;
        }
        last = at;
    })?;
    let losses = recording.losses().sentences().map(str::to_owned).collect();
    Ok((accumulator.finish(frames.live()), NodeFold { curve, gaps, losses }))
}

/// Memory in use, or the sum of resident memory where no more is known.
fn memory(totals: &crate::summary::RunTotals) -> Option<f64> {
    totals.memory.used.or(totals.memory.rss).map(|bytes| bytes as f64)
}

fn seconds_between(from: Timestamp, to: Timestamp) -> f64 {
    (to.as_nanosecond() - from.as_nanosecond()) as f64 / 1e9
}

fn of_gpu(gpu: &GpuSummary) -> NodeGpu {
    NodeGpu {
        name: gpu.is.name.clone(),
        model: gpu.is.model.clone(),
        utilization_mean_ratio: gpu.utilization_mean_ratio,
        memory_peak_bytes: gpu.memory_peak_bytes,
        // Without the list of its processes, a GPU that did nothing is idle all the same.
        is_idle: match (gpu.processes.is_empty(), gpu.processes_peak, gpu.utilization_peak_ratio) {
            (false, ..) => Some(false),
            (true, Some(_), _) => Some(gpu.processes_unknown_peak.unwrap_or(0) == 0),
            (true, None, Some(peak)) => Some(peak == 0.0),
            (true, None, None) => None,
        },
    }
}
