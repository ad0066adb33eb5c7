//! Pairing, analyzing, combining and comparing code blocks.

use std::path::{Path, PathBuf};

use super::blocks::{Block, Position, pair};
use super::*;
use crate::compat::gpu_tracker::tests::forked;
use crate::compat::gpu_tracker::{GpuTrackerFormat, GpuTrackerOptions, export};
use crate::export::tests::small_machine;

fn row(process_id: i64, name: &str, stop: bool, timestamp: f64) -> Position {
    Position { process_id, name: name.to_owned(), stop, timestamp }
}

fn calls(rows: &[Position]) -> Vec<(f64, f64)> {
    let blocks = pair(rows).unwrap();
    assert_eq!(blocks.len(), 1);
    blocks[0].calls.clone()
}

#[test]
fn call_inside_a_call_of_the_same_name_ends_first() {
    let rows = [
        row(1, "f", false, 0.0),
        row(1, "f", false, 0.5),
        row(1, "f", true, 1.5),
        row(1, "f", true, 2.0),
    ];
    assert_eq!(calls(&rows), [(0.0, 2.0), (0.5, 1.5)]);
}

#[test]
fn calls_are_paired_per_process_in_any_order_of_rows() {
    let rows = [
        row(2, "f", false, 0.0),
        row(1, "f", false, 0.25),
        row(2, "f", true, 1.0),
        row(1, "f", true, 3.25),
    ];
    assert_eq!(calls(&rows), [(0.25, 3.25), (0.0, 1.0)]);
}

#[test]
fn back_to_back_calls_stay_two() {
    let rows = [
        row(1, "f", false, 0.0),
        row(1, "f", true, 1.0),
        row(1, "f", false, 1.0),
        row(1, "f", true, 3.0),
    ];
    assert_eq!(calls(&rows), [(0.0, 1.0), (1.0, 3.0)]);
}

#[test]
fn call_without_an_end_is_left_out_and_end_without_a_start_is_refused() {
    let open = [row(1, "f", false, 0.0), row(1, "f", true, 1.0), row(1, "f", false, 2.0)];
    assert_eq!(calls(&open), [(0.0, 1.0)]);
    let wrong = [row(1, "f", true, 0.5), row(1, "f", false, 2.0)];
    assert_eq!(
        pair(&wrong).unwrap_err().to_string(),
        "Sub-tracking file is invalid. Detected timestamp pair (0.5, 2.0) of process ID 1 with a \
         start time greater than the stop time."
    );
    assert!(pair(&wrong[..1]).unwrap_err().to_string().contains("without a start"));
    let wrong = [row(1, "f", true, 0.5), row(2, "f", false, 0.25), row(2, "f", true, 2.0)];
    assert_eq!(
        pair(&wrong).unwrap_err().to_string(),
        "Sub-tracking file is invalid. Detected timestamp pair (0.5, 0.25) with differing process \
         IDs: 1 and 2."
    );
}

/// A recording with phases: two that overlap, and one that never ends.
fn phased(second: &str) -> (tempfile::TempDir, PathBuf) {
    let mut run = forked();
    run.phase_starts(0.5, "1", "load").phase_starts(0.75, "2", second);
    run.phase_ends(1.25, "1").phase_ends(1.5, "2").phase_starts(1.75, "3", "open");
    let (directory, recording) = run.recorded(2.0, 0.5);
    let path = recording.directory().to_owned();
    (directory, path)
}

#[test]
fn phases_of_a_recording_are_its_code_blocks_paired_by_id() {
    let (_directory, path) = phased("load");
    let begin = 1_700_000_000.0;
    let blocks = blocks::read(&path).unwrap();
    let load = vec![(begin + 0.5, begin + 1.25), (begin + 0.75, begin + 1.5)];
    assert_eq!(
        blocks,
        [
            Block { name: "load".to_owned(), calls: load },
            Block { name: "open".to_owned(), calls: Vec::new() }
        ]
    );
    let results = analyze_files(&path, &path).unwrap();
    let load = &results.code_block_results[0];
    assert_eq!((load.num_timepoints, load.num_calls, load.num_non_empty_calls), (1, 2, 2));
    assert_eq!((load.compute_time.mean, load.total_time), (0.75, 1.5));
    assert_eq!(
        load.resource_usage[0].1.max, 0.7000000000000001,
        "idle processes are carried forward"
    );
    let open = &results.code_block_results[1];
    assert_eq!((open.num_calls, open.total_time), (0, 0.0));
    assert!(open.compute_time.mean.is_nan() && open.resource_usage[0].1.mean.is_nan());
}

#[test]
fn recording_and_its_exported_files_give_the_same_analysis() {
    let (directory, path) = phased("parse");
    let recording = crate::record::Recording::open(&path).unwrap();
    let out = directory.path().join("out");
    let formats = [GpuTrackerFormat::Csv, GpuTrackerFormat::Sqlite];
    let files = export(&recording, &GpuTrackerOptions::default(), &formats, &out, false).unwrap();
    let whole = analyze_files(&path, &path).unwrap();
    for (file, name) in files.iter().zip(["blocks.csv", "blocks.sqlite"]) {
        let blocks = directory.path().join(name);
        combine(std::slice::from_ref(&path), &blocks).unwrap();
        let files = analyze_files(file, &blocks).unwrap();
        assert!(files.to_json() == whole.to_json(), "{}", files.to_text());
    }
}

fn csv(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

const ROWS: &str = "process_id,code_block_name,position,timestamp\r\n7,\"a, b\",0,1.5\r\n\
                    7,\"a, b\",1,2.5\r\n";

#[test]
fn files_are_combined_in_the_order_of_their_names_and_never_overwrite_another() {
    let directory = tempfile::tempdir().unwrap();
    let parts = directory.path().join("parts");
    std::fs::create_dir(&parts).unwrap();
    csv(&parts, "2.csv", &ROWS.replace('7', "9"));
    csv(&parts, "1.csv", ROWS);
    let all = directory.path().join("all.csv");
    combine(std::slice::from_ref(&parts), &all).unwrap();
    assert_eq!(
        std::fs::read_to_string(&all).unwrap(),
        "process_id,code_block_name,position,timestamp\n7,\"a, b\",0,1.5\n7,\"a, b\",1,2.5\n\
         9,\"a, b\",0,1.5\n9,\"a, b\",1,2.5\n"
    );
    let again = combine(std::slice::from_ref(&parts), &all).unwrap_err().to_string();
    assert!(again.ends_with("all.csv. File already exists."), "{again}");
    csv(&parts, "3.txt", "");
    let wrong = combine(&[parts], &directory.path().join("more.csv")).unwrap_err().to_string();
    assert!(wrong.ends_with("Must end in \".csv\"."), "{wrong}");
}

#[test]
fn malformed_file_is_refused_with_its_line_and_never_a_panic() {
    let (directory, path) = phased("load");
    let recording = crate::record::Recording::open(&path).unwrap();
    let options = GpuTrackerOptions::default();
    let made =
        export(&recording, &options, &[GpuTrackerFormat::Csv], directory.path(), true).unwrap();
    let whole = std::fs::read_to_string(&made[0]).unwrap();
    for end in 0..whole.len() {
        let cut = csv(directory.path(), "cut.csv", &whole[..end]);
        let _ = tracked::read(&cut);
    }
    for end in 0..ROWS.len() {
        let cut = csv(directory.path(), "cut.csv", &ROWS[..end]);
        let _ = blocks::read(&cut);
    }
    let wrong = |text: &str| {
        let path = csv(directory.path(), "wrong.csv", text);
        blocks::read(&path).unwrap_err().to_string()
    };
    assert!(wrong("").contains("line 1: the file is empty"));
    assert!(wrong("process_id,name\n").contains("no column code_block_name"));
    assert!(wrong(&ROWS.replace(",0,", ",2,")).contains("line 2: position \"2\""));
    assert!(wrong(&ROWS.replace("2.5", "soon")).contains("line 3: \"soon\" is not a number"));
    assert!(wrong(&ROWS.replace("7,\"a", "x,\"a")).contains("\"x\" is not a process id"));
    assert!(wrong("a\n\"b").contains("line 2: a quote is not closed"));
    let missing = directory.path().join("missing.sqlite");
    assert!(tracked::read(&missing).unwrap_err().to_string().contains("missing.sqlite"));
    let text = csv(directory.path(), "text.sqlite", "not a database, and longer than its header");
    assert!(tracked::read(&text).is_err() && blocks::read(&text).is_err());
    assert!(tracked::read(directory.path()).unwrap_err().to_string().contains("Valid file"));
}

fn session(blocks: &[&str]) -> SubTrackingResults {
    let directory = tempfile::tempdir().unwrap();
    let (_run, recording) = small_machine().recorded(1.0, 0.0);
    let tracked = tracked::of_recording(&recording, &GpuTrackerOptions::default()).unwrap();
    let mut text = "process_id,code_block_name,position,timestamp\n".to_owned();
    for (place, name) in blocks.iter().enumerate() {
        text.push_str(&format!("1,{name},0,{place}\n1,{name},1,{}\n", place + 1 + place));
    }
    let path = csv(directory.path(), "blocks.csv", &text);
    analyze(&tracked, &blocks::read(&path).unwrap())
}

#[test]
fn whole_counts_of_a_database_stay_whole_in_a_comparison() {
    let mut one = session(&["f"]);
    let threads = one.overall.iter_mut().find(|(name, _)| name == "main_n_threads").unwrap();
    threads.1 = statistics::MeasureStatistics { min: 3.0, max: 4.0, mean: 3.5, std: 0.5 };
    one.has_whole_counts = true;
    let read = SubTrackingResults::of_json(&one.to_json()).unwrap();
    let sessions = Sessions::new(vec![("x".into(), read)]).unwrap();
    let of = |statistic| sessions.compare(statistic).unwrap();
    assert!(of("max").to_json().contains("\"main_n_threads\": {\n   \"x\": 4\n"));
    assert!(of("mean").to_json().contains("\"main_n_threads\": {\n   \"x\": 3.5\n"));
    assert!(of("min").to_text().contains("Main N Threads:\n\t\t  x\n\t\t  3\n"));
}

#[test]
fn blocks_match_by_name_or_by_the_order_of_their_lines() {
    let (one, two) = (session(&["a.py:9", "a.py:10"]), session(&["a.py:12", "a.py:100"]));
    let sessions = Sessions::new(vec![("x".into(), one.clone()), ("b".into(), two)]).unwrap();
    assert_eq!(sessions.warnings.len(), 2);
    assert!(
        sessions.warnings[0].starts_with("Code block name \"a.py:12\" of tracking session \"b\"")
    );
    let compared = sessions.compare("max").unwrap();
    let names: Vec<&str> =
        compared.code_block_compute_time.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a.py:12 -> a.py:9", "a.py:10 -> a.py:100"]);
    let refused = |other: SubTrackingResults| {
        Sessions::new(vec![("a".into(), one.clone()), ("b".into(), other)]).unwrap_err().to_string()
    };
    assert!(refused(session(&["a.py:9"])).contains("has 1 code blocks."));
    assert!(refused(session(&["a.py:9", "b.py:10"])).contains("does not match code block name"));
    let wrong = sessions.compare("median").unwrap_err().to_string();
    assert_eq!(wrong, "Invalid summary statistic 'median'. Valid values are min max mean std.");
}

#[test]
fn analysis_is_read_back_from_json_and_never_from_a_pickle() {
    let directory = tempfile::tempdir().unwrap();
    let results = session(&["say \"NaN\" \\"]);
    let path = csv(directory.path(), "analysis.json", &results.to_json());
    let again = SubTrackingResults::read_json(&path).unwrap();
    assert_eq!(again.to_json(), results.to_json(), "NaN and all");
    std::fs::write(&path, [0x80, 4, b'.']).unwrap();
    let refused = SubTrackingResults::read_json(&path).unwrap_err().to_string();
    assert!(refused.contains("reading a pickle executes what is in it"), "{refused}");
    for text in ["", "[]", "{}", "{\"overall\": 1}"] {
        let path = csv(directory.path(), "wrong.json", text);
        assert!(SubTrackingResults::read_json(&path).is_err(), "{text}");
    }
}
