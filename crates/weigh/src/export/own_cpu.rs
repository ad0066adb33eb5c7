//! CPU time of each process by itself, for the table `processes`.

use std::collections::HashMap;

use crate::catalog::Row;
use crate::catalog::metrics::{ProcessCpu, ProcessEvents, ProcessState};
use crate::model::ProcessId;
use crate::record::{self, Event, Frame, Moment, Recording};
use crate::summary::{Method, process_cpu_method};

/// The CPU time of each process of a recording by itself in seconds, and its source.
pub(super) fn of(
    recording: &Recording,
) -> Result<HashMap<ProcessId, (f64, Method)>, record::Error> {
    let mut all = HashMap::new();
    let groups = [ProcessCpu::METRICS, ProcessEvents::METRICS, ProcessState::METRICS];
    let frames = recording.replay(&groups, |frame| all.extend(of_exit(frame)))?;
    for process in frames.live().iter() {
        if let Some([.., together]) = process.own_cpu.sampled() {
            all.insert(process.id, (together, Method::Sampled));
        }
    }
    all.values_mut().for_each(|(_, how)| *how = process_cpu_method(*how, recording.losses()));
    Ok(all)
}

/// What a process that exits in this frame has used.
fn of_exit(frame: &Frame<'_>) -> Option<(ProcessId, (f64, Method))> {
    let Moment::Event(entry) = frame.moment else { return None };
    let Event::ProcessExit { pid, started, usage, cpu_seconds, .. } = &entry.event else {
        return None;
    };
    let id = ProcessId { pid: *pid, started: *started };
    let sampled = frame.live.get(&id).map(|process| process.own_cpu).unwrap_or_default();
    let cpu = sampled.ended(usage.as_ref(), *cpu_seconds, entry.seconds)?;
    let method = if cpu.is_exact { Method::Exact } else { Method::Sampled };
    Some((id, (cpu.times[2], method)))
}
