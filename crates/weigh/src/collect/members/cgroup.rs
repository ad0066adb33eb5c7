//! The processes of a cgroup and of its descendants.
//!
//! Source: `cgroup.procs` of each of them, readable by every user who may read the directory, and
//! `stat` of every new pid.
//!
//! What surprised us: cgroup v1 answers reads of an open descriptor from a cached list, as long as
//! it is read often enough. So the file is reopened for every update.

use std::collections::HashMap;
use std::ffi::{CStr, CString};

use super::NewMember;
use crate::host::{self, Dir, Host, ProcPath};
use crate::model::ProcessId;
use crate::parse;

/// The members of a cgroup.
#[derive(Debug)]
pub struct CgroupMembers {
    dir: Dir,
    /// weigh may be in it, too, and is not measured.
    excluded: u32,
    /// Known members, with the update that found them last.
    known: HashMap<u32, u64>,
    round: u64,
    pids: Vec<u32>,
    buffer: Vec<u8>,
}

impl CgroupMembers {
    /// All processes in the cgroup of this directory and its descendants, but one.
    pub fn all_but(dir: Dir, pid: u32) -> CgroupMembers {
        CgroupMembers {
            dir,
            excluded: pid,
            known: HashMap::new(),
            round: 0,
            pids: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// Whether a process was no longer in it at the last update.
    pub fn has_left(&self, pid: u32) -> bool {
        !self.known.contains_key(&pid)
    }

    /// A process exited: its pid may be reused.
    pub fn note_exit(&mut self, pid: u32) {
        self.known.remove(&pid);
    }

    /// Adds to `found` the members that joined since the last update, the oldest first.
    pub fn update(&mut self, host: &Host, found: &mut Vec<NewMember>) -> Result<(), host::Error> {
        self.round += 1;
        let listed = list(&self.dir, &mut self.pids, &mut self.buffer);
        if listed.as_ref().is_err_and(|error| !error.is_gone()) {
            return listed;
        }
        let first = found.len();
        for pid in self.pids.iter().copied().filter(|pid| *pid != self.excluded) {
            if let Some(round) = self.known.get_mut(&pid) {
                *round = self.round;
                continue;
            }
            let path = ProcPath::new(pid, "stat");
            let stat = host.proc.read(path.as_c_str(), &mut self.buffer).ok();
            // Otherwise it has exited, or is hidden from us.
            if let Some(stat) = stat.and_then(|bytes| parse::stat::parse(bytes).ok()) {
                let id = ProcessId { pid, started: stat.started };
                found.push(NewMember::new(id, stat.parent, stat.name));
                self.known.insert(pid, self.round);
            }
        }
        self.known.retain(|_, round| *round == self.round);
        found[first..].sort_unstable_by_key(|member| (member.id.started, member.id.pid));
        Ok(())
    }
}

/// All processes in the cgroup of a directory and its descendants; fails when the cgroup itself
/// cannot be read, and the list is then empty.
pub fn list(dir: &Dir, pids: &mut Vec<u32>, buffer: &mut Vec<u8>) -> Result<(), host::Error> {
    pids.clear();
    pids.extend(parse::group_stat::processes(dir.read(c"cgroup.procs", buffer)?));
    let mut groups: Vec<CString> = below(dir, c".");
    while let Some(group) = groups.pop() {
        groups.extend(below(dir, &group));
        // A removed cgroup has no processes.
        if let Some(file) = joined(&group, c"cgroup.procs")
            && let Ok(bytes) = dir.read(&file, buffer)
        {
            pids.extend(parse::group_stat::processes(bytes));
        }
    }
    Ok(())
}

fn below(dir: &Dir, group: &CStr) -> Vec<CString> {
    let mut groups = Vec::new();
    // One that cannot be listed was removed, or is not readable.
    let _ = dir.directories(group, |name| groups.extend(joined(group, name)));
    groups
}

fn joined(group: &CStr, name: &CStr) -> Option<CString> {
    CString::new([group.to_bytes(), b"/", name.to_bytes()].concat()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    fn stat(pid: u32, started: u64) -> String {
        format!(
            "{pid} (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {started} 0 0 0 0 0 0 0 0 0 \
             0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
        )
    }

    fn machine() -> FakeHost {
        let fake = FakeHost::new();
        for pid in [10, 11, 12, 13] {
            fake.set_proc(&format!("{pid}/stat"), &stat(pid, u64::from(100 - pid)));
        }
        fake.sys("fs/cgroup/job/cgroup.procs", "10\n11\n")
            .sys("fs/cgroup/job/step/task/cgroup.procs", "12\n")
            .sys("fs/cgroup/other/cgroup.procs", "13\n")
    }

    fn members(fake: &FakeHost) -> CgroupMembers {
        CgroupMembers::all_but(fake.host().sys.sub("fs/cgroup/job").unwrap(), 11)
    }

    fn found(members: &mut CgroupMembers, fake: &FakeHost) -> Vec<u32> {
        let mut found = Vec::new();
        members.update(&fake.host(), &mut found).unwrap();
        found.iter().map(|member| member.id.pid).collect()
    }

    #[test]
    fn all_processes_of_the_cgroup_and_below_but_weigh_are_members() {
        let fake = machine();
        let mut members = members(&fake);
        assert_eq!(found(&mut members, &fake), [12, 10], "the oldest first");
        assert!(found(&mut members, &fake).is_empty(), "they are known now");
    }

    #[test]
    fn process_may_leave_the_cgroup_and_return() {
        let fake = machine();
        let mut members = members(&fake);
        found(&mut members, &fake);
        let fake = fake.sys("fs/cgroup/job/cgroup.procs", "11\n");
        assert!(found(&mut members, &fake).is_empty());
        assert!(members.has_left(10) && !members.has_left(12));
        let fake = fake.sys("fs/cgroup/job/cgroup.procs", "10\n");
        assert_eq!(found(&mut members, &fake), [10]);
    }

    #[test]
    fn reused_pid_is_another_process() {
        let fake = machine();
        let mut members = members(&fake);
        found(&mut members, &fake);
        members.note_exit(10);
        assert_eq!(found(&mut members, &fake), [10]);
    }

    #[test]
    fn removed_cgroup_is_empty_and_exited_process_is_no_error() {
        let fake = machine();
        fake.remove_proc("12");
        let mut members = members(&fake);
        assert_eq!(found(&mut members, &fake), [10]);
        fake.remove_sys("fs/cgroup/job");
        assert!(found(&mut members, &fake).is_empty());
        assert!(members.has_left(10));
    }
}
