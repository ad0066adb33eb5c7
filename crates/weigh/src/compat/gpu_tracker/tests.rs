//! Results of runs with known values.

mod gpus;

use std::path::Path;

use super::*;
use crate::catalog::metrics::{NodeCpu, NodeMemory, ProcessState, TaskState};
use crate::export::tests::small_machine;
use crate::model::{Entity, ProcessId, Tick};
use crate::record::Event;
use crate::testing::{CHILD, FakeRun, MAIN, cpu, sizes};

const MB: u64 = 1_000_000;

/// A process with two threads and three open files.
pub(crate) fn process(
    tick: &mut Tick,
    id: ProcessId,
    used: f64,
    rss: u64,
    shares: Option<(u64, u64)>,
) {
    cpu(tick, id, used, 0.0);
    sizes(tick, id, rss, shares);
    let state = ProcessState { threads: Some(2), files_open: Some(3), ..Default::default() };
    tick.put(Entity::Process(id), &state);
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

/// A main process and a child that share 300 MB; then only the child runs.
pub(crate) fn forked() -> FakeRun {
    let mut run = small_machine();
    run.sample(0.0, |tick| {
        process(tick, MAIN, 0.0, 700 * MB, Some((400 * MB, 100 * MB)));
        process(tick, CHILD, 0.0, 600 * MB, Some((300 * MB, 0)));
        machine(tick, 10.0, 100.0, 2_000 * MB);
    });
    run.sample(0.05, |tick| machine(tick, 10.0, 100.2, 2_500 * MB));
    run.sample(1.0, |tick| {
        process(tick, CHILD, 0.5, 600 * MB, None);
        machine(tick, 11.0, 103.0, 2_000 * MB);
    });
    run
}

/// The rows of the tracking file of a run, cell by cell.
fn rows_of(run: FakeRun, seconds: f64) -> Vec<Vec<String>> {
    let (directory, recording) = run.recorded(seconds, 0.5);
    let out = directory.path().join("out");
    export(&recording, &GpuTrackerOptions::default(), &[GpuTrackerFormat::Csv], &out, false)
        .unwrap();
    let csv = std::fs::read_to_string(out.join("tracking.csv")).unwrap();
    let cells = |line: &str| line.split(',').map(str::to_owned).collect();
    csv.lines().skip(3).map(cells).collect()
}

#[test]
fn memory_that_a_fork_shares_counts_once() {
    let (_directory, recording) = forked().recorded(2.0, 0.5);
    let usage = track(&recording, &GpuTrackerOptions::default(), &[], false).unwrap();
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
    let (_directory, recording) = forked().recorded(2.0, 0.5);
    let options = GpuTrackerOptions { expected_cores: Some(2.0), ..GpuTrackerOptions::default() };
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
fn row_after_a_late_one_has_the_cpu_of_both() {
    let mut run = small_machine();
    run.manifest.interval_seconds = 0.1;
    // The second row is late, and the third on time: 80 ms after it.
    for (at, used) in [(0.0, 0.0), (0.1, 0.05), (0.22, 0.11), (0.3, 0.15)] {
        run.sample(at, |tick| process(tick, MAIN, used, 100 * MB, None));
    }
    let rows = rows_of(run, 0.3);
    let main: Vec<f64> = rows.iter().map(|row| row[15].parse().unwrap()).collect();
    assert_eq!(main.len(), 3, "{rows:?}");
    assert!(main.iter().all(|percent| (percent - 50.0).abs() < 1e-6), "{main:?}");
}

#[test]
fn time_is_that_of_the_run_and_not_of_the_last_sample() {
    let (_directory, recording) = forked().recorded(90.0, 0.5);
    let options =
        GpuTrackerOptions { time_unit: TimeUnit::Minutes, ..GpuTrackerOptions::default() };
    let usage = track(&recording, &options, &[], false).unwrap();
    assert_eq!((usage.compute_time.unit, usage.compute_time.time), ("minutes", 1.5));
}

#[test]
fn unmeasured_values_are_null_and_missing_descendants_are_zero() {
    let mut run = small_machine();
    run.sample(0.0, |tick| process(tick, MAIN, 0.0, 5 * MB, None));
    let (_directory, recording) = run.recorded(1.0, 0.25);
    let json = track(&recording, &GpuTrackerOptions::default(), &[], false).unwrap().to_json();
    assert!(json.contains("\"system\": null"), "{json}");
    assert!(json.contains("\"private_rss\": null"), "{json}");
    let zero = "\"descendants\": {\n   \"total_rss\": 0.0,\n   \"private_rss\": 0.0,";
    assert!(json.contains(zero), "{json}");
    let text = track(&recording, &GpuTrackerOptions::default(), &[], false).unwrap().to_text();
    assert!(text.starts_with("Max RAM:\n   Unit: gigabytes\n   System capacity: 8.0\n"), "{text}");
    assert!(text.contains("\n      Private RSS: null\n"), "{text}");
}

fn exported(formats: &[GpuTrackerFormat]) -> (tempfile::TempDir, PathBuf) {
    let (directory, recording) = forked().recorded(2.0, 0.5);
    let out = directory.path().join("out");
    let paths = export(&recording, &GpuTrackerOptions::default(), formats, &out, false).unwrap();
    assert_eq!(paths.len(), formats.len());
    (directory, out)
}

#[test]
fn tracking_file_has_a_row_per_interval_and_carries_idle_processes_forward() {
    let (_directory, out) = exported(&[GpuTrackerFormat::Csv]);
    let csv = std::fs::read_to_string(out.join("tracking.csv")).unwrap();
    let lines: Vec<&str> = csv.split("\r\n").collect();
    assert_eq!(lines.len(), 3 + 1 + 1, "{csv}");
    assert_eq!(lines[1], "gigabytes,gigabytes,hours,8.0,0.0,4,4,0,0");
    assert!(lines[2].starts_with("main_ram,descendants_ram,") && lines[2].ends_with(",timestamp"));
    let cells: Vec<&str> = lines[3].split(',').collect();
    assert_eq!(cells.len(), 22);
    assert_eq!(
        cells[..4],
        ["0.7000000000000001", "0.6000000000000001", "0.7000000000000001", "2.0"]
    );
    assert_eq!(cells[10..13], ["2", "2", "4"]);
    assert_eq!(cells[17..21], ["50.0", "12.5", "50.0", "12.5"]);
    assert_eq!(cells[21], "1700000001.0");
}

#[test]
fn dense_ticks_of_the_first_second_add_no_rows_and_each_row_has_its_own_cpu() {
    let mut run = small_machine();
    // Memory that is being filled, and a child that starts after the first interval.
    for (seconds, size) in [(0.005, 1), (0.01, 2), (0.02, 4), (0.04, 8), (0.64, 100)] {
        run.sample(seconds, |tick| process(tick, MAIN, seconds, size * MB, None));
    }
    run.sample(1.0, |tick| process(tick, MAIN, 1.0, 200 * MB, None));
    for (seconds, of_child) in [(2.0, 0.25), (3.0, 0.75)] {
        run.sample(seconds, |tick| {
            process(tick, MAIN, 1.0, 200 * MB, None);
            process(tick, CHILD, of_child, 50 * MB, None);
        });
    }
    let rows = rows_of(run, 3.1);
    let column = |place: usize| rows.iter().map(|row| row[place].as_str()).collect::<Vec<_>>();
    assert_eq!(column(21), ["1700000001.0", "1700000002.0", "1700000003.0"]);
    assert_eq!(column(0), ["0.2", "0.2", "0.2"], "{rows:?}");
    // By their own intervals; the main process has two threads and used one of them.
    assert_eq!(column(15), ["100.0", "0.0", "0.0"]);
    assert_eq!(column(11), ["0", "2", "2"]);
    assert_eq!(column(17), ["0.0", "25.0", "50.0"], "no CPU before the child started");
}

#[test]
fn a_run_shorter_than_an_interval_has_one_row() {
    let mut run = small_machine();
    run.sample(0.0, |tick| process(tick, MAIN, 0.0, MB, None));
    run.sample(0.4, |tick| process(tick, MAIN, 0.2, 7 * MB, None));
    let rows = rows_of(run, 0.5);
    assert_eq!((rows.len(), &rows[0][0][..], &rows[0][15][..]), (1, "0.007", "50.0"), "{rows:?}");
}

#[test]
fn last_row_has_the_memory_that_exited_processes_had() {
    let mut run = small_machine();
    let shares = Some((300 * MB, 200 * MB));
    for seconds in [0.0, 1.0] {
        run.sample(seconds, |tick| {
            process(tick, MAIN, seconds, 400 * MB, shares);
            process(tick, CHILD, seconds, 400 * MB, shares);
        });
    }
    // Both have exited and are not reaped yet: their memory is gone.
    for seconds in [2.0, 3.0] {
        run.sample(seconds, |tick| {
            for id in [MAIN, CHILD] {
                process(tick, id, 1.5, 0, None);
                let doing = Some(TaskState::ZOMBIE);
                let state = ProcessState { threads: Some(1), doing, ..ProcessState::default() };
                tick.put(Entity::Process(id), &state);
            }
        });
    }
    let rows = rows_of(run, 3.1);
    let ram: Vec<String> = rows.iter().map(|row| row[..3].join(",")).collect();
    assert_eq!(ram, ["0.4,0.4,0.6000000000000001", "0.4,0.4,0.6000000000000001", "0.0,0.0,0.0"]);
    assert_eq!(rows[1][15], "50.0", "and the CPU time up to their exit");
}

#[test]
fn all_four_files_are_written_whole_and_never_overwrite_others() {
    let formats = [
        GpuTrackerFormat::Json,
        GpuTrackerFormat::Text,
        GpuTrackerFormat::Csv,
        GpuTrackerFormat::Sqlite,
    ];
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
    assert!(json.ends_with('}'), "without a last newline, as gpu-tracker writes it");
    let recording = Recording::open(&directory.path().join("run")).unwrap();
    let again = |force| export(&recording, &GpuTrackerOptions::default(), &formats, &out, force);
    assert!(matches!(again(false), Err(Error::Exists { .. })));
    again(true).unwrap();
    assert_eq!(names(&out), all);
}

#[cfg(feature = "sqlite")]
#[test]
fn database_has_the_tables_and_types_of_gpu_tracker() {
    let (_directory, out) = exported(&[GpuTrackerFormat::Sqlite]);
    let base = rusqlite::Connection::open(out.join("tracking.sqlite")).unwrap();
    let one = |query: &str| base.query_row(query, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(one("SELECT ram_unit FROM static_data"), "gigabytes");
    assert_eq!(one("SELECT typeof(main_ram) || typeof(main_n_threads) FROM data"), "realinteger");
    assert_eq!(one("SELECT count(*) || '' FROM data"), "1");
    let made = one("SELECT sql FROM sqlite_master WHERE name = 'static_data'");
    assert!(made.starts_with("CREATE TABLE static_data (\n\tram_unit VARCHAR, \n"), "{made}");
}
