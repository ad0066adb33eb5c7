//! When a monitored cgroup is over: no process is left in it, or it was removed.
//!
//! cgroup v1 sends no notification. But a cgroup is not empty while one of its processes runs, so
//! one of them is held by a pidfd, and after its exit another one, if there is one.

use std::os::fd::{AsFd, BorrowedFd};

use crate::collect::members::cgroup;
use crate::host::Dir;
use crate::host::pidfd::PidFd;

/// The processes in a cgroup.
pub(super) struct Occupants {
    dir: Dir,
    one: Option<PidFd>,
    had_process: bool,
    pids: Vec<u32>,
    buffer: Vec<u8>,
}

impl Occupants {
    /// Of the cgroup of this directory.
    pub(super) fn of(dir: Dir) -> Occupants {
        Occupants { dir, one: None, had_process: false, pids: Vec::new(), buffer: Vec::new() }
    }

    /// The descriptor that becomes readable at an exit.
    pub(super) fn exit_fd(&self) -> Option<BorrowedFd<'_>> {
        self.one.as_ref().map(AsFd::as_fd)
    }

    /// Whether it is over: empty after it had a process, or removed. `was_sampled`: the last
    /// tick had a process, which may have exited since.
    pub(super) fn are_over(&mut self, was_sampled: bool) -> bool {
        match cgroup::list(&self.dir, &mut self.pids, &mut self.buffer) {
            Ok(()) => {}
            Err(error) if error.is_gone() => return true,
            // What cannot be opened now can be at the next tick.
            Err(_) => return false,
        }
        // weigh may be in it, too, and would wait for itself.
        self.pids.retain(|pid| *pid != std::process::id());
        let is_held = |one: &PidFd| self.pids.contains(&one.pid) && !one.has_ended();
        if !self.one.as_ref().is_some_and(is_held) {
            self.one = self.pids.iter().find_map(|pid| PidFd::open(*pid).ok());
        }
        self.had_process |= was_sampled || !self.pids.is_empty();
        self.had_process && self.pids.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    #[test]
    fn a_cgroup_is_over_when_it_is_empty_again_or_removed() {
        let fake = FakeHost::new().sys("fs/cgroup/job/cgroup.procs", "");
        let mut occupants = Occupants::of(fake.host().sys.sub("fs/cgroup/job").unwrap());
        assert!(!occupants.are_over(false), "nobody has come yet");
        let fake = fake.sys("fs/cgroup/job/step/cgroup.procs", "1\n");
        assert!(!occupants.are_over(false));
        let own = format!("{}\n", std::process::id());
        let fake = fake.sys("fs/cgroup/job/step/cgroup.procs", &own);
        assert!(occupants.are_over(false), "weigh does not wait for itself");
        let mut occupants = Occupants::of(fake.host().sys.sub("fs/cgroup/job").unwrap());
        fake.remove_sys("fs/cgroup/job");
        assert!(occupants.are_over(false));
    }
}
