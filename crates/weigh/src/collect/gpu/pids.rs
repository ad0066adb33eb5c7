//! Whose numbers the pids of a driver are.
//!
//! What surprised us: drivers know processes by the pids of the machine. In a container they
//! are somebody else's numbers, and may be the numbers of somebody who is there, so they are not
//! even compared with ours.

use crate::host::{Dir, ProcPath, own};
use crate::parse::stat;
use crate::sample::ProcessId;

/// The pid namespace that the machine begins with (`PROC_PID_INIT_INO` of the kernel).
const FIRST_NAMESPACE: &[u8] = b"pid:[4026531836]";

/// Whose numbers the driver's pids are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pids {
    /// Those of our `/proc`.
    Ours,
    /// Somebody else's, and why that is so.
    Foreign(&'static str),
}

impl Pids {
    pub(super) fn of(proc: &Dir) -> Pids {
        let namespace = proc.link(c"self/ns/pid");
        let is_first = namespace.as_deref() == Some(FIRST_NAMESPACE);
        if is_first && own::sees_itself(proc) {
            return Pids::Ours;
        }
        // Not through NSpid either: it has the numbers from this namespace inwards, and the
        // driver's are those outwards.
        Pids::Foreign(
            "the driver names processes by the pids of the machine, and this is a pid namespace \
             of its own (a container): whose GPU memory is whose is not known; start the \
             container with --pid=host",
        )
    }

    /// The process behind a pid of the driver's, if it is one that we see.
    pub(super) fn process(self, proc: &Dir, pid: u32, buffer: &mut Vec<u8>) -> Option<ProcessId> {
        if self != Pids::Ours {
            return None;
        }
        let path = ProcPath::new(pid, "stat");
        let bytes = proc.read(path.as_c_str(), buffer).ok()?;
        let started = stat::parse(bytes).ok()?.started;
        Some(ProcessId { pid, started })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    fn machine(namespace: &str) -> FakeHost {
        let stat = "7 (python) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0 0\n";
        FakeHost::new()
            .proc("7/stat", stat)
            .proc_link("self", &std::process::id().to_string())
            .proc_link(&format!("{}/ns/pid", std::process::id()), namespace)
    }

    #[test]
    fn pids_of_the_driver_are_those_of_the_first_namespace() {
        let fake = machine("pid:[4026531836]");
        let host = fake.host();
        let pids = Pids::of(&host.proc);
        let found = pids.process(&host.proc, 7, &mut Vec::new());
        assert_eq!(found, Some(ProcessId { pid: 7, started: 4711 }));
        assert_eq!(pids.process(&host.proc, 8, &mut Vec::new()), None, "nobody has that pid");
    }

    #[test]
    fn in_a_container_nobody_is_taken_for_somebody_else() {
        let fake = machine("pid:[4026532000]");
        let host = fake.host();
        let pids = Pids::of(&host.proc);
        assert!(matches!(pids, Pids::Foreign(why) if why.contains("--pid=host")));
        assert_eq!(
            pids.process(&host.proc, 7, &mut Vec::new()),
            None,
            "a pid of that number is there"
        );
    }
}
