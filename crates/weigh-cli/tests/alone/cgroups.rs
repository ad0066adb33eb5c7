//! `weigh attach --cgroup`, against the kernel's own accounting.

use std::fs;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::test_cgroups::{CONTROLLERS, Group, resume};
use crate::weighed::{Figure, MIB, end_of, output, wait_until, weigh, weigh_path};

/// The summary of a cgroup in which a shell runs a script while weigh is attached.
struct Monitored {
    directory: TempDir,
    summary: Value,
}

impl Monitored {
    fn figure(&self, name: &str) -> Figure {
        Figure::of(&self.summary["figures"][name], name)
    }
}

fn monitored(group: &Group, options: &[&str], before: &str, script: &str) -> Monitored {
    let directory = tempfile::tempdir().unwrap();
    let mut shell = group.shell(directory.path(), before, script);
    let arguments = ["attach", "--cgroup", &group.path(), "-o", "out", "-q"];
    let mut weigh = weigh(directory.path(), &arguments);
    let weigh = weigh.args(options).spawn().unwrap();
    let events = directory.path().join("out/events.jsonl");
    wait_until("weigh follows the shell", || {
        fs::read_to_string(&events).is_ok_and(|text| text.contains("process_start"))
    });
    resume(&mut shell);
    let ended = end_of(weigh);
    shell.kill().unwrap();
    end_of(shell);
    assert!(ended.status.success());
    let summary = fs::read(directory.path().join("out/summary.json")).unwrap();
    Monitored { summary: serde_json::from_slice(&summary).unwrap(), directory }
}

#[test]
fn cpu_time_of_a_cgroup_is_exact_also_of_auto_reaped_children() {
    let Some(group) = Group::new() else { return };
    // Two, because fork and exit are charged to the cgroup, too.
    let load = "$BURNER children 2 300ms --ignore-sigchld";
    let run = monitored(&group, &[], "$BURNER cpu 500ms", load);
    let cpu = run.figure("cpu_time_seconds");
    cpu.is("exact");
    assert!((cpu.known() - 0.6).abs() < 0.06, "what was before is not counted: {cpu:?}");
    let split = run.figure("cpu_user_seconds").known() + run.figure("cpu_system_seconds").known();
    assert!((split - cpu.known()).abs() < 0.06, "{split} of {cpu:?}");
    assert_eq!(run.summary["run"]["target"]["cgroup"]["path"], group.path());
    assert_eq!(run.summary["run"]["stopped"], "ended");
    let shown = output(&mut weigh(run.directory.path(), &["show", "out"]));
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.contains(&format!("monitored  cgroup {}", group.path())), "{text}");
    // The summary can be made again from the other files.
    fs::remove_file(run.directory.path().join("out/summary.json")).unwrap();
    let again = output(&mut weigh(run.directory.path(), &["show", "out", "--format", "json"]));
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again["figures"], run.summary["figures"]);
}

#[test]
fn memory_spike_between_two_samples_is_exact() {
    let Some(group) = Group::new() else { return };
    // After the dense samples at the beginning, and long before the next one.
    let load = "$BURNER touch 200MiB 50ms --after 1500ms";
    let run = monitored(&group, &["-i", "60s"], "$BURNER touch 20MiB 10ms", load);
    let peak = run.figure("memory_peak_bytes");
    peak.is("exact").is_within(0.03, 200.0 * MIB);
    assert!(run.figure("memory_rss_peak_bytes").known() < 100.0 * MIB, "no sample has it");
}

#[test]
fn peak_before_attaching_is_only_an_upper_bound() {
    let Some(group) = Group::new() else { return };
    let run = monitored(&group, &[], "$BURNER touch 200MiB 10ms", "$BURNER touch 50MiB 300ms");
    let peak = run.figure("memory_peak_bytes");
    peak.is("sampled").is_within(0.1, 50.0 * MIB);
    assert!(peak.upper.is_some_and(|upper| upper > 190.0 * MIB), "{peak:?}");
    let cache = run.figure("memory_cache_peak_bytes");
    assert!(cache.known() < 20.0 * MIB, "{cache:?}");
}

#[test]
fn figure_without_a_controller_is_null_with_the_reason() {
    let Some(group) = Group::new() else { return };
    let run = monitored(&group, &[], ":", "$BURNER cpu 100ms");
    let operations = run.figure("io_storage_read_operations");
    assert_eq!(operations.value, None);
    let reason = operations.reason.unwrap();
    assert!(reason.contains("below the blkio controller"), "{reason}");
}

#[test]
fn empty_cgroup_ends_the_measurement_and_moved_processes_keep_running() {
    let Some(group) = Group::new() else { return };
    let elsewhere =
        CONTROLLERS.map(|controller| format!("/sys/fs/cgroup/{controller}/cgroup.procs"));
    let leave = elsewhere.map(|place| format!("echo $$ > {place}")).join("; ");
    let script = format!("{leave}; touch left; exec sleep 60");
    let run = monitored(&group, &[], ":", &script);
    assert!(run.directory.path().join("left").exists());
    assert_eq!(run.summary["run"]["stopped"], "ended");
    assert_eq!(run.summary["processes"]["left"], serde_json::json!([]));
}

#[test]
fn option_for_ends_the_measurement_and_the_cgroup_keeps_running() {
    let Some(group) = Group::new() else { return };
    let run = monitored(&group, &["--for", "300ms"], ":", "exec sleep 60");
    assert_eq!(run.summary["run"]["stopped"], "time");
    run.figure("cpu_time_seconds").is("exact");
    let left = run.summary["processes"]["left"].as_array().unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn path_that_is_not_a_cgroup_is_refused_before_anything_starts() {
    let directory = tempfile::tempdir().unwrap();
    for path in ["/no-such-group", "/proc"] {
        let mut command = Command::new(weigh_path());
        command.args(["attach", "--cgroup", path]).current_dir(directory.path());
        let refused = output(&mut command);
        let stderr = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(1), "{stderr}");
        assert!(stderr.starts_with("weigh: cannot attach to this cgroup\n  cause: "), "{stderr}");
        assert_eq!(stderr.lines().count(), 3, "{stderr}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");
}
