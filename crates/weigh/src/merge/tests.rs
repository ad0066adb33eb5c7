//! Recordings that are put together, against runs whose truth is written down beside them.

mod gpus;

use std::path::{Path, PathBuf};

use super::*;
use crate::catalog::Scope;
use crate::collect::memory::NodeMemory;
use crate::collect::own::{OwnCost, OwnTicks};
use crate::collect::process::{ProcessCpu, ProcessMemory};
use crate::host::facts::Facts;
use crate::host::wait::{End, Usage};
use crate::record::events::{RunEnd, WatchEnd, Why};
use crate::record::{Entry, Event, Moment, Target};
use crate::sample::{Entity, ProcessId, numbering};
use crate::settings::Settings;

const GIB: u64 = 1 << 30;

/// When the first recording begins, in seconds since 1970.
const BEGIN: f64 = 1_700_000_000.0;

/// A recording that is written moment by moment.
struct Story {
    path: PathBuf,
    writer: Writer,
    tick: Tick,
    ticks: u64,
    main: ProcessId,
}

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

const HERE: Setting = Setting {
    late: 0.0,
    host: "node-a",
    boot: Some("boot-a"),
    namespace: Some("pid:[1]"),
    main: ProcessId { pid: 10, started: 5000 },
};

impl Story {
    fn run(directory: &Path, name: &str, setting: Setting) -> Story {
        Story::of(directory, name, setting, |_| {})
    }

    fn of(
        directory: &Path,
        name: &str,
        setting: Setting,
        change: impl FnOnce(&mut Manifest),
    ) -> Story {
        let facts = Facts {
            name: setting.host.to_owned(),
            boot: setting.boot.map(str::to_owned),
            pid_namespace: setting.namespace.map(str::to_owned),
            ..Facts::example()
        };
        let settings = Settings::default();
        let began = Duration::from_secs_f64(BEGIN + setting.late);
        let mut manifest = Manifest::new(&settings, &["work".to_owned()], facts, began);
        manifest.id = name.to_owned();
        (manifest.pid, manifest.process_started) = (setting.main.pid, setting.main.started);
        change(&mut manifest);
        let tick = Tick::new(&collect::groups(&settings.sources()));
        let path = directory.join(name);
        let writer = Writer::create(&path, &manifest, &tick).unwrap();
        Story { path, writer, tick, ticks: 0, main: setting.main }
    }

    fn event(&mut self, seconds: f64, event: Event) -> &mut Story {
        self.writer.event(&Entry::new(Duration::from_secs_f64(seconds), event));
        self
    }

    fn comes(&mut self, seconds: f64, id: ProcessId, name: &str) -> &mut Story {
        self.comes_from(seconds, id, name, 1)
    }

    fn comes_from(&mut self, seconds: f64, id: ProcessId, name: &str, parent: u32) -> &mut Story {
        let (pid, started, name) = (id.pid, id.started, name.to_owned());
        let (command, tool) = (None, None);
        self.event(seconds, Event::ProcessStart { pid, started, parent, name, command, tool })
    }

    fn goes(&mut self, seconds: f64, id: ProcessId, usage: Option<Usage>) -> &mut Story {
        let exit = Event::ended(id, None, usage);
        self.event(seconds, exit)
    }

    /// A whole look: everybody's CPU time and size.
    fn looks(&mut self, seconds: f64, rows: &[(ProcessId, f64, u64)]) -> &mut Story {
        self.tick.begin(Duration::from_secs_f64(seconds));
        for (id, cpu, bytes) in rows {
            let id = Entity::Process(*id);
            let none = Some(0.0);
            let (user, bytes) = (Some(*cpu), Some(*bytes));
            let waited = (none, none);
            let cpu = ProcessCpu { user, system: none, ..ProcessCpu::default() };
            let cpu = ProcessCpu { children_user: waited.0, children_system: waited.1, ..cpu };
            self.tick.put(id, &cpu);
            let memory = ProcessMemory { rss: bytes, pss: bytes, uss: bytes, ..Default::default() };
            self.tick.put(id, &ProcessMemory { peak: bytes, ..memory });
        }
        self.ticks += 1;
        let memory =
            NodeMemory { total: Some(8 * GIB), available: Some(4 * GIB), ..Default::default() };
        self.tick.put(Entity::Single, &memory);
        self.tick.put(Entity::Single, &OwnCost { user: Some(0.5), ..OwnCost::default() });
        let ticks = OwnTicks { taken: Some(self.ticks), missed: Some(0) };
        self.tick.put(Entity::Single, &ticks);
        self.writer.tick(&self.tick);
        self
    }

    /// A look at one alone: its CPU time, and that of the children it has waited for.
    fn waited(&mut self, seconds: f64, id: ProcessId, own: f64, children: f64) -> &mut Story {
        self.tick.begin(Duration::from_secs_f64(seconds));
        let (user, children_user, none) = (Some(own), Some(children), Some(0.0));
        let cpu = ProcessCpu { user, system: none, ..ProcessCpu::default() };
        let cpu = ProcessCpu { children_user, children_system: none, ..cpu };
        self.tick.put(Entity::Process(id), &cpu);
        self.writer.tick(&self.tick);
        self
    }

    /// The command ended, and everything it did is in its account.
    fn ends(mut self, seconds: f64, cpu: f64, end: End) -> Recording {
        let reaped = Usage { user_seconds: cpu, largest_rss_bytes: GIB, ..Usage::default() };
        self.goes(seconds, self.main, Some(reaped));
        let run_end = RunEnd {
            end,
            duration_seconds: seconds,
            reaped,
            task_clock_seconds: Some(cpu),
            io: None,
            left: Vec::new(),
            some_unseen: false,
            rss_before_exec_bytes: 0,
            cpu_before_exec_seconds: 0.0,
            monitor_cpu_seconds: 0.5,
        };
        self.event(seconds, Event::RunEnd(run_end));
        self.done()
    }

    /// Nobody follows it any longer.
    fn stops(self, seconds: f64, left: &[ProcessId]) -> Recording {
        self.stops_with(seconds, left, None)
    }

    /// The same; a task clock that began after 10 ms says what was used.
    fn stops_with(mut self, seconds: f64, left: &[ProcessId], clock: Option<f64>) -> Recording {
        let end = WatchEnd {
            why: Why::Asked,
            end: None,
            duration_seconds: seconds,
            left: left.iter().map(|id| id.pid).collect(),
            some_unseen: false,
            monitor_cpu_seconds: 0.5,
            task_clock_seconds: clock,
            task_clock_began_seconds: clock.map(|_| 0.01),
        };
        self.event(seconds, Event::WatchEnd(end));
        self.done()
    }

    fn done(self) -> Recording {
        assert_eq!(self.writer.finish(Duration::ZERO, || false), [""; 0]);
        Recording::open(&self.path).unwrap()
    }
}

/// A worker with so much memory from its first second to its fourth, and a core busy.
fn worker(directory: &Path, name: &str, setting: Setting) -> Recording {
    let mut story = Story::run(directory, name, setting);
    let main = setting.main;
    story.comes(0.0, main, "gulmc").looks(0.0, &[(main, 0.0, 1)]);
    for second in 1..4 {
        story.looks(f64::from(second), &[(main, f64::from(second), GIB)]);
    }
    story.ends(4.0, 4.0, End::Code(0))
}

fn merged(directory: &Path, recordings: &[Recording]) -> (Summary, Recording) {
    let out = directory.join("all");
    let merged = merge(recordings, Some(&out), None, |_| {}).unwrap();
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
    // In containers of one machine, with equal pids, and each looks at moments of its own.
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
    // All are on one clock: the last was born 0.7 s after the first.
    let last = recording.manifest().mains()[3];
    assert_eq!(last.started - recording.manifest().zero(), 70);
    assert_eq!(numbering::shown(last.pid), "4:10");
}

#[test]
fn workers_on_different_machines_add_up_and_no_machine_stands_for_all() {
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
    assert_eq!(recording.damage(), [""; 0]);
    // On a machine that was started later, the same moment has a smaller number.
    let mains = recording.manifest().mains();
    let born = |main: ProcessId| main.started - recording.manifest().zero();
    assert_eq!(mains.into_iter().map(born).collect::<Vec<_>>(), [0, 150]);
}

#[test]
fn recordings_that_do_not_say_where_they_are_from_are_kept_apart() {
    let directory = tempfile::tempdir().unwrap();
    let nowhere = Setting { boot: None, namespace: None, ..HERE };
    let recordings = ["a", "b"].map(|name| worker(directory.path(), name, nowhere));
    let (summary, _) = merged(directory.path(), &recordings);
    assert_eq!(summary.processes.total, 2);
    assert_eq!(value(&summary, "cpu_time_seconds"), 8.0);
}

/// A watch over processes that ran before, from five seconds after the boot's 50th on.
fn watch(directory: &Path, name: &str, late: f64, came: u64) -> Story {
    let setting = Setting { late, main: ProcessId { pid: 0, started: 0 }, ..HERE };
    Story::of(directory, name, setting, |manifest| {
        manifest.target = Some(Target::Processes { pids: vec![20] });
        manifest.came = Some(came);
    })
}

#[test]
fn a_process_that_two_saw_is_counted_once() {
    let directory = tempfile::tempdir().unwrap();
    let shared = ProcessId { pid: 20, started: 100 };
    // It had used 50 s when the first came, and 52 s when the second did.
    let mut first = watch(directory.path(), "a", 0.0, 5000);
    first.comes(0.0, shared, "solver").looks(0.0, &[(shared, 50.0, GIB)]);
    for second in 1..=4 {
        first.looks(f64::from(second), &[(shared, 50.0 + f64::from(second), GIB)]);
    }
    let mut second = watch(directory.path(), "b", 2.0, 5200);
    second.comes(0.0, shared, "solver");
    for step in 0..=4 {
        second.looks(f64::from(step) + 0.1, &[(shared, 52.1 + f64::from(step), GIB)]);
    }
    let recordings = [first.stops(4.5, &[shared]), second.stops(4.5, &[shared])];
    let (summary, recording) = merged(directory.path(), &recordings);
    assert_eq!(value(&summary, "memory_rss_peak_bytes"), GIB as f64);
    assert!(
        (value(&summary, "cpu_time_seconds") - 6.1).abs() < 1e-9,
        "{:?}",
        summary.figures["cpu_time_seconds"]
    );
    assert_eq!(summary.figures["cpu_time_seconds"].method, Some(summary::Method::Sampled));
    assert_eq!((summary.processes.total, summary.tools[0].instances), (1, 1));
    assert_eq!(summary.run.stopped, Some(Why::Asked));
    let left: Vec<_> =
        summary.processes.left.iter().map(|one| (one.pid, one.name.as_str())).collect();
    assert_eq!(left, [(20, "solver")]);
    let starts = recording
        .entries()
        .iter()
        .filter(|entry| matches!(entry.event, Event::ProcessStart { .. }));
    assert_eq!(starts.count(), 1);
}

#[test]
fn task_clocks_of_runs_and_of_watches_add_up() {
    let directory = tempfile::tempdir().unwrap();
    let watched = ProcessId { pid: 20, started: 100 };
    let mut watch = watch(directory.path(), "a", 0.0, 5000);
    watch.comes(0.0, watched, "solver").looks(0.0, &[(watched, 50.0, GIB)]);
    let watch = watch.stops_with(4.5, &[watched], Some(2.5));
    let run = worker(directory.path(), "b", HERE);
    let (summary, _) = merged(directory.path(), &[watch, run]);
    let cpu = &summary.figures["cpu_time_seconds"];
    assert_eq!((cpu.value, cpu.method), (Some(6.5), Some(summary::Method::Exact)));
    // Before the clock began four cores may have been busy.
    assert_eq!(cpu.upper, Some(6.54));
}

#[test]
fn a_run_inside_a_run_is_counted_once() {
    let directory = tempfile::tempdir().unwrap();
    let inner = ProcessId { pid: 12, started: 5100 };
    let mut outer = Story::run(directory.path(), "a", HERE);
    outer.comes(0.0, HERE.main, "script").comes_from(1.0, inner, "gulmc", HERE.main.pid);
    outer.looks(1.5, &[(HERE.main, 0.1, 1), (inner, 0.4, GIB)]);
    // The inner run sees its end at 5.0, and the outer one a little earlier.
    outer.goes(4.9, inner, None);
    let outer = outer.ends(6.0, 4.1, End::Code(0));
    let nested = worker(directory.path(), "b", Setting { late: 1.0, main: inner, ..HERE });
    let (summary, _) = merged(directory.path(), &[outer, nested]);
    assert_eq!((summary.processes.total, summary.tools.len()), (2, 2));
    assert_eq!(value(&summary, "memory_rss_peak_bytes"), GIB as f64 + 1.0);
    let cpu = &summary.figures["cpu_time_seconds"];
    assert_eq!((cpu.value, cpu.method), (Some(4.1), Some(summary::Method::Sampled)));
}

#[test]
fn the_bound_of_memory_holds_for_those_who_were_there_between_two_looks() {
    let directory = tempfile::tempdir().unwrap();
    let (main, other) = (HERE.main, ProcessId { pid: 30, started: 5000 });
    let (early, late) =
        (ProcessId { pid: 11, started: 5010 }, ProcessId { pid: 12, started: 5060 });
    let mut first = Story::run(directory.path(), "a", HERE);
    first.comes(0.0, main, "script").comes_from(0.5, early, "one", main.pid);
    first.looks(0.5, &[(main, 0.0, 1), (early, 0.0, GIB)]);
    // The second was there at 0.6 s, with the first, and nobody looked before the first went.
    first.goes(0.8, early, None).comes_from(1.5, late, "two", main.pid);
    first.looks(1.5, &[(late, 0.0, GIB)]).goes(1.9, late, None);
    let mut second = Story::run(directory.path(), "b", Setting { main: other, ..HERE });
    second.comes(0.0, other, "other");
    for step in 0..3 {
        second.looks(f64::from(step) + 0.9, &[(other, 0.0, GIB)]);
    }
    let recordings = [first.ends(2.0, 0.0, End::Code(0)), second.ends(3.0, 0.0, End::Code(0))];
    let (summary, _) = merged(directory.path(), &recordings);
    let memory = &summary.figures["memory_peak_bytes"];
    assert!(memory.upper.unwrap() >= 3.0 * GIB as f64, "{memory:?}");
}

#[test]
fn programs_that_were_watched_count_each_for_itself() {
    let directory = tempfile::tempdir().unwrap();
    let watched = |name: &'static str, namespace| {
        let main = ProcessId { pid: 0, started: 0 };
        let setting = Setting { namespace: Some(namespace), main, ..HERE };
        let mut story = Story::of(directory.path(), name, setting, |manifest| {
            let names = vec!["gulmc".to_owned()];
            manifest.target = Some(Target::Programs { names, under: None });
            manifest.came = Some(5000);
        });
        let id = ProcessId { pid: 20, started: 5010 };
        story.comes(0.1, id, "gulmc").looks(0.1, &[(id, 0.0, 1)]);
        // It has waited for children that are nobody's business.
        story.waited(1.0, id, 1.5, 40.0);
        story.stops(2.0, &[id])
    };
    let recordings = [watched("a", "pid:[1]"), watched("b", "pid:[2]")];
    let (summary, _) = merged(directory.path(), &recordings);
    assert_eq!(value(&summary, "cpu_time_seconds"), 3.0);
    assert_eq!((summary.tools[0].instances, summary.tools[0].cpu_time_seconds), (2, Some(3.0)));
}

#[test]
fn whoever_is_followed_by_nobody_any_more_is_not_counted_with_those_who_come_later() {
    let directory = tempfile::tempdir().unwrap();
    let (early, late) = (ProcessId { pid: 20, started: 100 }, ProcessId { pid: 21, started: 101 });
    let mut first = watch(directory.path(), "a", 0.0, 5000);
    first.comes(0.0, early, "one").looks(0.0, &[(early, 0.0, GIB)]);
    first.looks(1.0, &[(early, 1.0, GIB)]);
    let mut second = watch(directory.path(), "b", 0.0, 5000);
    second.comes(0.0, late, "two");
    for step in 0..10 {
        let size = if step < 6 { 1 } else { GIB };
        second.looks(f64::from(step) + 0.5, &[(late, 0.0, size)]);
    }
    let recordings = [first.stops(1.2, &[early]), second.stops(10.0, &[])];
    let (summary, _) = merged(directory.path(), &recordings);
    assert_eq!(value(&summary, "memory_rss_peak_bytes"), GIB as f64 + 1.0);
    assert_eq!(value(&summary, "cpu_time_seconds"), 1.0, "what it had used is kept");
}

#[test]
fn without_the_end_of_one_there_is_no_end_of_all() {
    let directory = tempfile::tempdir().unwrap();
    let mut torn = Story::run(directory.path(), "a", HERE);
    torn.comes(0.0, HERE.main, "work").looks(1.0, &[(HERE.main, 1.0, GIB)]);
    let torn = torn.done();
    let other = ProcessId { pid: 11, started: 5000 };
    let whole = worker(directory.path(), "b", Setting { main: other, ..HERE });
    let out = directory.path().join("all");
    let merged = merge(&[torn, whole], Some(&out), Some("both"), |_| {}).unwrap();
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
        let mut story = Story::run(directory.path(), &name, Setting { main, ..HERE });
        story.comes(0.0, main, "work").looks(0.0, &[(main, 0.0, 1)]);
        story.ends(1.0, 0.0, ends[place as usize])
    });
    let (summary, _) = merged(directory.path(), &recordings);
    assert_eq!((summary.run.exit_code, summary.run.signal), (Some(137), Some(9)));
}

#[test]
fn phases_of_different_runs_stay_apart_and_marks_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let recordings = [10, 11].map(|pid| {
        let main = ProcessId { pid, started: 5000 };
        let name = format!("run-{pid}");
        let mut story = Story::run(directory.path(), &name, Setting { main, ..HERE });
        story.comes(0.0, main, "work").looks(0.0, &[(main, 0.0, 1)]);
        let (id, name) = ("1".to_owned(), "solve".to_owned());
        story.event(0.5, Event::PhaseStart { id: id.clone(), name, parent: None });
        story.event(0.6, Event::Mark { text: format!("of {pid}") });
        story.looks(1.0, &[(main, 0.5, 1)]);
        story.event(1.5, Event::PhaseEnd { id, usage: None, end: None, account: None });
        story.looks(2.0, &[(main, 1.0, 1)]);
        story.ends(3.0, 1.0, End::Code(0))
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
fn everybody_is_looked_at_when_the_last_has_looked() {
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
        .replay(&collect::all_groups(), |moment| {
            if let Moment::Tick(tick) = moment {
                match tick.table(Scope::Own).is_some_and(|table| !table.is_empty()) {
                    true => whole.push(tick.at.as_millis()),
                    false => others += 1,
                }
            }
        })
        .unwrap();
    // The first is alone for a moment; then both look in turn, until it has ended.
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
    merge(&all[..2], Some(&path), None, |_| {}).unwrap();
    let two = Recording::open(&path).unwrap();
    let last = Recording::open(all[2].directory()).unwrap();
    let steps = merge(&[two, last], Some(&directory.path().join("three")), None, |_| {}).unwrap();
    assert_eq!(steps.summary.figures, at_once.figures);
    assert_eq!(steps.summary.tools, at_once.tools);
    assert_eq!(steps.summary.run.target, at_once.run.target);
}

#[test]
fn what_cannot_be_put_together_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let one = worker(directory.path(), "a", HERE);
    let again = Recording::open(one.directory()).unwrap();
    let out = directory.path().join("all");
    let refused = |recordings: &[Recording]| {
        merge(recordings, Some(&out), None, |_| {}).unwrap_err().to_string()
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
