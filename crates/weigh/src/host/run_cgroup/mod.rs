//! A control group for the command alone, below the one that weigh is in.
//!
//! The kernel then keeps an account of everything the command starts, whoever waits for it
//! and however short it lives. Root may make one, and whoever was given a part of the tree.
//!
//! What it may change for the command decides where it is made without being insisted on:
//! - a program that looks for limits in its own group (a JVM, a runtime that counts its
//!   cores) would find none there, so none may be in force;
//! - a batch system may look for a job's processes in the group it made for them;
//! - a group under the `cpu` or `io` controller has one share of the machine, however many
//!   threads are in it.
//!
//! Without a limit of its own the group changes nothing when memory runs out: who is killed
//! is decided where the limit is. Version 1 without `memory.use_hierarchy` would lift the
//! limits above, and is never used.

mod leaf;

use std::ffi::{CStr, CString};

use super::cgroup::Cgroup;
use super::{Dir, Error, Host, environment, facts};
use crate::parse::group_stat;
use leaf::LeafCgroup;

/// Why no group is made.
#[derive(Debug, thiserror::Error)]
pub enum CgroupRefusal {
    /// There is nothing to make one in.
    #[error("weigh is in no control group that could have another one below it")]
    NoPlace,
    /// It might change what the command does.
    #[error("it is not made {0}")]
    Careful(String),
    /// The kernel does not allow it.
    #[error(transparent)]
    Kernel(#[from] Error),
}

/// How much a group may change for the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgroupMode {
    /// Nothing at all.
    Auto,
    /// What a group is, it is: somebody asked for it.
    Always,
}

/// The group, which goes when this does.
#[derive(Debug)]
pub struct RunCgroup {
    /// Where it is.
    pub group: Cgroup,
    // In this order: weigh can step back when the group below is gone.
    made: Vec<CreatedCgroup>,
    aside: Option<LeafCgroup>,
}

/// One directory of it.
#[derive(Debug)]
struct CreatedCgroup {
    above: Dir,
    /// Where those go who are still in it when it goes.
    refuge: Dir,
    name: CString,
    dir: Dir,
}

const PROCESSES: &CStr = c"cgroup.procs";

impl RunCgroup {
    /// Makes a group below the one this process is in.
    pub fn make(host: &Host, mode: CgroupMode) -> Result<RunCgroup, CgroupRefusal> {
        let around = Cgroup::own(host).ok_or(CgroupRefusal::NoPlace)?;
        if mode == CgroupMode::Auto {
            check_surroundings(host)?;
        }
        let memory = around.memory.filter(|dir| says(dir, c"memory.use_hierarchy", b"1"));
        let cpuacct = around.cpuacct.filter(|dir| mode == CgroupMode::Always || !has_shares(dir));
        // Where version 1 has the controllers, version 2 knows packets and pressure.
        let is_first = memory.is_some() || cpuacct.is_some();
        let (beside, unified) = match is_first {
            true => (around.unified, None),
            false => (None, around.unified),
        };
        let beside = beside.filter(|dir| mode == CgroupMode::Always || !shares_out(dir));
        if let Some(dir) = &unified
            && mode == CgroupMode::Auto
            && shares_out(dir)
        {
            let why = "where groups share the CPUs and the disks: the command would have one share";
            return Err(CgroupRefusal::Careful(why.to_owned()));
        }
        let aside = match &unified {
            Some(dir) if mode == CgroupMode::Always => LeafCgroup::move_to_leaf(dir)?,
            _ => None,
        };
        let name = free_name(&[&memory, &cpuacct, &unified, &beside]);
        let mut made: Vec<CreatedCgroup> = Vec::new();
        let mut below = |above: Option<Dir>| -> Result<Option<Dir>, CgroupRefusal> {
            let Some(above) = above else { return Ok(None) };
            // Whoever is moved is moved out of the group above, and that takes a right, too.
            let dir = make_in(host, &above, &name)?;
            let refuge = aside.as_ref().map_or(&above, |aside| &aside.dir).clone();
            made.push(CreatedCgroup { above, refuge, name: name.clone(), dir: dir.clone() });
            Ok(Some(dir))
        };
        // What was made before a failure goes with `made`.
        let (memory, cpuacct, unified) = (below(memory)?, below(cpuacct)?, below(unified)?);
        // Beside version 1 it is only worth having: nothing else needs it.
        let beside = beside.and_then(|above| below(Some(above)).ok().flatten());
        let unified = unified.or(beside);
        let members = made.first().map(|one| one.dir.clone()).ok_or(CgroupRefusal::NoPlace)?;
        let path = format!("{}/{}", around.path.trim_end_matches('/'), name.to_string_lossy());
        let (cpu, pids, blkio) = (None, None, None);
        let group = Cgroup { path, members, unified, cpuacct, cpu, memory, pids, blkio };
        Ok(RunCgroup { group, made, aside })
    }

    /// Puts a process into it, before it has started anything.
    pub fn take_in(&self, pid: u32) -> Result<(), Error> {
        self.made.iter().try_for_each(|one| one.dir.write(PROCESSES, &pid.to_string()))
    }

    /// Removes it; whoever is still in it goes back to where weigh is.
    pub fn remove(mut self) -> Result<(), Error> {
        let removed = self.made.drain(..).map(|mut one| one.remove()).fold(Ok(()), Result::and);
        self.aside = None;
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
                // One that has ended in the meantime needs no place.
                let _ = self.refuge.write(PROCESSES, &pid.to_string());
            }
            std::thread::yield_now();
            removed = self.above.remove_dir(&self.name);
        }
        removed
    }
}

impl Drop for CreatedCgroup {
    fn drop(&mut self) {
        // Gone already, mostly.
        let _ = self.remove();
    }
}

/// Removes groups that the command has made below its own, as far as nobody is in them.
fn remove_below(dir: &Dir) {
    let mut below = Vec::new();
    let _ = dir.directories(c".", |name| below.push(name.to_owned()));
    for name in below {
        if let Ok(sub) = dir.sub(&name.to_string_lossy()) {
            remove_below(&sub);
        }
        // One that somebody is in stays, and is told of with the whole.
        let _ = dir.remove_dir(&name);
    }
}

/// A name that no group beside ours has: pids are given out again, and each namespace of
/// processes has its own.
fn free_name(above: &[&Option<Dir>]) -> CString {
    let pid = std::process::id();
    let named = |name: String| CString::new(name).unwrap_or_default();
    let is_free = |name: &CString| above.iter().copied().flatten().all(|dir| !dir.has(name));
    let others = (2..100).map(|number| named(format!("weigh-{pid}-{number}")));
    let mut names = std::iter::once(named(format!("weigh-{pid}"))).chain(others);
    names.find(is_free).unwrap_or_else(|| named(format!("weigh-{pid}")))
}

/// Whether something around us would look different from inside a group of one's own.
fn check_surroundings(host: &Host) -> Result<(), CgroupRefusal> {
    let careful = |why: &str| Err(CgroupRefusal::Careful(why.to_owned()));
    if environment::scheduler().is_some() {
        return careful("in a batch job, whose processes are looked for in its own group");
    }
    if facts::memory_limit(host).is_some() || facts::quota(host).is_some() {
        return careful("below a limit, which programs look for in their own group");
    }
    Ok(())
}

/// A new directory, and none of those that a killed weigh left behind.
fn make_in(host: &Host, above: &Dir, name: &CStr) -> Result<Dir, CgroupRefusal> {
    if !above.is_writable(PROCESSES) {
        let source = std::io::Error::from_raw_os_error(libc::EACCES);
        return Err(Error::Read { path: above.path(PROCESSES), source }.into());
    }
    let mut left = Vec::new();
    let _ = above.directories(c".", |name| left.push(name.to_owned()));
    for old in left.iter().filter(|old| is_left_behind(host, old)) {
        // One that somebody is in stays.
        let _ = above.remove_dir(old);
    }
    above.create_dir(name)?;
    above.sub(&name.to_string_lossy()).map_err(|error| {
        let _ = above.remove_dir(name);
        error.into()
    })
}

fn is_left_behind(host: &Host, name: &CStr) -> bool {
    let pid = name.to_str().ok().and_then(|name| name.strip_prefix("weigh-"));
    let pid = pid.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
    pid.is_some_and(|pid| {
        let path = super::ProcPath::new(pid, "stat");
        host.proc.size(path.as_c_str()).is_err_and(|error| error.is_gone())
    })
}

fn says(dir: &Dir, file: &CStr, what: &[u8]) -> bool {
    dir.read(file, &mut Vec::new()).is_ok_and(|bytes| bytes.trim_ascii() == what)
}

/// Whether this tree of version 1 also shares out the CPUs.
fn has_shares(dir: &Dir) -> bool {
    dir.size(c"cpu.shares").is_ok()
}

/// Whether groups below this one of version 2 have a controller.
fn controls(dir: &Dir, controller: &[u8]) -> bool {
    lists(dir, c"cgroup.subtree_control", controller)
}

/// Whether groups below this one of version 2 share the CPUs or the disks among them.
fn shares_out(dir: &Dir) -> bool {
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
    fn a_group_is_made_where_we_are_and_goes_again() {
        let fake = v1();
        let name = format!("weigh-{}", std::process::id());
        let own = RunCgroup::make(&fake.host(), CgroupMode::Always).unwrap();
        assert_eq!(own.group.path, format!("/job/{name}"));
        assert!(own.group.memory.is_some() && own.group.cpuacct.is_some());
        let (memory, cpuacct) =
            (format!("fs/cgroup/memory/job/{name}"), format!("fs/cgroup/cpuacct/{name}"));
        assert!(exists(&fake, &memory) && exists(&fake, &cpuacct));
        drop(own);
        assert!(!exists(&fake, &memory) && !exists(&fake, &cpuacct));
    }

    #[test]
    fn limits_that_would_not_be_found_any_more_forbid_it_unless_it_is_asked_for() {
        let fake = v1().sys("fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
        let refused = RunCgroup::make(&fake.host(), CgroupMode::Auto).unwrap_err().to_string();
        assert!(refused.contains("below a limit"), "{refused}");
        RunCgroup::make(&fake.host(), CgroupMode::Always).unwrap();
    }

    #[test]
    fn a_tree_that_shares_out_the_cpus_is_left_alone() {
        let fake = v1().sys("fs/cgroup/cpuacct/cpu.shares", "1024\n");
        let own = RunCgroup::make(&fake.host(), CgroupMode::Auto).unwrap();
        assert!(own.group.cpuacct.is_none() && own.group.memory.is_some());
        drop(own);
        let second = FakeHost::new()
            .proc("self/cgroup", "0::/\n")
            .sys("fs/cgroup/cgroup.procs", "7\n")
            .sys("fs/cgroup/cgroup.subtree_control", "cpu memory\n");
        let refused = RunCgroup::make(&second.host(), CgroupMode::Auto).unwrap_err().to_string();
        assert!(refused.contains("one share"), "{refused}");
        let second = second.sys("fs/cgroup/cgroup.subtree_control", "memory pids\n");
        assert!(RunCgroup::make(&second.host(), CgroupMode::Auto).unwrap().group.unified.is_some());
    }

    #[test]
    fn version_2_is_there_beside_version_1_unless_that_shares_out_the_machine() {
        let beside = || v1().sys("fs/cgroup/unified/cgroup.procs", "7\n");
        let own = RunCgroup::make(&beside().host(), CgroupMode::Auto).unwrap();
        assert!(own.group.unified.is_some() && own.group.memory.is_some());
        let enabled = "fs/cgroup/unified/cgroup.subtree_control";
        let shared = beside().sys(enabled, "cpu\n");
        assert!(RunCgroup::make(&shared.host(), CgroupMode::Auto).unwrap().group.unified.is_none());
        assert!(
            RunCgroup::make(&shared.host(), CgroupMode::Always).unwrap().group.unified.is_some()
        );
        assert!(RunCgroup::make(&v1().host(), CgroupMode::Always).unwrap().group.unified.is_none());
    }

    #[test]
    fn limits_above_would_be_lifted_without_a_hierarchy_so_memory_is_left_out() {
        let fake = v1().sys("fs/cgroup/memory/job/memory.use_hierarchy", "0\n");
        let own = RunCgroup::make(&fake.host(), CgroupMode::Always).unwrap();
        assert!(own.group.memory.is_none() && own.group.cpuacct.is_some());
    }

    #[test]
    fn a_name_that_is_taken_is_left_alone_and_what_the_command_made_goes_too() {
        // Whoever has our pid is alive.
        let fake = v1().proc(&format!("{}/stat", std::process::id()), "");
        let host = fake.host();
        let above = host.sys.sub("fs/cgroup/memory/job").unwrap();
        let taken = format!("weigh-{}", std::process::id());
        above.create_dir(&CString::new(taken.clone()).unwrap()).unwrap();
        let own = RunCgroup::make(&host, CgroupMode::Always).unwrap();
        assert_eq!(own.group.path, format!("/job/{taken}-2"));
        let inside = host.sys.sub(&format!("fs/cgroup/memory/job/{taken}-2")).unwrap();
        inside.create_dir(c"sub").unwrap();
        inside.sub("sub").unwrap().create_dir(c"deeper").unwrap();
        own.remove().unwrap();
        assert!(exists(&fake, &format!("fs/cgroup/memory/job/{taken}")), "it is another's");
        assert!(!exists(&fake, &format!("fs/cgroup/memory/job/{taken}-2")));
    }

    #[test]
    fn what_a_killed_weigh_left_behind_is_removed_by_the_next() {
        let fake = v1().proc("12/stat", "");
        let host = fake.host();
        let above = host.sys.sub("fs/cgroup/memory/job").unwrap();
        for name in [c"weigh-11", c"weigh-12", c"mine-11"] {
            above.create_dir(name).unwrap();
        }
        drop(RunCgroup::make(&host, CgroupMode::Always).unwrap());
        assert!(!exists(&fake, "fs/cgroup/memory/job/weigh-11"));
        assert!(exists(&fake, "fs/cgroup/memory/job/weigh-12"), "it runs");
        assert!(exists(&fake, "fs/cgroup/memory/job/mine-11"), "it is somebody else's");
    }

    #[test]
    fn weigh_steps_aside_only_when_it_is_alone_and_what_fails_is_undone() {
        let own = std::process::id();
        let second = |inside: &str| {
            FakeHost::new()
                .proc("self/cgroup", "0::/job\n")
                .sys("fs/cgroup/cgroup.procs", "1\n")
                .sys("fs/cgroup/job/cgroup.procs", inside)
                .sys("fs/cgroup/job/cgroup.controllers", "cpu memory\n")
                .sys("fs/cgroup/job/cgroup.subtree_control", "")
        };
        let aside = format!("fs/cgroup/job/weigh-{own}-aside");
        let shared = second(&format!("7\n{own}\n"));
        let group = RunCgroup::make(&shared.host(), CgroupMode::Always).unwrap();
        assert!(group.aside.is_none() && !exists(&shared, &aside));
        let alone = second(&format!("{own}\n"));
        let careful = RunCgroup::make(&alone.host(), CgroupMode::Auto).unwrap();
        assert!(careful.aside.is_none(), "that would change where weigh is");
        drop(careful);
        // A directory of the test's has no file to move a process with.
        RunCgroup::make(&alone.host(), CgroupMode::Always).unwrap_err();
        assert!(!exists(&alone, &aside), "nothing is left behind");
    }

    #[test]
    fn without_control_groups_none_is_made() {
        let refused = RunCgroup::make(&FakeHost::new().host(), CgroupMode::Always).unwrap_err();
        assert!(matches!(refused, CgroupRefusal::NoPlace));
    }
}
