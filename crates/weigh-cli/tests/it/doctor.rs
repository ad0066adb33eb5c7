//! `weigh doctor` as an unprivileged user: what is denied and why, and whether its hints help.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::weighed::{PublicPrograms, is_root, output, skipped, weigh};

/// Every source in the output of doctor.
fn examined(command: &mut Command, more: &[&str]) -> Vec<Value> {
    let out = output(command.args(["doctor", "--format", "json"]).args(more));
    assert!(out.status.success(), "{out:?}");
    let message: Value = serde_json::from_slice(&out.stdout).unwrap();
    let all = ["collectors", "watching"].map(|key| message[key].as_array().unwrap().clone());
    all.into_iter().flatten().collect()
}

fn named<'a>(examined: &'a [Value], name: &Value) -> &'a Value {
    examined.iter().find(|one| one["name"] == *name).unwrap()
}

fn denied(examined: &[Value]) -> impl Iterator<Item = &Value> {
    examined.iter().filter(|one| one["state"] == "denied")
}

/// The command of a hint.
fn typed(one: &Value) -> &str {
    let hint = one["hint"].as_str().unwrap_or_else(|| panic!("no hint: {one}"));
    hint.strip_prefix("sudo ").unwrap_or_else(|| panic!("nothing to type: {one}"))
}

#[test]
fn source_denied_to_a_user_is_ready_for_root_as_the_hint_says() {
    if !is_root() {
        return skipped("needs root, to become an unprivileged user");
    }
    let (programs, directory) = (PublicPrograms::new(), tempfile::tempdir().unwrap());
    let theirs = examined(&mut programs.command("weigh", directory.path()), &[]);
    let ours = examined(&mut weigh::<&str>(directory.path(), &[]), &[]);
    let mut some = false;
    for one in denied(&theirs).filter(|one| typed(one).starts_with("weigh ")) {
        assert!(one["why"].as_str().is_some_and(|why| !why.is_empty()), "{one}");
        assert_eq!(named(&ours, &one["name"])["state"], "ready", "{one}");
        some = true;
    }
    assert!(some, "taskstats of exited processes are for root: {theirs:?}");
}

/// A machine on which only root may read energy and power.
fn closed_machine(root: &Path) {
    let zone = "sys/class/powercap/intel-rapl:0";
    for (file, text) in [
        ("proc/stat", "cpu 1 2 3 4 5 6 7 8 9 10\n"),
        (&format!("{zone}/name"), "package-0\n"),
        (&format!("{zone}/max_energy_range_uj"), "262143328850\n"),
        (&format!("{zone}/energy_uj"), "5000000\n"),
        ("sys/class/hwmon/hwmon0/name", "power_meter\n"),
        ("sys/class/hwmon/hwmon0/power1_average", "90000000\n"),
    ] {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let is_closed = file.ends_with("_uj") || file.ends_with("_average");
        let mode = if is_closed { 0o400 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(root, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn denied_files_are_readable_after_following_the_hint() {
    if !is_root() {
        return skipped("needs root, to become an unprivileged user");
    }
    let (programs, machine) = (PublicPrograms::new(), tempfile::tempdir().unwrap());
    closed_machine(machine.path());
    let root = ["--host-root", machine.path().to_str().unwrap()];
    let ask = || examined(&mut programs.command("weigh", machine.path()), &root);
    let before = ask();
    let closed = ["energy", "power-meter"].map(Value::from);
    for name in &closed {
        let one = named(&before, name);
        assert_eq!(one["state"], "denied", "{one}");
        assert!(one["why"].as_str().is_some_and(|why| why.contains("denied")), "{one}");
        let done = output(Command::new("sh").args(["-c", typed(one)]));
        assert!(done.status.success(), "{one}: {done:?}");
    }
    let after = ask();
    for name in &closed {
        assert_eq!(named(&after, name)["state"], "ready");
    }
}
