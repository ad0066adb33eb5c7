//! Incomplete recordings, and what is left of their figures.
#![allow(clippy::disallowed_methods, reason = "a recording is damaged on purpose")]

use std::path::Path;

use super::*;
use crate::catalog::metrics::{NodeCpu, ProcessMemory};
use crate::model::{End, Entity, ProcessId};
use crate::record::{Event, Recording};
use crate::summary;
use crate::testing::{CHILD, FakeRun, MAIN, MIB, cpu, memory, usage};

/// Two processes for four seconds, and their final counters.
fn record(path: &Path) {
    let mut run = FakeRun::new();
    run.starts(0.0, MAIN, "work").starts_under(0.0, CHILD, MAIN.pid, "work");
    run.phase_starts(0.5, "step-0", "solve");
    for second in 1..=4_u64 {
        let (time, size) = (second as f64 / 2.0, 100 * MIB * second);
        run.sample(second as f64, |tick| {
            for id in [MAIN, CHILD] {
                cpu(tick, id, time, 0.0);
                memory(tick, id, size, size, Some(size));
            }
            let (user, idle) = (Some(time), Some(time));
            tick.put(Entity::Single, &NodeCpu { user, idle, ..NodeCpu::default() });
        });
    }
    run.phase_ends(4.2, "step-0");
    for (id, usage) in [(MAIN, Some(usage(4.0, 0))), (CHILD, None)] {
        let mut exit = Event::ended(id, Some(End::Code(0)), usage);
        if let Event::ProcessExit { cpu_seconds, .. } = &mut exit {
            *cpu_seconds = Some(2.0);
        }
        run.event(4.5, exit);
    }
    run.ends(4.6, |end| {
        (end.duration_seconds, end.task_clock_seconds) = (4.5, Some(4.0));
    });
    run.record(path);
}

fn cut(path: &Path, bytes: u64) {
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(file.metadata().unwrap().len() - bytes).unwrap();
}

fn of(path: &Path) -> Summary {
    summary::of(&Recording::open(path).unwrap()).unwrap()
}

#[test]
fn truncated_stream_leaves_lower_bounds_and_exact_final_counters() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run");
    record(&path);
    let whole = of(&path);
    assert!(whole.run.complete && whole.monitor.faults.is_empty(), "{:?}", whole.monitor);
    assert_eq!(whole.processes.total, 2);
    assert!(!whole.processes.may_miss_processes);
    assert!(whole.figures["memory_peak_bytes"].upper.is_some());
    cut(&path.join("node-a/process.arrows"), 40);
    let torn = of(&path);
    assert!(!torn.run.complete);
    assert_eq!(torn.run.exit_code, Some(0), "the end is recorded");
    assert_eq!(torn.processes.total, 2, "they have started, whether there are rows or not");
    assert!(torn.processes.may_miss_processes);
    assert!(torn.monitor.faults[0].contains("process.arrows"), "{:?}", torn.monitor.faults);
    let memory = &torn.figures["memory_peak_bytes"];
    assert_eq!((memory.value, memory.upper), (None, None));
    let reason = memory.reason.as_deref().unwrap();
    assert!(reason.starts_with("the recording is incomplete"), "{reason}");
    assert_eq!(torn.figures["cpu_time_seconds"], whole.figures["cpu_time_seconds"]);
    assert!(torn.findings.iter().any(|finding| finding.code == "run.not_whole"));
}

#[test]
fn nothing_is_exact_when_events_are_missing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run");
    record(&path);
    let events = path.join("events.jsonl");
    let text = std::fs::read_to_string(&events).unwrap();
    let without_exits: Vec<&str> =
        text.split_inclusive('\n').filter(|line| !line.contains("process_exit")).collect();
    std::fs::write(&events, without_exits.concat()).unwrap();
    let lossy = of(&path);
    assert!(!lossy.run.complete && lossy.processes.may_miss_processes);
    let all = [&lossy.figures, &lossy.parts.main.figures, &lossy.parts.system.figures];
    for (id, figure) in all.into_iter().flat_map(Figures::iter) {
        assert_ne!(figure.method, Some(Method::Exact), "{id:?}: {figure:?}");
        assert_eq!(figure.upper, None, "{id:?}: {figure:?}");
    }
    // Processes without a recorded exit are not added to the final counters.
    assert_eq!(lossy.figures["cpu_time_seconds"].value, Some(4.0));
    assert_eq!(lossy.figures["memory_peak_bytes"].lower, None, "lines were taken out");
    std::fs::write(&events, text).unwrap();
    cut(&events, 5);
    let memory = &of(&path).figures["memory_peak_bytes"];
    assert_eq!(memory.lower, Some((400 * MIB) as f64), "one process by itself");
}

#[test]
fn processes_with_lost_exits_are_not_counted_together_with_later_ones() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run");
    let mut run = FakeRun::new();
    // One after the other; every second one is too short for a row.
    for pid in 10..20 {
        let (id, at) = (ProcessId { pid, started: 100 }, f64::from(pid));
        run.starts(at, id, "work").sample(at + 0.1, |tick| {
            if pid % 2 == 0 {
                cpu(tick, id, 0.1, 0.0);
            }
        });
        run.exits(at + 0.5, id);
    }
    run.record(&path);
    assert_eq!(of(&path).processes.peak, 1);
    let events = path.join("events.jsonl");
    let text = std::fs::read_to_string(&events).unwrap();
    let without_exits: Vec<&str> =
        text.split_inclusive('\n').filter(|line| !line.contains("process_exit")).collect();
    std::fs::write(&events, without_exits.concat()).unwrap();
    let lossy = of(&path).processes;
    assert_eq!((lossy.total, lossy.peak, lossy.may_miss_processes), (10, 1, true));
}

#[test]
fn corrupted_bytes_leave_only_the_bounds_of_the_final_counters() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run");
    record(&path);
    let whole = of(&path);
    let stream = path.join("node-a/process.arrows");
    let mut bytes = std::fs::read(&stream).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&stream, bytes).unwrap();
    let changed = of(&path);
    assert!(!changed.run.complete);
    let memory = &changed.figures["memory_peak_bytes"];
    assert_eq!((memory.lower, memory.upper), (None, None));
    assert_eq!(changed.figures["cpu_time_seconds"], whole.figures["cpu_time_seconds"]);
}

#[test]
fn huge_pages_in_a_corrupted_recording_are_not_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run");
    let mut run = FakeRun::new();
    let hugetlb = ProcessMemory { hugetlb: Some(MIB), ..ProcessMemory::default() };
    run.starts(0.0, MAIN, "work");
    run.sample(1.0, |tick| tick.put(Entity::Process(MAIN), &hugetlb));
    run.reaped(2.0, MAIN, usage(1.0, MIB)).ends(2.0, |_| {}).record(&path);
    let has_figure = || of(&path).figures.get(FigureId::MemoryHugetlbPeak).is_some();
    assert!(has_figure());
    // Which bytes were changed is not known: they may be these.
    let stream = path.join("node-a/process.arrows");
    let mut bytes = std::fs::read(&stream).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&stream, bytes).unwrap();
    assert!(!has_figure());
}

#[test]
fn tools_and_phases_of_an_incomplete_recording_are_not_exact() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run");
    record(&path);
    let methods = |path: &Path| {
        let summary = of(path);
        let duration = summary.named_phases()[0].duration_seconds.method;
        (summary.tools[0].cpu_time_method, duration)
    };
    assert_eq!(methods(&path), (Some(Method::Exact), Some(Method::Exact)));
    cut(&path.join("node-a/process.arrows"), 40);
    assert_eq!(methods(&path), (Some(Method::Sampled), Some(Method::Sampled)));
    let events = path.join("events.jsonl");
    let text = std::fs::read_to_string(&events).unwrap();
    std::fs::write(&events, text.replacen("4.2", "4.1", 1)).unwrap();
    assert_eq!(methods(&path), (Some(Method::Estimated), Some(Method::Sampled)));
}
