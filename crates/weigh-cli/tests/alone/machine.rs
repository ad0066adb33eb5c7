//! Figures of the machine, against the traffic and files of known loads.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::weighed::{
    Figure, MIB, burner, can_mount, end_of, impossible, output, plain, skipped, wait_until, weigh,
    weigh_path, weighed,
};

/// Two network namespaces connected by a veth pair, removed on drop.
pub(crate) struct Namespaces([String; 2]);

impl Namespaces {
    /// `None` where they cannot be created, with a message.
    pub(crate) fn joined() -> Option<Namespaces> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let of = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let names = ["a", "b"].map(|side| format!("weigh-test-{of}-{side}"));
        let namespaces = Namespaces(names);
        let [a, b] = &namespaces.0;
        for line in [
            format!("netns add {a}"),
            format!("netns add {b}"),
            format!("link add one netns {a} type veth peer name other netns {b}"),
            format!("-n {a} address add 10.91.7.1/24 dev one"),
            format!("-n {b} address add 10.91.7.2/24 dev other"),
            format!("-n {a} link set one up"),
            format!("-n {a} link set lo up"),
            format!("-n {b} link set other up"),
        ] {
            let done = Command::new("ip").args(line.split(' ')).output();
            let message = done.map(|done| (done.status.success(), done.stderr));
            if !matches!(message, Ok((true, _))) {
                let why =
                    message.map(|(_, message)| String::from_utf8_lossy(&message).trim().to_owned());
                skipped(&format!("two network namespaces need root and iproute2: {why:?}"));
                return None;
            }
        }
        Some(namespaces)
    }

    /// Bytes that the second has sent, as its veth device counts them.
    fn sent_by_the_second(&self) -> f64 {
        let mut count = self.within(1, Path::new("/"));
        let counted = output(count.args(["cat", "/sys/class/net/other/statistics/tx_bytes"]));
        let bytes = String::from_utf8(counted.stdout).unwrap();
        bytes.trim().parse().unwrap_or_else(|why| panic!("{bytes:?}: {why}"))
    }

    /// The name of one of them.
    pub(crate) fn name(&self, side: usize) -> &str {
        &self.0[side]
    }

    /// A command in one of them.
    pub(crate) fn within(&self, side: usize, directory: &Path) -> Command {
        let mut command = plain("ip", directory);
        command.args(["netns", "exec", &self.0[side]]);
        command
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            // Removing one that was never created fails, which is harmless.
            let _ = Command::new("ip").args(["netns", "delete", name]).output();
        }
    }
}

/// Where the receiver listens, in the first of the namespaces.
const ADDRESS: &str = "10.91.7.1:5001";

/// The same address as `/proc/net/tcp` has it while a process listens there.
const LISTENS: &str = "01075B0A:1389 00000000:0000 0A";

/// Runs a command under weigh in one of the namespaces.
fn weigh_within(
    namespaces: &Namespaces,
    side: usize,
    directory: &Path,
    arguments: &[&str],
) -> std::process::Child {
    let mut command = namespaces.within(side, directory);
    command.arg(weigh_path()).args(["run", "-q", "--summary", "summary.json", "--no-record", "--"]);
    command.args(arguments).spawn().unwrap()
}

/// A figure of the machine, from the summary in a directory.
fn machine_figure(directory: &Path, name: &str) -> Figure {
    let summary = std::fs::read(directory.join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
    Figure::of(&summary["parts"]["system"]["figures"][name], name)
}

#[test]
fn bytes_from_another_machine_are_counted_as_the_device_counts_them() {
    let Some(namespaces) = Namespaces::joined() else { return };
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let before = namespaces.sent_by_the_second();
    let receive = format!("exec $BURNER receive {ADDRESS}");
    let receiver = weigh_within(&namespaces, 0, here, &["sh", "-c", &receive]);
    // It starts as soon as a process listens, which may be before the first tick.
    let mut sender = namespaces.within(1, here);
    let sender = sender.arg(burner()).args(["send", ADDRESS, "100MiB"]).spawn().unwrap();
    assert!(end_of(sender).status.success());
    assert!(end_of(receiver).status.success());
    let wire = namespaces.sent_by_the_second() - before;
    assert!(wire >= 100.0 * MIB, "the load itself: {wire} bytes");
    machine_figure(here, "network_received_bytes").is("exact").is_within(0.01, wire);
    let confirmed = machine_figure(here, "network_sent_bytes").known();
    assert!(confirmed < 0.02 * wire, "only confirmations go back: {confirmed}");
}

#[test]
fn bytes_sent_before_the_first_tick_are_counted() {
    let Some(namespaces) = Namespaces::joined() else { return };
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    // While weigh is stopped there is no tick. The first may have been before that: hence five
    // times.
    let send = format!("kill -STOP $PPID; $BURNER send {ADDRESS} 1MiB; kill -CONT $PPID");
    for _ in 0..5 {
        let mut receiver = namespaces.within(0, here);
        let receiver = receiver.arg(burner()).args(["receive", ADDRESS]).spawn().unwrap();
        let connections = format!("/proc/{}/net/tcp", receiver.id());
        wait_until("the burner listens", || {
            std::fs::read_to_string(&connections).is_ok_and(|listed| listed.contains(LISTENS))
        });
        let before = namespaces.sent_by_the_second();
        let sender = weigh_within(&namespaces, 1, here, &["sh", "-c", &send]);
        assert!(end_of(sender).status.success());
        assert!(end_of(receiver).status.success());
        let wire = namespaces.sent_by_the_second() - before;
        assert!(wire >= MIB, "the load itself: {wire} bytes");
        machine_figure(here, "network_sent_bytes").is("exact").is_within(0.01, wire);
    }
}

#[test]
fn absent_hardware_gives_no_warning_and_is_in_the_recording() {
    let run = weighed(&[], &["cpu", "50ms"]).ended_with(0);
    assert_eq!(run.summary["monitor"]["faults"], serde_json::json!([]), "{}", run.stderr);
    let energy = Figure::of(&run.summary["parts"]["system"]["figures"]["energy_joules"], "energy");
    assert!(energy.value.is_some() || energy.reason.is_some(), "{energy:?}");
}

#[test]
fn requested_collector_that_is_not_available_is_a_fault_with_its_reason() {
    let directory = tempfile::tempdir().unwrap();
    let examined = output(&mut weigh(directory.path(), &["doctor", "--format", "json"]));
    let examined: serde_json::Value = serde_json::from_slice(&examined.stdout).unwrap();
    let absent = ["infiniband", "energy", "power-meter", "frequency"].into_iter().find(|name| {
        let mut collectors = examined["collectors"].as_array().unwrap().iter();
        collectors.any(|one| one["name"] == *name && one["state"] != "ready")
    });
    let Some(absent) = absent else { return impossible("this machine has everything") };
    let run = weighed(&["--collect", absent], &["exit", "0"]).ended_with(0);
    let faults = run.summary["monitor"]["faults"].as_array().unwrap();
    let is_absent = |fault: &serde_json::Value| fault.as_str().unwrap().starts_with(absent);
    assert!(faults.iter().any(is_absent), "{faults:?}");
}

#[test]
fn full_file_system_is_a_finding_with_its_free_space() {
    if !can_mount() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let script = "mkdir place && mount -t tmpfs -o size=64m none place && out=$PWD && cd place &&
        exec \"$WEIGH\" run -q --no-record --summary \"$out/summary.json\" -- \
        sh -c 'head -c 62M /dev/zero > file'";
    let ran = output(plain("unshare", here).args(["-m", "sh", "-c", script]));
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let summary = std::fs::read(here.join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
    let findings = summary["findings"].as_array().unwrap();
    let found = findings.iter().find(|one| one["code"] == "filesystem.nearly_full");
    let evidence = &found.unwrap_or_else(|| panic!("{findings:#?}"))["evidence"];
    assert_eq!(evidence["total_bytes"].as_f64(), Some(64.0 * MIB));
    assert_eq!(evidence["available_bytes"].as_f64(), Some(2.0 * MIB), "{evidence}");
}
