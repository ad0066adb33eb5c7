//! Control groups: where a group is, under every controller that has it.
//!
//! Source: `/sys/fs/cgroup`, readable by everybody. Version 2 is mounted there, or at
//! `unified` beside version 1, where each controller has a tree of its own and a group may be
//! in some of them and not in others.
//!
//! A directory is kept open: when the group is removed, what is opened in it fails, and a
//! group that is made again under the same name is another one.

use std::ffi::CString;
use std::path::{Component, Path};

use super::{Dir, Error, Host};
use crate::parse::cgroup::{Membership, memberships};
use crate::parse::group_stat;

/// One control group, wherever it is.
#[derive(Debug, Clone)]
pub struct Cgroup {
    /// Its path as `/proc/PID/cgroup` has it.
    pub path: String,
    /// Whose `cgroup.procs` says who belongs.
    pub members: Dir,
    /// Version 2.
    pub unified: Option<Dir>,
    /// Version 1, CPU time.
    pub cpuacct: Option<Dir>,
    /// Version 1, quota.
    pub cpu: Option<Dir>,
    /// Version 1, memory.
    pub memory: Option<Dir>,
    /// Version 1, number of tasks.
    pub pids: Option<Dir>,
    /// Version 1, I/O.
    pub blkio: Option<Dir>,
}

/// Why a path is no control group.
#[derive(Debug, thiserror::Error)]
pub enum NoCgroup {
    /// Control groups are not mounted.
    #[error("no control groups are mounted below {0}")]
    NotMounted(String),
    /// There is no such group.
    #[error("there is no control group {0}")]
    Absent(String),
    /// It is there, and this user may not look.
    #[error(transparent)]
    Denied(Error),
}

const MOUNT: &str = "fs/cgroup";
const PROCESSES: &str = "cgroup.procs";

/// Where each controller of version 1 may be mounted.
const CPUACCT: &[&str] = &["cpuacct", "cpu,cpuacct", "cpuacct,cpu"];
const CPU: &[&str] = &["cpu", "cpu,cpuacct", "cpuacct,cpu"];

impl Cgroup {
    /// The group of this path: a directory below `/sys/fs/cgroup`, or what `/proc/PID/cgroup`
    /// calls it.
    pub fn at(host: &Host, path: &Path) -> Result<Cgroup, NoCgroup> {
        let absent = || NoCgroup::Absent(path.display().to_string());
        let is_unified = is_group(host, MOUNT);
        let (tree, named) = match below_mount(host, path) {
            None => (None, plain(path).ok_or_else(absent)?),
            Some(below) if is_unified => (Some(MOUNT.to_owned()), plain(below).ok_or_else(absent)?),
            Some(below) => {
                let below = plain(below).ok_or_else(absent)?;
                let (tree, rest) = below.split_once('/').unwrap_or((&below, ""));
                (Some(format!("{MOUNT}/{tree}")), rest.to_owned())
            }
        };
        let in_tree = |tree: &str| find(host, tree, &named);
        let one_of = |trees: &[&str]| trees.iter().find_map(|tree| in_tree(tree).ok());
        let (cpuacct, cpu) = (one_of(CPUACCT), one_of(CPU));
        let (memory, pids, blkio) = (one_of(&["memory"]), one_of(&["pids"]), one_of(&["blkio"]));
        let unified = if is_unified { in_tree("") } else { in_tree("unified") };
        let members = match &tree {
            Some(tree) => open(host, tree, &named).map_err(|error| refused(error, path))?,
            None => {
                let found = [unified.as_ref().ok(), memory.as_ref(), cpuacct.as_ref()];
                let found = found.into_iter().chain([cpu.as_ref(), pids.as_ref(), blkio.as_ref()]);
                let found: Vec<&Dir> = found.flatten().collect();
                // Those who are in it need not be in it everywhere.
                let with_somebody = found.iter().find(|dir| has_somebody(dir));
                match with_somebody.or(found.first()) {
                    Some(dir) => (*dir).clone(),
                    None if !is_unified && host.sys.sub(MOUNT).is_err() => {
                        let mount = host.sys.path(c"fs/cgroup").display().to_string();
                        return Err(NoCgroup::NotMounted(mount));
                    }
                    None => {
                        return Err(unified.map_or_else(|error| refused(error, path), |_| absent()));
                    }
                }
            }
        };
        let path = format!("/{named}");
        Ok(Cgroup { path, members, unified: unified.ok(), cpuacct, cpu, memory, pids, blkio })
    }
}

impl Cgroup {
    /// The group that this process is in, which may be another one under each controller.
    pub fn own(host: &Host) -> Option<Cgroup> {
        let mut buffer = Vec::new();
        let bytes = host.proc.read(c"self/cgroup", &mut buffer).ok()?;
        let below = |trees: &[&str], is_meant: &dyn Fn(&Membership<'_>) -> bool| {
            let membership = memberships(bytes).find(|one| is_meant(one))?;
            let named = plain(Path::new(std::str::from_utf8(membership.path).ok()?))?;
            let dir = trees.iter().find_map(|tree| find(host, tree, &named).ok())?;
            Some((dir, format!("/{named}")))
        };
        let unified = if is_group(host, MOUNT) { "" } else { "unified" };
        let unified = below(&[unified], &|one| one.is_unified());
        let memory = below(&["memory"], &|one| one.controls("memory"));
        let of = |trees: &[&str], name: &str| below(trees, &|one| one.controls(name));
        let (cpuacct, cpu) = (of(CPUACCT, "cpuacct"), of(CPU, "cpu"));
        let (members, path) = memory.as_ref().or(unified.as_ref()).or(cpuacct.as_ref())?.clone();
        let dir = |found: Option<(Dir, String)>| found.map(|(dir, _)| dir);
        Some(Cgroup {
            path,
            members,
            unified: dir(unified),
            cpuacct: dir(cpuacct),
            cpu: dir(cpu),
            memory: dir(memory),
            pids: dir(of(&["pids"], "pids")),
            blkio: dir(of(&["blkio"], "blkio")),
        })
    }

    /// Processes of it that the kernel has killed for want of memory.
    pub fn oom_kills(&self) -> Option<u64> {
        let mut buffer = Vec::new();
        let bytes = match (&self.memory, &self.unified) {
            (Some(first), _) => first.read(c"memory.oom_control", &mut buffer),
            (None, second) => second.as_ref()?.read(c"memory.events", &mut buffer),
        };
        group_stat::oom_kills(bytes.ok()?).ok()?
    }
}

/// The rest of a path that leads below the place where control groups are mounted.
fn below_mount<'p>(host: &Host, path: &'p Path) -> Option<&'p Path> {
    let mount = host.sys.path(c"fs/cgroup");
    path.strip_prefix(&mount).or_else(|_| path.strip_prefix("/sys/fs/cgroup")).ok()
}

/// A path without anything odd in it, and without its first slash.
fn plain(path: &Path) -> Option<String> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => names.push(name.to_str()?),
            Component::ParentDir | Component::Prefix(_) => return None,
        }
    }
    Some(names.join("/"))
}

/// The group in one of the trees below the mount.
fn find(host: &Host, tree: &str, named: &str) -> Result<Dir, Error> {
    let tree = if tree.is_empty() { MOUNT.to_owned() } else { format!("{MOUNT}/{tree}") };
    open(host, &tree, named)
}

fn open(host: &Host, tree: &str, named: &str) -> Result<Dir, Error> {
    let dir = host.sys.sub(&format!("{tree}/{named}"))?;
    // A directory that is not a group has no such file.
    dir.size(c"cgroup.procs").map(|_| dir)
}

fn is_group(host: &Host, path: &str) -> bool {
    let file = CString::new(format!("{path}/{PROCESSES}"));
    file.is_ok_and(|file| host.sys.size(&file).is_ok())
}

fn has_somebody(dir: &Dir) -> bool {
    dir.read(c"cgroup.procs", &mut Vec::new()).is_ok_and(|bytes| !bytes.is_empty())
}

fn refused(error: Error, path: &Path) -> NoCgroup {
    if error.is_denied() {
        NoCgroup::Denied(error)
    } else {
        NoCgroup::Absent(path.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    fn v1() -> FakeHost {
        FakeHost::new()
            .sys("fs/cgroup/memory/cgroup.procs", "")
            .sys("fs/cgroup/memory/job/cgroup.procs", "")
            .sys("fs/cgroup/cpu,cpuacct/job/cgroup.procs", "7\n")
            .sys("fs/cgroup/freezer/job/cgroup.procs", "8\n")
    }

    fn members(group: &Cgroup) -> Vec<u8> {
        group.members.read(c"cgroup.procs", &mut Vec::new()).unwrap().to_vec()
    }

    #[test]
    fn a_group_of_version_2_is_found_by_either_path() {
        let fake = FakeHost::new()
            .sys("fs/cgroup/cgroup.procs", "1\n")
            .sys("fs/cgroup/user.slice/job/cgroup.procs", "7\n");
        for path in ["/user.slice/job", "/sys/fs/cgroup/user.slice/job/", "user.slice/job"] {
            let group = Cgroup::at(&fake.host(), Path::new(path)).unwrap();
            assert_eq!(group.path, "/user.slice/job");
            assert!(group.unified.is_some() && group.memory.is_none());
            assert_eq!(members(&group), b"7\n");
        }
    }

    #[test]
    fn a_group_of_version_1_is_used_under_each_controller_that_has_it() {
        let fake = v1();
        let group = Cgroup::at(&fake.host(), Path::new("/sys/fs/cgroup/memory/job")).unwrap();
        assert_eq!(group.path, "/job");
        assert!(group.memory.is_some() && group.cpu.is_some() && group.cpuacct.is_some());
        assert!(group.pids.is_none() && group.unified.is_none());
        assert_eq!(members(&group), b"", "the controller that was named decides");
        // By its name alone, where somebody is.
        let group = Cgroup::at(&fake.host(), Path::new("/job")).unwrap();
        assert_eq!(members(&group), b"7\n");
        let other = Cgroup::at(&fake.host(), Path::new("/sys/fs/cgroup/freezer/job")).unwrap();
        assert_eq!(members(&other), b"8\n");
        assert!(other.memory.is_some());
    }

    #[test]
    fn our_own_group_may_be_another_one_under_each_controller() {
        let fake = v1()
            .proc("self/cgroup", "4:memory:/job\n3:cpu,cpuacct:/\n2:pids:/gone\n0::/\n")
            .sys("fs/cgroup/cpu,cpuacct/cgroup.procs", "")
            .sys("fs/cgroup/memory/job/memory.oom_control", "under_oom 0\noom_kill 3\n");
        let group = Cgroup::own(&fake.host()).unwrap();
        assert_eq!((group.path.as_str(), group.oom_kills()), ("/job", Some(3)));
        assert!(group.cpuacct.is_some() && group.pids.is_none() && group.unified.is_none());
        let second = FakeHost::new()
            .proc("self/cgroup", "0::/job\n")
            .sys("fs/cgroup/cgroup.procs", "1\n")
            .sys("fs/cgroup/job/cgroup.procs", "7\n")
            .sys("fs/cgroup/job/memory.events", "oom 1\noom_kill 1\n");
        assert_eq!(Cgroup::own(&second.host()).unwrap().oom_kills(), Some(1));
        assert!(Cgroup::own(&FakeHost::new().host()).is_none());
    }

    #[test]
    fn what_is_no_group_is_refused_and_named() {
        let fake = v1().sys("fs/cgroup/memory/notes/readme", "");
        for wrong in ["/nobody", "/sys/fs/cgroup/memory/notes", "/sys/fs/cgroup/none", "/../job"] {
            let error = Cgroup::at(&fake.host(), Path::new(wrong)).unwrap_err();
            assert_eq!(error.to_string(), format!("there is no control group {wrong}"));
        }
        let bare = FakeHost::new();
        let error = Cgroup::at(&bare.host(), Path::new("/job")).unwrap_err().to_string();
        assert!(error.starts_with("no control groups are mounted below "), "{error}");
    }
}
