//! `weigh attach --cgroup` on groups of our own: the kernel's account of them is the truth.

use std::fs;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::groups::{CONTROLLERS, Group, tell};
use crate::weighed::{Figure, MIB, end_of, output, wait_until, weigh, weigh_path};

/// What weigh says of a group in which a shell does something while it is followed.
struct Followed {
    directory: TempDir,
    summary: Value,
}

impl Followed {
    fn figure(&self, name: &str) -> Figure {
        Figure::of(&self.summary["figures"][name], name)
    }
}

fn followed(group: &Group, options: &[&str], before: &str, script: &str) -> Followed {
    let directory = tempfile::tempdir().unwrap();
    let mut shell = group.shell(directory.path(), before, script);
    let words = ["attach", "--cgroup", &group.path(), "-o", "out", "-q"];
    let mut weigh = weigh(directory.path(), &words);
    let weigh = weigh.args(options).spawn().unwrap();
    let events = directory.path().join("out/events.jsonl");
    wait_until("weigh follows the shell", || {
        fs::read_to_string(&events).is_ok_and(|text| text.contains("process_start"))
    });
    tell(&mut shell);
    let ended = end_of(weigh);
    shell.kill().unwrap();
    end_of(shell);
    assert!(ended.status.success());
    let summary = fs::read(directory.path().join("out/summary.json")).unwrap();
    Followed { summary: serde_json::from_slice(&summary).unwrap(), directory }
}

#[test]
fn cpu_time_of_a_control_group_is_exact_also_of_children_nobody_waits_for() {
    let Some(group) = Group::new() else { return };
    // Two, because making a process and clearing it away is work of the group, too.
    let load = "$BURNER children 2 300ms --ignore-sigchld";
    let run = followed(&group, &[], "$BURNER cpu 500ms", load);
    let cpu = run.figure("cpu_time_seconds");
    cpu.is("exact");
    assert!((cpu.known() - 0.6).abs() < 0.06, "what was before is not counted: {cpu:?}");
    let split = run.figure("cpu_user_seconds").known() + run.figure("cpu_system_seconds").known();
    assert!((split - cpu.known()).abs() < 0.06, "{split} of {cpu:?}");
    assert_eq!(run.summary["run"]["target"]["cgroup"]["path"], group.path());
    assert_eq!(run.summary["run"]["stopped"], "ended");
    let shown = output(&mut weigh(run.directory.path(), &["show", "out"]));
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.contains(&format!("followed   control group {}", group.path())), "{text}");
    // The summary can be made again from the rest.
    fs::remove_file(run.directory.path().join("out/summary.json")).unwrap();
    let again = output(&mut weigh(run.directory.path(), &["show", "out", "--format", "json"]));
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again["figures"], run.summary["figures"]);
}

#[test]
fn a_spike_of_memory_between_two_looks_is_exact() {
    let Some(group) = Group::new() else { return };
    // Behind the dense looks at the beginning, and long before the next one.
    let load = "$BURNER touch 200MiB 50ms --after 1500ms";
    let run = followed(&group, &["-i", "60s"], "$BURNER touch 20MiB 10ms", load);
    let peak = run.figure("memory_peak_bytes");
    peak.is("exact").is_within(0.03, 200.0 * MIB);
    assert!(run.figure("memory_rss_peak_bytes").known() < 100.0 * MIB, "nobody looked at it");
}

#[test]
fn a_peak_from_before_weigh_came_is_only_a_bound() {
    let Some(group) = Group::new() else { return };
    let run = followed(&group, &[], "$BURNER touch 200MiB 10ms", "$BURNER touch 50MiB 300ms");
    let peak = run.figure("memory_peak_bytes");
    peak.is("sampled").is_within(0.1, 50.0 * MIB);
    assert!(peak.upper.is_some_and(|upper| upper > 190.0 * MIB), "{peak:?}");
    let cache = run.figure("memory_cache_peak_bytes");
    assert!(cache.known() < 20.0 * MIB, "{cache:?}");
}

#[test]
fn what_a_group_does_not_have_is_null_with_the_reason() {
    let Some(group) = Group::new() else { return };
    let run = followed(&group, &[], ":", "$BURNER cpu 100ms");
    let operations = run.figure("io_storage_read_operations");
    assert_eq!(operations.value, None);
    let reason = operations.reason.unwrap();
    assert!(reason.contains("below the blkio controller"), "{reason}");
}

#[test]
fn a_group_that_everybody_leaves_is_over_and_whoever_left_goes_on() {
    let Some(group) = Group::new() else { return };
    let elsewhere =
        CONTROLLERS.map(|controller| format!("/sys/fs/cgroup/{controller}/cgroup.procs"));
    let leave = elsewhere.map(|place| format!("echo $$ > {place}")).join("; ");
    let script = format!("{leave}; touch left; exec sleep 60");
    let run = followed(&group, &[], ":", &script);
    assert!(run.directory.path().join("left").exists());
    assert_eq!(run.summary["run"]["stopped"], "ended");
    assert_eq!(run.summary["processes"]["left"], serde_json::json!([]));
}

#[test]
fn time_that_was_asked_for_ends_it_and_the_group_goes_on() {
    let Some(group) = Group::new() else { return };
    let run = followed(&group, &["--for", "300ms"], ":", "exec sleep 60");
    assert_eq!(run.summary["run"]["stopped"], "time");
    run.figure("cpu_time_seconds").is("exact");
    let left = run.summary["processes"]["left"].as_array().unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn what_is_no_control_group_is_refused_before_anything_starts() {
    let directory = tempfile::tempdir().unwrap();
    for path in ["/no-such-group", "/proc"] {
        let mut command = Command::new(weigh_path());
        command.args(["attach", "--cgroup", path]).current_dir(directory.path());
        let refused = output(&mut command);
        let stderr = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(1), "{stderr}");
        assert!(
            stderr.starts_with("weigh: cannot attach to this cgroup\n  cause: "),
            "{stderr}"
        );
        assert_eq!(stderr.lines().count(), 3, "{stderr}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");
}
