//! Connections of a run, against the bytes that loads sent through them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::machine::Namespaces;
use crate::weighed::{
    Figure, MIB, PublicPrograms, burner, output, plain, weigh, weigh_path, weighed, weighed_shell,
};

/// Connections are listed at each tick, however long that takes.
const UNLIMITED: [&str; 2] = ["--budget", "100%"];

/// An interval short enough to find connections of some tens of milliseconds.
const OFTEN: [&str; 4] = ["-i", "5ms", "--budget", "100%"];

/// Runs a weigh that writes a summary into a directory.
pub(crate) fn summary_of(directory: &Path, command: &mut Command) -> Value {
    let output = output(command);
    let written = fs::read(directory.join("summary.json"));
    let written = written.unwrap_or_else(|why| {
        panic!("no summary: {why}\n{}", String::from_utf8_lossy(&output.stderr))
    });
    serde_json::from_slice(&written).unwrap()
}

/// A figure of a whole run.
pub(crate) fn figure(summary: &Value, name: &str) -> Figure {
    Figure::of(&summary["figures"][name], name)
}

/// Fails unless these bytes were transferred, and no upper bound is claimed.
fn is_payload(figure: &Figure, bytes: f64) {
    assert_eq!(figure.is("estimated").known(), bytes, "{figure:?}");
    assert_eq!((figure.lower, figure.upper), (figure.value, None), "{figure:?}");
}

#[test]
fn both_ends_of_a_connection_are_counted_to_the_byte() {
    let script = "exec $BURNER talk 2 25MiB --linger 600ms";
    let run = weighed_shell(&[&["-i", "100ms", "-o", "out"], &UNLIMITED[..]].concat(), script)
        .ended_with(0);
    is_payload(&run.figure("network_sent_bytes"), 50.0 * MIB);
    is_payload(&run.figure("network_received_bytes"), 50.0 * MIB);
    let line = run.stderr.lines().find(|line| line.contains("TCP payload")).unwrap();
    assert!(line.contains("50.0 MiB") && line.contains("estimated"), "{line}");
    // The summary can be made again from the other files.
    fs::remove_file(run.directory.path().join("out/summary.json")).unwrap();
    let again = output(&mut weigh(run.directory.path(), &["show", "out", "--format", "json"]));
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again["figures"], run.summary["figures"]);
}

#[test]
fn unprivileged_user_gets_its_own_connections() {
    let (programs, directory) = (PublicPrograms::new(), tempfile::tempdir().unwrap());
    let everybody = fs::Permissions::from_mode(0o777);
    fs::set_permissions(directory.path(), everybody).unwrap();
    let mut command = programs.command("weigh", directory.path());
    command.args(["run", "--no-record", "-q", "--summary", "summary.json", "-i", "100ms"]);
    command.args(UNLIMITED).arg("--");
    command.arg(programs.path().join("burner"));
    let summary =
        summary_of(directory.path(), command.args(["talk", "1", "5MiB", "--linger", "600ms"]));
    is_payload(&figure(&summary, "network_sent_bytes"), 5.0 * MIB);
    is_payload(&figure(&summary, "network_received_bytes"), 5.0 * MIB);
    assert_eq!(summary["monitor"]["faults"], serde_json::json!([]));
}

#[test]
fn connection_between_two_machines_is_counted_to_its_last_byte() {
    let Some(namespaces) = Namespaces::joined() else { return };
    let directory = tempfile::tempdir().unwrap();
    let address = "10.91.7.2:5001";
    let mut receiver = namespaces.within(1, directory.path());
    let mut receiver = receiver.arg(burner()).args(["receive", address]).spawn().unwrap();
    let mut sender = namespaces.within(0, directory.path());
    sender
        .arg(weigh_path())
        .args(["run", "--no-record", "-q", "--summary", "summary.json"])
        .args(OFTEN);
    let summary = summary_of(
        directory.path(),
        sender.arg("--").arg(burner()).args(["send", address, "50MiB"]),
    );
    assert!(receiver.wait().unwrap().success());
    figure(&summary, "network_sent_bytes").is("estimated").is_within(0.01, 50.0 * MIB);
}

#[test]
fn short_connections_are_attributed_by_listening_port_or_unattributed() {
    let Some(namespaces) = Namespaces::joined() else { return };
    let directory = tempfile::tempdir().unwrap();
    let mut command = namespaces.within(0, directory.path());
    command.arg(weigh_path()).args([
        "run",
        "--no-record",
        "-q",
        "--summary",
        "summary.json",
        "-i",
        "500ms",
    ]);
    command.arg("--").arg(burner());
    let summary =
        summary_of(directory.path(), command.args(["talk", "100", "10KiB", "--after", "2500ms"]));
    let all = 100.0 * 10.0 * 1024.0;
    is_payload(&figure(&summary, "network_received_bytes"), all);
    let sent = figure(&summary, "network_sent_bytes");
    assert!(sent.lower.unwrap() <= all && sent.upper.is_none(), "{sent:?}");
    let reason = sent.reason.as_ref().unwrap();
    assert!(reason.contains("too short to be attributed"), "{reason}");
}

#[test]
fn attached_process_counts_from_the_first_sample() {
    let directory = tempfile::tempdir().unwrap();
    let mut talker = plain(burner(), directory.path());
    let talk = ["talk", "2", "5MiB", "--after", "1500ms", "--linger", "1500ms"];
    let mut talker = talker.args(talk).spawn().unwrap();
    let pid = talker.id().to_string();
    let follow = ["attach", &pid, "--no-record", "-q", "--summary", "summary.json", "-i", "100ms"];
    let summary = summary_of(directory.path(), &mut weigh(directory.path(), &follow));
    assert!(talker.wait().unwrap().success());
    is_payload(&figure(&summary, "network_sent_bytes"), 10.0 * MIB);
}

#[test]
fn missing_udp_traffic_is_reported() {
    let run = weighed(&[], &["datagrams", "100", "1000"]).ended_with(0);
    let sent = run.figure("network_sent_bytes");
    assert!(sent.reason.as_ref().is_some_and(|reason| reason.contains("UDP")), "{sent:?}");
    let left_out = weighed(&["--skip", "sockets"], &["exit", "0"]).ended_with(0);
    let unknown = left_out.figure("network_sent_bytes");
    assert_eq!(unknown.reason.as_deref(), Some("the sockets collector was left out"));
}
