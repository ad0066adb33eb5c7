//! Packets of a run in its own cgroup, against the counters of the device.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::connections::{figure, summary_of};
use super::machine::Namespaces;
use crate::weighed::{
    MIB, burner, impossible, is_alive, is_root, plain, signal, wait_until, weigh, weigh_path,
};

/// Options of a weigh that counts packets.
const COUNTED: [&str; 7] =
    ["run", "--no-record", "-q", "--summary", "summary.json", "--cgroup", "always"];

/// Where cgroup v2 is mounted; `None` where packets cannot be counted, with a message.
fn groups() -> Option<PathBuf> {
    let trees = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(PathBuf::from);
    let tree = trees.into_iter().find(|tree| tree.join("cgroup.controllers").exists());
    let tree = tree.filter(|_| is_root());
    if tree.is_none() {
        impossible("needs root and cgroup v2");
    }
    tree
}

/// The cgroup that a weigh created for its command.
fn own_group(tree: &Path, weigh: u32) -> Option<PathBuf> {
    let path = fs::read_to_string("/proc/self/cgroup").unwrap();
    let path = path.lines().find_map(|line| line.strip_prefix("0::/")).unwrap().to_owned();
    Some(tree.join(path).join(format!("weigh-{weigh}"))).filter(|group| group.is_dir())
}

/// How many BPF programs are attached to a cgroup, ingress and egress.
fn programs(group: &Path) -> u32 {
    const QUERY: i32 = 16;
    let group = File::open(group).unwrap();
    let attached = [0, 1].map(|way| {
        // `struct` of BPF_PROG_QUERY: the cgroup, the attach type, …, and the count that is written.
        let mut request = [0u32; 16];
        (request[0], request[1]) = (group.as_raw_fd() as u32, way);
        // SAFETY: the request has the size that is passed, and outlives the call.
        let queried = unsafe {
            libc::syscall(libc::SYS_bpf, QUERY, request.as_mut_ptr(), size_of_val(&request))
        };
        assert_eq!(queried, 0, "{}", std::io::Error::last_os_error());
        request[6]
    });
    attached.iter().sum()
}

#[test]
fn packets_of_a_run_are_those_of_its_device() {
    let Some((namespaces, _)) = Namespaces::joined().zip(groups()) else { return };
    let directory = tempfile::tempdir().unwrap();
    let address = "10.91.7.2:5001";
    let mut receiver = namespaces.within(1, directory.path());
    let mut receiver = receiver.arg(burner()).args(["receive", address]).spawn().unwrap();
    // `ip netns exec` would hide the cgroups behind a /sys of its own.
    let mut sender = plain("nsenter", directory.path());
    sender.arg(format!("--net=/run/netns/{}", namespaces.name(0))).arg(weigh_path()).args(COUNTED);
    let summary = summary_of(
        directory.path(),
        sender.arg("--").arg(burner()).args(["send", address, "50MiB"]),
    );
    assert!(receiver.wait().unwrap().success());
    let sent = figure(&summary, "network_sent_bytes");
    let device = &summary["parts"]["system"]["figures"]["network_sent_bytes"]["value"];
    // Ethernet headers, 14 bytes for each packet, are counted only by the device.
    sent.is("exact").is_within(0.001, device.as_f64().unwrap());
    assert!(sent.known() >= 50.0 * MIB, "{sent:?}");
    assert_eq!(figure(&summary, "network_loopback_sent_bytes").known(), 0.0);
}

#[test]
fn every_datagram_and_every_short_connection_is_counted() {
    let Some(_) = groups() else { return };
    let directory = tempfile::tempdir().unwrap();
    let weighed = |load: &[&str]| -> Value {
        let mut command: Command = weigh(directory.path(), &COUNTED);
        summary_of(directory.path(), command.arg("--").arg(burner()).args(load))
    };
    let udp = weighed(&["datagrams", "100", "1000"]);
    for name in ["network_sent_bytes", "network_received_bytes", "network_loopback_sent_bytes"] {
        // IP and UDP headers are 28 bytes.
        assert_eq!(figure(&udp, name).is("exact").known(), 100.0 * 1028.0, "{name}");
    }
    assert_eq!(figure(&udp, "network_packets_sent").known(), 100.0);
    let tcp = weighed(&["talk", "100", "10KiB"]);
    let payload = 100.0 * 10.0 * 1024.0;
    for name in ["network_sent_bytes", "network_received_bytes"] {
        let share = figure(&tcp, name).is("exact").known() / payload;
        assert!((1.0..1.2).contains(&share), "{name}: {share}");
    }
    assert_eq!(tcp["monitor"]["faults"], serde_json::json!([]));
}

#[test]
fn no_bpf_program_stays_attached_after_weigh_exits_or_is_killed() {
    let Some(tree) = groups() else { return };
    let directory = tempfile::tempdir().unwrap();
    let mut command = weigh(directory.path(), &COUNTED);
    let mut killed = command.arg("--").arg(burner()).args(["sleep", "60s"]).spawn().unwrap();
    let mut group = PathBuf::new();
    wait_until("packets are counted", || {
        group = own_group(&tree, killed.id()).unwrap_or_default();
        group.is_dir() && programs(&group) == 2
    });
    let sleeper = || fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    wait_until("the command is in its group", || !sleeper().is_empty());
    let sleeper: u32 = sleeper().trim().parse().unwrap();
    killed.kill().unwrap();
    killed.wait().unwrap();
    // The kernel detaches a link a moment after its descriptor is closed.
    wait_until("the programs are gone", || programs(&group) == 0);
    signal(sleeper, libc::SIGKILL);
    wait_until("the command is gone", || !is_alive(sleeper));
    let mut next = weigh(directory.path(), &COUNTED);
    let mut next = next.args(["--", "true"]).spawn().unwrap();
    assert!(next.wait().unwrap().success());
    assert!(!group.exists(), "the next weigh removes it");
    assert_eq!(own_group(&tree, next.id()), None);
}
