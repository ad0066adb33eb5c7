//! Whatever fails in weigh, the command runs to its own end.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::recorded::shown;
use crate::weighed::{
    Figure, PublicPrograms, burner, can_mount, end_of, is_root, output, plain, printed_number,
    signal, skipped, wait_until, weigh,
};

/// A load that makes thousands of rows and ends with 7.
const LOAD: &str = "\"$BURNER\" children 60 20ms --at-once 4; echo ended; exit 7";

/// Fails unless the command ran to its end and weigh printed one well-formed warning.
fn unharmed_with_one_warning(output: &Output) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ended\n", "{stderr}");
    let warnings = stderr.lines().filter(|line| line.starts_with("weigh: warning: ")).count();
    assert_eq!(warnings, 1, "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert!(stderr.contains("CPU time"), "the summary is there all the same: {stderr}");
}

/// `weigh run` in a file system of its own, prepared by `mount` at `$PLACE`.
fn in_a_mount(mount: &str, options: &str) -> Option<Command> {
    if !can_mount() {
        return None;
    }
    let script = format!(
        "{mount} && cd \"$PLACE\" && exec \"$WEIGH\" run {options} -- sh -c '{}'",
        LOAD.replace('\'', "'\\''")
    );
    let mut command = plain("unshare", Path::new("/"));
    command.args(["-m", "sh", "-c", &script]);
    Some(command)
}

fn full_disk(size: &str, options: &str) {
    let mount = format!("mount -t tmpfs -o size={size} none \"$PLACE\"");
    let Some(mut command) = in_a_mount(&mount, options) else { return };
    let place = tempfile::tempdir().unwrap();
    unharmed_with_one_warning(&output(command.env("PLACE", place.path())));
}

#[test]
fn disk_too_full_for_the_first_file_does_not_harm_the_command() {
    full_disk("4k", "-i 1ms");
}

#[test]
fn disk_of_64k_does_not_harm_the_command() {
    full_disk("64k", "-i 1ms");
}

#[test]
fn disk_of_64k_given_by_an_option_does_not_harm_the_command() {
    full_disk("64k", "-i 1ms -o run");
}

#[test]
fn disk_that_fills_up_during_the_run_does_not_harm_the_command() {
    // A file fills nine tenths of it, so that a second of rows is too much.
    let mount = "mount -t tmpfs -o size=300k none \"$PLACE\" &&
        head -c 200k /dev/zero > \"$PLACE/ballast\"";
    let Some(mut command) = in_a_mount(mount, "-i 1ms") else { return };
    let place = tempfile::tempdir().unwrap();
    unharmed_with_one_warning(&output(command.env("PLACE", place.path())));
}

#[test]
fn read_only_file_system_does_not_harm_the_command() {
    let mount = "mount -t tmpfs none \"$PLACE\" && mount -o remount,ro \"$PLACE\"";
    let Some(mut command) = in_a_mount(mount, "") else { return };
    let place = tempfile::tempdir().unwrap();
    unharmed_with_one_warning(&output(command.env("PLACE", place.path())));
}

#[test]
fn directory_without_write_permission_does_not_harm_the_command() {
    let programs = PublicPrograms::new();
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let mut command = programs.command("weigh", place.path());
    command.env("BURNER", programs.path().join("burner"));
    unharmed_with_one_warning(&output(command.args(["run", "--", "sh", "-c", LOAD])));
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn directory_without_read_permission_does_not_harm_the_command() {
    if !is_root() {
        return skipped("needs root, to become another user in a directory of root");
    }
    let programs = PublicPrograms::new();
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let mut command = programs.command("weigh", place.path());
    command.env("BURNER", programs.path().join("burner"));
    unharmed_with_one_warning(&output(command.args(["run", "--", "sh", "-c", LOAD])));
}

#[test]
fn five_thousand_processes_are_all_found_and_end_by_a_signal_to_weigh() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let arguments = ["run", "-q", "-o", "run", "--summary", "summary.json", "--"];
    let mut command = weigh(here, &arguments);
    let child =
        command.arg(burner()).args(["spawn-sleepers", "5000", "100s", "--tree"]).spawn().unwrap();
    // Without a deadline: nothing here depends on the speed of the machine.
    let seen = || fs::read(here.join("run/events.jsonl")).map(|text| starts_in(&text));
    wait_until("weigh has found all of them", || seen().is_ok_and(|seen| seen > 5000));
    signal(child.id(), libc::SIGTERM);
    assert_eq!(end_of(child).status.code(), Some(143), "as the burner ends on SIGTERM");
    let summary: Value =
        serde_json::from_slice(&fs::read(here.join("summary.json")).unwrap()).unwrap();
    let processes = &summary["processes"];
    assert_eq!((processes["total"].as_u64(), processes["peak"].as_u64()), (Some(5001), Some(5001)));
    assert_eq!(processes["left"], serde_json::json!([]));
    assert_eq!(shown(&here.join("run"))["processes"], *processes);
    // A tick over so many processes takes long, which must not shorten the interval.
    let cores = summary["host"]["cores_allowed"].as_f64().unwrap();
    let peak = Figure::of(&summary["figures"]["cpu_cores_peak"], "cpu_cores_peak");
    assert!(peak.known() <= cores + 0.1, "{peak:?} of {cores} cores");
}

/// How many process starts the events have, without the command itself.
fn starts_in(events: &[u8]) -> usize {
    let text = String::from_utf8_lossy(events);
    text.lines().filter(|line| line.contains("\"process_start\"")).count()
}

#[test]
fn processes_hidden_by_hidepid_give_null_with_a_reason() {
    if !can_mount() {
        return;
    }
    let programs = PublicPrograms::new();
    let place = tempfile::tempdir().unwrap();
    // A setuid program runs as another user, whose /proc/PID is hidden from us.
    let script = "mount -t tmpfs none \"$PLACE\" && cp burner \"$PLACE/burner\" &&
        chmod 4755 \"$PLACE/burner\" && mount -t proc -o hidepid=2 proc /proc &&
        exec setpriv --reuid=65534 --regid=65534 --clear-groups ./weigh run --no-record \
        --format json -i 20ms -- \"$PLACE/burner\" children 4 1s --print-cpu";
    let mut command = plain("unshare", programs.path());
    command.args(["-m", "sh", "-c", script]).env("PLACE", place.path());
    let output = output(&mut command);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let summary: Value = serde_json::from_str(&stderr).unwrap_or_else(|_| panic!("{stderr}"));
    crate::recorded::every_figure_is_explained(&summary);
    let figure = |name: &str| Figure::of(&summary["figures"][name], name);
    for name in ["memory_pss_peak_bytes", "memory_uss_peak_bytes", "files_open_peak"] {
        let hidden = figure(name);
        assert!(hidden.value.is_none() && hidden.reason.is_some(), "{hidden:?}");
    }
    for name in ["memory_peak_bytes", "memory_rss_peak_bytes", "threads_peak"] {
        assert!(figure(name).value != Some(0.0), "{:?}", figure(name));
    }
    figure("cpu_time_seconds").is_within(0.03, printed_number(&output.stdout));
}
