//! An untrusted recording: any bytes as its manifest, its events and its streams.
//!
//! The input is three files one after the other, the first two after their length as two bytes.
//! Whatever they contain, the reader returns rows, warnings or an error.

#![no_main]

use std::fs;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use weigh::record::Recording;

/// A valid manifest, for inputs that are only the other files.
const MANIFEST: &[u8] = include_bytes!("../../fixtures/recordings/v1/run/run.json");

fn part<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else { return &[] };
    let (part, rest) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
    *bytes = rest;
    part
}

fn read(directory: &Path) {
    let Ok(recording) = Recording::open(directory) else { return };
    let _ = recording.losses();
    let _ = weigh::summary::of(&recording);
}

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    let (manifest, events) = (part(&mut rest), part(&mut rest));
    let Ok(directory) = tempfile::tempdir() else { return };
    let host = directory.path().join("node-a");
    let manifest = if manifest.is_empty() { MANIFEST } else { manifest };
    let _ = fs::create_dir(&host);
    let _ = fs::write(directory.path().join("run.json"), manifest);
    let _ = fs::write(directory.path().join("events.jsonl"), events);
    let _ = fs::write(host.join("process.arrows"), rest);
    read(directory.path());
});
