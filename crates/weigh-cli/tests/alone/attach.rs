//! `weigh attach`: processes that run already.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::following::{Following, Load};
use crate::weighed::{
    Figure, ForEverybody, end_of, is_alive, is_root, output, signal, skipped, wait_until, weigh,
};

fn attach(load: &Load, more: &[&str]) -> Following {
    let directory = tempfile::tempdir().unwrap();
    let pid = load.pid().to_string();
    let following = Following::begin(directory, &[&["attach", &pid], more].concat());
    following.wait_for_event("process_start", 1);
    following
}

fn load(script: &str) -> Load {
    Load::begin(&std::env::temp_dir(), script)
}

/// Clock ticks of `/proc/PID/stat`, and a CPU that was taken away while a load ended.
fn is_near(figure: &Figure, truth: f64) {
    let off = (figure.known() - truth).abs();
    assert!(off <= 0.06, "{figure:?} is {off} s off {truth}");
}

const BEFORE_AND_AFTER: &str = "\"$BURNER\" cpu 700ms; \"$BURNER\" touch 64MiB 1ms
    wait_for_word; \"$BURNER\" cpu 400ms; \"$BURNER\" write /dev/null 1MiB 1; exit 3";

#[test]
fn what_a_process_used_before_is_not_counted() {
    let mut load = load(BEFORE_AND_AFTER);
    let following = attach(&load, &[]);
    load.go();
    let followed = following.end();
    assert_eq!(followed.code, Some(0), "weigh's own");
    let run = &followed.summary["run"];
    // Linux before 6.15 does not tell how somebody else's child ended.
    assert!(run["exit_code"].is_null() || run["exit_code"] == 3, "{run:#}");
    assert_eq!((&run["complete"], &run["stopped"]), (&true.into(), &"ended".into()));
    is_near(&followed.figure("cpu_time_seconds"), 0.4);
    let memory = followed.figure("memory_peak_bytes").known();
    assert!(memory < 32.0 * 1024.0 * 1024.0, "{memory} was before");
    followed.is_recorded();
}

#[test]
fn time_of_children_who_ended_between_looks_comes_from_those_who_waited() {
    let mut load = load("wait_for_word; \"$BURNER\" children 30 20ms");
    // Two of the looks fall into the load, whatever the interval.
    let following = attach(&load, &["--skip", "task-clock", "-i", "300ms"]);
    load.go();
    let followed = following.end();
    let cpu = followed.figure("cpu_time_seconds");
    // What the load did after the last look is in nobody's account that is followed.
    assert!(cpu.known() <= 0.72 && cpu.upper.is_none_or(|upper| upper >= 0.58), "{cpu:?}");
    cpu.is("sampled");
    let peak = followed.figure("cpu_cores_peak").known();
    assert!(peak < 1.5, "no spike where time moves from children to parents: {peak}");
    followed.is_recorded();
}

#[test]
fn every_child_is_counted_where_the_kernel_counts() {
    let mut load = load("wait_for_word; \"$BURNER\" children 30 20ms --ignore-sigchld");
    let following = attach(&load, &["-i", "10s"]);
    load.go();
    let followed = following.end();
    let cpu = followed.figure("cpu_time_seconds");
    if cpu.method.as_deref() != Some("exact") {
        return skipped("perf_event_open is refused here");
    }
    // Fork and exit of thirty children are counted, too.
    assert!((0.58..0.75).contains(&cpu.known()), "{cpu:?}");
}

#[test]
fn to_stop_watching_does_not_stop_the_watched() {
    let mut load = load("wait_for_word; echo went on");
    let followed = attach(&load, &[]).stop();
    assert_eq!(followed.code, Some(0));
    assert_eq!(followed.summary["run"]["stopped"], "asked");
    assert!(followed.summary["findings"].as_array().unwrap().is_empty());
    load.go();
    assert_eq!(load.wait_for_line(), "went on\n");
}

#[test]
fn following_ends_when_its_time_is_over() {
    let load = load("wait_for_word");
    let followed = attach(&load, &["--for", "50ms"]).end();
    assert_eq!(followed.summary["run"]["stopped"], "time");
    assert!(followed.summary["run"]["duration_seconds"].as_f64().unwrap() >= 0.05);
    assert!(is_alive(load.pid()));
    followed.is_recorded();
}

#[test]
fn descendants_may_be_waited_for() {
    // What is in the background has no input of its own, unless it is given one.
    let mut load = load("exec 3<&0; wait_for_word; (read word <&3) & exit 0");
    let following = attach(&load, &["--wait-all", "-i", "20ms"]);
    load.go();
    following.wait_for_event("process_exit", 1);
    load.go();
    let followed = following.end();
    assert_eq!(followed.summary["run"]["stopped"], "ended");
    assert_eq!(followed.summary["processes"]["left"].as_array().unwrap().len(), 0);
}

#[test]
fn a_process_that_is_not_there_is_told_of_and_nothing_is_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let said = output(&mut weigh(directory.path(), &["attach", "4194303"]));
    let text = String::from_utf8(said.stderr).unwrap();
    assert_eq!((said.status.code(), text.lines().count()), (Some(1), 3), "{text}");
    assert!(text.contains("there is no process 4194303"), "{text}");
    assert_eq!(directory.path().read_dir().unwrap().count(), 0);
}

#[test]
fn a_process_that_ends_while_weigh_starts_leaves_a_whole_recording() {
    for _ in 0..5 {
        // Ended, and its parent does not wait for it yet: there to be held, and no more.
        let child = std::process::Command::new("true").spawn().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let pid = child.id().to_string();
        let words = ["attach", &pid, "-q", "-o", "run"];
        let said = output(&mut weigh(directory.path(), &words));
        assert_eq!(said.status.code(), Some(0), "{}", String::from_utf8_lossy(&said.stderr));
        let shown = output(&mut weigh(directory.path(), &["show", "run", "--format", "json"]));
        let summary: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
        assert_eq!(summary["run"]["complete"], true);
        end_of(child);
    }
}

#[test]
fn of_somebody_else_s_process_there_is_what_can_be_read_and_a_reason_for_the_rest() {
    if !is_root() {
        return skipped("needs root, to have a process that is somebody else's");
    }
    let everybody = ForEverybody::new();
    let mut load = load("wait_for_word; \"$BURNER\" cpu 300ms; wait_for_word");
    let pid = load.pid().to_string();
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = everybody.command("weigh", place.path());
    command.args(["attach", &pid, "-o", "run", "--format", "json"]);
    let child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let events = place.path().join("run/events.jsonl");
    wait_until("weigh follows it", || {
        fs::read_to_string(&events).is_ok_and(|told| told.contains("process_start"))
    });
    load.go();
    assert_eq!(load.wait_for_line(), "ready\n", "it has burnt, and is still there");
    signal(child.id(), libc::SIGINT);
    let said = end_of(child);
    assert_eq!(said.status.code(), Some(0), "{}", String::from_utf8_lossy(&said.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&said.stderr).unwrap();
    let figure = |name: &str| Figure::of(&summary["figures"][name], name);
    let cpu = figure("cpu_time_seconds");
    cpu.is("sampled");
    is_near(&cpu, 0.3);
    assert!(figure("memory_rss_peak_bytes").known() > 0.0);
    for name in ["io_read_bytes", "memory_pss_peak_bytes"] {
        let hidden = figure(name);
        assert!(hidden.value.is_none() && hidden.reason.is_some(), "{hidden:?}");
    }
    let faults = summary["monitor"]["faults"].to_string();
    assert!(faults.contains("denied"), "{faults}");
}
