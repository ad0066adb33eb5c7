//! The pid namespace of a driver's pids.
//!
//! What surprised us: drivers report the pids of the machine. In a container those are of another
//! namespace, and may be the pids of other processes there, so they are not even compared with
//! ours. `NSpid` in `/proc/PID/status` has all pids of a process, but only from the namespace of
//! that `/proc` inwards: the container's own does not have the driver's. The machine's does, where
//! the container has that, too ([`machine_proc`]).

use crate::host::{Dir, ProcPath, machine_proc, own};
use crate::model::ProcessId;
use crate::parse::{attribute, stat};

/// The initial pid namespace (`PROC_PID_INIT_INO` of the kernel).
const INITIAL_NAMESPACE: &[u8] = b"pid:[4026531836]";

/// Where the driver's pids can be looked up.
#[derive(Debug)]
pub(super) enum Pids {
    /// In our `/proc`.
    Ours,
    /// In the machine's `/proc`, which is this one.
    Machine(Dir),
    /// Nowhere, and why.
    Foreign(&'static str),
}

impl Pids {
    pub(super) fn of(proc: &Dir) -> Pids {
        let namespace = proc.link(c"self/ns/pid");
        let is_initial = namespace.as_deref() == Some(INITIAL_NAMESPACE);
        let sees_itself = own::proc_is_our_pid_namespace(proc);
        if is_initial && sees_itself {
            return Pids::Ours;
        }
        match machine_proc::find(proc).filter(|_| sees_itself) {
            Some(machine) => Pids::Machine(machine),
            None => Pids::Foreign(
                "the driver reports the pids of the machine, and this is another pid namespace (a \
                 container): GPU memory cannot be attributed to processes; start the container \
                 with --pid=host, or with -v /proc:/host/proc:ro",
            ),
        }
    }

    /// The process of a driver's pid, if it is in our `/proc`.
    pub(super) fn resolve(&self, proc: &Dir, pid: u32, buffer: &mut Vec<u8>) -> Option<ProcessId> {
        match self {
            Pids::Ours => Some(ProcessId { pid, started: started(proc, pid, buffer)? }),
            Pids::Machine(machine) => in_our_proc(machine, pid, proc, buffer),
            Pids::Foreign(_) => None,
        }
    }
}

/// The process of the machine in our `/proc`. All its pids from ours inwards must be the same in
/// both, and its start time, too: the pid alone may be another's.
fn in_our_proc(machine: &Dir, pid: u32, proc: &Dir, buffer: &mut Vec<u8>) -> Option<ProcessId> {
    let pids = namespace_pids(machine, pid, buffer)?;
    let start = started(machine, pid, buffer)?;
    let mut inner = (1..pids.len()).map(|depth| &pids[depth..]);
    inner.find_map(|ours| {
        let pid = *ours.first()?;
        let is_same = namespace_pids(proc, pid, buffer).is_some_and(|here| here == ours)
            && started(proc, pid, buffer) == Some(start);
        is_same.then_some(ProcessId { pid, started: start })
    })
}

/// The pids of a process, from the namespace of this `/proc` inwards.
fn namespace_pids(proc: &Dir, pid: u32, buffer: &mut Vec<u8>) -> Option<Vec<u32>> {
    let path = ProcPath::new(pid, "status");
    let status = proc.read(path.as_c_str(), buffer).ok()?;
    let listed = attribute::line_value(status, "NSpid:")?;
    listed.split_ascii_whitespace().map(|pid| pid.parse().ok()).collect()
}

fn started(proc: &Dir, pid: u32, buffer: &mut Vec<u8>) -> Option<u64> {
    let path = ProcPath::new(pid, "stat");
    let bytes = proc.read(path.as_c_str(), buffer).ok()?;
    Some(stat::parse(bytes).ok()?.started)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    fn stat(pid: u32, started: u64) -> String {
        format!("{pid} (python) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {started} 0 0 0\n")
    }

    fn machine(namespace: &str) -> FakeHost {
        FakeHost::new()
            .proc("7/stat", &stat(7, 4711))
            .proc_link("self", &std::process::id().to_string())
            .proc_link(&format!("{}/ns/pid", std::process::id()), namespace)
    }

    #[test]
    fn driver_pids_are_those_of_the_initial_namespace() {
        let fake = machine("pid:[4026531836]");
        let host = fake.host();
        let pids = Pids::of(&host.proc);
        let found = pids.resolve(&host.proc, 7, &mut Vec::new());
        assert_eq!(found, Some(ProcessId { pid: 7, started: 4711 }));
        assert_eq!(pids.resolve(&host.proc, 8, &mut Vec::new()), None, "no process has that pid");
    }

    #[test]
    fn in_a_container_no_process_is_taken_for_another() {
        let fake = machine("pid:[4026532000]");
        let host = fake.host();
        let pids = Pids::of(&host.proc);
        assert!(matches!(pids, Pids::Foreign(why) if why.contains("--pid=host")));
        assert_eq!(
            pids.resolve(&host.proc, 7, &mut Vec::new()),
            None,
            "another process has that pid"
        );
    }

    #[test]
    fn proc_of_the_machine_resolves_pids_in_a_container() {
        let outside = FakeHost::new()
            .proc("2/comm", "kthreadd\n")
            .proc("self", "of another")
            .proc("4000/status", "Name:\tpython\nNSpid:\t4000\t7\n")
            .proc("4000/stat", &stat(4000, 4711))
            .proc("4001/status", "Name:\tpython\nNSpid:\t4001\t8\n")
            .proc("4001/stat", &stat(4001, 4712))
            .proc("4002/status", "Name:\tin another\nNSpid:\t4002\t9\n")
            .proc("4002/stat", &stat(4002, 4711))
            .proc("4003/status", "Name:\tone deeper\nNSpid:\t4003\t6\t1\n")
            .proc("4003/stat", &stat(4003, 4711));
        let mounts = format!("proc {} proc ro 0 0\n", outside.path("proc").display());
        let inside = machine("pid:[4026532000]")
            .proc(&format!("{}/mounts", std::process::id()), &mounts)
            .proc("6/status", "NSpid:\t6\t1\n")
            .proc("6/stat", &stat(6, 4711))
            .proc("7/status", "NSpid:\t7\n")
            .proc("8/status", "NSpid:\t8\n")
            .proc("8/stat", &stat(8, 99));
        let host = inside.host();
        let pids = Pids::of(&host.proc);
        let of = |pid| pids.resolve(&host.proc, pid, &mut Vec::new()).map(|id| id.pid);
        assert_eq!((of(4000), of(4003)), (Some(7), Some(6)));
        assert_eq!(of(4001), None, "pid 8 has another start time here");
        assert_eq!(
            (of(4002), of(7)),
            (None, None),
            "one in another container, and one that does not exist"
        );
    }
}
