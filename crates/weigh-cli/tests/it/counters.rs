//! Hardware and software counters. Software events are there on every machine where perf is
//! permitted; what a PMU counts is tested on a simulated one, in the library.

use serde_json::Value;
use tempfile::tempdir;

use crate::weighed::{Weighed, impossible, output, weigh, weighed};

/// The state of a collector, as `weigh doctor` has it, and why.
fn state(collector: &str) -> (String, String) {
    let place = tempdir().unwrap();
    let output = output(&mut weigh(place.path(), &["doctor", "--format", "json"]));
    let examined: Value = serde_json::from_slice(&output.stdout).unwrap();
    let all = examined["collectors"].as_array().unwrap();
    let one = all.iter().find(|one| one["name"] == collector).unwrap();
    let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
    (text("state"), text("why"))
}

/// Whether perf counts software events for us.
fn counts_software_events() -> bool {
    let (state, why) = state("task-clock");
    if state != "ready" {
        impossible(&format!("perf counts nothing here: {why}"));
    }
    state == "ready"
}

/// An event of the whole run.
fn event<'a>(run: &'a Weighed, name: &str) -> &'a Value {
    let events = run.summary["counters"]["events"].as_array();
    let found = events.into_iter().flatten().find(|event| event["name"] == name);
    found.unwrap_or_else(|| panic!("{name} is not in {}", run.summary["counters"]))
}

#[test]
fn wrong_event_or_group_is_refused_with_the_nearest_names_before_the_command_starts() {
    for (option, wrong, nearest) in [
        ("--event", "page-fault", "page-faults"),
        ("--event", "instrutions", "instructions"),
        ("--perf", "FLOPS_D", "FLOPS_DP"),
        ("--perf", "BRANCH,l2cach", "L2CACHE"),
    ] {
        let place = tempdir().unwrap();
        let touched = place.path().join("touched");
        let arguments = ["run", option, wrong, "--", "touch", touched.to_str().unwrap()];
        let output = output(&mut weigh(place.path(), &arguments));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        let lines: Vec<&str> = stderr.lines().collect();
        assert_eq!(lines[0], "weigh: cannot count this event", "{stderr}");
        assert!(lines[1].contains("cause:") && lines[1].contains(nearest), "{stderr}");
        assert!(lines[2].contains("hint:") && lines[2].contains("weigh "), "{stderr}");
        assert!(!touched.exists(), "the command has run");
        assert!(!place.path().join("weigh-runs").exists(), "a recording was made");
    }
}

#[test]
fn page_faults_of_children_that_nobody_waits_for_are_counted() {
    if !counts_software_events() {
        return;
    }
    let options = ["--event", "page-faults", "--perf", "SOFTWARE"];
    let load = ["children", "50", "1ms", "--ignore-sigchld"];
    let run = weighed(&options, &load).ended_with(0);
    let faults = event(&run, "page-faults");
    // Each child has at least the pages of its own stack and clock.
    let counted = faults["count"].as_f64().unwrap();
    assert!(counted > 200.0, "{faults}");
    assert_eq!(faults["running_ratio"], 1.0, "{faults}");
    assert_eq!(faults["value"]["method"], "exact", "{faults}");
    let clock = event(&run, "task-clock")["count"].as_f64().unwrap() / 1e9;
    run.figure("cpu_time_seconds").is_within(0.05, clock);
}

#[test]
fn counted_events_are_rows_of_a_table_and_are_shown_on_request() {
    if !counts_software_events() {
        return;
    }
    let place = tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = output(&mut weigh(place.path(), arguments));
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    };
    run(&["run", "-o", "run", "--event", "page-faults", "--", "true"]);
    let shown = run(&["show", "run", "--counters"]);
    assert!(shown.contains("page-faults") && shown.contains("exact"), "{shown}");
    let json: Value =
        serde_json::from_str(&run(&["show", "run", "--counters", "--format", "json"])).unwrap();
    assert_eq!(json["counters"]["events"][0]["name"], "page-faults", "{json}");
    run(&["export", "run", "-f", "csv", "-o", "out"]);
    let table = std::fs::read_to_string(place.path().join("out/perf_event.csv")).unwrap();
    let header = table.lines().next().unwrap();
    assert!(header.contains("event_count") && header.contains("event_running_seconds"), "{header}");
    assert!(table.lines().nth(1).unwrap().contains("page-faults"), "{table}");
}

#[test]
fn missing_pmu_is_said_by_doctor_and_in_no_summary() {
    let (state, why) = state("perf");
    if state == "ready" {
        return impossible("this machine has a PMU");
    }
    assert!(!why.is_empty());
    let run = weighed(&[], &["cpu", "10ms"]).ended_with(0);
    assert!(run.summary["counters"].is_null(), "{}", run.summary["counters"]);
    assert!(run.summary["figures"]["instructions_retired"].is_null());
    assert_eq!(run.summary["monitor"]["faults"], serde_json::json!([]));
    let asked = weighed(&["--perf", "BRANCH"], &["cpu", "10ms"]).ended_with(0);
    let faults = asked.summary["monitor"]["faults"].to_string();
    assert!(faults.contains("perf: BRANCH: "), "{faults}");
}
