//! `weigh watch`: programs as they come and go.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::following::{Followed, Following, Load};
use crate::weighed::{
    MIB, burner, can_mount, cpu_seconds, is_root, output, plain, skipped, wait_until, weigh,
};

/// A directory with tools in it that do what burners do.
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

/// Begins to watch below a load that waits for a word in the same directory.
fn watch(script: &str, words: &[&str]) -> (Load, Following) {
    let directory = tools();
    let load = Load::begin(directory.path(), script);
    let pid = load.pid().to_string();
    let following = Following::begin(directory, &[&["watch", "--under", &pid], words].concat());
    (load, following)
}

fn seconds(followed: &Followed, tool: &str) -> f64 {
    followed.tool(tool).unwrap()["cpu_time_seconds"].as_f64().unwrap()
}

/// Whether the kernel told of processes; says so if not.
fn was_told(followed: &Followed) -> bool {
    let faults = followed.summary["monitor"]["faults"].to_string();
    let told = !faults.contains("connector");
    if !told {
        skipped(&faults);
    }
    told
}

#[test]
fn a_tool_shorter_than_the_interval_is_counted_each_time_with_its_cpu_time() {
    let script = "wait_for_word; for run in 1 2 3; do ./fmpy cpu 100ms; done";
    let (mut load, following) = watch(script, &["fmpy", "-i", "10s"]);
    load.go();
    let followed = following.end();
    followed.is_recorded();
    if !was_told(&followed) {
        return;
    }
    let fmpy = followed.tool("fmpy").unwrap();
    assert_eq!(fmpy["instances"], 3, "{fmpy:#}");
    let cpu = seconds(&followed, "fmpy");
    assert!((0.27..0.36).contains(&cpu), "{cpu}");
    let all = followed.figure("cpu_time_seconds").known();
    assert!((all - cpu).abs() < 0.02, "{all} is not {cpu}");
    let ends = followed.events();
    assert_eq!(ends.matches(r#""end":{"code":0}"#).count(), 3, "{ends}");
}

#[test]
fn root_has_the_size_of_a_tool_that_was_short() {
    let (mut load, following) =
        watch("wait_for_word; ./fmpy touch 64MiB 1ms", &["fmpy", "-i", "10s"]);
    load.go();
    let followed = following.end();
    if !is_root() || !was_told(&followed) {
        return skipped("needs root in the machine's first namespaces");
    }
    let fmpy = followed.tool("fmpy").unwrap();
    let size = fmpy["instance_memory_peak_bytes"].as_f64().unwrap() / MIB;
    assert!((64.0..70.0).contains(&size), "{fmpy:#}");
    let all = followed.figure("memory_peak_bytes").known() / MIB;
    assert!((64.0..70.0).contains(&all), "{all}");
    followed.is_recorded();
}

#[test]
fn who_only_mentions_a_tool_is_not_counted() {
    let script = "wait_for_word
        ./vim named gulmc.py 300ms & ./grep named katpy 300ms &
        sh -c './vim sleep 300ms; : fmpy notes' & ./gulmc cpu 100ms; wait";
    let (mut load, following) = watch(script, &["--tools", "oasis", "-i", "50ms"]);
    load.go();
    let followed = following.end();
    let names: Vec<&str> = followed.summary["tools"].as_array().unwrap().iter().map(name).collect();
    assert_eq!(names, ["gulmc"]);
    assert_eq!(followed.summary["run"]["name"], "oasis");
    assert_eq!(followed.summary["processes"]["total"], 1);
    let (mut load, following) = watch(script, &["fmpy", "gulmc", "--anywhere", "-i", "50ms"]);
    load.go();
    let followed = following.end();
    let mentioned = followed.tool("fmpy").map(|tool| tool["instances"].as_u64());
    assert_eq!(mentioned, Some(Some(1)), "{:#}", followed.summary["tools"]);
}

fn name(tool: &Value) -> &str {
    tool["name"].as_str().unwrap()
}

#[test]
fn a_script_is_its_tool_and_its_children_are_not() {
    let script = "wait_for_word; ./katpy; ./katpy";
    let (mut load, following) = watch(script, &["katpy", "-i", "10ms"]);
    load.go();
    let followed = following.end();
    assert_eq!(followed.tool("katpy").unwrap()["instances"], 2, "{}", followed.events());
    assert_eq!(followed.summary["tools"].as_array().unwrap().len(), 1);
    assert!(seconds(&followed, "katpy") < 0.02, "what a shell does itself");
}

#[test]
fn two_analyses_on_one_machine_do_not_see_each_other() {
    let script = "wait_for_word; ./fmpy cpu 200ms & ./fmpy cpu 200ms & wait; wait_for_word";
    let (mut one, first) = watch(script, &["fmpy"]);
    let (mut two, second) = watch("wait_for_word; ./fmpy cpu 200ms; wait_for_word", &["fmpy"]);
    one.go();
    two.go();
    assert_eq!(one.wait_for_line() + &two.wait_for_line(), "ready\nready\n");
    one.go();
    two.go();
    let (first, second) = (first.end(), second.end());
    assert_eq!(first.tool("fmpy").unwrap()["instances"], 2);
    assert_eq!(second.tool("fmpy").unwrap()["instances"], 1);
}

#[test]
fn who_ran_before_counts_from_when_weigh_came_and_is_busy_from_its_first_row() {
    let directory = tools();
    let script = "./fmpy cpu 300ms; ./fmpy cpu 60s & wait_for_word; kill $!; wait";
    let mut load = Load::begin(directory.path(), script);
    let pid = load.pid().to_string();
    let words = ["watch", "fmpy", "--under", &pid, "-i", "200ms"];
    let began = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    let following = Following::begin(directory, &words);
    following.wait_for_event("process_start", 1);
    let event = following
        .events()
        .lines()
        .find(|line| line.contains("process_start"))
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let tool = event.unwrap()["pid"].as_u64().unwrap() as u32;
    let (came, burned) = (std::time::Instant::now(), cpu_seconds(tool));
    wait_until("the tool has burned a second", || cpu_seconds(tool) >= burned + 1.0);
    let burned = cpu_seconds(tool) - burned;
    load.go();
    let followed = following.end();
    let elapsed = came.elapsed().as_secs_f64();
    let cpu = seconds(&followed, "fmpy");
    // From a little before its start was recorded until it was killed. What it used after the
    // last tick, an interval ago at most, may be missing.
    assert!(cpu >= burned - 0.2, "{cpu} s, and the kernel counted {burned} s");
    assert!(cpu <= elapsed + 0.3, "{cpu} s of CPU in {elapsed} s");
    let export = ["export", "run", "--as", "oasis", "-o", "log"];
    let done = output(&mut weigh(followed.directory.path(), &export));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let table = fs::read_to_string(followed.directory.path().join("log/resource_monitor.csv"));
    let table = table.unwrap();
    let row = |line: usize| {
        let cells: Vec<&str> = table.lines().nth(line).unwrap().split(',').collect();
        [0, 3, 4, 5].map(|cell: usize| cells[cell].parse::<f64>().unwrap())
    };
    // Each row is as busy as the CPU time that it adds, whatever others left the tool: the first
    // since weigh attached. The clock that counts moves by hundredths of a second.
    let ([at, busy, user, system], [then, later_busy, later_user, later_system]) = (row(1), row(2));
    let used = later_user + later_system - user - system;
    let told = later_busy / 100.0 * (then - at);
    assert!((told - used).abs() < 0.021, "{told} s of {used} s\n{table}");
    assert!(user + system <= at - began + 0.021, "what was before weigh came: {table}");
    assert!(busy > 0.0, "{table}");
}

#[test]
fn without_the_kernel_s_word_programs_are_found_by_scanning_and_it_says_so() {
    if !can_mount() {
        return;
    }
    let directory = tools();
    // In a network namespace of its own there is no connector.
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
    let script = "wait_for_word; ./fmpy children 2 100ms --at-once 2";
    let (mut load, following) = watch(script, &["fmpy", "-i", "10s"]);
    load.go();
    let followed = following.end();
    if !was_told(&followed) {
        return;
    }
    assert_eq!(followed.tool("fmpy").unwrap()["instances"], 3, "{}", followed.events());
    let cpu = seconds(&followed, "fmpy");
    assert!((0.19..0.26).contains(&cpu), "nobody's twice: {cpu}");
}

#[test]
fn names_may_stand_in_a_file_or_be_a_pattern() {
    // All at once, and long enough to be met on a machine that is busy with other tests.
    let script = "wait_for_word; for tool in fmpy gulmc vim; do ./$tool sleep 300ms & done; wait";
    let directory = tools();
    fs::write(directory.path().join("names.txt"), "# tools\nfmpy\n\n gulmc # the other\n").unwrap();
    let mut load = Load::begin(directory.path(), script);
    let pid = load.pid().to_string();
    let words = ["watch", "--tools", "names.txt", "--under", &pid, "-i", "10ms"];
    let following = Following::begin(directory, &words);
    load.go();
    let followed = following.end();
    assert_eq!(followed.summary["run"]["name"], "names");
    if was_told(&followed) {
        assert_eq!(followed.summary["tools"].as_array().unwrap().len(), 2);
        let (mut load, following) = watch(script, &["--regex", "^(v|g).*m", "-i", "10ms"]);
        load.go();
        let followed = following.end();
        assert!(followed.tool("vim").is_some() && followed.tool("gulmc").is_some());
        assert!(followed.tool("fmpy").is_none());
    }
}

/// What weigh says to a command line that cannot be.
fn refused(words: &[&str]) -> String {
    let said = output(&mut weigh(Path::new("/"), words));
    let text = String::from_utf8(said.stderr).unwrap();
    assert_eq!((said.status.code(), text.lines().count()), (Some(2), 3), "{text}");
    text
}

#[test]
fn what_cannot_be_watched_is_told_before_anything_begins() {
    assert!(refused(&["watch", "--regex", "("]).contains("cannot watch for this"));
    assert!(refused(&["watch"]).contains("NAME"));
    assert!(refused(&["watch", "--tools", "/no/such/file"]).contains("No such file"));
    assert!(refused(&["watch", ""]).contains("no program is named"));
    assert!(refused(&["attach"]).contains("PID"));
    assert!(refused(&["attach", "init"]).contains("init"));
    assert!(refused(&["watch", "x", "--for", "soon"]).contains("soon"));
}
