//! A cgroup for the command alone, below the cgroup of weigh.
//!
//! The kernel then accounts for everything the command starts, reaped or not, however short it
//! lives. Root may create one, and users to whom a subtree was delegated.
//!
//! `auto` creates one only where it changes nothing for the command:
//! - a program that reads limits of its own cgroup (a JVM, a runtime that counts its cores) would
//!   find none there, so no limit may be in force;
//! - a batch system may look for a job's processes in the cgroup it created for them, so the caller
//!   asks for none inside a batch job;
//! - a cgroup under the `cpu` or `io` controller has one share of the machine, however many threads
//!   are in it.
//!
//! Without a limit of its own the cgroup does not change which process is OOM killed: that is
//! decided where the limit is. cgroup v1 without `memory.use_hierarchy` would lift the limits
//! above, and is never used.

mod leaf;

use std::ffi::{CStr, CString};

use super::cgroup::Cgroup;
use super::{Dir, Error, Host, facts};
use crate::parse::group_stat;
use leaf::LeafCgroup;

/// Why no cgroup is created.
#[derive(Debug, thiserror::Error)]
pub enum CgroupRefusal {
    /// There is no parent cgroup for it.
    #[error("weigh is in no cgroup that could have another one below it")]
    NoPlace,
    /// It might change what the command does.
    #[error("it is not made {0}")]
    Careful(String),
    /// The kernel refused it.
    #[error(transparent)]
    Kernel(#[from] Error),
}

/// When a cgroup is created for the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgroupMode {
    /// Only where it changes nothing for the command.
    Auto,
    /// Always, because the user requested it.
    Always,
}

/// The cgroup of the command; dropping this removes it.
#[derive(Debug)]
pub struct RunCgroup {
    /// The cgroup.
    pub group: Cgroup,
    // Dropped in this order: weigh can move back once the cgroup below is removed.
    made: Vec<CreatedCgroup>,
    leaf: Option<LeafCgroup>,
}

/// One directory of it, in one hierarchy.
#[derive(Debug)]
struct CreatedCgroup {
    above: Dir,
    /// Where processes are moved that are still in it when it is removed.
    destination: Dir,
    name: CString,
    dir: Dir,
}

const PROCESSES: &CStr = c"cgroup.procs";

impl RunCgroup {
    /// Creates a cgroup below the one of this process.
    pub fn create(host: &Host, mode: CgroupMode) -> Result<RunCgroup, CgroupRefusal> {
        let parent = Cgroup::own(host).ok_or(CgroupRefusal::NoPlace)?;
        if mode == CgroupMode::Auto {
            check_side_effects(host)?;
        }
        let memory = parent.memory.filter(|dir| contains(dir, c"memory.use_hierarchy", b"1"));
        let cpuacct = parent.cpuacct.filter(|dir| mode == CgroupMode::Always || !has_shares(dir));
        // Where cgroup v1 has the controllers, cgroup v2 still has packets and pressure.
        let is_first = memory.is_some() || cpuacct.is_some();
        let (beside, unified) = match is_first {
            true => (parent.unified, None),
            false => (None, parent.unified),
        };
        let beside = beside.filter(|dir| mode == CgroupMode::Always || !distributes_shares(dir));
        if let Some(dir) = &unified
            && mode == CgroupMode::Auto
            && distributes_shares(dir)
        {
            let why = "where groups share the CPUs and the disks: the command would have one share";
            return Err(CgroupRefusal::Careful(why.to_owned()));
        }
        let leaf = match &unified {
            Some(dir) if mode == CgroupMode::Always => LeafCgroup::move_to_leaf(dir)?,
            _ => None,
        };
        let name = unused_name(&[&memory, &cpuacct, &unified, &beside]);
        let mut made: Vec<CreatedCgroup> = Vec::new();
        let mut below = |above: Option<Dir>| -> Result<Option<Dir>, CgroupRefusal> {
            let Some(above) = above else { return Ok(None) };
            // Moving a process also needs write permission in the cgroup it leaves.
            let dir = create_in(host, &above, &name)?;
            let destination = leaf.as_ref().map_or(&above, |leaf| &leaf.dir).clone();
            made.push(CreatedCgroup { above, destination, name: name.clone(), dir: dir.clone() });
            Ok(Some(dir))
        };
        // What was created before a failure is removed with `made`.
        let (memory, cpuacct, unified) = (below(memory)?, below(cpuacct)?, below(unified)?);
        // Beside cgroup v1 it is optional.
        let beside = beside.and_then(|above| below(Some(above)).ok().flatten());
        let unified = unified.or(beside);
        let members = made.first().map(|one| one.dir.clone()).ok_or(CgroupRefusal::NoPlace)?;
        let path = format!("{}/{}", parent.path.trim_end_matches('/'), name.to_string_lossy());
        let (cpu, pids, blkio) = (None, None, None);
        let group = Cgroup { path, members, unified, cpuacct, cpu, memory, pids, blkio };
        Ok(RunCgroup { group, made, leaf })
    }

    /// Moves a process into it, before it has started others.
    pub fn add_process(&self, pid: u32) -> Result<(), Error> {
        self.made.iter().try_for_each(|one| one.dir.write(PROCESSES, &pid.to_string()))
    }

    /// Removes it; processes still in it are moved to the cgroup of weigh.
    pub fn remove(mut self) -> Result<(), Error> {
        let removed = self.made.drain(..).map(|mut one| one.remove()).fold(Ok(()), Result::and);
        self.leaf = None;
        removed
    }
}

impl CreatedCgroup {
    fn remove(&mut self) -> Result<(), Error> {
        /// Processes may be started while others are moved, but not for ever.
        const TRIES: usize = 100;
        let mut buffer = Vec::new();
        let mut removed = self.above.remove_dir(&self.name);
        if removed.is_err() {
            remove_below(&self.dir);
            removed = self.above.remove_dir(&self.name);
        }
        for _ in 0..TRIES {
            match &removed {
                Err(error) if error.errno() == Some(libc::EBUSY) => {}
                _ => return removed,
            }
            let bytes = self.dir.read(PROCESSES, &mut buffer).unwrap_or_default();
            for pid in group_stat::processes(bytes) {
                // It may have exited in the meantime.
                let _ = self.destination.write(PROCESSES, &pid.to_string());
            }
            std::thread::yield_now();
            removed = self.above.remove_dir(&self.name);
        }
        removed
    }
}

impl Drop for CreatedCgroup {
    fn drop(&mut self) {
        // Usually removed already.
        let _ = self.remove();
    }
}

/// Removes cgroups that the command has created below its own, unless they have processes.
fn remove_below(dir: &Dir) {
    let mut below = Vec::new();
    let _ = dir.directories(c".", |name| below.push(name.to_owned()));
    for name in below {
        if let Ok(sub) = dir.sub(&name.to_string_lossy()) {
            remove_below(&sub);
        }
        // One with processes stays, and removing its parent reports the error.
        let _ = dir.remove_dir(&name);
    }
}

/// A name that no sibling has: pids are reused, and each pid namespace has its own.
fn unused_name(above: &[&Option<Dir>]) -> CString {
    let pid = std::process::id();
    let named = |name: String| CString::new(name).unwrap_or_default();
    let is_free = |name: &CString| above.iter().copied().flatten().all(|dir| !dir.has(name));
    let others = (2..100).map(|number| named(format!("weigh-{pid}-{number}")));
    let mut names = std::iter::once(named(format!("weigh-{pid}"))).chain(others);
    names.find(is_free).unwrap_or_else(|| named(format!("weigh-{pid}")))
}

/// Fails if the command would see other limits in a cgroup of its own.
fn check_side_effects(host: &Host) -> Result<(), CgroupRefusal> {
    let careful = |why: &str| Err(CgroupRefusal::Careful(why.to_owned()));
    if facts::memory_limit(host).is_some() || facts::quota(host).is_some() {
        return careful("below a limit, which programs look for in their own group");
    }
    Ok(())
}

/// Creates a directory, and removes those that a killed weigh left behind.
fn create_in(host: &Host, above: &Dir, name: &CStr) -> Result<Dir, CgroupRefusal> {
    if !above.is_writable(PROCESSES) {
        let source = std::io::Error::from_raw_os_error(libc::EACCES);
        return Err(Error::Read { path: above.path(PROCESSES), source }.into());
    }
    let mut left = Vec::new();
    let _ = above.directories(c".", |name| left.push(name.to_owned()));
    for old in left.iter().filter(|old| is_stale(host, old)) {
        // One with processes stays.
        let _ = above.remove_dir(old);
    }
    above.create_dir(name)?;
    above.sub(&name.to_string_lossy()).map_err(|error| {
        let _ = above.remove_dir(name);
        error.into()
    })
}

fn is_stale(host: &Host, name: &CStr) -> bool {
    let pid = name.to_str().ok().and_then(|name| name.strip_prefix("weigh-"));
    let pid = pid.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
    pid.is_some_and(|pid| {
        let path = super::ProcPath::new(pid, "stat");
        host.proc.size(path.as_c_str()).is_err_and(|error| error.is_gone())
    })
}

fn contains(dir: &Dir, file: &CStr, what: &[u8]) -> bool {
    dir.read(file, &mut Vec::new()).is_ok_and(|bytes| bytes.trim_ascii() == what)
}

/// Whether this cgroup v1 hierarchy also distributes CPU shares.
fn has_shares(dir: &Dir) -> bool {
    dir.size(c"cpu.shares").is_ok()
}

/// Whether a controller is enabled for the children of this cgroup v2.
fn controls(dir: &Dir, controller: &[u8]) -> bool {
    lists(dir, c"cgroup.subtree_control", controller)
}

/// Whether the children of this cgroup v2 compete for CPU or I/O shares.
fn distributes_shares(dir: &Dir) -> bool {
    controls(dir, b"cpu") || controls(dir, b"io")
}

fn lists(dir: &Dir, file: &CStr, word: &[u8]) -> bool {
    let mut buffer = Vec::new();
    let words = dir.read(file, &mut buffer).unwrap_or_default();
    words.split(u8::is_ascii_whitespace).any(|one| one == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    fn v1() -> FakeHost {
        FakeHost::new()
            .proc("self/cgroup", "4:memory:/job\n3:cpuacct:/\n0::/\n")
            .sys("fs/cgroup/memory/job/cgroup.procs", "7\n")
            .sys("fs/cgroup/memory/job/memory.use_hierarchy", "1\n")
            .sys("fs/cgroup/cpuacct/cgroup.procs", "7\n")
    }

    fn exists(fake: &FakeHost, path: &str) -> bool {
        fake.host().sys.sub(path).is_ok()
    }

    #[test]
    fn cgroup_is_created_below_our_own_and_removed() {
        let fake = v1();
        let name = format!("weigh-{}", std::process::id());
        let own = RunCgroup::create(&fake.host(), CgroupMode::Always).unwrap();
        assert_eq!(own.group.path, format!("/job/{name}"));
        assert!(own.group.memory.is_some() && own.group.cpuacct.is_some());
        let (memory, cpuacct) =
            (format!("fs/cgroup/memory/job/{name}"), format!("fs/cgroup/cpuacct/{name}"));
        assert!(exists(&fake, &memory) && exists(&fake, &cpuacct));
        drop(own);
        assert!(!exists(&fake, &memory) && !exists(&fake, &cpuacct));
    }

    #[test]
    fn auto_creates_no_cgroup_below_a_limit() {
        let fake = v1().sys("fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
        let refused = RunCgroup::create(&fake.host(), CgroupMode::Auto).unwrap_err().to_string();
        assert!(refused.contains("below a limit"), "{refused}");
        RunCgroup::create(&fake.host(), CgroupMode::Always).unwrap();
    }

    #[test]
    fn auto_avoids_hierarchies_with_cpu_shares() {
        let fake = v1().sys("fs/cgroup/cpuacct/cpu.shares", "1024\n");
        let own = RunCgroup::create(&fake.host(), CgroupMode::Auto).unwrap();
        assert!(own.group.cpuacct.is_none() && own.group.memory.is_some());
        drop(own);
        let second = FakeHost::new()
            .proc("self/cgroup", "0::/\n")
            .sys("fs/cgroup/cgroup.procs", "7\n")
            .sys("fs/cgroup/cgroup.subtree_control", "cpu memory\n");
        let refused = RunCgroup::create(&second.host(), CgroupMode::Auto).unwrap_err().to_string();
        assert!(refused.contains("one share"), "{refused}");
        let second = second.sys("fs/cgroup/cgroup.subtree_control", "memory pids\n");
        assert!(
            RunCgroup::create(&second.host(), CgroupMode::Auto).unwrap().group.unified.is_some()
        );
    }

    #[test]
    fn cgroup_v2_beside_v1_is_used_unless_it_has_shares() {
        let beside = || v1().sys("fs/cgroup/unified/cgroup.procs", "7\n");
        let own = RunCgroup::create(&beside().host(), CgroupMode::Auto).unwrap();
        assert!(own.group.unified.is_some() && own.group.memory.is_some());
        let enabled = "fs/cgroup/unified/cgroup.subtree_control";
        let shared = beside().sys(enabled, "cpu\n");
        assert!(
            RunCgroup::create(&shared.host(), CgroupMode::Auto).unwrap().group.unified.is_none()
        );
        assert!(
            RunCgroup::create(&shared.host(), CgroupMode::Always).unwrap().group.unified.is_some()
        );
        assert!(
            RunCgroup::create(&v1().host(), CgroupMode::Always).unwrap().group.unified.is_none()
        );
    }

    #[test]
    fn memory_is_left_out_without_use_hierarchy() {
        let fake = v1().sys("fs/cgroup/memory/job/memory.use_hierarchy", "0\n");
        let own = RunCgroup::create(&fake.host(), CgroupMode::Always).unwrap();
        assert!(own.group.memory.is_none() && own.group.cpuacct.is_some());
    }

    #[test]
    fn taken_name_is_avoided_and_child_cgroups_are_removed() {
        // The process with our pid is alive.
        let fake = v1().proc(&format!("{}/stat", std::process::id()), "");
        let host = fake.host();
        let above = host.sys.sub("fs/cgroup/memory/job").unwrap();
        let taken = format!("weigh-{}", std::process::id());
        above.create_dir(&CString::new(taken.clone()).unwrap()).unwrap();
        let own = RunCgroup::create(&host, CgroupMode::Always).unwrap();
        assert_eq!(own.group.path, format!("/job/{taken}-2"));
        let inside = host.sys.sub(&format!("fs/cgroup/memory/job/{taken}-2")).unwrap();
        inside.create_dir(c"sub").unwrap();
        inside.sub("sub").unwrap().create_dir(c"deeper").unwrap();
        own.remove().unwrap();
        assert!(
            exists(&fake, &format!("fs/cgroup/memory/job/{taken}")),
            "it belongs to another process"
        );
        assert!(!exists(&fake, &format!("fs/cgroup/memory/job/{taken}-2")));
    }

    #[test]
    fn stale_cgroup_of_a_killed_weigh_is_removed() {
        let fake = v1().proc("12/stat", "");
        let host = fake.host();
        let above = host.sys.sub("fs/cgroup/memory/job").unwrap();
        for name in [c"weigh-11", c"weigh-12", c"mine-11"] {
            above.create_dir(name).unwrap();
        }
        drop(RunCgroup::create(&host, CgroupMode::Always).unwrap());
        assert!(!exists(&fake, "fs/cgroup/memory/job/weigh-11"));
        assert!(exists(&fake, "fs/cgroup/memory/job/weigh-12"), "it runs");
        assert!(exists(&fake, "fs/cgroup/memory/job/mine-11"), "it is not weigh's");
    }

    #[test]
    fn weigh_moves_to_a_leaf_only_when_alone_and_undoes_failures() {
        let own = std::process::id();
        let second = |inside: &str| {
            FakeHost::new()
                .proc("self/cgroup", "0::/job\n")
                .sys("fs/cgroup/cgroup.procs", "1\n")
                .sys("fs/cgroup/job/cgroup.procs", inside)
                .sys("fs/cgroup/job/cgroup.controllers", "cpu memory\n")
                .sys("fs/cgroup/job/cgroup.subtree_control", "")
        };
        let leaf = format!("fs/cgroup/job/weigh-{own}-aside");
        let shared = second(&format!("7\n{own}\n"));
        let group = RunCgroup::create(&shared.host(), CgroupMode::Always).unwrap();
        assert!(group.leaf.is_none() && !exists(&shared, &leaf));
        let alone = second(&format!("{own}\n"));
        let careful = RunCgroup::create(&alone.host(), CgroupMode::Auto).unwrap();
        assert!(careful.leaf.is_none(), "that would change where weigh is");
        drop(careful);
        // A directory of the test has no file to move a process with.
        RunCgroup::create(&alone.host(), CgroupMode::Always).unwrap_err();
        assert!(!exists(&alone, &leaf), "nothing is left behind");
    }

    #[test]
    fn no_cgroup_is_created_without_a_cgroup_mount() {
        let refused = RunCgroup::create(&FakeHost::new().host(), CgroupMode::Always).unwrap_err();
        assert!(matches!(refused, CgroupRefusal::NoPlace));
    }
}
