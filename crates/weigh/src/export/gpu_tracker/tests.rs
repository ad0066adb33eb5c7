//! Results against runs whose truth is written down beside them.

mod gpus;

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::collect::cpu::NodeCpu;
use crate::collect::memory::NodeMemory;
use crate::collect::own::OwnTicks;
use crate::collect::process::{ProcessCpu, ProcessMemory, ProcessState};
use crate::host::facts::Facts;
use crate::host::wait::{End, Usage};
use crate::record::events::RunEnd;
use crate::record::{Entry, Event, Writer};
use crate::sample::{Entity, ProcessId, Tick};
use crate::settings::Settings;

const MB: u64 = 1_000_000;
pub const MAIN: ProcessId = ProcessId { pid: 10, started: 100 };
pub const CHILD: ProcessId = ProcessId { pid: 11, started: 101 };

/// A recording that is written moment by moment.
pub struct Story {
    pub directory: tempfile::TempDir,
    writer: Writer,
    tick: Tick,
    ticks: u64,
}

impl Story {
    pub fn new() -> Story {
        Story::of(|_| {})
    }

    /// A run of which something else is known.
    pub fn of(change: impl FnOnce(&mut Manifest)) -> Story {
        let facts = Facts { memory_bytes: Some(8_000 * MB), ..Facts::example() };
        let settings = Settings::default();
        let started = Duration::from_secs(1_700_000_000);
        let mut manifest = Manifest::new(&settings, &["work".to_owned()], facts, started);
        manifest.pid = MAIN.pid;
        manifest.process_started = MAIN.started;
        manifest.absent.insert("gpu".to_owned(), "there is none".to_owned());
        change(&mut manifest);
        let directory = tempfile::tempdir().unwrap();
        let tick = Tick::new(&collect::groups(&settings.sources()));
        let writer = Writer::create(&directory.path().join("run"), &manifest, &tick).unwrap();
        Story { directory, writer, tick, ticks: 0 }
    }

    /// A whole tick.
    pub fn at(&mut self, seconds: f64, fill: impl FnOnce(&mut Tick)) -> &mut Story {
        self.tick.begin(Duration::from_secs_f64(seconds));
        fill(&mut self.tick);
        self.ticks += 1;
        let ticks = OwnTicks { taken: Some(self.ticks), missed: Some(0) };
        self.tick.put(Entity::Single, &ticks);
        self.writer.tick(&self.tick);
        self
    }

    pub fn event(&mut self, seconds: f64, event: Event) -> &mut Story {
        self.writer.event(&Entry::new(Duration::from_secs_f64(seconds), event));
        self
    }

    pub fn end(mut self, seconds: f64, cpu: f64) -> (tempfile::TempDir, Recording) {
        let reaped = Usage { user_seconds: cpu, ..Usage::default() };
        for (id, usage) in [(CHILD, None), (MAIN, Some(reaped))] {
            self.event(seconds, Event::ended(id, None, usage));
        }
        let end = RunEnd {
            end: End::Code(0),
            duration_seconds: seconds,
            reaped,
            task_clock_seconds: Some(cpu),
            io: None,
            left: Vec::new(),
            some_unseen: false,
            rss_before_exec_bytes: 0,
            cpu_before_exec_seconds: 0.0,
            monitor_cpu_seconds: 0.01,
        };
        self.event(seconds, Event::RunEnd(end));
        let at = Duration::from_secs_f64(seconds);
        self.writer.flush(at);
        assert_eq!(self.writer.finish(at, || false), [""; 0]);
        let recording = Recording::open(&self.directory.path().join("run")).unwrap();
        (self.directory, recording)
    }
}

pub fn process(tick: &mut Tick, id: ProcessId, cpu: f64, rss: u64, shares: Option<(u64, u64)>) {
    let entity = Entity::Process(id);
    let (user, children) = (Some(cpu), Some(0.0));
    let row =
        ProcessCpu { user, system: Some(0.0), children_user: children, children_system: children };
    tick.put(entity, &row);
    let (pss, uss) = shares.unzip();
    let memory = ProcessMemory { rss: Some(rss), peak: Some(rss), pss, uss, swap: Some(0) };
    tick.put(entity, &memory);
    let state = ProcessState { threads: Some(2), files_open: Some(3), doing: None };
    tick.put(entity, &state);
}

fn machine(tick: &mut Tick, busy: f64, idle: f64, used: u64) {
    let cpu = NodeCpu {
        user: Some(busy),
        nice: Some(0.0),
        system: Some(0.0),
        idle: Some(idle),
        ..NodeCpu::default()
    };
    tick.put(Entity::Single, &cpu);
    let available = Some(8_000 * MB - used);
    let memory = NodeMemory { total: Some(8_000 * MB), available, ..NodeMemory::default() };
    tick.put(Entity::Single, &memory);
}

/// A main process and a child that share 300 MB, and then only the child runs.
pub fn forked() -> Story {
    let mut story = Story::new();
    story.at(0.0, |tick| {
        process(tick, MAIN, 0.0, 700 * MB, Some((400 * MB, 100 * MB)));
        process(tick, CHILD, 0.0, 600 * MB, Some((300 * MB, 0)));
        machine(tick, 10.0, 100.0, 2_000 * MB);
    });
    story.at(0.05, |tick| machine(tick, 10.0, 100.2, 2_500 * MB));
    story.at(1.0, |tick| {
        process(tick, CHILD, 0.5, 600 * MB, None);
        machine(tick, 11.0, 103.0, 2_000 * MB);
    });
    story
}

#[test]
fn memory_that_a_fork_shares_counts_once() {
    let (_directory, recording) = forked().end(2.0, 0.5);
    let usage = track(&recording, &Options::default(), &[], false).unwrap();
    let ram = usage.max_ram;
    assert_eq!(ram.unit, "gigabytes");
    assert_eq!(ram.system_capacity, Some(8.0));
    assert_eq!(ram.system, Some(2.5));
    let [main, descendants, combined] = ram.parts;
    assert_eq!(
        (main.total_rss, main.private_rss, main.shared_rss),
        (Some(0.7000000000000001), Some(0.1), Some(0.6000000000000001))
    );
    assert_eq!(descendants.total_rss, Some(0.6000000000000001), "not below its largest process");
    assert_eq!(
        (descendants.private_rss, descendants.shared_rss),
        (Some(0.0), Some(0.30000000000000004))
    );
    assert_eq!(combined.total_rss, Some(0.7000000000000001), "not 1.3 GB");
    assert_eq!((combined.private_rss, combined.shared_rss), (Some(0.1), Some(0.6000000000000001)));
}

#[test]
fn cpu_is_over_the_interval_and_the_mean_over_the_run() {
    let (_directory, recording) = forked().end(2.0, 0.5);
    let options = Options { expected_cores: Some(2.0), ..Options::default() };
    let cpu = track(&recording, &options, &[], false).unwrap().cpu_utilization;
    assert_eq!((cpu.system_core_count, cpu.n_expected_cores), (4, 2.0));
    let [system, main, descendants, combined] = cpu.parts;
    assert_eq!((system.max_sum_percent, system.max_hardware_percent), (Some(100.0), Some(25.0)));
    assert_eq!(main.max_sum_percent, Some(0.0));
    let all = |of: usage::Percentages| {
        [of.max_sum_percent, of.max_hardware_percent, of.mean_sum_percent, of.mean_hardware_percent]
    };
    assert_eq!(all(descendants), [Some(50.0), Some(25.0), Some(25.0), Some(12.5)]);
    assert_eq!(all(combined), [Some(50.0), Some(25.0), Some(25.0), Some(12.5)]);
    assert_eq!(cpu.threads, [Some(2), Some(2), Some(4)]);
}

#[test]
fn the_time_is_that_of_the_run_and_not_of_the_last_sample() {
    let (_directory, recording) = forked().end(90.0, 0.5);
    let options = Options { time_unit: TimeUnit::Minutes, ..Options::default() };
    let usage = track(&recording, &options, &[], false).unwrap();
    assert_eq!((usage.compute_time.unit, usage.compute_time.time), ("minutes", 1.5));
}

#[test]
fn what_was_not_measured_is_null_and_nobody_has_nothing() {
    let mut story = Story::new();
    story.at(0.0, |tick| process(tick, MAIN, 0.0, 5 * MB, None));
    let (_directory, recording) = story.end(1.0, 0.25);
    let json = track(&recording, &Options::default(), &[], false).unwrap().to_json();
    assert!(json.contains("\"system\": null"), "{json}");
    assert!(json.contains("\"private_rss\": null"), "{json}");
    let nobody = "\"descendants\": {\n   \"total_rss\": 0.0,\n   \"private_rss\": 0.0,";
    assert!(json.contains(nobody), "{json}");
    let text = track(&recording, &Options::default(), &[], false).unwrap().to_text();
    assert!(text.starts_with("Max RAM:\n   Unit: gigabytes\n   System capacity: 8.0\n"), "{text}");
    assert!(text.contains("\n      Private RSS: null\n"), "{text}");
}

fn exported(formats: &[Format]) -> (tempfile::TempDir, PathBuf) {
    let (directory, recording) = forked().end(2.0, 0.5);
    let out = directory.path().join("out");
    let paths = export(&recording, &Options::default(), formats, &out, false).unwrap();
    assert_eq!(paths.len(), formats.len());
    (directory, out)
}

#[test]
fn the_tracking_file_has_a_row_for_each_tick_and_idle_processes_keep_their_values() {
    let (_directory, out) = exported(&[Format::Csv]);
    let csv = std::fs::read_to_string(out.join("tracking.csv")).unwrap();
    let lines: Vec<&str> = csv.split("\r\n").collect();
    assert_eq!(lines.len(), 3 + 3 + 1, "{csv}");
    assert_eq!(lines[1], "gigabytes,gigabytes,hours,8.0,0.0,4,4,0,0");
    assert!(lines[2].starts_with("main_ram,descendants_ram,") && lines[2].ends_with(",timestamp"));
    let cells: Vec<&str> = lines[5].split(',').collect();
    assert_eq!(cells.len(), 22);
    assert_eq!(
        cells[..4],
        ["0.7000000000000001", "0.6000000000000001", "0.7000000000000001", "2.0"]
    );
    assert_eq!(cells[10..13], ["2", "2", "4"]);
    assert_eq!(cells[17..21], ["50.0", "12.5", "50.0", "12.5"]);
    assert_eq!(cells[21], "1700000001.0");
    let dense: Vec<&str> = lines[4].split(',').collect();
    assert_eq!(dense[17], "50.0", "a tick inside a window has the rate of the window");
}

#[test]
fn all_four_files_are_written_whole_and_never_over_others() {
    let formats = [Format::Json, Format::Text, Format::Csv, Format::Sqlite];
    let (directory, out) = exported(&formats);
    let names = |path: &Path| {
        let mut names: Vec<String> = std::fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort_unstable();
        names
    };
    let all = ["gpu-tracker.json", "gpu-tracker.txt", "tracking.csv", "tracking.sqlite"];
    assert_eq!(names(&out), all, "and nothing half written");
    let json = std::fs::read_to_string(out.join("gpu-tracker.json")).unwrap();
    assert!(json.ends_with('}'), "without a last newline, as theirs");
    let recording = Recording::open(&directory.path().join("run")).unwrap();
    let again = |force| export(&recording, &Options::default(), &formats, &out, force);
    assert!(matches!(again(false), Err(Error::Exists { .. })));
    again(true).unwrap();
    assert_eq!(names(&out), all);
}

#[cfg(feature = "sqlite")]
#[test]
fn the_database_has_their_tables_and_types() {
    let (_directory, out) = exported(&[Format::Sqlite]);
    let base = rusqlite::Connection::open(out.join("tracking.sqlite")).unwrap();
    let one = |query: &str| base.query_row(query, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(one("SELECT ram_unit FROM static_data"), "gigabytes");
    assert_eq!(one("SELECT typeof(main_ram) || typeof(main_n_threads) FROM data"), "realinteger");
    assert_eq!(one("SELECT count(*) || '' FROM data"), "3");
    let made = one("SELECT sql FROM sqlite_master WHERE name = 'static_data'");
    assert!(made.starts_with("CREATE TABLE static_data (\n\tram_unit VARCHAR, \n"), "{made}");
}
