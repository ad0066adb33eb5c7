//! Phases with known values.

use std::time::Duration;

use crate::catalog::metrics::{
    NodeCpu, ProcessCpu, ProcessIo, ProcessMemory, ProcessState, RunCpu,
};
use crate::model::{Entity, Io, ProcessId, Tick, Usage};
use crate::record::Event;
use crate::record::events::PhaseCommandUsage;
use crate::summary::phases::{MOST_LISTED, MOST_OPEN};
use crate::summary::{Figure, Method, Phase, Summary};
use crate::testing::{FakeRun, MAIN, MIB, usage};

fn start(id: &str, name: &str, parent: Option<&str>) -> Event {
    let parent = parent.map(str::to_owned);
    Event::PhaseStart { id: id.to_owned(), name: name.to_owned(), parent }
}

fn end(id: &str) -> Event {
    Event::PhaseEnd { id: id.to_owned(), usage: None, end: None, account: None }
}

fn clock(tick: &mut Tick, seconds: f64) {
    tick.put(Entity::Single, &RunCpu { time: Some(seconds), ..RunCpu::default() });
}

fn process(tick: &mut Tick, id: ProcessId, rss: u64, peak: u64, written: u64) {
    let entity = Entity::Process(id);
    let memory =
        ProcessMemory { rss: Some(rss), peak: Some(peak), pss: Some(rss), ..Default::default() };
    tick.put(entity, &memory);
    let io = ProcessIo {
        read: Some(0),
        written: Some(written),
        read_calls: Some(0),
        write_calls: Some(0),
        storage_read: Some(0),
        storage_written: Some(0),
        ..ProcessIo::default()
    };
    tick.put(entity, &io);
    tick.put(entity, &ProcessState { threads: Some(1), ..Default::default() });
    let cpu = ProcessCpu {
        user: Some(0.1),
        system: Some(0.0),
        children_user: Some(0.0),
        children_system: Some(0.0),
        ..ProcessCpu::default()
    };
    tick.put(entity, &cpu);
}

fn phase<'a>(summary: &'a Summary, id: &str) -> &'a Phase {
    summary.phases.iter().find(|phase| phase.id == id).unwrap()
}

fn figure(summary: &Summary, id: &str, name: &str) -> Figure {
    phase(summary, id).figures[name].clone()
}

fn is(figure: &Figure, value: f64) {
    let off = (figure.value.unwrap() - value).abs();
    assert!(off < 1e-9, "{figure:?} is not {value}");
    assert!(figure.lower.unwrap() <= value + 1e-9, "{figure:?}");
    assert!(figure.upper.is_none_or(|upper| upper >= value - 1e-9), "{figure:?}");
}

/// Two steps, each with its own samples at both ends.
fn two_steps() -> Summary {
    let mut run = FakeRun::new();
    run.sample(0.0, |tick| {
        clock(tick, 0.0);
        process(tick, MAIN, 10 * MIB, 10 * MIB, 0);
    });
    run.event(1.0, start("a", "load", None));
    run.sample(1.001, |tick| {
        clock(tick, 0.5);
        process(tick, MAIN, 10 * MIB, 10 * MIB, 100);
    });
    run.event(2.0, end("a")).event(2.0, start("b", "solve", None));
    run.sample(2.001, |tick| {
        clock(tick, 1.25);
        process(tick, MAIN, 50 * MIB, 300 * MIB, 1100);
    });
    run.event(3.0, end("b"));
    run.sample(3.001, |tick| {
        clock(tick, 1.5);
        process(tick, MAIN, 50 * MIB, 300 * MIB, 1150);
    });
    run.reaped(4.0, MAIN, usage(2.0, 300 * MIB));
    run.ends(4.0, |end| end.task_clock_seconds = Some(2.0)).summary()
}

#[test]
fn step_has_what_the_run_used_between_the_samples_at_its_ends() {
    let summary = two_steps();
    for (id, seconds, bytes) in [("a", 0.75, 1000.0), ("b", 0.25, 50.0)] {
        let cpu = figure(&summary, id, "cpu_time_seconds");
        is(&cpu, seconds);
        assert_eq!(cpu.method, Some(Method::Exact));
        // One millisecond on four cores at either end.
        assert!(cpu.upper.unwrap() - cpu.lower.unwrap() <= 0.016 + 1e-9, "{cpu:?}");
        is(&figure(&summary, id, "io_written_bytes"), bytes);
        is(&figure(&summary, id, "cpu_cores_mean"), seconds);
    }
}

#[test]
fn high_water_mark_counts_for_the_phase_in_which_it_rose() {
    let summary = two_steps();
    let (load, solve) =
        (figure(&summary, "a", "memory_peak_bytes"), figure(&summary, "b", "memory_peak_bytes"));
    is(&load, (300 * MIB) as f64);
    assert_eq!(load.method, Some(Method::Exact));
    assert_eq!(solve.value, Some((50 * MIB) as f64), "what it was before is not in it");
    assert_eq!(solve.upper, Some((300 * MIB) as f64), "though it may have been there again");
    assert_eq!(solve.method, Some(Method::Sampled));
}

#[test]
fn boundary_without_its_own_sample_is_reported_as_interpolated() {
    let mut run = FakeRun::new();
    run.sample(0.0, |tick| clock(tick, 0.0));
    run.event(1.0, start("a", "load", None)).event(3.0, end("a"));
    run.sample(4.0, |tick| clock(tick, 2.0));
    let cpu = figure(&run.ends(4.0, |_| {}).summary(), "a", "cpu_time_seconds");
    is(&cpu, 1.0);
    assert_eq!((cpu.method, cpu.lower, cpu.upper), (Some(Method::Sampled), Some(0.0), Some(2.0)));
    assert!(cpu.reason.unwrap().starts_with("interpolated"));
}

#[test]
fn steal_time_is_not_in_the_phase() {
    let mut run = FakeRun::new();
    let stolen = |tick: &mut Tick, seconds: f64| {
        let cpu = NodeCpu { steal: Some(seconds), ..NodeCpu::default() };
        tick.put(Entity::Single, &cpu);
    };
    let used = |tick: &mut Tick, seconds: f64| {
        let (user, children_user) = (Some(seconds), Some(0.0));
        let cpu = ProcessCpu {
            user,
            system: Some(0.0),
            children_user,
            children_system: Some(0.0),
            ..ProcessCpu::default()
        };
        tick.put(Entity::Process(MAIN), &cpu);
    };
    run.event(1.0, start("a", "slow", None));
    for (at, ran, counted, stolen_seconds) in [(1.001, 0.1, 0.1, 5.0), (2.001, 0.7, 0.8, 5.3)] {
        run.sample(at, |tick| {
            clock(tick, counted);
            used(tick, ran);
            stolen(tick, stolen_seconds);
        });
        run.event(2.0, end("a"));
    }
    let cpu = figure(&run.ends(3.0, |_| {}).summary(), "a", "cpu_time_seconds");
    is(&cpu, 0.6);
    assert!(cpu.upper.unwrap() >= 0.7 && cpu.lower.unwrap() <= 0.4, "{cpu:?}");
}

const COMMAND: ProcessId = ProcessId { pid: 20, started: 200 };
const OTHER: ProcessId = ProcessId { pid: 30, started: 300 };

fn command(id: &str, process: ProcessId) -> Event {
    Event::PhaseCommand { id: id.to_owned(), pid: process.pid, started: process.started }
}

fn ended_with(id: &str, cpu: f64, largest: u64, clock: f64) -> Event {
    let usage = Usage { user_seconds: cpu, largest_rss_bytes: largest, ..Usage::default() };
    let io = Some(Io { written_bytes: 7, ..Io::default() });
    let account =
        PhaseCommandUsage { task_clock_seconds: Some(clock), io, rss_before_exec_bytes: 4 * MIB };
    Event::PhaseEnd { id: id.to_owned(), usage: Some(usage), end: None, account: Some(account) }
}

/// Two phases with commands at once, one of which has a child.
fn two_commands() -> Summary {
    let child = ProcessId { pid: 21, started: 201 };
    let mut run = FakeRun::new();
    run.event(1.0, start("a", "same", None))
        .event(1.0, start("b", "same", None))
        .starts_under(1.0, COMMAND, MAIN.pid, "work")
        .starts_under(1.0, OTHER, MAIN.pid, "work")
        .event(1.0, command("a", COMMAND))
        .event(1.0, command("b", OTHER))
        .starts_under(1.5, child, COMMAND.pid, "work");
    run.sample(1.5, |tick| {
        clock(tick, 1.0);
        process(tick, COMMAND, 10 * MIB, 10 * MIB, 0);
        process(tick, child, 40 * MIB, 40 * MIB, 0);
        process(tick, OTHER, 500 * MIB, 600 * MIB, 0);
    });
    run.event(2.0, ended_with("a", 0.5, 40 * MIB, 0.5));
    run.event(2.0, ended_with("b", 0.25, 600 * MIB, 0.75));
    run.sample(2.001, |tick| clock(tick, 2.0));
    run.ends(3.0, |end| end.task_clock_seconds = Some(2.0)).summary()
}

#[test]
fn concurrent_commands_have_their_own_time_memory_and_threads() {
    let summary = two_commands();
    let cpu = figure(&summary, "a", "cpu_time_seconds");
    assert_eq!((cpu.value, cpu.method, cpu.upper), (Some(0.5), Some(Method::Exact), Some(0.5)));
    is(&figure(&summary, "a", "memory_peak_bytes"), (50 * MIB) as f64);
    is(&figure(&summary, "b", "memory_peak_bytes"), (600 * MIB) as f64);
    is(&figure(&summary, "a", "threads_peak"), 2.0);
    is(&figure(&summary, "b", "threads_peak"), 1.0);
    let written = figure(&summary, "a", "io_written_bytes");
    assert_eq!((written.value, written.method), (Some(7.0), Some(Method::Exact)));
    assert_eq!(written.reason, None, "nothing of it is anybody else's");
}

#[test]
fn size_of_weigh_itself_is_not_the_largest_process_of_a_phase() {
    let largest = |bytes: u64| {
        let mut run = FakeRun::new();
        run.event(1.0, start("a", "work", None)).event(1.0, command("a", COMMAND));
        run.event(2.0, ended_with("a", 0.5, bytes, 0.5));
        run.ends(3.0, |_| {}).summary().phases[0].largest_process_bytes
    };
    assert_eq!(largest(4 * MIB), None, "the process had that before it became the command");
    assert_eq!(largest(40 * MIB), Some(40 * MIB));
}

#[test]
fn auto_reaped_children_of_a_command_are_in_its_task_clock() {
    let summary = two_commands();
    let cpu = figure(&summary, "b", "cpu_time_seconds");
    assert_eq!((cpu.value, cpu.method), (Some(0.75), Some(Method::Exact)));
    let written = figure(&summary, "b", "io_written_bytes");
    assert_eq!((written.method, written.upper), (Some(Method::Sampled), None));
}

#[test]
fn figures_of_the_whole_run_note_it_when_other_phases_ran() {
    let mut run = FakeRun::new();
    run.event(1.0, start("a", "one", None)).event(1.5, start("b", "two", None));
    run.event(1.6, start("c", "inner", Some("b")));
    run.sample(1.7, |tick| clock(tick, 1.0));
    run.event(2.0, end("c")).event(2.0, end("a")).event(2.5, end("b"));
    run.event(2.6, start("d", "alone", None));
    run.sample(2.6, |tick| clock(tick, 2.0));
    run.event(2.9, end("d"));
    let summary = run.ends(3.0, |end| end.task_clock_seconds = Some(2.0)).summary();
    for (id, shared) in [("a", true), ("b", true), ("c", true), ("d", false)] {
        let reason = figure(&summary, id, "cpu_time_seconds").reason.unwrap_or_default();
        assert_eq!(reason.contains("other phases"), shared, "{id}: {reason}");
    }
}

#[test]
fn command_too_short_to_sample_has_its_size_and_no_threads() {
    let mut run = FakeRun::new();
    run.event(1.0, start("a", "short", None)).event(1.0, command("a", COMMAND));
    run.sample(1.001, |tick| clock(tick, 0.0));
    run.event(1.002, ended_with("a", 0.001, 90 * MIB, 0.001));
    run.sample(1.003, |tick| clock(tick, 0.001));
    let summary = run.ends(2.0, |_| {}).summary();
    is(&figure(&summary, "a", "memory_peak_bytes"), (90 * MIB) as f64);
    let threads = figure(&summary, "a", "threads_peak");
    assert_eq!((threads.value, threads.reason.is_some()), (None, true));
}

#[test]
fn phase_without_an_end_has_what_was_sampled_and_notes_it() {
    let mut run = FakeRun::new();
    run.event(1.0, start("a", "lost", None));
    run.sample(1.001, |tick| clock(tick, 0.5));
    run.sample(2.0, |tick| clock(tick, 1.0));
    let summary = run.summary();
    assert_eq!(phase(&summary, "a").duration_seconds, None);
    let cpu = figure(&summary, "a", "cpu_time_seconds");
    assert_eq!((cpu.value, cpu.method, cpu.upper), (Some(0.5), Some(Method::Sampled), None));
    assert!(cpu.reason.unwrap().contains("end is not recorded"));
}

#[test]
fn values_not_measured_are_null_with_a_reason_and_not_zero() {
    let mut run = FakeRun::new();
    run.event(1.0, start("a", "blind", None)).event(2.0, end("a"));
    let summary = run.ends(3.0, |_| {}).summary();
    for (id, figure) in phase(&summary, "a").figures.iter() {
        assert_eq!(figure.value, None, "{id:?}");
        assert!(figure.reason.is_some(), "{id:?}");
    }
}

#[test]
fn memory_of_the_monitor_does_not_grow_with_the_length_of_a_phase() {
    let size = |ticks: u32| {
        let mut run = FakeRun::new();
        run.event(0.5, start("a", "long", None));
        for second in 1..ticks {
            run.sample(f64::from(second), |tick| {
                clock(tick, 0.1);
                process(tick, MAIN, u64::from(second), u64::from(second), 0);
            });
        }
        format!("{:?}", run.accumulator().phases).len()
    };
    assert!(size(2000) < size(20) + 100);
}

#[test]
fn summary_from_before_phases_had_figures_is_still_read() {
    let old = r#"{"id": "1", "name": "a", "parent": null, "start_seconds": 0.5,
        "duration_seconds": 1.0, "cpu_time_seconds": null, "largest_process_bytes": null}"#;
    let phase: Phase = serde_json::from_str(old).unwrap();
    assert!(phase.figures.iter().next().is_none());
    let event = r#"{"seconds":1.0,"event":"phase_end","id":"1"}"#;
    let entry: crate::record::Entry = serde_json::from_str(event).unwrap();
    assert_eq!(entry, crate::record::Entry::new(Duration::from_secs(1), end("1")));
}

#[test]
fn many_phases_are_listed_up_to_a_number_and_are_all_in_the_statistics() {
    let mut run = FakeRun::new();
    for number in 0..3_000 {
        let (id, at) = (number.to_string(), f64::from(number));
        run.phase_starts(at, &id, "loop").phase_ends(at + 0.5, &id).sample(at + 0.75, |_| {});
    }
    let summary = run.summary();
    assert_eq!(summary.phases.len(), MOST_LISTED);
    assert_eq!(summary.phases_not_listed, 3_000 - MOST_LISTED as u64);
    let [named] = &summary.named_phases()[..] else { panic!("one name") };
    assert_eq!((named.count, named.total_seconds), (3_000, 1_500.0));
}

#[test]
fn open_phases_are_tracked_up_to_a_number_and_the_others_are_counted() {
    let mut run = FakeRun::new();
    for id in 0..100_000 {
        run.phase_starts(1.0, &id.to_string(), "open");
    }
    run.sample(2.0, |_| {});
    let summary = run.summary();
    assert_eq!(summary.phases.len(), MOST_OPEN);
    let faults = &summary.monitor.faults;
    assert!(faults.iter().any(|one| one.contains("99000 phases are in no figure")), "{faults:?}");
}
