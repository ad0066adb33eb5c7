//! What weigh says of the machine, against what really went through it.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use super::weighed::{
    Figure, MIB, burner, output, plain, skipped, wait_until, weigh, weigh_path, weighed,
};

/// Two network namespaces with a cable between them, which end with this value.
pub struct Namespaces([String; 2]);

impl Namespaces {
    /// Nothing where they cannot be had, with a line that says why.
    pub fn joined() -> Option<Namespaces> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (own, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let names = ["a", "b"].map(|side| format!("weigh-test-{own}-{count}{side}"));
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
            let said = done.map(|done| (done.status.success(), done.stderr));
            if !matches!(said, Ok((true, _))) {
                let why = said.map(|(_, said)| String::from_utf8_lossy(&said).trim().to_owned());
                skipped(&format!("two network namespaces need root and iproute2: {why:?}"));
                return None;
            }
        }
        Some(namespaces)
    }

    /// What one of them is called.
    pub fn name(&self, side: usize) -> &str {
        &self.0[side]
    }

    /// A command in one of them.
    pub fn within(&self, side: usize, directory: &std::path::Path) -> Command {
        let mut command = plain("ip", directory);
        command.args(["netns", "exec", &self.0[side]]);
        command
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            // One that was never made cannot be removed, and that is no harm.
            let _ = Command::new("ip").args(["netns", "delete", name]).output();
        }
    }
}

#[test]
fn what_another_machine_sends_is_counted_to_the_byte_and_its_heads() {
    let Some(namespaces) = Namespaces::joined() else { return };
    let directory = tempfile::tempdir().unwrap();
    let address = "10.91.7.1:5001";
    let mut receiver = namespaces.within(0, directory.path());
    receiver.arg(weigh_path()).args(["run", "-q", "--summary", "summary.json", "-o", "run", "--"]);
    let mut receiver = receiver.arg(burner()).args(["receive", address]).spawn().unwrap();
    // What came before the first look nobody can tell.
    let events = directory.path().join("run/events.jsonl");
    let is_seen = || std::fs::read_to_string(&events).is_ok_and(|told| told.contains("start"));
    wait_until("the receiver was looked at", is_seen);
    let mut sender = namespaces.within(1, directory.path());
    let mut sender = sender.arg(burner()).args(["send", address, "100MiB"]).spawn().unwrap();
    assert!(sender.wait().unwrap().success());
    assert!(receiver.wait().unwrap().success());
    let summary = std::fs::read(directory.path().join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
    let figure = |name: &str| Figure::of(&summary["parts"]["system"]["figures"][name], name);
    let received = figure("network_received_bytes");
    // Heads are on the wire, too: on a busy machine there are more and smaller packets.
    let share = received.is("exact").known() / (100.0 * MIB);
    assert!((1.0..1.05).contains(&share), "{received:?}");
    assert!(figure("network_sent_bytes").known() < MIB, "only confirmations go back");
}

#[test]
fn what_a_machine_does_not_have_makes_no_noise_and_is_told_in_the_recording() {
    let run = weighed(&[], &["cpu", "50ms"]).ended_with(0);
    assert_eq!(run.summary["monitor"]["faults"], serde_json::json!([]), "{}", run.stderr);
    let energy = Figure::of(&run.summary["parts"]["system"]["figures"]["energy_joules"], "energy");
    assert!(energy.value.is_some() || energy.reason.is_some(), "{energy:?}");
}

#[test]
fn a_collector_that_is_asked_for_and_not_there_is_a_fault_that_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let examined = output(&mut weigh(directory.path(), &["doctor", "--format", "json"]));
    let examined: serde_json::Value = serde_json::from_slice(&examined.stdout).unwrap();
    let absent = ["infiniband", "energy", "power-meter", "frequency"].into_iter().find(|name| {
        let mut collectors = examined["collectors"].as_array().unwrap().iter();
        collectors.any(|one| one["name"] == *name && one["state"] != "ready")
    });
    let Some(absent) = absent else { return skipped("this machine has everything") };
    let run = weighed(&["--collect", absent], &["exit", "0"]).ended_with(0);
    let faults = run.summary["monitor"]["faults"].as_array().unwrap();
    let told = |fault: &serde_json::Value| fault.as_str().unwrap().starts_with(absent);
    assert!(faults.iter().any(told), "{faults:?}");
}
