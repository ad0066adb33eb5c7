//! Recordings of earlier versions give the same summaries, tables and charts as before.
//!
//! `UPDATE=1 cargo test -p weigh-cli --test it old_recordings` writes the golden files again; their
//! diff is the change for every user of such a recording.

use std::fs;
use std::path::{Path, PathBuf};

use crate::weighed::{output, weigh};

/// Where the recordings of format 1 are, each with its `NAME.golden` beside it.
fn recordings() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recordings/v1")
}

/// The stdout of weigh, with its warnings.
fn stdout_of(arguments: &[&str]) -> String {
    let output = output(&mut weigh(&recordings(), arguments));
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// The files of a directory in the order of their names, with their contents. Without a file
/// there is no directory.
fn files(directory: &Path) -> Vec<(String, String)> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    paths.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// Every table as CSV, one after the other.
fn tables(recording: &str, directory: &Path) -> String {
    let to = directory.join("tables");
    stdout_of(&["export", recording, "-f", "csv", "-o", to.to_str().unwrap()]);
    files(&to).iter().map(|(name, text)| format!("== {name}\n{text}")).collect()
}

/// The text of every chart, and a checksum of the rest.
fn charts(recording: &str, directory: &Path) -> String {
    let to = directory.join("charts");
    stdout_of(&["plot", recording, "-o", to.to_str().unwrap()]);
    let chart = |(name, svg): &(String, String)| {
        let texts = svg.split('<').filter_map(|piece| piece.strip_prefix("text")?.split_once('>'));
        let texts: Vec<&str> =
            texts.map(|(_, text)| text).filter(|text| !text.is_empty()).collect();
        format!("== {name} {:016x}\n{}\n", checksum(svg), texts.join(" | "))
    };
    files(&to).iter().map(chart).collect()
}

/// FNV-1a: the same with every compiler, which the standard library's hash does not promise.
fn checksum(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Fails unless a golden file has this text, or writes it.
fn is_golden(path: &Path, text: &str) {
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        return fs::write(path, text).unwrap();
    }
    let golden = fs::read_to_string(path).unwrap_or_default();
    let differ = golden.lines().zip(text.lines()).find(|(one, other)| one != other);
    assert!(golden == text, "{} differs: {differ:#?}", path.display());
}

fn gives_what_it_gave(recording: &str) {
    let directory = tempfile::tempdir().unwrap();
    let golden = recordings().join(format!("{recording}.golden"));
    is_golden(&golden.join("summary.json"), &stdout_of(&["show", recording, "--format", "json"]));
    is_golden(&golden.join("tables.csv"), &tables(recording, directory.path()));
    is_golden(&golden.join("charts.txt"), &charts(recording, directory.path()));
}

#[test]
fn recorded_run_with_phases_gives_what_it_gave() {
    gives_what_it_gave("run");
}

#[test]
fn recording_of_an_attached_process_gives_what_it_gave() {
    gives_what_it_gave("attach");
}

#[test]
fn recording_of_watched_programs_gives_what_it_gave() {
    gives_what_it_gave("watch");
}

#[test]
fn merged_recording_gives_what_it_gave() {
    gives_what_it_gave("merged");
}

#[test]
fn recording_with_gpus_gives_what_it_gave() {
    gives_what_it_gave("gpu");
}

#[test]
fn recording_whose_rows_were_cut_off_gives_what_it_gave() {
    gives_what_it_gave("cut");
}

#[test]
fn torn_recording_gives_what_it_gave() {
    gives_what_it_gave("torn");
}
