//! Which processes belong to the command of which phase.
//!
//! A process belongs to the phase of its parent, also when that has exited since. Memory grows with
//! the number of live processes.

use std::collections::HashMap;

use crate::model::ProcessId;

/// A process that is alive.
#[derive(Debug, Clone)]
struct PhaseMember {
    started: u64,
    parent: u32,
    phase: Option<usize>,
}

/// All live processes, by pid.
#[derive(Debug, Default, Clone)]
pub(super) struct Members(HashMap<u32, PhaseMember>);

impl Members {
    /// A process started; returns its phase.
    pub(super) fn started(&mut self, id: ProcessId, parent: u32) -> Option<usize> {
        let inherited = self.0.get(&parent).and_then(|parent| parent.phase);
        let phase = self.phase(&id).or(inherited);
        self.0.insert(id.pid, PhaseMember { started: id.started, parent, phase });
        phase
    }

    /// A process exited.
    pub(super) fn exited(&mut self, id: ProcessId) {
        if self.0.get(&id.pid).is_some_and(|member| member.started == id.started) {
            self.0.remove(&id.pid);
        }
    }

    /// This process is the command of a phase, and so are the processes it has already started.
    ///
    /// Returns the number of those processes.
    pub(super) fn command(&mut self, id: ProcessId, phase: usize) -> usize {
        if self.0.get(&id.pid).is_some_and(|member| member.started != id.started) {
            return 0;
        }
        let below: Vec<u32> =
            self.0.keys().copied().filter(|pid| self.is_below(*pid, id.pid)).collect();
        for pid in &below {
            if let Some(member) = self.0.get_mut(pid) {
                member.phase = Some(phase);
            }
        }
        if below.is_empty() {
            // It has not been sampled yet; its identity is known all the same.
            let member = PhaseMember { started: id.started, parent: 0, phase: Some(phase) };
            self.0.insert(id.pid, member);
        }
        below.len()
    }

    fn is_below(&self, mut pid: u32, root: u32) -> bool {
        // No process is deeper; reused pids may look like a cycle.
        const DEEPEST: usize = 1000;
        for _ in 0..DEEPEST {
            if pid == root {
                return true;
            }
            match self.0.get(&pid) {
                Some(member) => pid = member.parent,
                None => return false,
            }
        }
        false
    }

    /// The phase to whose command a process belongs.
    pub(super) fn phase(&self, id: &ProcessId) -> Option<usize> {
        self.0.get(&id.pid).filter(|member| member.started == id.started)?.phase
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(pid: u32) -> ProcessId {
        ProcessId { pid, started: u64::from(pid) + 100 }
    }

    #[test]
    fn child_belongs_to_the_phase_of_its_parent_also_when_that_has_exited() {
        let mut members = Members::default();
        members.started(id(10), 1);
        assert_eq!(members.command(id(10), 0), 1);
        assert_eq!(members.started(id(11), 10), Some(0));
        members.exited(id(10));
        assert_eq!(members.started(id(12), 11), Some(0));
        assert_eq!(members.started(id(13), 10), None, "10 is gone, and may be anybody");
    }

    #[test]
    fn command_reported_late_includes_its_children() {
        let mut members = Members::default();
        members.started(id(10), 1);
        members.started(id(11), 10);
        members.started(id(20), 1);
        assert_eq!(members.command(id(10), 3), 2);
        assert_eq!([10, 11, 20].map(|pid| members.phase(&id(pid))), [Some(3), Some(3), None]);
    }

    #[test]
    fn command_reported_before_its_start_event_is_known_at_its_start() {
        let mut members = Members::default();
        members.command(id(10), 0);
        assert_eq!(members.started(id(10), 1), Some(0));
        let again = ProcessId { pid: 10, started: 999 };
        assert_eq!(members.phase(&again), None, "the pid of somebody else");
    }
}
