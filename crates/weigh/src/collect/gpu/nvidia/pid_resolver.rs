//! The processes of the driver's pids, resolved when it first reports them.
//!
//! A tick resolves pids, too. But ticks may be rare, and a process that has exited by then is not
//! in `/proc` any more. So new pids are resolved at the poll: one small file for each.

use std::collections::HashMap;

use super::super::pids::Pids;
use super::super::poll::{GpuProcessRow, PolledPid};
use crate::host::Dir;
use crate::model::ProcessId;

/// The processes that were on the GPUs at the last poll.
pub(super) struct PidResolver {
    proc: Dir,
    /// The pid namespace of the driver, once it has reported a pid.
    pids: Option<Pids>,
    /// While a pid is listed, it is the same process.
    resolved: HashMap<u32, ProcessId>,
    buffer: Vec<u8>,
}

impl PidResolver {
    pub(super) fn new(proc: Dir) -> PidResolver {
        PidResolver { proc, pids: None, resolved: HashMap::new(), buffer: Vec::new() }
    }

    /// Sets the process of each pid of the driver's.
    pub(super) fn resolve(&mut self, rows: &mut [GpuProcessRow]) {
        let before = std::mem::take(&mut self.resolved);
        for row in rows {
            let PolledPid::Driver(pid, process) = &mut row.pid else { continue };
            let known = self.resolved.get(pid).or_else(|| before.get(pid)).copied();
            *process = known.or_else(|| {
                let pids = self.pids.get_or_insert_with(|| Pids::of(&self.proc));
                pids.resolve(&self.proc, *pid, &mut self.buffer)
            });
            process.map(|id| self.resolved.insert(*pid, id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::metrics::GpuProcessUsage;
    use crate::host::fake::FakeHost;
    use crate::model::Name;

    #[test]
    fn pid_is_the_same_process_while_the_driver_lists_it() {
        let stat = |started: u64| {
            format!("7 (python) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {started} 0 0 0\n")
        };
        let fake = FakeHost::new()
            .proc("7/stat", &stat(4711))
            .proc_link("self", &std::process::id().to_string())
            .proc_link(&format!("{}/ns/pid", std::process::id()), "pid:[4026531836]");
        let mut resolver = PidResolver::new(fake.host().proc.clone());
        let mut poll = |pids: &[u32]| -> Vec<Option<u64>> {
            let row = |pid: &u32| {
                let pid = PolledPid::Driver(*pid, None);
                GpuProcessRow::new(Name::new(b"nvidia0"), pid, GpuProcessUsage::default())
            };
            let mut rows: Vec<_> = pids.iter().map(row).collect();
            resolver.resolve(&mut rows);
            let started = |row: &GpuProcessRow| match row.pid {
                PolledPid::Driver(_, id) => id.map(|id| id.started),
                PolledPid::Resolved(_) => panic!("{row:?}"),
            };
            rows.iter().map(started).collect()
        };
        assert_eq!(poll(&[7, 8]), [Some(4711), None]);
        // Another process has the pid, and the driver still lists the one that exited.
        fake.set_proc("7/stat", &stat(5000));
        assert_eq!(poll(&[7]), [Some(4711)]);
        assert_eq!(poll(&[]), []);
        assert_eq!(poll(&[7]), [Some(5000)]);
    }
}
