//! `weigh export`: other tools read what was recorded, and a file is complete or does not exist.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::python;
use crate::weighed::{MIB, can_mount, end_of, output, plain, signal, weigh, weighed_shell};

const ALL_FORMATS: &str = "csv,json,jsonl,parquet,feather,hdf5,orc,pickle,sqlite,xlsx";

/// A recording with every scope, nested phases, unusual marks, and nulls.
fn recorded() -> (TempDir, PathBuf) {
    let script = r#"$WEIGH phase outer -- sh -c '$WEIGH phase inner -- $BURNER children 4 20ms'
        $WEIGH mark 'quoted "words", commas
and a new line'
        $WEIGH phase rest
        $BURNER children 30 5ms"#;
    let run = weighed_shell(&["-i", "10ms", "--per-cpu", "-o", "run"], script).ended_with(0);
    let path = run.directory.path().join("run");
    (run.directory, path)
}

fn export(directory: &Path, arguments: &[&str]) -> Output {
    output(weigh(directory, &["export"]).args(arguments))
}

fn exports(directory: &Path, arguments: &[&str]) -> Vec<PathBuf> {
    let output = export(directory, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let names = String::from_utf8(output.stdout).unwrap();
    names.lines().map(|name| directory.join(name)).collect()
}

fn fails(output: &Output, code: i32, expected: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(stderr.starts_with("weigh: ") && stderr.contains(expected), "{stderr}");
    assert!(stderr.contains("\n  cause: ") && stderr.contains("\n  hint:  "), "{stderr}");
}

/// Every file below a directory, and its bytes.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.append(&mut files(&path));
        } else {
            let bytes = fs::read(&path).unwrap();
            found.insert(path, bytes);
        }
    }
    found
}

#[test]
fn every_format_reads_back_as_it_was_recorded() {
    let (directory, _) = recorded();
    let recorded = files(&directory.path().join("run"));
    let streams = recorded.keys().filter(|path| path.extension() == Some("arrows".as_ref()));
    // Scopes depend on the machine; processes, phases and marks are from the events.
    let tables = streams.count() + 3;
    let written = exports(directory.path(), &["run", "-f", ALL_FORMATS]);
    assert_eq!(written.len(), tables * 7 + 3);
    let Some(mut script) = python::script("read_back.py", directory.path()) else { return };
    let message = python::succeeds(script.args(["run", "run/export"]));
    assert_eq!(message, format!("{} files read back\n", tables * 7 + 3));
}

#[test]
fn rates_and_grids_agree_with_pandas() {
    let (directory, _) = recorded();
    for (name, options) in
        [("plain", &[][..]), ("rates", &["--rates"]), ("grid", &["--resample", "50ms"])]
    {
        let arguments = [&["run", "-f", "parquet", "--table", "node,process", "-o", name], options];
        exports(directory.path(), &arguments.concat());
    }
    let both = ["run", "-f", "parquet", "-o", "both", "--resample", "50ms", "--rates"];
    exports(directory.path(), &both);
    let Some(mut script) = python::script("rates_and_grids.py", directory.path()) else { return };
    assert_eq!(python::succeeds(&mut script), "rates, grid and both agree\n");
}

#[test]
fn table_of_the_run_has_the_memory_of_processes_that_sleep() {
    let directory = tempfile::tempdir().unwrap();
    let script = "for i in 1 2 3; do $BURNER touch 40MiB 1s & done; wait";
    let run = ["run", "-q", "-i", "50ms", "--budget", "100%", "-o", "run", "--", "sh", "-c"];
    let run = output(weigh(directory.path(), &run).arg(script));
    assert!(run.status.success(), "{run:?}");
    exports(directory.path(), &["run", "-f", "parquet", "-o", "out"]);
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/exports.md");
    let Some(mut script) = python::script("run_over_time.py", directory.path()) else { return };
    let printed = python::succeeds(script.arg(guide));
    let found: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let shown = output(&mut weigh(directory.path(), &["show", "run", "--format", "json"]));
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    let figure = |name: &str| shown["figures"][name]["value"].as_f64().unwrap();
    let peak = found["memory"].as_f64().unwrap();
    assert!(peak >= 120.0 * MIB && peak <= figure("memory_peak_bytes"), "{found} {shown}");
    let cpu = found["cpu"].as_f64().unwrap();
    assert!(cpu > 0.0 && cpu <= figure("cpu_time_seconds") * 1.01, "{found} {shown}");
    assert_eq!(found["processes"].as_u64(), shown["processes"]["peak"].as_u64());
}

#[test]
fn queries_of_the_guide_work_in_duckdb() {
    let directory = tempfile::tempdir().unwrap();
    for label in ["size=1", "size=2", "size=3"] {
        let run = ["run", "-q", "-i", "20ms", "--label", label, "--", "sh", "-c"];
        let script = "$WEIGH phase solve -- $BURNER children 3 20ms";
        let output = output(weigh(directory.path(), &run).arg(script));
        assert!(output.status.success(), "{output:?}");
    }
    let written = exports(directory.path(), &["weigh-runs", "-f", "parquet", "-o", "runs.dataset"]);
    assert!(written.iter().all(|path| path.ends_with("part-0.parquet")), "{written:?}");
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/exports.md");
    let Some(mut script) = python::script("guide_queries.py", directory.path()) else { return };
    assert_eq!(python::succeeds(script.arg(guide)), "3 queries\n");
}

#[test]
fn exported_phases_and_processes_agree_with_weigh_show() {
    let directory = tempfile::tempdir().unwrap();
    let script = "$WEIGH phase solve; $BURNER children 3 30ms; $WEIGH phase --end
        $WEIGH phase load -- $BURNER cpu 30ms; true";
    let run = ["run", "-q", "-i", "20ms", "-o", "run", "--", "sh", "-c", script];
    let run = output(&mut weigh(directory.path(), &run));
    assert!(run.status.success(), "{run:?}");
    exports(directory.path(), &["run", "-f", "json", "--table", "phases,processes", "-o", "out"]);
    let rows = |name: &str| -> Vec<serde_json::Value> {
        let text = fs::read_to_string(directory.path().join("out").join(name)).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let shown = output(&mut weigh(directory.path(), &["show", "run", "--format", "json"]));
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    let phases = rows("phases.json");
    let expected = shown["phases"].as_array().unwrap();
    assert_eq!((phases.len(), expected.len()), (2, 2));
    for (row, phase) in phases.iter().zip(expected) {
        let (cpu, memory) = ("cpu_time_seconds", "memory_peak_bytes");
        assert_eq!(row["name"], phase["name"]);
        assert!(row[cpu].as_f64().is_some(), "{row}");
        assert_eq!(row[cpu], phase["figures"][cpu]["value"], "{row}");
        assert_eq!(row["cpu_time_method"], phase["figures"][cpu]["method"]);
        assert_eq!(phase[cpu], phase["figures"][cpu]["value"]);
        assert_eq!(row[memory], phase["figures"][memory]["value"], "{row}");
    }
    let processes = rows("processes.json");
    let main = &processes[0];
    assert_eq!(main["name"], "sh", "{processes:?}");
    let of_main = shown["parts"]["main"]["figures"]["cpu_time_seconds"]["value"].as_f64().unwrap();
    assert_eq!(main["cpu_time_seconds"].as_f64(), Some(of_main), "{main}");
    let all = shown["figures"]["cpu_time_seconds"]["upper"].as_f64().unwrap_or(f64::INFINITY);
    let sum: f64 = processes.iter().filter_map(|row| row["cpu_time_seconds"].as_f64()).sum();
    // User and system time of each are truncated to a clock tick, and never rounded up.
    assert!(sum <= all + 1e-9, "{sum} s of {all} s");
}

#[test]
fn window_has_only_its_own_rows() {
    let (directory, run) = recorded();
    let times = |name: &str| -> Vec<String> {
        let text = fs::read_to_string(directory.path().join(name).join("run.csv")).unwrap();
        text.lines().skip(1).map(|line| line.split(',').next().unwrap().to_owned()).collect()
    };
    exports(directory.path(), &["run", "-f", "csv", "-o", "all"]);
    exports(directory.path(), &["run", "-f", "csv", "-o", "inner", "--phase", "inner"]);
    // There are samples before and after the end of a phase, however slow the machine is.
    let events = fs::read_to_string(run.join("events.jsonl")).unwrap();
    let end = events.lines().find(|line| line.contains("phase_end")).unwrap();
    let end: serde_json::Value = serde_json::from_str(end).unwrap();
    let middle = format!("{}s", end["seconds"]);
    exports(directory.path(), &["run", "-f", "csv", "-o", "early", "--to", &middle]);
    exports(directory.path(), &["run", "-f", "csv", "-o", "late", "--from", &middle]);
    let (early, late) = (times("early"), times("late"));
    assert!(!early.is_empty() && !late.is_empty());
    assert_eq!([early, late].concat(), times("all"));
    let phases = fs::read_to_string(directory.path().join("all/phases.csv")).unwrap();
    let inner = phases.lines().find(|line| line.contains(",inner,")).unwrap();
    let moments: Vec<&str> = inner.split(',').collect();
    let (begin, end) = (moments[0], moments[5]);
    let inside = |time: &String| begin <= time.as_str() && time.as_str() < end;
    let expected: Vec<String> = times("all").into_iter().filter(inside).collect();
    assert_eq!(times("inner"), expected);
    assert!(!expected.is_empty());
}

#[test]
fn existing_file_is_refused_and_replaced_with_force() {
    let (directory, _) = recorded();
    let place = directory.path().join("out");
    fs::create_dir(&place).unwrap();
    fs::write(place.join("run.csv"), "precious").unwrap();
    let arguments = ["run", "-f", "csv", "-o", "out"];
    fails(&export(directory.path(), &arguments), 1, "run.csv already exists");
    assert_eq!(files(&place).len(), 1, "nothing else was begun");
    assert_eq!(fs::read(place.join("run.csv")).unwrap(), b"precious");
    exports(directory.path(), &[&arguments[..], &["--force"]].concat());
    assert!(fs::read_to_string(place.join("run.csv")).unwrap().starts_with("time,"));
}

#[test]
fn bad_requests_are_refused_before_anything_is_written() {
    let (directory, _) = recorded();
    let refused = |arguments: &[&str], code: i32, expected: &str| {
        fails(&export(directory.path(), &[arguments, &["-o", "out"]].concat()), code, expected);
        assert!(!directory.path().join("out").exists());
    };
    refused(&["run", "-f", "docx"], 2, "possible values: csv");
    refused(&["run"], 2, "--formats");
    refused(&["run", "-f", "csv", "--table", "gpus"], 2, "possible values: node");
    refused(&["run", "-f", "csv", "--phase", "nope"], 2, "it has inner, outer, rest");
    refused(&["run", "-f", "csv", "--from", "3s", "--to", "2s"], 2, "--from is not before --to");
    refused(&["run", "-f", "csv", "--from", "soon"], 2, "write it like 90s");
    refused(&["run", "-f", "csv", "--resample", "1us"], 2, "at least a millisecond");
    refused(&["nowhere", "-f", "csv"], 1, "nowhere");
    refused(&[".", "-f", "csv"], 2, "one Parquet dataset");
}

#[test]
fn torn_recording_exports_complete_rows_and_reports_what_is_missing() {
    let (directory, run) = recorded();
    let host = fs::read_dir(&run).unwrap().map(|entry| entry.unwrap().path());
    let host = host.filter(|path| path.is_dir()).find(|path| !path.ends_with("export")).unwrap();
    exports(directory.path(), &["run", "-f", "csv", "-o", "whole"]);
    // An incomplete batch, and events that end in the middle of a line.
    let stream = host.join("process.arrows");
    let bytes = fs::read(&stream).unwrap();
    let schema = 8 + u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
    let half = &bytes[schema..(schema + bytes.len()) / 2];
    fs::write(&stream, [&bytes[..], half].concat()).unwrap();
    let events = fs::read_to_string(run.join("events.jsonl")).unwrap();
    let last = events.trim_end().rfind('\n').unwrap();
    fs::write(run.join("events.jsonl"), &events[..last + 10]).unwrap();
    let output = export(directory.path(), &["run", "-f", "csv", "-o", "torn"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(
        stderr.contains("process.arrows: ") && stderr.contains("bytes are incomplete"),
        "{stderr}"
    );
    assert!(stderr.contains("the end of the run is not recorded"), "{stderr}");
    let table = |name: &str| fs::read(directory.path().join(name).join("process.csv")).unwrap();
    assert_eq!(table("whole"), table("torn"));
}

#[test]
fn full_disk_leaves_no_file_with_the_final_name() {
    if !can_mount() {
        return;
    }
    let (directory, _) = recorded();
    let place = directory.path().join("small");
    fs::create_dir(&place).unwrap();
    let script = "mount -t tmpfs -o size=4k none small &&
        { \"$WEIGH\" export run -f csv --table process -o small; echo \"code $?\"; ls -A small; }";
    let mut command = plain("unshare", directory.path());
    let output = output(command.args(["-m", "sh", "-c", script]));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("No space left on device"), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "code 1\n");
}

#[test]
fn recording_is_never_overwritten() {
    let (directory, run) = recorded();
    let manifest = fs::read(run.join("run.json")).unwrap();
    for force in [&[][..], &["--force"]] {
        let arguments = [&["run", "-f", "json", "-o", "run"], force].concat();
        fails(&export(directory.path(), &arguments), 2, "run is a recording");
    }
    assert_eq!(fs::read(run.join("run.json")).unwrap(), manifest);
    // An export beside recordings is not taken for one, whatever the names of its files.
    exports(directory.path(), &["run", "-f", "json,jsonl", "-o", "weigh-runs/out"]);
    let output = output(&mut weigh(directory.path(), &["runs"]));
    assert!(!String::from_utf8_lossy(&output.stdout).contains("out"), "{output:?}");
}

#[test]
fn unfinished_process_has_no_end_in_every_format() {
    let run = weighed_shell(
        &["-i", "10ms", "-o", "run"],
        "sleep 30 >/dev/null 2>&1 & echo $! > pid; sleep 0.1",
    );
    let directory = run.directory.path();
    let pid = fs::read_to_string(directory.join("pid")).unwrap().trim().parse().unwrap();
    let output = export(directory, &["run", "-f", ALL_FORMATS, "--table", "processes", "-o", "o"]);
    signal(pid, libc::SIGKILL);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = fs::read_to_string(directory.join("o/processes.csv")).unwrap();
    // Neither its end nor its exit code, and its CPU time of the last sample.
    let is_unended = |line: &str| line.contains("sleep 30,,,") && line.ends_with(",,sampled,");
    assert!(table.lines().any(is_unended), "{table}");
}

#[test]
fn missing_or_damaged_file_is_named() {
    let (directory, run) = recorded();
    let host = |run: &Path| {
        let inside = fs::read_dir(run).unwrap().map(|entry| entry.unwrap().path());
        inside.filter(|path| path.is_dir()).find(|path| !path.ends_with("export")).unwrap()
    };
    let stream = host(&run).join("process.arrows");
    let whole = fs::read(&stream).unwrap();
    let warned = |expected: &str, place: &str| {
        let output = export(directory.path(), &["run", "-f", "csv", "-o", place]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && stderr.contains(expected), "{stderr}");
    };
    fs::write(&stream, &whole[..100]).unwrap();
    warned("process: its file has no complete batch", "a");
    fs::remove_file(&stream).unwrap();
    warned("process: its file is missing", "b");
    fs::write(&stream, &whole).unwrap();
    let events = fs::read_to_string(run.join("events.jsonl")).unwrap();
    fs::write(run.join("events.jsonl"), events.replacen("phase_end", "phase_eXd", 1)).unwrap();
    warned("events.jsonl: 1 lines cannot be parsed", "c");
}

#[test]
fn damaged_run_does_not_prevent_a_dataset_of_the_others() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        let place = format!("all/{name}");
        let script = format!("$WEIGH phase only-{name} -- $BURNER children 2 5ms");
        let run = ["run", "-q", "-i", "10ms", "-o", &place, "--", "sh", "-c", &script];
        assert!(output(&mut weigh(directory.path(), &run)).status.success());
    }
    fs::create_dir_all(directory.path().join("all/c")).unwrap();
    fs::write(directory.path().join("all/c/run.json"), "{").unwrap();
    fs::write(directory.path().join("all/c/events.jsonl"), "").unwrap();
    let message = |arguments: &[&str], expected: &[&str]| {
        let output = export(directory.path(), &[&["all", "-f", "parquet"], arguments].concat());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(expected.iter().all(|argument| stderr.contains(argument)), "{stderr}");
        output.status.success()
    };
    assert!(message(&["-o", "d1"], &["left out: all/c"]));
    assert!(message(
        &["-o", "d2", "--phase", "only-a"],
        &["left out: all/b", "has no phase only-a"]
    ));
    assert!(!message(&["-o", "d3", "--phase", "nope"], &["no run there can be read"]));
}

#[test]
fn disk_too_full_for_a_workbook_is_an_error_and_no_panic() {
    if !can_mount() {
        return;
    }
    let (directory, _) = recorded();
    fs::create_dir(directory.path().join("small")).unwrap();
    let script = "mount -t tmpfs -o size=16k none small &&
        { \"$WEIGH\" export run -f xlsx -o small; echo \"code $?\"; }";
    let mut command = plain("unshare", directory.path());
    let output = output(command.args(["-m", "sh", "-c", script]));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!stderr.contains("panicked") && stderr.contains("cannot write"), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "code 1\n");
}

#[test]
fn gpu_trackers_files_are_written_in_the_requested_units() {
    let (directory, _) = recorded();
    let units = ["--ram-unit", "megabytes", "--time-unit", "seconds", "--expected-cores", "4"];
    let arguments = [&["run", "--as", "gpu-tracker", "-o", "out"], &units[..]].concat();
    let written = exports(directory.path(), &arguments);
    let names: Vec<_> = written.iter().map(|path| path.file_name().unwrap()).collect();
    assert_eq!(names, ["gpu-tracker.json", "gpu-tracker.txt", "tracking.csv", "tracking.sqlite"]);
    let result: serde_json::Value =
        serde_json::from_slice(&fs::read(&written[0]).unwrap()).unwrap();
    assert_eq!(result["max_ram"]["unit"], "megabytes");
    assert_eq!(result["cpu_utilization"]["n_expected_cores"], 4);
    let summary = fs::read(directory.path().join("run/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
    assert_eq!(result["compute_time"]["time"], summary["run"]["duration_seconds"]);
    let peak = summary["figures"]["memory_peak_bytes"]["value"].as_f64().unwrap();
    let total = result["max_ram"]["combined"]["total_rss"].as_f64().unwrap();
    assert!((total - peak / 1e6).abs() < 1e-9, "{total} megabytes beside {peak} bytes");
    fails(&export(directory.path(), &arguments), 1, "gpu-tracker.json already exists");
    let bad = ["run", "--as", "gpu-tracker", "--ram-unit", "mb", "-o", "bad"];
    fails(&export(directory.path(), &bad), 2, "is not a valid RAM unit");
    assert!(!directory.path().join("bad").exists());
}

#[test]
fn option_export_exports_a_run_at_its_end() {
    let run = weighed_shell(&["-o", "run", "--export", "csv,parquet"], "exit 3").ended_with(3);
    let place = run.directory.path().join("run/export");
    assert!(place.join("process.csv").exists() && place.join("process.parquet").exists());
}

#[test]
fn killed_export_leaves_only_complete_files() {
    let (directory, _) = recorded();
    // Workbooks contain the time of their creation.
    let formats = ALL_FORMATS.replace(",xlsx", "");
    exports(directory.path(), &["run", "-f", &formats, "-o", "whole"]);
    let whole = files(&directory.path().join("whole"));
    let (mut killed, mut some) = (0, 0);
    for attempt in 0..30 {
        let name = format!("killed-{attempt}");
        let mut command = weigh(directory.path(), &["export", "run", "-f", &formats, "-o", &name]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(3 + 5 * attempt));
        signal(child.id(), libc::SIGKILL);
        killed += u32::from(!end_of(child).status.success());
        let there = files(&directory.path().join(&name));
        for (path, bytes) in &there {
            let file = path.file_name().unwrap();
            if !file.to_string_lossy().starts_with(".weigh-") {
                assert!(*bytes == whole[&directory.path().join("whole").join(file)], "{path:?}");
                some += 1;
            }
        }
    }
    assert!(killed > 0 && some > 0, "killed {killed} times, {some} files to check");
}
