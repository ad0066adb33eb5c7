//! Unexpected environments.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::Command;

use crate::weighed::{Figure, can_mount, output, plain, recordings};

/// Runs a shell script with the real binary as `$WEIGH` and the loads as `$BURNER`, and gives
/// its exit code, its stderr, and what it left as `summary.json`.
fn script(directory: &Path, text: &str) -> (Option<i32>, String, serde_json::Value) {
    // A hang here would last forever.
    let mut command = plain("timeout", directory);
    let output = output(command.args(["-s", "KILL", "60", "bash", "-c", text]));
    let summary = fs::read(directory.join("summary.json")).unwrap_or_default();
    let summary = serde_json::from_slice(&summary).unwrap_or_default();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned(), summary)
}

fn figure(summary: &serde_json::Value, name: &str) -> Figure {
    Figure::of(&summary["figures"][name], name)
}

#[test]
fn ignored_sigchld_of_the_parent_does_not_hang_weigh() {
    let directory = tempfile::tempdir().unwrap();
    let run =
        "trap '' CHLD; \"$WEIGH\" run -q --no-record --summary summary.json -- \"$BURNER\" state";
    let (code, _, summary) = script(directory.path(), &format!("{run} > state.json"));
    assert_eq!(code, Some(0));
    assert!(figure(&summary, "cpu_time_seconds").known() > 0.0);
    let state = fs::read(directory.path().join("state.json")).unwrap();
    let state: serde_json::Value = serde_json::from_slice(&state).unwrap();
    let ignored = u64::from_str_radix(state["signals_ignored"].as_str().unwrap(), 16).unwrap();
    assert_ne!(ignored & (1 << (libc::SIGCHLD - 1)), 0, "the command has it as it was");
    let (code, _, _) = script(directory.path(), "trap '' CHLD; \"$WEIGH\" phase x -- true");
    assert_eq!(code, Some(0));
}

#[test]
fn file_size_limit_ends_the_recording_and_not_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let run = "ulimit -f 8; \"$WEIGH\" run -q -o run -- sh -c 'echo ran > ran; exit 7'";
    let (code, stderr, _) = script(directory.path(), run);
    assert_eq!(code, Some(7), "{stderr}");
    assert!(directory.path().join("ran").exists());
    assert_eq!(stderr.matches("weigh: warning:").count(), 1, "{stderr}");
}

#[test]
fn usage_before_exec_of_weigh_is_not_charged_to_the_command() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("large"), vec![0; 20 << 20]).unwrap();
    let before = "cat large > /dev/null; (sleep 0.2; cat large > /dev/null) &
        exec \"$WEIGH\" run -q --no-record --summary summary.json -- sleep 1";
    let (code, _, summary) = script(directory.path(), before);
    assert_eq!(code, Some(0));
    assert!(figure(&summary, "io_read_bytes").known() < 1e6);
    assert_eq!(summary["processes"]["total"], 1);
}

#[test]
fn usage_before_exec_of_weigh_is_not_charged_to_the_monitor() {
    let directory = tempfile::tempdir().unwrap();
    // The shell burns half a second itself and then execs weigh.
    let run = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; times > times
        exec \"$WEIGH\" run -q --no-record --summary summary.json -- true";
    let (code, _, summary) = script(directory.path(), run);
    assert_eq!(code, Some(0));
    let times = fs::read_to_string(directory.path().join("times")).unwrap();
    let user = times.split_whitespace().next().unwrap().trim_end_matches('s');
    let shell: f64 = user.split_once('m').unwrap().1.parse().unwrap();
    let own = summary["monitor"]["cpu_seconds"].as_f64().unwrap();
    assert!(shell > 0.1 && own < shell, "weigh {own} s, the shell {shell} s");
}

#[test]
fn children_from_before_the_run_are_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let run = "sleep 55 > /dev/null 2>&1 & echo $! > sleeper
        exec \"$WEIGH\" run -q --wait-all --no-record --summary summary.json -- true";
    let (code, _, summary) = script(directory.path(), run);
    let sleeper = fs::read_to_string(directory.path().join("sleeper")).unwrap();
    let _ = Command::new("kill").arg(sleeper.trim()).status();
    assert_eq!(code, Some(0));
    assert!(summary["run"]["duration_seconds"].as_f64().unwrap() < 40.0);
}

#[test]
fn proc_of_another_pid_namespace_is_not_measured_as_ours() {
    if !can_mount() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let run =
        "unshare -pf \"$WEIGH\" run -q --no-record --summary summary.json -- \"$BURNER\" cpu 1s";
    let (code, _, summary) = script(directory.path(), run);
    assert_eq!(code, Some(0));
    let main = &summary["parts"]["main"]["figures"]["cpu_time_seconds"];
    assert!(main["value"].is_null() && main["reason"].as_str().unwrap().contains("namespace"));
    figure(&summary, "cpu_time_seconds").is_within(0.1, 1.0);
}

#[test]
fn summary_may_be_a_pipe_and_a_pipe_without_a_reader_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let run = "mkfifo pipe; cat pipe > summary.json & sleep 0.1
        \"$WEIGH\" run -q --no-record --summary pipe -- true && wait";
    let (code, stderr, summary) = script(directory.path(), run);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(summary["run"]["exit_code"], 0);
    let run = "mkfifo lonely; \"$WEIGH\" run -q --no-record --summary lonely -- touch ran";
    let (code, stderr, _) = script(directory.path(), run);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(!directory.path().join("ran").exists());
}

#[test]
fn flood_of_control_messages_does_not_delay_ticks() {
    let directory = tempfile::tempdir().unwrap();
    let run = "\"$WEIGH\" run -q -i 100ms -o run --summary summary.json -- \
        sh -c 'timeout 2 yes xxxxxxxxxxxxxxx > run/inbox; exit 3'";
    let (code, _, summary) = script(directory.path(), run);
    assert_eq!(code, Some(3));
    let monitor = &summary["monitor"];
    assert!(monitor["ticks"].as_u64().unwrap() > 8, "{monitor}");
    assert!(monitor["memory_peak_bytes"].as_u64().unwrap() < 32 << 20, "{monitor}");
}

#[test]
fn recording_of_pipes_and_devices_is_refused_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let made = "\"$WEIGH\" run -q -o run -- true && cp -r run events && cp -r run manifest
        rm events/events.jsonl manifest/run.json
        mkfifo events/events.jsonl; ln -s /dev/zero manifest/run.json";
    assert_eq!(script(directory.path(), made).0, Some(0));
    assert!(directory.path().join("events/events.jsonl").metadata().unwrap().file_type().is_fifo());
    for run in ["events", "manifest"] {
        let (code, stderr, _) = script(directory.path(), &format!("\"$WEIGH\" show {run}"));
        assert_eq!(code, Some(1), "{run}: {stderr}");
        assert!(stderr.contains("not a regular file"), "{run}: {stderr}");
    }
}

#[test]
fn runs_that_start_at_the_same_time_are_all_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let runs = "seq 24 | xargs -P 12 -I{} \"$WEIGH\" run -q --name same -- true";
    let (code, stderr, _) = script(directory.path(), runs);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert_eq!(recordings(directory.path()).len(), 24);
}

#[test]
fn json_stays_valid_with_warnings() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("weigh-runs"), "in the way").unwrap();
    let (code, stderr, _) =
        script(directory.path(), "\"$WEIGH\" run --format json -- sh -c 'exit 4'");
    assert_eq!(code, Some(4));
    let summary: serde_json::Value = serde_json::from_str(&stderr).expect("valid JSON");
    let faults = summary["monitor"]["faults"].to_string();
    assert!(faults.contains("not recorded"), "{faults}");
}

#[test]
fn run_whose_monitor_was_killed_at_once_has_no_zeros() {
    let directory = tempfile::tempdir().unwrap();
    let killed = "\"$WEIGH\" run -q -o run -- sh -c 'kill -9 $PPID'
        \"$WEIGH\" show run --format json > summary.json";
    let (code, _, summary) = script(directory.path(), killed);
    assert_eq!(code, Some(0));
    assert_eq!(summary["run"]["complete"], false);
    let cpu = &summary["figures"]["cpu_time_seconds"];
    assert!(cpu["value"] != 0 && cpu["reason"].is_string(), "{cpu}");
}
