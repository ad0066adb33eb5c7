//! The processes of a control group and of all groups below it.
//!
//! Source: `cgroup.procs` of each of them, readable by everybody who may look into the
//! directory, and `stat` of every pid that is new in it.
//!
//! What surprised us: version 1 answers a descriptor that is kept open from a list it made
//! before, as long as it is asked often enough. So the file is opened anew at every look.

use std::collections::HashMap;
use std::ffi::{CStr, CString};

use super::NewMember;
use crate::host::{self, Dir, Host, ProcPath};
use crate::model::ProcessId;
use crate::parse;

/// Who is in a control group.
#[derive(Debug)]
pub struct CgroupMembers {
    dir: Dir,
    /// weigh may be in it, too, and is not what is followed.
    excluded: u32,
    /// Those who were in it, with the look that found them last.
    known: HashMap<u32, u64>,
    round: u64,
    pids: Vec<u32>,
    buffer: Vec<u8>,
}

impl CgroupMembers {
    /// Everybody in the group of this directory and in those below it, but one.
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

    /// Whether a process was not in it any more at the last look.
    pub fn has_left(&self, pid: u32) -> bool {
        !self.known.contains_key(&pid)
    }

    /// A process is gone: whoever has its pid the next time is somebody else.
    pub fn note_exit(&mut self, pid: u32) {
        self.known.remove(&pid);
    }

    /// Adds to `found` everybody who has joined since the last look, the oldest first.
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
            // Else it is gone again, or hidden from us: there is nothing to read of it.
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

/// Everybody in the group of a directory and in all groups below it; fails when the group
/// itself cannot be read, and then nobody is in it.
pub fn list(dir: &Dir, pids: &mut Vec<u32>, buffer: &mut Vec<u8>) -> Result<(), host::Error> {
    pids.clear();
    pids.extend(parse::group_stat::processes(dir.read(c"cgroup.procs", buffer)?));
    let mut groups: Vec<CString> = below(dir, c".");
    while let Some(group) = groups.pop() {
        groups.extend(below(dir, &group));
        // A group that is gone again has nobody.
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
    // One that cannot be listed is gone, or has none that we may see.
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
    fn everybody_in_the_group_and_below_it_belongs_but_weigh() {
        let fake = machine();
        let mut members = members(&fake);
        assert_eq!(found(&mut members, &fake), [12, 10], "the oldest first");
        assert!(found(&mut members, &fake).is_empty(), "they are known now");
    }

    #[test]
    fn who_leaves_the_group_is_gone_and_may_come_back() {
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
    fn a_pid_that_is_used_again_is_somebody_new() {
        let fake = machine();
        let mut members = members(&fake);
        found(&mut members, &fake);
        members.note_exit(10);
        assert_eq!(found(&mut members, &fake), [10]);
    }

    #[test]
    fn a_removed_group_has_nobody_and_a_vanished_process_is_no_error() {
        let fake = machine();
        fake.remove_proc("12");
        let mut members = members(&fake);
        assert_eq!(found(&mut members, &fake), [10]);
        fake.remove_sys("fs/cgroup/job");
        assert!(found(&mut members, &fake).is_empty());
        assert!(members.has_left(10));
    }
}
