//! Unusual names and arguments.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;

use serde_json::Value;

use crate::recorded::{events, shown};
use crate::weighed::{Weighed, burner, recordings, weighed_command};

fn arguments(arguments: &[&[u8]]) -> Vec<OsString> {
    arguments.iter().map(|argument| OsStr::from_bytes(argument).to_owned()).collect()
}

/// The recording must be valid JSON, and be shown again.
fn recording_is_sound(run: &Weighed) -> Vec<Value> {
    let recording = run.directory.path().join("run");
    let manifest = fs::read(recording.join("run.json")).unwrap();
    serde_json::from_slice::<Value>(&manifest).unwrap();
    assert_eq!(shown(&recording)["run"], run.summary["run"]);
    events(&recording)
}

#[test]
fn argument_that_is_not_utf8_is_passed_unchanged_and_recorded_as_text() {
    let odd = b"caf\xe9\xff\x01\n";
    let command =
        arguments(&[b"sh", b"-c", b"printf %s \"$1\"; exec \"$BURNER\" cpu 30ms", b"sh", odd]);
    let run = weighed_command(&["-o", "run", "-i", "5ms"], &command).ended_with(0);
    assert_eq!(run.stdout, odd);
    recording_is_sound(&run);
    let recorded = run.summary["run"]["command"][4].as_str().unwrap();
    assert!(recorded.contains("caf") && recorded.contains("\\xE9"), "{recorded:?}");
}

#[test]
fn program_and_directory_that_are_not_utf8_are_measured() {
    let directory = tempfile::tempdir().unwrap();
    let odd = directory.path().join(OsStr::from_bytes(b"odd\xff"));
    fs::create_dir(&odd).unwrap();
    let program = odd.join(OsStr::from_bytes(b"burn\xfe"));
    fs::copy(burner(), &program).unwrap();
    let mut command = crate::weighed::weigh(&odd, &["run", "-q", "--"]);
    let output = crate::weighed::output(command.arg(&program).args(["exit", "7"]));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(7));
    let recording = recordings(&odd).remove(0);
    let name = shown(&recording)["run"]["name"].as_str().unwrap().to_owned();
    assert!(name.starts_with("burn"), "{name:?}");
}

#[test]
fn process_may_have_any_name() {
    for odd in [&b"a) R 1\n(b"[..], b") (", b"x\xff\xfe\x1b[31m", b" "] {
        let burner = burner();
        let script = b"\"$0\" named \"$1\" 300ms & \"$0\" cpu 600ms; wait";
        let command = arguments(&[b"sh", b"-c", script, burner.as_os_str().as_bytes(), odd]);
        let run = weighed_command(&["-o", "run", "-i", "20ms"], &command).ended_with(0);
        run.figure("cpu_time_seconds").is_within(0.10, 0.6).is("exact");
        assert_eq!(run.summary["processes"]["total"], 3, "{odd:?}");
        let text = String::from_utf8_lossy(odd).into_owned();
        let plain = text.split('\u{fffd}').next().unwrap().to_owned();
        let events = recording_is_sound(&run);
        let called = |event: &Value| event["name"].as_str().is_some_and(|n| n.starts_with(&plain));
        assert!(events.iter().any(called), "{plain:?} is not in {events:?}");
    }
}

#[test]
fn process_name_cannot_write_escape_codes_to_the_terminal() {
    let burner = burner();
    let script = b"\"$0\" named \"$1\" 60s >/dev/null 2>&1 & echo $!
        until grep -q evil /proc/$!/comm; do \"$0\" sleep 5ms; done";
    let odd = b"evil\n\x1b[31m";
    let command = arguments(&[b"sh", b"-c", script, burner.as_os_str().as_bytes(), odd]);
    let run = weighed_command(&["--no-record"], &command).ended_with(0);
    let pid = String::from_utf8_lossy(&run.stdout).trim().parse().unwrap();
    crate::weighed::signal(pid, libc::SIGKILL);
    assert!(run.stderr.contains("evil"), "{}", run.stderr);
    assert!(!run.stderr.contains('\x1b'), "{:?}", run.stderr);
    assert!(run.stderr.lines().all(|line| !line.starts_with("[31m")), "{:?}", run.stderr);
}
