//! Signals sent to weigh alone are forwarded to the command.

use std::fs;

use crate::weighed::{end_of, signal, wait_until, weigh};

/// Sends one signal to weigh, and fails unless the command gets it once.
fn is_passed_on(name: &str, number: i32) {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let script = format!(
        "trap 'echo {name} >> got' {name}; trap 'exit 3' QUIT; : > ready
        while :; do \"$BURNER\" sleep 10ms; done"
    );
    let arguments = ["run", "-q", "--no-record", "--", "sh", "-c", &script];
    let mut child = weigh(here, &arguments).spawn().unwrap();
    wait_until("the command is ready", || here.join("ready").exists());
    signal(child.id(), number);
    wait_until("the signal has arrived", || here.join("got").exists());
    assert!(child.try_wait().unwrap().is_none(), "the command still runs, so weigh does");
    signal(child.id(), libc::SIGQUIT);
    assert_eq!(end_of(child).status.code(), Some(3), "the command's own code");
    assert_eq!(fs::read_to_string(here.join("got")).unwrap(), format!("{name}\n"), "once");
}

#[test]
fn sigterm_to_weigh_reaches_the_command() {
    is_passed_on("TERM", libc::SIGTERM);
}

#[test]
fn sigint_to_weigh_reaches_the_command() {
    is_passed_on("INT", libc::SIGINT);
}

#[test]
fn sigusr1_to_weigh_reaches_the_command() {
    is_passed_on("USR1", libc::SIGUSR1);
}

#[test]
fn command_without_a_handler_is_ended_by_the_signal() {
    let directory = tempfile::tempdir().unwrap();
    let script = ": > ready; exec \"$BURNER\" sleep 60s";
    let arguments = ["run", "-q", "--no-record", "--", "sh", "-c", script];
    let child = weigh(directory.path(), &arguments).spawn().unwrap();
    wait_until("the command is ready", || directory.path().join("ready").exists());
    signal(child.id(), libc::SIGTERM);
    assert_eq!(end_of(child).status.code(), Some(128 + libc::SIGTERM));
}

#[test]
fn signal_ends_waiting_for_descendants() {
    let directory = tempfile::tempdir().unwrap();
    let script = "\"$BURNER\" sleep 60s & echo $! > left; exit 7";
    let arguments = ["run", "--wait-all", "-q", "--no-record", "--summary", "summary.json"];
    let mut command = weigh(directory.path(), &arguments);
    let mut child = command.args(["--", "sh", "-c", script]).spawn().unwrap();
    let left = directory.path().join("left");
    wait_until("the descendant is there", || {
        fs::read_to_string(&left).is_ok_and(|pid| pid.ends_with('\n'))
    });
    let pid = fs::read_to_string(&left).unwrap().trim().parse::<u32>().unwrap();
    // It was reparented to weigh when the shell exited.
    let parent = format!("PPid:\t{}\n", child.id());
    wait_until("the command has ended", || {
        fs::read_to_string(format!("/proc/{pid}/status")).unwrap().contains(&parent)
    });
    wait_until("weigh has ended", || {
        // The moment in which the command is a zombie cannot be seen from here.
        signal(child.id(), libc::SIGTERM);
        child.try_wait().unwrap().is_some()
    });
    let alive = crate::weighed::is_alive(pid);
    signal(pid, libc::SIGKILL);
    assert!(alive, "a signal to weigh is not forwarded to orphans");
    assert_eq!(end_of(child).status.code(), Some(7));
    let summary = fs::read(directory.path().join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
    assert_eq!(summary["processes"]["left"][0]["pid"], pid);
}
