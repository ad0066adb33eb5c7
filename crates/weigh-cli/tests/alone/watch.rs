//! `weigh watch`: all processes of some programs.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::attached::{Load, Monitored, Monitoring};
use crate::weighed::{
    MIB, burner, can_mount, cpu_seconds, is_root, output, plain, skipped, wait_until, weigh,
};

/// A directory with burners under the names of tools.
fn tools() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for name in ["fmpy", "gulmc", "vim", "grep"] {
        symlink(burner(), directory.path().join(name)).unwrap();
    }
    let script = directory.path().join("katpy");
    fs::write(&script, "#!/bin/sh\n./vim sleep 150ms\n\"$BURNER\" cpu 10ms\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

/// Starts to watch the descendants of a load in the same directory.
fn watch(script: &str, arguments: &[&str]) -> (Load, Monitoring) {
    let directory = tools();
    let load = Load::begin(directory.path(), script);
    let pid = load.pid().to_string();
    let monitoring =
        Monitoring::begin(directory, &[&["watch", "--under", &pid], arguments].concat());
    (load, monitoring)
}

fn seconds(monitored: &Monitored, tool: &str) -> f64 {
    monitored.tool(tool).unwrap()["cpu_time_seconds"].as_f64().unwrap()
}

/// Whether there is a process connector; prints a message if not.
fn has_connector(monitored: &Monitored) -> bool {
    let faults = monitored.summary["monitor"]["faults"].to_string();
    let seconds_used = !faults.contains("connector");
    if !seconds_used {
        skipped(&faults);
    }
    seconds_used
}

#[test]
fn tool_shorter_than_the_interval_is_counted_each_time_with_its_cpu_time() {
    let script = "wait_for_input; for run in 1 2 3; do ./fmpy cpu 100ms; done";
    let (mut load, monitoring) = watch(script, &["fmpy", "-i", "10s"]);
    load.resume();
    let monitored = monitoring.end();
    monitored.is_recorded();
    if !has_connector(&monitored) {
        return;
    }
    let fmpy = monitored.tool("fmpy").unwrap();
    assert_eq!(fmpy["instances"], 3, "{fmpy:#}");
    let cpu = seconds(&monitored, "fmpy");
    assert!((0.27..0.36).contains(&cpu), "{cpu}");
    let all = monitored.figure("cpu_time_seconds").known();
    assert!((all - cpu).abs() < 0.02, "{all} is not {cpu}");
    let ends = monitored.events();
    assert_eq!(ends.matches(r#""end":{"code":0}"#).count(), 3, "{ends}");
}

#[test]
fn root_gets_the_memory_of_a_short_tool() {
    let (mut load, monitoring) =
        watch("wait_for_input; ./fmpy touch 64MiB 1ms", &["fmpy", "-i", "10s"]);
    load.resume();
    let monitored = monitoring.end();
    if !is_root() || !has_connector(&monitored) {
        return skipped("needs root in the machine's first namespaces");
    }
    let fmpy = monitored.tool("fmpy").unwrap();
    let size = fmpy["instance_memory_peak_bytes"].as_f64().unwrap() / MIB;
    assert!((64.0..70.0).contains(&size), "{fmpy:#}");
    let all = monitored.figure("memory_peak_bytes").known() / MIB;
    assert!((64.0..70.0).contains(&all), "{all}");
    monitored.is_recorded();
}

#[test]
fn process_with_a_tool_only_in_its_command_line_is_not_counted() {
    let script = "wait_for_input
        ./vim named gulmc.py 300ms & ./grep named katpy 300ms &
        sh -c './vim sleep 300ms; : fmpy notes' & ./gulmc cpu 100ms; wait";
    let (mut load, monitoring) = watch(script, &["--tools", "oasis", "-i", "50ms"]);
    load.resume();
    let monitored = monitoring.end();
    let names: Vec<&str> =
        monitored.summary["tools"].as_array().unwrap().iter().map(name).collect();
    assert_eq!(names, ["gulmc"]);
    assert_eq!(monitored.summary["run"]["name"], "oasis");
    assert_eq!(monitored.summary["processes"]["total"], 1);
    let (mut load, monitoring) = watch(script, &["fmpy", "gulmc", "--anywhere", "-i", "50ms"]);
    load.resume();
    let monitored = monitoring.end();
    let mentioned = monitored.tool("fmpy").map(|tool| tool["instances"].as_u64());
    assert_eq!(mentioned, Some(Some(1)), "{:#}", monitored.summary["tools"]);
}

fn name(tool: &Value) -> &str {
    tool["name"].as_str().unwrap()
}

#[test]
fn script_is_its_tool_and_its_children_are_not() {
    let script = "wait_for_input; ./katpy; ./katpy";
    let (mut load, monitoring) = watch(script, &["katpy", "-i", "10ms"]);
    load.resume();
    let monitored = monitoring.end();
    assert_eq!(monitored.tool("katpy").unwrap()["instances"], 2, "{}", monitored.events());
    assert_eq!(monitored.summary["tools"].as_array().unwrap().len(), 1);
    assert!(seconds(&monitored, "katpy") < 0.02, "what a shell does itself");
}

#[test]
fn two_watches_on_one_machine_are_separate() {
    let script = "wait_for_input; ./fmpy cpu 200ms & ./fmpy cpu 200ms & wait; wait_for_input";
    let (mut one, first) = watch(script, &["fmpy"]);
    let (mut two, second) = watch("wait_for_input; ./fmpy cpu 200ms; wait_for_input", &["fmpy"]);
    one.resume();
    two.resume();
    assert_eq!(one.wait_for_line() + &two.wait_for_line(), "ready\nready\n");
    one.resume();
    two.resume();
    let (first, second) = (first.end(), second.end());
    assert_eq!(first.tool("fmpy").unwrap()["instances"], 2);
    assert_eq!(second.tool("fmpy").unwrap()["instances"], 1);
}

#[test]
fn running_process_counts_from_attaching_and_is_busy_from_its_first_row() {
    let directory = tools();
    let script = "./fmpy cpu 300ms; ./fmpy cpu 60s & wait_for_input; kill $!; wait";
    let mut load = Load::begin(directory.path(), script);
    let pid = load.pid().to_string();
    let arguments = ["watch", "fmpy", "--under", &pid, "-i", "200ms"];
    let began = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    let monitoring = Monitoring::begin(directory, &arguments);
    monitoring.wait_for_event("process_start", 1);
    let event = monitoring
        .events()
        .lines()
        .find(|line| line.contains("process_start"))
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let tool = event.unwrap()["pid"].as_u64().unwrap() as u32;
    let (attached_at, burned) = (std::time::Instant::now(), cpu_seconds(tool));
    wait_until("the tool has burned a second", || cpu_seconds(tool) >= burned + 1.0);
    let burned = cpu_seconds(tool) - burned;
    load.resume();
    let monitored = monitoring.end();
    let elapsed = attached_at.elapsed().as_secs_f64();
    let cpu = seconds(&monitored, "fmpy");
    // From a little before its start was recorded until it was killed. Usage after the last tick,
    // an interval at most, may be missing.
    assert!(cpu >= burned - 0.2, "{cpu} s, and the kernel counted {burned} s");
    assert!(cpu <= elapsed + 0.3, "{cpu} s of CPU in {elapsed} s");
    let export = ["export", "run", "--as", "oasis", "-o", "log"];
    let done = output(&mut weigh(monitored.directory.path(), &export));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let table = fs::read_to_string(monitored.directory.path().join("log/resource_monitor.csv"));
    let table = table.unwrap();
    let row = |line: usize| {
        let cells: Vec<&str> = table.lines().nth(line).unwrap().split(',').collect();
        [0, 3, 4, 5].map(|cell: usize| cells[cell].parse::<f64>().unwrap())
    };
    // The utilisation of each row is that of the CPU time it adds, the first since weigh attached.
    // Clock ticks are hundredths of a second.
    let ([at, busy, user, system], [then, later_busy, later_user, later_system]) = (row(1), row(2));
    let used = later_user + later_system - user - system;
    let seconds_used = later_busy / 100.0 * (then - at);
    assert!((seconds_used - used).abs() < 0.021, "{seconds_used} s of {used} s\n{table}");
    assert!(user + system <= at - began + 0.021, "usage before attaching: {table}");
    assert!(busy > 0.0, "{table}");
}

#[test]
fn without_the_connector_programs_are_found_by_scanning_with_a_warning() {
    if !can_mount() {
        return;
    }
    let directory = tools();
    // In a separate network namespace there is no connector.
    let script = "\"$WEIGH\" watch fmpy --under $$ -i 20ms -q -o run --summary summary.json &
        weigh=$!; while [ ! -s run/events.jsonl ]; do ./vim sleep 5ms; done
        sh -c './vim sleep 100ms; exec ./fmpy sleep 300ms'; ./fmpy cpu 200ms
        kill -INT $weigh; wait $weigh";
    let mut command = plain("unshare", directory.path());
    let done = output(command.args(["-n", "bash", "-c", script]));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let summary = fs::read(directory.path().join("summary.json")).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    let faults = summary["monitor"]["faults"].to_string();
    assert!(faults.contains("found by scanning") && faults.contains("network"), "{faults}");
    let fmpy = &summary["tools"][0];
    assert_eq!((name(fmpy), &fmpy["instances"]), ("fmpy", &2.into()), "{summary:#}");
    let cpu = fmpy["cpu_time_seconds"].as_f64().unwrap();
    assert!((0.1..0.26).contains(&cpu), "{cpu}");
}

#[test]
fn workers_that_a_tool_forks_are_instances_of_it() {
    let script = "wait_for_input; ./fmpy children 2 100ms --at-once 2";
    let (mut load, monitoring) = watch(script, &["fmpy", "-i", "10s"]);
    load.resume();
    let monitored = monitoring.end();
    if !has_connector(&monitored) {
        return;
    }
    assert_eq!(monitored.tool("fmpy").unwrap()["instances"], 3, "{}", monitored.events());
    let cpu = seconds(&monitored, "fmpy");
    assert!((0.19..0.26).contains(&cpu), "none is counted twice: {cpu}");
}

#[test]
fn names_may_be_in_a_file_or_a_pattern() {
    // All at once, and long enough to be found on a busy machine.
    let script = "wait_for_input; for tool in fmpy gulmc vim; do ./$tool sleep 300ms & done; wait";
    let directory = tools();
    fs::write(directory.path().join("names.txt"), "# tools\nfmpy\n\n gulmc # the other\n").unwrap();
    let mut load = Load::begin(directory.path(), script);
    let pid = load.pid().to_string();
    let arguments = ["watch", "--tools", "names.txt", "--under", &pid, "-i", "10ms"];
    let monitoring = Monitoring::begin(directory, &arguments);
    load.resume();
    let monitored = monitoring.end();
    assert_eq!(monitored.summary["run"]["name"], "names");
    if has_connector(&monitored) {
        assert_eq!(monitored.summary["tools"].as_array().unwrap().len(), 2);
        let (mut load, monitoring) = watch(script, &["--regex", "^(v|g).*m", "-i", "10ms"]);
        load.resume();
        let monitored = monitoring.end();
        assert!(monitored.tool("vim").is_some() && monitored.tool("gulmc").is_some());
        assert!(monitored.tool("fmpy").is_none());
    }
}

/// The error of an invalid command line.
fn refused(arguments: &[&str]) -> String {
    let message = output(&mut weigh(Path::new("/"), arguments));
    let text = String::from_utf8(message.stderr).unwrap();
    assert_eq!((message.status.code(), text.lines().count()), (Some(2), 3), "{text}");
    text
}

#[test]
fn invalid_watch_is_refused_before_anything_starts() {
    assert!(refused(&["watch", "--regex", "("]).contains("cannot watch for this"));
    assert!(refused(&["watch"]).contains("NAME"));
    assert!(refused(&["watch", "--tools", "/no/such/file"]).contains("No such file"));
    assert!(refused(&["watch", ""]).contains("no program is named"));
    assert!(refused(&["attach"]).contains("PID"));
    assert!(refused(&["attach", "init"]).contains("init"));
    assert!(refused(&["watch", "x", "--for", "soon"]).contains("soon"));
}
