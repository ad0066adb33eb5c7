//! The files of pytyche's HWMonitor and RunLog, and what pytyche reads from them.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::cards::{GIB, GpuRun, card, machine, measured_on};
use crate::python::{script, succeeds};
use crate::weighed::{is_installed, output, plain, weigh};

/// A phase with a command, a mark, and a step that ends with the run.
const RUN: &str = "\
\"$WEIGH\" phase load -- \"$BURNER\" cpu 300ms
\"$WEIGH\" mark 'converged: 7 é'
\"$WEIGH\" phase solve
\"$BURNER\" sleep 1200ms
";

/// `weigh export run --as pytyche -o hw`, with more arguments: its exit code and stderr.
fn export(directory: &Path, more: &[&str]) -> (i32, String) {
    let arguments = [&["export", "run", "--as", "pytyche", "-o", "hw"], more].concat();
    let done = output(&mut weigh(directory, &arguments));
    (done.status.code().unwrap(), String::from_utf8(done.stderr).unwrap())
}

/// Measures a line of shell in a directory, and exports it.
fn exported(line: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let options = ["run", "-q", "-o", "run", "-i", "200ms", "--label", "seed=7"];
    let arguments = [&options[..], &["--", "sh", "-c", line]].concat();
    let done = output(&mut weigh(directory.path(), &arguments));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(export(directory.path(), &[]), (0, String::new()));
    directory
}

#[test]
fn pytyche_reads_the_table_and_would_have_written_the_same_log() {
    let directory = exported(RUN);
    let Some(mut python) = script("run_monitor.py", directory.path()) else { return };
    let read: Value = serde_json::from_str(&succeeds(python.args(["read", "hw"]))).unwrap();
    let table = fs::read_to_string(directory.path().join("hw/cpu_metrics.csv")).unwrap();
    let column = |which: usize| -> Vec<f64> {
        let cell = |line: &str| line.split(',').nth(which).unwrap().parse().unwrap();
        table.lines().skip(1).map(cell).collect()
    };
    for (key, values) in [("usr", column(1)), ("idle", column(2))] {
        assert!(values.len() >= 3, "{table}");
        assert!(values.iter().all(|share| (0.0..=100.0).contains(share)), "{table}");
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let theirs = read[key].as_f64().unwrap();
        assert!((theirs - mean).abs() < 1e-9, "{key}: {theirs} is not {mean}");
    }
    assert_eq!(read["ours"], read["theirs"], "byte for byte");
    let entries = read["entries"].as_array().unwrap();
    let of = |key: &str| entries.iter().map(|entry| entry[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("event")[..2], ["run_start".into(), Value::Null], "{entries:#?}");
    assert_eq!(entries[0]["data"]["labels"]["seed"], "7");
    assert_eq!(of("event")[2], "converged: 7 é");
    assert_eq!(of("event")[4], "run_end");
    assert_eq!((&of("name")[1], &of("name")[3]), (&"load".into(), &"solve".into()));
    assert_eq!((entries.len(), &entries[1]["exit_code"]), (5, &0.into()));
    let load = entries[1]["cpu_time_seconds"].as_f64().unwrap();
    assert!((0.29..0.4).contains(&load), "the load is 0.3 s: {load}");
    assert!(entries[3]["seconds"].as_f64().unwrap() >= 1.2, "{entries:#?}");
    let moments = read["moments"].as_array().unwrap();
    let moments: Vec<f64> = moments.iter().map(|moment| moment.as_f64().unwrap()).collect();
    assert!(moments.is_sorted(), "{moments:?}");
}

#[test]
fn known_load_has_the_same_share_as_in_pytyches_monitor() {
    let directory = tempfile::tempdir().unwrap();
    let Some(mut python) = script("run_monitor.py", directory.path()) else { return };
    // Five seconds of CPU time in user mode, on one CPU.
    let command = "exec \"$WEIGH\" run -q -o run -i 1s -- \"$BURNER\" cpu 5s";
    let message = succeeds(python.args(["beside", "hw", "sh", "-c", command]));
    // The names of the exported files are printed first.
    let seen: Value = serde_json::from_str(message.lines().last().unwrap()).unwrap();
    // Rows of the two start a moment apart, and the load within a row is not uniform.
    const TOLERANCE: f64 = 5.0;
    for which in [0, 1] {
        let of = |who: &str| seen[who][which].as_f64().unwrap();
        assert!((of("ours") - of("theirs")).abs() < TOLERANCE, "{seen}");
    }
    let user = seen["cpus"].as_f64().unwrap() * seen["user_shares"].as_f64().unwrap();
    // The last part of the run is shorter than an interval and has no row.
    assert!(user > 5.0 - 1.0 - 0.25, "{user} s: {seen}");
}

/// The stdout of a verb.
fn stdout_of(directory: &Path, arguments: &[&str]) -> String {
    let done = output(&mut weigh(directory, arguments));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// Two cards: one with 4 GiB in use, 90 % and 350 W, one with 9 GiB, 50 % and 250 W.
fn on_two_cards(change: impl FnOnce(&mut Value)) -> GpuRun {
    let mut second = card(1);
    second["memory"]["used"] = json!(9 * GIB);
    second["utilization"] = json!({"gpu": 50, "memory": 20});
    second["power"] = json!(250_000);
    change(&mut second);
    // What a driver reports in the first second also covers the time before.
    let line = "sleep 1.2; readings $(($(grep -c ProcessUtilization \"$CALLS\") + 8))";
    measured_on(&machine(vec![card(0), second]), &["-i", "100ms"], line)
}

#[test]
fn pytyche_and_weigh_read_the_known_values_from_the_gpu_tables() {
    let run = on_two_cards(|_| {});
    let directory = run.directory.path();
    assert_eq!(export(directory, &[]).0, 0);
    let ours: Value =
        serde_json::from_str(&stdout_of(directory, &["show", "run", "--pytyche-summary"])).unwrap();
    let truth = json!({
        "peak_vram_mb": 9216.0, "gpu_util_mean_pct": 70.0, "gpu_util_max_pct": 90.0,
        "power_watts_mean": 300.0, "power_watts_max": 350.0,
        // Not the 1 MiB of BAR1 memory in the third column of `dmon -s mu`.
        "mem_util_mean_pct": 30.0, "mem_util_max_pct": 40.0,
    });
    let agrees = |resources: &Value| {
        for (key, value) in truth.as_object().unwrap() {
            assert_eq!(&resources[key], value, "{key}: {resources:#}");
        }
    };
    agrees(&ours);
    let Some(mut python) = script("run_monitor.py", directory) else { return };
    let read: Value = serde_json::from_str(&succeeds(python.args(["read", "hw"]))).unwrap();
    agrees(&read["summary"]);
    let keys =
        |resources: &Value| resources.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&ours), keys(&read["summary"]));
}

#[test]
fn card_without_power_misses_only_that() {
    let run = on_two_cards(|second| {
        second.as_object_mut().unwrap().remove("power");
    });
    let directory = run.directory.path();
    assert_eq!(export(directory, &[]).0, 0);
    let table = fs::read_to_string(directory.join("hw/hw_metrics_gpus.csv")).unwrap();
    let second = table.lines().nth(2).unwrap();
    assert!(second.contains(", 1, GPU-00000000-0000-0000-0000-000000000001, NVIDIA H100"));
    assert!(second.ends_with(", 50, 20, 9216, 81920, [N/A], 61, 1980, 2619"), "{second}");
    let used: Value =
        serde_json::from_str(&stdout_of(directory, &["show", "run", "--pytyche-summary"])).unwrap();
    assert_eq!(
        (&used["power_watts_mean"], &used["gpu_util_mean_pct"]),
        (&350.0.into(), &70.0.into())
    );
    assert_eq!(used["peak_vram_mb"], 9216.0, "their reader drops the row with it");
}

#[test]
fn existing_files_stay_and_options_of_other_tools_are_refused() {
    let directory = exported("exec \"$BURNER\" sleep 200ms");
    let (code, message) = export(directory.path(), &[]);
    assert_eq!((code, message.lines().count()), (1, 3), "{message}");
    assert!(message.contains("cpu_metrics.csv already exists"), "{message}");
    assert_eq!(export(directory.path(), &["--force"]).0, 0);
    let (code, message) = export(directory.path(), &["--time-unit", "hours"]);
    assert_eq!((code, message.lines().count()), (2, 3), "{message}");
    assert!(message.contains("pytyche has its own"), "{message}");
}

/// Files of nvidia-smi for two GPUs: the second reports no power, and BAR1 memory is the third
/// column of dmon.
fn write_smi_files(directory: &Path) {
    let hw = directory.join("theirs");
    fs::create_dir(&hw).unwrap();
    let metrics = "\
2026/11/15 18:17:24.970, 90, 40, 4000, 81920, 300.00, 60, 1980, 2619
2026/11/15 18:17:24.973, 10, 6, 9000, 81920, [N/A], 40, 1410, 1215
2026/11/15 18:17:26.970, 70, 20, 5000, 81920, 100.00, 62, 1980, 2619
2026/11/15 18:17:26.973, 30, 14, 1000, 81920, [N/A], 40, 1410, 1215
2026/11/15 18:17:28.970, 70, 20, 50";
    let dmon = "\
# gpu     fb   bar1     sm    mem    enc    dec 
# Idx     MB     MB      %      %      %      % 
    0   4000    257     90     40      0      0 
    1   9000    257     10      6      -      - 
";
    let cpu = "timestamp,usr_pct,idle_pct\n2026-11-15T17:17:26.970+00:00,30.0,60.0\n";
    for (name, text) in
        [("hw_metrics.csv", metrics), ("hw_dmon.csv", dmon), ("cpu_metrics.csv", cpu)]
    {
        fs::write(hw.join(name), text).unwrap();
    }
}

#[test]
fn rows_of_two_gpus_are_read_separately() {
    let directory = tempfile::tempdir().unwrap();
    write_smi_files(directory.path());
    let arguments = ["import", "pytyche", "theirs", "--format", "json"];
    let read: Value = serde_json::from_str(&stdout_of(directory.path(), &arguments)).unwrap();
    let of = |gpu: usize, figure: &str| read["gpus"][gpu][figure].as_f64();
    assert_eq!((of(0, "energy_joules"), of(1, "energy_joules")), (Some(400.0), None), "{read:#}");
    let mib = |count: u64| Some((count << 20) as f64);
    assert_eq!((of(0, "memory_peak_bytes"), of(1, "memory_peak_bytes")), (mib(5000), mib(9000)));
    let busy = |gpu| of(gpu, "memory_utilization_mean_ratio").unwrap();
    assert!((busy(0) - 0.3).abs() < 1e-6 && (busy(1) - 0.1).abs() < 1e-6, "{read:#}");
    let torn = "hw_metrics.csv: the last line has no newline and is left out";
    assert_eq!(read["notes"], json!([torn]), "{read:#}");
    let arguments = ["import", "pytyche", "theirs", "--pytyche-summary"];
    let used: Value = serde_json::from_str(&stdout_of(directory.path(), &arguments)).unwrap();
    let truth = json!({
        "peak_vram_mb": 9000.0, "gpu_util_mean_pct": 50.0, "gpu_util_max_pct": 90.0,
        "power_watts_mean": 200.0, "power_watts_max": 300.0,
        "cpu_usr_mean_pct": 30.0, "cpu_idle_mean_pct": 60.0,
        "mem_util_mean_pct": 20.0, "mem_util_max_pct": 40.0,
    });
    assert_eq!(used, truth);
}

#[test]
fn text_has_a_table_and_warnings_for_what_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    write_smi_files(directory.path());
    let done = output(&mut weigh(directory.path(), &["import", "pytyche", "theirs"]));
    let [text, warned] = [done.stdout, done.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    let rows: Vec<&str> = text.lines().collect();
    assert!(rows[1].starts_with("hw_metrics.csv") && rows[1].contains("2026/11/15 18:17:24.970"));
    let second = rows.iter().find(|row| row.starts_with("1 ")).expect(&text);
    assert!(second.contains("8.79 GiB") && second.contains(" -  "), "{text}");
    assert!(text.ends_with("CPUs of the machine: 30 % in user mode, 60 % idle\n"), "{text}");
    assert_eq!(warned.lines().count(), 1, "{warned}");
}

#[test]
fn weigh_reads_back_its_own_export() {
    let run = on_two_cards(|_| {});
    let directory = run.directory.path();
    assert_eq!(export(directory, &[]).0, 0);
    let of = |arguments: &[&str]| -> Value {
        let mut used: Value = serde_json::from_str(&stdout_of(directory, arguments)).unwrap();
        // Rows of the table are an interval apart, and the summary is of the whole run.
        let entries = used.as_object_mut().unwrap();
        entries.retain(|key, _| !key.starts_with("cpu_"));
        used
    };
    let read = of(&["import", "pytyche", "hw", "--pytyche-summary"]);
    assert_eq!(read, of(&["show", "run", "--pytyche-summary"]));
    // Rows a tenth of a second apart are attributed without the GPU's number, too.
    fs::remove_file(directory.join("hw/hw_metrics_gpus.csv")).unwrap();
    fs::remove_file(directory.join("hw/hw_dmon.csv")).unwrap();
    assert_eq!(of(&["import", "pytyche", "hw", "--pytyche-summary"]), read);
    let resources = of(&["import", "pytyche", "hw", "--format", "json"]);
    assert_eq!(resources["gpus"].as_array().map(Vec::len), Some(2), "{resources:#}");
}

#[test]
fn pipe_is_refused_without_blocking_and_warnings_fit_a_terminal() {
    let directory = tempfile::tempdir().unwrap();
    write_smi_files(directory.path());
    if is_installed("script") {
        let mut command = plain("script", directory.path());
        let line = "\"$WEIGH\" import pytyche theirs --pytyche-summary";
        fs::write(directory.path().join("theirs/hw_dmon.csv"), "of another program\n").unwrap();
        let shown = output(command.args(["-qec", line, "/dev/null"])).stdout;
        let shown = String::from_utf8(shown).unwrap();
        assert!(shown.contains("\r\n                the expected form: "), "{shown}");
        assert!(shown.lines().all(|line| line.trim_end().chars().count() < 80), "{shown}");
    }
    let path = directory.path().join("theirs/hw_metrics.csv");
    fs::remove_file(&path).unwrap();
    output(plain("mkfifo", directory.path()).arg(&path));
    let done = output(&mut weigh(directory.path(), &["import", "pytyche", "theirs"]));
    let message = String::from_utf8(done.stderr).unwrap();
    assert_eq!((done.status.code(), message.lines().count()), (Some(1), 3), "{message}");
    assert!(message.contains("hw_metrics.csv is a named pipe, not a regular file"), "{message}");
}

#[test]
fn directory_without_pytyches_files_is_an_error_of_three_lines() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), "").unwrap();
    for (place, code, expected) in [
        (".", 2, "none of hw_metrics.csv, hw_dmon.csv"),
        ("nowhere", 1, "nowhere: No such file or directory"),
        ("file", 2, "weigh import pytyche ."),
    ] {
        let done = output(&mut weigh(directory.path(), &["import", "pytyche", place]));
        let message = String::from_utf8(done.stderr).unwrap();
        assert_eq!((done.status.code(), message.lines().count()), (Some(code), 3), "{message}");
        assert!(message.contains(expected), "{message}");
    }
}
