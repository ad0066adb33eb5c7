//! `weigh attach`: running processes.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::attached::{Load, Monitoring};
use crate::weighed::{
    Figure, PublicPrograms, end_of, impossible, is_alive, is_root, output, signal, skipped,
    wait_until, weigh,
};

fn attach(load: &Load, more: &[&str]) -> Monitoring {
    let directory = tempfile::tempdir().unwrap();
    let pid = load.pid().to_string();
    let monitoring = Monitoring::begin(directory, &[&["attach", &pid], more].concat());
    monitoring.wait_for_event("process_start", 1);
    monitoring
}

fn load(script: &str) -> Load {
    Load::begin(&std::env::temp_dir(), script)
}

/// The tolerance is for clock ticks of `/proc/PID/stat`, and a CPU taken away while a load ended.
fn is_near(figure: &Figure, truth: f64) {
    let off = (figure.known() - truth).abs();
    assert!(off <= 0.06, "{figure:?} is {off} s off {truth}");
}

const BEFORE_AND_AFTER: &str = "\"$BURNER\" cpu 700ms; \"$BURNER\" touch 64MiB 1ms
    wait_for_input; \"$BURNER\" cpu 400ms; \"$BURNER\" write /dev/null 1MiB 1; exit 3";

#[test]
fn usage_before_attaching_is_not_counted() {
    let mut load = load(BEFORE_AND_AFTER);
    let monitoring = attach(&load, &[]);
    load.resume();
    let monitored = monitoring.end();
    assert_eq!(monitored.code, Some(0), "weigh's own");
    let run = &monitored.summary["run"];
    // Linux before 6.15 does not report how a process that is not our child exited.
    assert!(run["exit_code"].is_null() || run["exit_code"] == 3, "{run:#}");
    assert_eq!((&run["complete"], &run["stopped"]), (&true.into(), &"ended".into()));
    is_near(&monitored.figure("cpu_time_seconds"), 0.4);
    let memory = monitored.figure("memory_peak_bytes").known();
    assert!(memory < 32.0 * 1024.0 * 1024.0, "{memory} was before");
    monitored.is_recorded();
}

#[test]
fn events_of_children_that_start_after_attaching_are_counted() {
    let mut load = load("\"$BURNER\" touch 64MiB 1ms; wait_for_input; \"$BURNER\" touch 64MiB 1ms");
    let monitoring = attach(&load, &["--event", "page-faults"]);
    load.resume();
    let monitored = monitoring.end();
    let counters = &monitored.summary["counters"];
    let events = counters["events"].as_array().map_or(&[][..], Vec::as_slice);
    let Some(faults) = events.iter().find(|event| event["name"] == "page-faults") else {
        return impossible(&format!("perf counts nothing here: {counters}"));
    };
    // A fault for each page of one load, and some for the start of its program.
    let count = faults["count"].as_f64().unwrap();
    assert!((16_384.0..18_000.0).contains(&count), "{faults}");
}

#[test]
fn cpu_time_of_children_between_samples_is_taken_from_their_reaper() {
    let mut load = load("wait_for_input; \"$BURNER\" children 30 20ms");
    // Two of the samples fall into the load, whatever the interval.
    let monitoring = attach(&load, &["--skip", "task-clock", "-i", "300ms"]);
    load.resume();
    let monitored = monitoring.end();
    let cpu = monitored.figure("cpu_time_seconds");
    // CPU time of the load after the last sample is reported to no attached process.
    assert!(cpu.known() <= 0.72 && cpu.upper.is_none_or(|upper| upper >= 0.58), "{cpu:?}");
    cpu.is("sampled");
    let peak = monitored.figure("cpu_cores_peak").known();
    assert!(peak < 1.5, "no spike where time moves from children to parents: {peak}");
    monitored.is_recorded();
}

#[test]
fn every_child_is_counted_with_a_task_clock() {
    let mut load = load("wait_for_input; \"$BURNER\" children 30 20ms --ignore-sigchld");
    let monitoring = attach(&load, &["-i", "10s"]);
    load.resume();
    let monitored = monitoring.end();
    let cpu = monitored.figure("cpu_time_seconds");
    if cpu.method.as_deref() != Some("exact") {
        return skipped("perf_event_open is refused here");
    }
    // Fork and exit of thirty children are counted, too.
    assert!((0.58..0.75).contains(&cpu.known()), "{cpu:?}");
}

#[test]
fn stopping_weigh_does_not_stop_the_process() {
    let mut load = load("wait_for_input; echo continued");
    let monitored = attach(&load, &[]).stop();
    assert_eq!(monitored.code, Some(0));
    assert_eq!(monitored.summary["run"]["stopped"], "asked");
    assert!(monitored.summary["findings"].as_array().unwrap().is_empty());
    load.resume();
    assert_eq!(load.wait_for_line(), "continued\n");
}

#[test]
fn option_for_ends_the_measurement() {
    let load = load("wait_for_input");
    let monitored = attach(&load, &["--for", "50ms"]).end();
    assert_eq!(monitored.summary["run"]["stopped"], "time");
    assert!(monitored.summary["run"]["duration_seconds"].as_f64().unwrap() >= 0.05);
    assert!(is_alive(load.pid()));
    monitored.is_recorded();
}

#[test]
fn descendants_may_be_waited_for() {
    // A background process has no stdin unless it gets one.
    let mut load = load("exec 3<&0; wait_for_input; (read word <&3) & exit 0");
    let monitoring = attach(&load, &["--wait-all", "-i", "20ms"]);
    load.resume();
    monitoring.wait_for_event("process_exit", 1);
    load.resume();
    let monitored = monitoring.end();
    assert_eq!(monitored.summary["run"]["stopped"], "ended");
    assert_eq!(monitored.summary["processes"]["left"].as_array().unwrap().len(), 0);
}

#[test]
fn missing_process_is_an_error_and_nothing_is_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let message = output(&mut weigh(directory.path(), &["attach", "4194303"]));
    let text = String::from_utf8(message.stderr).unwrap();
    assert_eq!((message.status.code(), text.lines().count()), (Some(1), 3), "{text}");
    assert!(text.contains("there is no process 4194303"), "{text}");
    assert_eq!(directory.path().read_dir().unwrap().count(), 0);
}

#[test]
fn process_that_exits_while_weigh_starts_leaves_a_complete_recording() {
    for _ in 0..5 {
        // A zombie: it has a pidfd, but nothing else.
        let child = std::process::Command::new("true").spawn().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let pid = child.id().to_string();
        let arguments = ["attach", &pid, "-q", "-o", "run"];
        let message = output(&mut weigh(directory.path(), &arguments));
        assert_eq!(message.status.code(), Some(0), "{}", String::from_utf8_lossy(&message.stderr));
        let shown = output(&mut weigh(directory.path(), &["show", "run", "--format", "json"]));
        let summary: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
        assert_eq!(summary["run"]["complete"], true);
        end_of(child);
    }
}

#[test]
fn process_of_another_user_has_readable_figures_and_reasons_for_the_rest() {
    if !is_root() {
        return skipped("needs root, to have a process of another user");
    }
    let everybody = PublicPrograms::new();
    let mut load = load("wait_for_input; \"$BURNER\" cpu 300ms; wait_for_input");
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
    load.resume();
    assert_eq!(load.wait_for_line(), "ready\n", "it has burnt, and is still there");
    signal(child.id(), libc::SIGINT);
    let message = end_of(child);
    assert_eq!(message.status.code(), Some(0), "{}", String::from_utf8_lossy(&message.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&message.stderr).unwrap();
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
