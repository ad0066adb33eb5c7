//! Merged recordings, against runs with known results.

mod gpus;

use std::path::Path;

use super::*;
use crate::catalog::metrics::{NodeMemory, OwnCost};
use crate::catalog::{FigureId, Scope, all_groups};
use crate::model::{End, Entity, ProcessId, Usage, numbering};
use crate::record::StopReason;
use crate::record::{Event, Moment, Target};
use crate::testing::{FakeRun, GIB, cpu, cpu_with_children, sizes, usage};

/// Where and when a recording is made.
#[derive(Clone, Copy)]
struct Setting {
    /// Seconds after the first.
    late: f64,
    host: &'static str,
    boot: Option<&'static str>,
    namespace: Option<&'static str>,
    /// The command's process.
    main: ProcessId,
}

/// When recordings are merged.
const NOW: Duration = Duration::from_secs(1_700_000_100);

const HERE: Setting = Setting {
    late: 0.0,
    host: "node-a",
    boot: Some("boot-a"),
    namespace: Some("pid:[1]"),
    main: ProcessId { pid: 10, started: 5000 },
};

/// A run of `work` that begins there and then.
fn run_at(name: &str, setting: Setting) -> FakeRun {
    let mut run = FakeRun::new();
    let manifest = &mut run.manifest;
    manifest.id = name.to_owned();
    manifest.host.name = setting.host.to_owned();
    manifest.host.boot = setting.boot.map(str::to_owned);
    manifest.host.pid_namespace = setting.namespace.map(str::to_owned);
    manifest.started += Duration::from_secs_f64(setting.late);
    (manifest.pid, manifest.process_started) = (setting.main.pid, setting.main.started);
    run
}

/// A sample of the CPU time and size of all processes, of the machine and of weigh.
fn sample_of(rows: &[(ProcessId, f64, u64)]) -> impl FnOnce(&mut Tick) {
    move |tick| {
        for (id, used, bytes) in rows {
            cpu(tick, *id, *used, 0.0);
            sizes(tick, *id, *bytes, Some((*bytes, *bytes)));
        }
        let memory =
            NodeMemory { total: Some(8 * GIB), available: Some(4 * GIB), ..Default::default() };
        tick.put(Entity::Single, &memory);
        tick.put(Entity::Single, &OwnCost { user: Some(0.5), ..OwnCost::default() });
    }
}

fn recorded(directory: &Path, run: &FakeRun) -> Recording {
    run.record(&directory.join(&run.manifest.id))
}

/// The command has exited, and everything it did was reaped.
fn ended(directory: &Path, mut run: FakeRun, seconds: f64, cpu: f64, end: End) -> Recording {
    let main = run.manifest.main();
    run.event(seconds, Event::ended(main, None, Some(usage(cpu, GIB))));
    run.ends(seconds, |run_end| {
        run_end.end = Some(end);
        run_end.task_clock_seconds = Some(cpu);
        run_end.monitor_cpu_seconds = 0.5;
    });
    recorded(directory, &run)
}

/// It is no longer monitored; a task clock that was started after 10 ms has the CPU time.
fn stopped(
    directory: &Path,
    mut run: FakeRun,
    seconds: f64,
    left: &[ProcessId],
    clock: Option<f64>,
) -> Recording {
    run.stops(seconds, |end| {
        end.still_running = left.iter().map(|id| id.pid).collect();
        end.task_clock_seconds = clock;
        end.task_clock_began_seconds = clock.map(|_| 0.01);
        end.monitor_cpu_seconds = 0.5;
    });
    recorded(directory, &run)
}

/// A worker with so much memory from its first second to its fourth, using one core.
fn worker(directory: &Path, name: &str, setting: Setting) -> Recording {
    let mut run = run_at(name, setting);
    let main = setting.main;
    run.starts(0.0, main, "gulmc").sample(0.0, sample_of(&[(main, 0.0, 1)]));
    for second in 1..4 {
        run.sample(f64::from(second), sample_of(&[(main, f64::from(second), GIB)]));
    }
    ended(directory, run, 4.0, 4.0, End::Code(0))
}

fn merged(directory: &Path, recordings: &[Recording]) -> (Summary, Recording) {
    let out = directory.join("all");
    let merged = merge(recordings, Some(&out), None, NOW, |_| {}).unwrap();
    let recording = Recording::open(&out).unwrap();
    assert_eq!(merged.summary, summary::of(&recording).unwrap());
    (merged.summary, recording)
}

fn value(summary: &Summary, name: &str) -> f64 {
    summary.figures[name].value.unwrap_or_else(|| panic!("{name}: {:?}", summary.figures[name]))
}

#[test]
fn four_workers_with_a_gibibyte_each_are_four_gibibytes() {
    let directory = tempfile::tempdir().unwrap();
    // In containers of one machine, with equal pids, and each samples at its own times.
    let settings = [
        ("a", 0.0, "pid:[1]"),
        ("b", 0.3, "pid:[2]"),
        ("c", 0.5, "pid:[3]"),
        ("d", 0.7, "pid:[4]"),
    ];
    let recordings = settings.map(|(name, late, namespace)| {
        let started = 5000 + (late * 100.0) as u64;
        let main = ProcessId { pid: 10, started };
        let setting = Setting { late, namespace: Some(namespace), main, ..HERE };
        worker(directory.path(), name, setting)
    });
    let (summary, recording) = merged(directory.path(), &recordings);
    assert_eq!(value(&summary, "memory_peak_bytes"), 4.0 * GIB as f64);
    assert_eq!(value(&summary, "memory_rss_peak_bytes"), 4.0 * GIB as f64);
    let cpu = &summary.figures["cpu_time_seconds"];
    assert_eq!((cpu.value, cpu.method), (Some(16.0), Some(summary::Method::Exact)));
    assert!((summary.run.duration_seconds - 4.7).abs() < 1e-6, "{}", summary.run.duration_seconds);
    let tool = &summary.tools[0];
    assert_eq!((tool.name.as_str(), tool.instances, tool.instances_peak), ("gulmc", 4, Some(4)));
    assert_eq!((tool.cpu_time_seconds, tool.memory_uss_peak_bytes), (Some(12.0), Some(4 * GIB)));
    assert_eq!((summary.processes.total, summary.processes.peak), (4, 4));
    // The machine is one, and its memory is not four times as large.
    let used = &summary.parts.system.figures["memory_used_peak_bytes"];
    assert_eq!(used.value, Some(4.0 * GIB as f64));
    assert_eq!((summary.host.cores, summary.host.memory_bytes), (4, Some(8 * GIB)));
    assert_eq!((summary.monitor.cpu_seconds, summary.monitor.ticks), (2.0, 16));
    // All are on one clock: the last started 0.7 s after the first.
    let last = recording.manifest().mains()[3];
    assert_eq!(last.started - recording.manifest().zero(), 70);
    assert_eq!(numbering::shown(last.pid), "4:10");
}

#[test]
fn what_is_measured_after_the_command_is_in_the_time_of_all() {
    let directory = tempfile::tempdir().unwrap();
    let daemon = ProcessId { pid: 11, started: 5001 };
    let (main, reaped) = (HERE.main, Usage { user_seconds: 4.0, ..Usage::default() });
    let mut run = run_at("a", HERE);
    run.starts(0.0, main, "work")
        .starts(0.0, daemon, "daemon")
        .sample(0.0, sample_of(&[(daemon, 0.0, GIB)]));
    run.event(1.0, Event::ended(main, None, Some(Usage::default())))
        .sample(3.0, sample_of(&[(daemon, 3.0, GIB)]));
    run.event(8.0, Event::ended(daemon, None, Some(reaped)));
    // Of a version that did not record how long it measured.
    run.ends(8.1, |end| {
        (end.duration_seconds, end.measured_seconds) = (1.0, None);
        end.task_clock_seconds = Some(4.0);
    });
    let there = Setting { host: "node-b", boot: Some("boot-b"), ..HERE };
    let recordings = [recorded(directory.path(), &run), worker(directory.path(), "b", there)];
    assert_eq!(summary::of(&recordings[0]).unwrap().run.measured(), 8.0);
    let (summary, _) = merged(directory.path(), &recordings);
    assert_eq!((summary.run.duration_seconds, summary.run.measured()), (4.0, 8.0));
    assert_eq!(value(&summary, "cpu_cores_mean"), 1.0);
}

#[test]
fn workers_on_different_machines_add_up_and_no_machine_represents_all() {
    let directory = tempfile::tempdir().unwrap();
    let there = Setting { host: "node-b", boot: Some("boot-b"), ..HERE };
    let main = ProcessId { pid: 10, started: 77 };
    let recordings = [
        worker(directory.path(), "a", HERE),
        worker(directory.path(), "b", Setting { late: 1.5, main, ..there }),
    ];
    let (summary, recording) = merged(directory.path(), &recordings);
    assert_eq!(value(&summary, "memory_peak_bytes"), 2.0 * GIB as f64);
    assert_eq!(value(&summary, "cpu_time_seconds"), 8.0);
    assert_eq!((summary.host.cores, summary.host.name.as_str()), (8, "node-a, node-b"));
    let used = &summary.parts.system.figures["memory_used_peak_bytes"];
    assert_eq!(used.value, None);
    assert!(used.reason.as_deref().unwrap().contains("several machines"), "{used:?}");
    assert!(recording.batches(Scope::Node).unwrap().is_none());
    assert!(recording.losses().is_empty(), "{:?}", recording.losses());
    // On a machine that booted later, the same moment has a smaller number.
    let mains = recording.manifest().mains();
    let born = |main: ProcessId| main.started - recording.manifest().zero();
    assert_eq!(mains.into_iter().map(born).collect::<Vec<_>>(), [0, 150]);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a recording is damaged on purpose")]
fn merged_recording_reports_that_one_of_its_members_was_changed_and_why() {
    let directory = tempfile::tempdir().unwrap();
    let long = directory.path().join("long".repeat(40));
    std::fs::create_dir(&long).unwrap();
    let [first, second] = ["a", "b"].map(|name| worker(&long, name, HERE));
    let run = first.directory().join("run.json");
    let text = std::fs::read_to_string(&run).unwrap();
    std::fs::write(&run, format!("{text} ")).unwrap();
    let changed = Recording::open(first.directory()).unwrap();
    assert!(changed.losses().are_changes());
    let (_, merged) = merged(directory.path(), &[changed, second]);
    assert!(merged.losses().are_changes(), "{:?}", merged.losses());
    let sentence = merged.losses().sentences().next().unwrap();
    assert!(sentence.contains("its checksum differs"), "{sentence}");
}

#[test]
fn recordings_without_a_boot_id_stay_apart() {
    let directory = tempfile::tempdir().unwrap();
    let nowhere = Setting { boot: None, namespace: None, ..HERE };
    let recordings = ["a", "b"].map(|name| worker(directory.path(), name, nowhere));
    let (summary, _) = merged(directory.path(), &recordings);
    assert_eq!(summary.processes.total, 2);
    assert_eq!(value(&summary, "cpu_time_seconds"), 8.0);
}

/// Monitors processes that ran before, from five seconds after the boot's 50th on.
fn watch(name: &str, late: f64, attach_clock_ticks: u64) -> FakeRun {
    let setting = Setting { late, main: ProcessId { pid: 0, started: 0 }, ..HERE };
    let mut run = run_at(name, setting);
    run.manifest.target = Some(Target::Processes { pids: vec![20] });
    run.manifest.attach_clock_ticks = Some(attach_clock_ticks);
    run
}

#[test]
fn a_process_in_two_recordings_is_counted_once() {
    let directory = tempfile::tempdir().unwrap();
    let shared = ProcessId { pid: 20, started: 100 };
    // It had used 50 s when the first attached, and 52 s when the second did.
    let mut first = watch("a", 0.0, 5000);
    first.starts(0.0, shared, "solver").sample(0.0, sample_of(&[(shared, 50.0, GIB)]));
    for second in 1..=4 {
        first.sample(f64::from(second), sample_of(&[(shared, 50.0 + f64::from(second), GIB)]));
    }
    let mut second = watch("b", 2.0, 5200);
    second.starts(0.0, shared, "solver");
    for step in 0..=4 {
        second.sample(f64::from(step) + 0.1, sample_of(&[(shared, 52.1 + f64::from(step), GIB)]));
    }
    let recordings = [
        stopped(directory.path(), first, 4.5, &[shared], None),
        stopped(directory.path(), second, 4.5, &[shared], None),
    ];
    let (summary, recording) = merged(directory.path(), &recordings);
    assert_eq!(value(&summary, "memory_rss_peak_bytes"), GIB as f64);
    assert!(
        (value(&summary, "cpu_time_seconds") - 6.1).abs() < 1e-9,
        "{:?}",
        summary.figures["cpu_time_seconds"]
    );
    assert_eq!(summary.figures["cpu_time_seconds"].method, Some(summary::Method::Sampled));
    assert_eq!((summary.processes.total, summary.tools[0].instances), (1, 1));
    assert_eq!(summary.run.stopped, Some(StopReason::StopRequested));
    let left: Vec<_> =
        summary.processes.still_running.iter().map(|one| (one.pid, one.name.as_str())).collect();
    assert_eq!(left, [(20, "solver")]);
    let starts = recording
        .entries()
        .iter()
        .filter(|entry| matches!(entry.event, Event::ProcessStart { .. }));
    assert_eq!(starts.count(), 1);
}

#[test]
fn task_clocks_of_commands_and_of_attached_runs_add_up() {
    let directory = tempfile::tempdir().unwrap();
    let watched = ProcessId { pid: 20, started: 100 };
    let mut watch = watch("a", 0.0, 5000);
    watch.starts(0.0, watched, "solver").sample(0.0, sample_of(&[(watched, 50.0, GIB)]));
    let watch = stopped(directory.path(), watch, 4.5, &[watched], Some(2.5));
    let run = worker(directory.path(), "b", HERE);
    let (summary, _) = merged(directory.path(), &[watch, run]);
    let cpu = &summary.figures["cpu_time_seconds"];
    assert_eq!((cpu.value, cpu.method), (Some(6.5), Some(summary::Method::Exact)));
    // Before the clock was started four cores may have been in use.
    assert_eq!(cpu.upper, Some(6.54));
}

#[test]
fn a_run_inside_a_run_is_counted_once() {
    let directory = tempfile::tempdir().unwrap();
    let inner = ProcessId { pid: 12, started: 5100 };
    let mut outer = run_at("a", HERE);
    outer.starts(0.0, HERE.main, "script").starts_under(1.0, inner, HERE.main.pid, "gulmc");
    outer.sample(1.5, sample_of(&[(HERE.main, 0.1, 1), (inner, 0.4, GIB)]));
    // The inner run records its end at 5.0, and the outer one a little earlier.
    outer.exits(4.9, inner);
    let outer = ended(directory.path(), outer, 6.0, 4.1, End::Code(0));
    let nested = worker(directory.path(), "b", Setting { late: 1.0, main: inner, ..HERE });
    let (summary, _) = merged(directory.path(), &[outer, nested]);
    assert_eq!((summary.processes.total, summary.tools.len()), (2, 2));
    assert_eq!(value(&summary, "memory_rss_peak_bytes"), GIB as f64 + 1.0);
    let cpu = &summary.figures["cpu_time_seconds"];
    assert_eq!((cpu.value, cpu.method), (Some(4.1), Some(summary::Method::Sampled)));
}

#[test]
fn the_memory_bound_holds_for_processes_that_ran_between_two_ticks() {
    let directory = tempfile::tempdir().unwrap();
    let (main, other) = (HERE.main, ProcessId { pid: 30, started: 5000 });
    let (early, late) =
        (ProcessId { pid: 11, started: 5010 }, ProcessId { pid: 12, started: 5060 });
    let mut first = run_at("a", HERE);
    first.starts(0.0, main, "script").starts_under(0.5, early, main.pid, "one");
    first.sample(0.5, sample_of(&[(main, 0.0, 1), (early, 0.0, GIB)]));
    // The second ran at 0.6 s, with the first, and there was no sample before the first exited.
    first.exits(0.8, early).starts_under(1.5, late, main.pid, "two");
    first.sample(1.5, sample_of(&[(late, 0.0, GIB)])).exits(1.9, late);
    let mut second = run_at("b", Setting { main: other, ..HERE });
    second.starts(0.0, other, "other");
    for step in 0..3 {
        second.sample(f64::from(step) + 0.9, sample_of(&[(other, 0.0, GIB)]));
    }
    let recordings = [
        ended(directory.path(), first, 2.0, 0.0, End::Code(0)),
        ended(directory.path(), second, 3.0, 0.0, End::Code(0)),
    ];
    let (summary, _) = merged(directory.path(), &recordings);
    let memory = &summary.figures["memory_peak_bytes"];
    assert!(memory.upper.unwrap() >= 3.0 * GIB as f64, "{memory:?}");
}

#[test]
fn programs_monitored_by_name_count_without_their_children() {
    let directory = tempfile::tempdir().unwrap();
    let watched = |name: &'static str, namespace| {
        let main = ProcessId { pid: 0, started: 0 };
        let setting = Setting { namespace: Some(namespace), main, ..HERE };
        let mut run = run_at(name, setting);
        let names = vec!["gulmc".to_owned()];
        run.manifest.target = Some(Target::Programs { names, under: None });
        run.manifest.attach_clock_ticks = Some(5000);
        let id = ProcessId { pid: 20, started: 5010 };
        run.starts(0.1, id, "gulmc").sample(0.1, sample_of(&[(id, 0.0, 1)]));
        // It has reaped children that are not part of the run.
        run.sample_some(1.0, |tick| cpu_with_children(tick, id, 1.5, 40.0));
        stopped(directory.path(), run, 2.0, &[id], None)
    };
    let recordings = [watched("a", "pid:[1]"), watched("b", "pid:[2]")];
    let (summary, _) = merged(directory.path(), &recordings);
    assert_eq!(value(&summary, "cpu_time_seconds"), 3.0);
    assert_eq!((summary.tools[0].instances, summary.tools[0].cpu_time_seconds), (2, Some(3.0)));
}

#[test]
fn processes_no_longer_monitored_are_not_counted_with_later_ones() {
    let directory = tempfile::tempdir().unwrap();
    let (early, late) = (ProcessId { pid: 20, started: 100 }, ProcessId { pid: 21, started: 101 });
    let mut first = watch("a", 0.0, 5000);
    first.starts(0.0, early, "one").sample(0.0, sample_of(&[(early, 0.0, GIB)]));
    first.sample(1.0, sample_of(&[(early, 1.0, GIB)]));
    let mut second = watch("b", 0.0, 5000);
    second.starts(0.0, late, "two");
    for step in 0..10 {
        let size = if step < 6 { 1 } else { GIB };
        second.sample(f64::from(step) + 0.5, sample_of(&[(late, 0.0, size)]));
    }
    let recordings = [
        stopped(directory.path(), first, 1.2, &[early], None),
        stopped(directory.path(), second, 10.0, &[], None),
    ];
    let (summary, _) = merged(directory.path(), &recordings);
    assert_eq!(value(&summary, "memory_rss_peak_bytes"), GIB as f64 + 1.0);
    assert_eq!(value(&summary, "cpu_time_seconds"), 1.0, "what it had used is kept");
}

#[test]
fn without_the_end_of_one_there_is_no_end_of_all() {
    let directory = tempfile::tempdir().unwrap();
    let mut torn = run_at("a", HERE);
    torn.starts(0.0, HERE.main, "work").sample(1.0, sample_of(&[(HERE.main, 1.0, GIB)]));
    let torn = recorded(directory.path(), &torn);
    let other = ProcessId { pid: 11, started: 5000 };
    let whole = worker(directory.path(), "b", Setting { main: other, ..HERE });
    let out = directory.path().join("all");
    let merged = merge(&[torn, whole], Some(&out), Some("both"), NOW, |_| {}).unwrap();
    assert!(!merged.summary.run.complete);
    assert_eq!(merged.summary.run.name, "both");
    assert!(merged.warnings[0].contains("its end is not recorded"), "{:?}", merged.warnings);
    let cpu = &merged.summary.figures["cpu_time_seconds"];
    assert_eq!((cpu.value, cpu.method), (Some(5.0), Some(summary::Method::Sampled)));
}

#[test]
fn the_first_bad_end_is_the_end_of_all() {
    let directory = tempfile::tempdir().unwrap();
    let ends = [End::Code(0), End::Signal(9), End::Code(3)];
    let recordings = [0, 1, 2].map(|place| {
        let main = ProcessId { pid: 10 + place, started: 5000 };
        let name = format!("run-{place}");
        let mut run = run_at(&name, Setting { main, ..HERE });
        run.starts(0.0, main, "work").sample(0.0, sample_of(&[(main, 0.0, 1)]));
        ended(directory.path(), run, 1.0, 0.0, ends[place as usize])
    });
    let (summary, _) = merged(directory.path(), &recordings);
    assert_eq!((summary.run.exit_code, summary.run.signal), (Some(137), Some(9)));
}

#[test]
fn phases_of_different_runs_stay_apart_and_marks_are_retained() {
    let directory = tempfile::tempdir().unwrap();
    let recordings = [10, 11].map(|pid| {
        let main = ProcessId { pid, started: 5000 };
        let name = format!("run-{pid}");
        let mut run = run_at(&name, Setting { main, ..HERE });
        run.starts(0.0, main, "work").sample(0.0, sample_of(&[(main, 0.0, 1)]));
        run.phase_starts(0.5, "1", "solve");
        run.event(0.6, Event::Mark { text: format!("of {pid}") });
        run.sample(1.0, sample_of(&[(main, 0.5, 1)]));
        run.phase_ends(1.5, "1");
        run.sample(2.0, sample_of(&[(main, 1.0, 1)]));
        ended(directory.path(), run, 3.0, 1.0, End::Code(0))
    });
    let (summary, recording) = merged(directory.path(), &recordings);
    let ids: Vec<&str> = summary.phases.iter().map(|phase| phase.id.as_str()).collect();
    assert_eq!(ids, ["1:1", "2:1"]);
    assert!(summary.phases.iter().all(|phase| phase.duration_seconds == Some(1.0)));
    let marks =
        recording.entries().iter().filter(|entry| matches!(entry.event, Event::Mark { .. }));
    assert_eq!(marks.count(), 2);
}

#[test]
fn tick_is_complete_when_the_last_recording_has_sampled() {
    let directory = tempfile::tempdir().unwrap();
    let other = ProcessId { pid: 11, started: 5030 };
    let recordings = [
        worker(directory.path(), "a", HERE),
        worker(directory.path(), "b", Setting { late: 0.3, main: other, ..HERE }),
    ];
    let (_, recording) = merged(directory.path(), &recordings);
    let mut whole = Vec::new();
    let mut others = 0;
    recording
        .replay(&all_groups(), |frame| {
            if let Moment::Tick(tick) = frame.moment {
                match tick.is_complete() {
                    true => whole.push(tick.at.as_millis()),
                    false => others += 1,
                }
            }
        })
        .unwrap();
    // The first is alone for a moment; then both sample in turn, until it has ended.
    assert_eq!((whole, others), (vec![0, 1000, 2000, 3000, 4000], 4));
}

#[test]
fn merging_in_steps_is_merging_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let settings = [("a", "pid:[1]"), ("b", "pid:[2]"), ("c", "pid:[3]")];
    let all = settings.map(|(name, namespace)| {
        worker(directory.path(), name, Setting { namespace: Some(namespace), ..HERE })
    });
    let (at_once, _) = merged(directory.path(), &all);
    let path = directory.path().join("two");
    merge(&all[..2], Some(&path), None, NOW, |_| {}).unwrap();
    let two = Recording::open(&path).unwrap();
    let last = Recording::open(all[2].directory()).unwrap();
    let steps =
        merge(&[two, last], Some(&directory.path().join("three")), None, NOW, |_| {}).unwrap();
    assert_eq!(steps.summary.figures, at_once.figures);
    assert_eq!(steps.summary.tools, at_once.tools);
    assert_eq!(steps.summary.run.target, at_once.run.target);
}

#[test]
fn failed_merge_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let one = worker(directory.path(), "a", HERE);
    let again = Recording::open(one.directory()).unwrap();
    let out = directory.path().join("all");
    let refused = |recordings: &[Recording]| {
        merge(recordings, Some(&out), None, NOW, |_| {}).unwrap_err().to_string()
    };
    assert!(refused(&[]).contains("two or more"));
    assert!(refused(&[one, again]).contains("the same run"));
    assert!(!out.exists());
    let (damaged, fine) =
        (worker(directory.path(), "b", HERE), worker(directory.path(), "c", HERE));
    let stream = damaged.directory().join("node-a/process.arrows");
    std::fs::remove_file(&stream).unwrap();
    std::fs::create_dir(&stream).unwrap();
    let error = refused(&[damaged, fine]);
    assert!(error.contains("process.arrows"), "{error}");
    assert!(!out.exists());
}

#[test]
fn recordings_whose_clocks_are_apart_are_one_time_when_they_are_corrected() {
    let directory = tempfile::tempdir().unwrap();
    let parts = |name: &str| {
        let other = Setting { late: 90.0, host: "node-b", boot: Some("boot-b"), ..HERE };
        [("a", HERE), ("b", other)].map(|(own, setting)| {
            let mut run = run_at(&format!("{name}-{own}"), setting);
            let main = run.manifest.main();
            run.starts(0.0, main, "./work");
            run.sample(1.0, sample_of(&[(main, 0.5, GIB)]));
            ended(directory.path(), run, 2.0, 1.0, End::Code(0))
        })
    };
    let peak = |name: &str, recordings: &[Recording]| {
        let out = directory.path().join(name);
        let merged = merge(recordings, Some(&out), None, NOW, |_| {}).unwrap();
        merged.summary.figures.value(FigureId::MemoryPssPeak)
    };
    assert_eq!(peak("apart", &parts("one")), Some(GIB as f64), "one after the other");
    let [first, second] = parts("other");
    let corrected = [first, second.with_clock_ahead(90.0)];
    assert_eq!(peak("together", &corrected), Some(2.0 * GIB as f64));
    let merged = Recording::open(&directory.path().join("together")).unwrap();
    let Some(Target::Merged { members, .. }) = &merged.manifest().target else { panic!() };
    assert_eq!(members[1].clock_ahead_seconds, 90.0);
}
