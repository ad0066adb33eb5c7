//! weigh against the real gpu-tracker 5.0.1, byte for byte.
//!
//! `WEIGH_TEST_PYTHON` is an interpreter with gpu-tracker. It formats the numbers that weigh
//! measured, analyzes the files that weigh wrote, and makes files of its own; its output must be
//! the same as weigh's.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::gpu_tracker::Place;
use crate::weighed::output;

/// The Python with gpu-tracker, if there is one.
struct Python(String);

fn python() -> Option<Python> {
    let found = std::env::var("WEIGH_TEST_PYTHON").ok().filter(|path| !path.is_empty());
    if found.is_none() {
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"skipped: no Python with gpu-tracker; run cargo xtask test\n",
        );
    }
    found.map(Python)
}

impl Python {
    /// The output of the script.
    fn ask(&self, directory: &Path, arguments: &[&str]) -> String {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/gpu_tracker_golden.py");
        let mut command = Command::new(&self.0);
        let done = output(command.arg(script).args(arguments).current_dir(directory));
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{arguments:?}: {stderr}");
        String::from_utf8(done.stdout).unwrap()
    }
}

fn read(place: &Place, name: &str) -> String {
    fs::read_to_string(place.join(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
}

/// Fails unless both are the same, and shows where they begin to differ.
fn is_same(what: &str, ours: &str, theirs: &str) {
    let lines = ours.lines().zip(theirs.lines()).find(|(one, other)| one != other);
    assert!(ours == theirs, "{what}: ours, theirs: {lines:?}");
}

/// Runs weigh as gpu-tracker, which must succeed.
fn ours(place: &Place, arguments: &[&str]) -> String {
    let (code, stdout, stderr) = place.run(arguments);
    assert_eq!(code, 0, "{arguments:?}: {stderr}");
    stdout
}

#[test]
fn json_in_every_unit_is_the_same_as_gpu_trackers() {
    let Some(python) = python() else { return };
    let place = Place::new();
    let units = ["bytes", "kilobytes", "megabytes", "gigabytes", "terabytes"];
    for (unit, time) in units.iter().zip(["seconds", "minutes", "hours", "days", "hours"]) {
        let arguments =
            ["-e", "sh -c 'sleep 0.2 & wait'", "--ru", unit, "--gru", unit, "--tu", time];
        ours(
            &place,
            &[&arguments[..], &["-f", "json", "-o", "result", "--tf", "out.csv"]].concat(),
        );
        python.ask(place.path(), &["usage", "result"]);
        is_same("json", &read(&place, "result"), &read(&place, "result.theirs.json"));
        fs::remove_file(place.join("out.csv")).unwrap();
    }
}

#[test]
fn text_and_json_of_the_same_numbers_are_the_same_as_gpu_trackers() {
    let Some(python) = python() else { return };
    let place = Place::new();
    // The same recording as JSON and as text, so that both have the same numbers.
    let arguments = ["run", "-q", "-o", "run", "--", "sh", "-c", "sleep 0.2 & wait"];
    let weigh = crate::weighed::weigh_path();
    assert!(output(crate::weighed::plain(weigh, place.path()).args(arguments)).status.success());
    let recording = weigh::record::Recording::open(&place.join("run")).unwrap();
    use weigh::compat::gpu_tracker::{GpuTrackerFormat, GpuTrackerOptions, export};
    let formats = [
        GpuTrackerFormat::Json,
        GpuTrackerFormat::Text,
        GpuTrackerFormat::Csv,
        GpuTrackerFormat::Sqlite,
    ];
    export(&recording, &GpuTrackerOptions::default(), &formats, &place.join("out"), false).unwrap();
    python.ask(place.path(), &["usage", "out/gpu-tracker.json"]);
    for (ours, theirs) in [("gpu-tracker.json", "json"), ("gpu-tracker.txt", "txt")] {
        let theirs = read(&place, &format!("out/gpu-tracker.json.theirs.{theirs}"));
        is_same(ours, &read(&place, &format!("out/{ours}")), &theirs);
    }
}

#[test]
fn analysis_of_gpu_trackers_files_is_the_same_as_gpu_trackers() {
    let Some(python) = python() else { return };
    let place = Place::new();
    python.ask(place.path(), &["make", "."]);
    for kind in ["csv", "sqlite"] {
        for session in ["short", "long"] {
            let parts = [77, 5].map(|process| format!("{session}-blocks-{process}.{kind}"));
            let (mine, theirs) =
                (format!("{session}-ours.{kind}"), format!("{session}-all.{kind}"));
            python.ask(place.path(), &["combine", &theirs, &parts[0], &parts[1]]);
            let stf = format!("--stf={mine}");
            ours(&place, &["sub-track", "combine", &stf, "-p", &parts[0], "-p", &parts[1]]);
            if kind == "csv" {
                is_same("combined", &read(&place, &mine), &read(&place, &theirs));
            }
            let tracking = format!("{session}.{kind}");
            let out = format!("{session}-{kind}");
            python.ask(place.path(), &["analyze", &tracking, &theirs, &out]);
            for (format, end) in [("json", "json"), ("text", "txt")] {
                let (tf, stf) = (format!("--tf={tracking}"), format!("--stf={mine}"));
                let arguments = ["sub-track", "analyze", &tf, &stf, "-f", format, "-o", "mine"];
                ours(&place, &arguments);
                let theirs = read(&place, &format!("{out}.{end}"));
                is_same(&format!("{session} {kind} {format}"), &read(&place, "mine"), &theirs);
            }
        }
    }
    for statistic in ["min", "max", "mean", "std"] {
        let sessions = [("b", "short-csv"), ("a", "long-sqlite"), ("c d", "long-csv")];
        let named = |end: &str| sessions.map(|(name, path)| format!("{name}={path}.{end}"));
        let theirs = named("pkl");
        let mut arguments = vec!["compare", statistic, "compared"];
        arguments.extend(theirs.iter().map(String::as_str));
        python.ask(place.path(), &arguments);
        for (format, end) in [("json", "json"), ("text", "txt")] {
            let mine = named("json");
            let mut arguments = vec!["sub-track", "compare", "--stat", statistic, "-f", format];
            mine.iter().for_each(|session| arguments.extend(["-m", session]));
            let theirs = read(&place, &format!("compared.{end}")) + "\n";
            is_same(&format!("compared by {statistic}"), &ours(&place, &arguments), &theirs);
        }
    }
}

#[test]
fn gpu_tracker_reads_the_tracking_files_of_weigh() {
    let Some(python) = python() else { return };
    let place = Place::new();
    let script =
        "sh -c '$WEIGH phase load -- sleep 0.3; $WEIGH phase load -- sleep 0.3; sleep 0.2'";
    for kind in ["csv", "sqlite"] {
        let (tf, stf) = (format!("out.{kind}"), format!("blocks.{kind}"));
        ours(&place, &["-e", script, "--st=0.1", "--tf", &tf]);
        // Blocks within the measured time, as gpu-tracker's SubTracker writes them.
        let csv = read_times(&place, &python, &tf);
        let rows = format!(
            "process_id,code_block_name,position,timestamp\n1,x,0,{0}\n1,x,1,{1}\n1,y,0,{1}\n1,y,1,{2}\n",
            csv.0, csv.1, csv.2
        );
        fs::write(place.join("rows.csv"), rows).unwrap();
        let blocks = if kind == "csv" { "rows.csv" } else { stf.as_str() };
        if kind == "sqlite" {
            python.ask(place.path(), &["to_sqlite", "rows.csv", blocks]);
        }
        python.ask(place.path(), &["analyze", &tf, blocks, "theirs"]);
        let arguments =
            ["sub-track", "analyze", "--tf", &tf, "--stf", blocks, "-f", "json", "-o", "mine"];
        ours(&place, &arguments);
        is_same(kind, &read(&place, "mine"), &read(&place, "theirs.json"));
    }
}

/// The first, a middle and the last timestamp of a tracking file, as its Python reads them.
fn read_times(place: &Place, python: &Python, file: &str) -> (String, String, String) {
    let message = python.ask(place.path(), &["times", file]);
    let mut times = message.split_whitespace().map(str::to_owned);
    let mut next = || times.next().unwrap();
    (next(), next(), next())
}

#[test]
fn pickle_is_the_same_as_the_json() {
    let Some(python) = python() else { return };
    let place = Place::new();
    ours(&place, &["-e", "true", "-f", "pickle", "-o", "result.pkl"]);
    let message = python.ask(place.path(), &["unpickle", "result.pkl"]);
    let result: serde_json::Value = serde_json::from_str(&message).unwrap();
    assert_eq!(result["max_ram"]["unit"], "gigabytes", "{message}");
    assert!(result["compute_time"]["time"].as_f64().unwrap() > 0.0, "{message}");
}
