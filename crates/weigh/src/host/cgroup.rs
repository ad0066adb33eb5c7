//! cgroups: where a cgroup is, under every controller that has it.
//!
//! Source: `/sys/fs/cgroup`, readable by every user. cgroup v2 is mounted there, or at `unified`
//! beside cgroup v1, where each controller has a hierarchy of its own and a cgroup may exist in
//! some of them and not in others.
//!
//! Directories stay open: when the cgroup is removed, opening files in them fails, and a new cgroup
//! of the same name is not confused with it.

use std::ffi::CString;
use std::path::{Component, Path};

use super::{Dir, Error, Host};
use crate::parse::cgroup::{Membership, memberships};
use crate::parse::group_stat;

/// One cgroup, in every hierarchy that has it.
#[derive(Debug, Clone)]
pub struct Cgroup {
    /// Its path as `/proc/PID/cgroup` has it.
    pub path: String,
    /// The directory whose `cgroup.procs` lists the members.
    pub members: Dir,
    /// cgroup v2.
    pub unified: Option<Dir>,
    /// cgroup v1, CPU time.
    pub cpuacct: Option<Dir>,
    /// cgroup v1, quota.
    pub cpu: Option<Dir>,
    /// cgroup v1, memory.
    pub memory: Option<Dir>,
    /// cgroup v1, number of tasks.
    pub pids: Option<Dir>,
    /// cgroup v1, I/O.
    pub blkio: Option<Dir>,
}

/// Why a path is not a cgroup.
#[derive(Debug, thiserror::Error)]
pub enum NoCgroup {
    /// No cgroup file system is mounted.
    #[error("no cgroups are mounted below {0}")]
    NotMounted(String),
    /// It does not exist.
    #[error("there is no cgroup {0}")]
    Absent(String),
    /// It exists, and this user may not read it.
    #[error(transparent)]
    Denied(Error),
}

const MOUNT: &str = "fs/cgroup";
const PROCESSES: &str = "cgroup.procs";

/// Where each controller of cgroup v1 may be mounted.
const CPUACCT: &[&str] = &["cpuacct", "cpu,cpuacct", "cpuacct,cpu"];
const CPU: &[&str] = &["cpu", "cpu,cpuacct", "cpuacct,cpu"];

impl Cgroup {
    /// The cgroup of this path: a directory below `/sys/fs/cgroup`, or a path as in
    /// `/proc/PID/cgroup`.
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
                // Its processes need not be in it under every controller.
                let with_processes = found.iter().find(|dir| has_processes(dir));
                match with_processes.or(found.first()) {
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
    /// The cgroup of this process, which may be another one under each controller.
    pub fn own(host: &Host) -> Option<Cgroup> {
        let mut buffer = Vec::new();
        let own = OwnMemberships::read(host, &mut buffer)?;
        let (unified, memory) = (own.unified(), own.controlled(&["memory"], "memory"));
        let (cpuacct, cpu) = (own.controlled(CPUACCT, "cpuacct"), own.controlled(CPU, "cpu"));
        let (members, path) = memory.as_ref().or(unified.as_ref()).or(cpuacct.as_ref())?.clone();
        let dir = |found: Option<(Dir, String)>| found.map(|(dir, _)| dir);
        Some(Cgroup {
            path,
            members,
            unified: dir(unified),
            cpuacct: dir(cpuacct),
            cpu: dir(cpu),
            memory: dir(memory),
            pids: dir(own.controlled(&["pids"], "pids")),
            blkio: dir(own.controlled(&["blkio"], "blkio")),
        })
    }

    /// The cgroup that the memory of this process is charged to, with that controller alone.
    pub fn own_memory(host: &Host) -> Option<Cgroup> {
        let mut buffer = Vec::new();
        let own = OwnMemberships::read(host, &mut buffer)?;
        let memory = own.controlled(&["memory"], "memory");
        let unified = if memory.is_some() { None } else { own.unified() };
        let (members, path) = memory.as_ref().or(unified.as_ref())?.clone();
        let [memory, unified] = [memory, unified].map(|found| found.map(|(dir, _)| dir));
        let (cpuacct, cpu, pids, blkio) = (None, None, None, None);
        Some(Cgroup { path, members, unified, cpuacct, cpu, memory, pids, blkio })
    }

    /// A cgroup that this process is in, or an ancestor of it, in any hierarchy: the one that `of`
    /// picks from its path. Returns the directory and the path.
    pub fn around(host: &Host, of: &dyn Fn(&str) -> Option<String>) -> Option<(Dir, String)> {
        let mut buffer = Vec::new();
        let bytes = host.proc.read(c"self/cgroup", &mut buffer).ok()?;
        let unified = if is_group(host, MOUNT) { "" } else { "unified" };
        memberships(bytes).find_map(|one| {
            let picked = of(std::str::from_utf8(one.path).ok()?)?;
            let named = plain(Path::new(&picked))?;
            let controllers = String::from_utf8_lossy(one.controllers).into_owned();
            let trees = match one.is_unified() {
                true => vec![unified],
                false => {
                    let names = controllers
                        .split(',')
                        .map(|name| name.strip_prefix("name=").unwrap_or(name));
                    std::iter::once(controllers.as_str()).chain(names).collect()
                }
            };
            let dir = trees.iter().find_map(|tree| find(host, tree, &named).ok())?;
            Some((dir, format!("/{named}")))
        })
    }

    /// Its out-of-memory kills.
    pub fn oom_kills(&self) -> Option<u64> {
        let mut buffer = Vec::new();
        let bytes = match (&self.memory, &self.unified) {
            (Some(first), _) => first.read(c"memory.oom_control", &mut buffer),
            (None, second) => second.as_ref()?.read(c"memory.events", &mut buffer),
        };
        group_stat::oom_kills(bytes.ok()?).ok()?
    }
}

/// The lines of `/proc/self/cgroup`.
struct OwnMemberships<'a> {
    host: &'a Host,
    bytes: &'a [u8],
}

impl<'a> OwnMemberships<'a> {
    fn read(host: &'a Host, buffer: &'a mut Vec<u8>) -> Option<OwnMemberships<'a>> {
        let bytes = host.proc.read(c"self/cgroup", buffer).ok()?;
        Some(OwnMemberships { host, bytes })
    }

    /// The cgroup of cgroup v2, with its path.
    fn unified(&self) -> Option<(Dir, String)> {
        let tree = if is_group(self.host, MOUNT) { "" } else { "unified" };
        self.find(&[tree], Membership::is_unified)
    }

    /// The cgroup of a controller of cgroup v1, which is mounted at one of these places.
    fn controlled(&self, trees: &[&str], controller: &str) -> Option<(Dir, String)> {
        self.find(trees, |one| one.controls(controller))
    }

    fn find(
        &self,
        trees: &[&str],
        is_meant: impl Fn(&Membership<'a>) -> bool,
    ) -> Option<(Dir, String)> {
        let membership = memberships(self.bytes).find(|one| is_meant(one))?;
        let named = plain(Path::new(std::str::from_utf8(membership.path).ok()?))?;
        let dir = trees.iter().find_map(|tree| find(self.host, tree, &named).ok())?;
        Some((dir, format!("/{named}")))
    }
}

/// The rest of a path below the cgroup mount point.
fn below_mount<'p>(host: &Host, path: &'p Path) -> Option<&'p Path> {
    let mount = host.sys.path(c"fs/cgroup");
    path.strip_prefix(&mount).or_else(|_| path.strip_prefix("/sys/fs/cgroup")).ok()
}

/// A path without `..`, and without its first slash.
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

/// The cgroup in one of the hierarchies below the mount point.
fn find(host: &Host, tree: &str, named: &str) -> Result<Dir, Error> {
    let tree = if tree.is_empty() { MOUNT.to_owned() } else { format!("{MOUNT}/{tree}") };
    open(host, &tree, named)
}

fn open(host: &Host, tree: &str, named: &str) -> Result<Dir, Error> {
    let dir = host.sys.sub(&format!("{tree}/{named}"))?;
    // A directory that is not a cgroup has no such file.
    dir.size(c"cgroup.procs").map(|_| dir)
}

fn is_group(host: &Host, path: &str) -> bool {
    let file = CString::new(format!("{path}/{PROCESSES}"));
    file.is_ok_and(|file| host.sys.size(&file).is_ok())
}

fn has_processes(dir: &Dir) -> bool {
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
    fn cgroup_v2_is_found_by_either_path() {
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
    fn cgroup_v1_is_found_under_each_controller() {
        let fake = v1();
        let group = Cgroup::at(&fake.host(), Path::new("/sys/fs/cgroup/memory/job")).unwrap();
        assert_eq!(group.path, "/job");
        assert!(group.memory.is_some() && group.cpu.is_some() && group.cpuacct.is_some());
        assert!(group.pids.is_none() && group.unified.is_none());
        assert_eq!(members(&group), b"", "the controller that was named decides");
        // By its path alone, in a hierarchy where it has processes.
        let group = Cgroup::at(&fake.host(), Path::new("/job")).unwrap();
        assert_eq!(members(&group), b"7\n");
        let other = Cgroup::at(&fake.host(), Path::new("/sys/fs/cgroup/freezer/job")).unwrap();
        assert_eq!(members(&other), b"8\n");
        assert!(other.memory.is_some());
    }

    #[test]
    fn own_cgroup_may_differ_between_controllers() {
        let fake = v1()
            .proc("self/cgroup", "4:memory:/job\n3:cpu,cpuacct:/\n2:pids:/gone\n0::/\n")
            .sys("fs/cgroup/cpu,cpuacct/cgroup.procs", "")
            .sys("fs/cgroup/memory/job/memory.oom_control", "under_oom 0\noom_kill 3\n");
        let group = Cgroup::own(&fake.host()).unwrap();
        assert_eq!((group.path.as_str(), group.oom_kills()), ("/job", Some(3)));
        let memory = Cgroup::own_memory(&fake.host()).unwrap();
        assert_eq!((memory.path.as_str(), memory.oom_kills()), ("/job", Some(3)));
        assert!(group.cpuacct.is_some() && group.pids.is_none() && group.unified.is_none());
        let second = FakeHost::new()
            .proc("self/cgroup", "0::/job\n")
            .sys("fs/cgroup/cgroup.procs", "1\n")
            .sys("fs/cgroup/job/cgroup.procs", "7\n")
            .sys("fs/cgroup/job/memory.events", "oom 1\noom_kill 1\n");
        for found in [Cgroup::own(&second.host()), Cgroup::own_memory(&second.host())] {
            let found = found.unwrap();
            assert_eq!((found.path.as_str(), found.oom_kills()), ("/job", Some(1)));
        }
        assert!(Cgroup::own(&FakeHost::new().host()).is_none());
    }

    #[test]
    fn cgroup_around_this_process_is_found_in_any_hierarchy() {
        let fake = v1()
            .proc("self/cgroup", "5:memory:/\n3:freezer:/job/step_0/task_1\n0::/\n")
            .sys("fs/cgroup/freezer/job/step_0/task_1/cgroup.procs", "9\n");
        let of_step = |path: &str| path.split_once("/step_").map(|(job, _)| job.to_owned());
        let (dir, path) = Cgroup::around(&fake.host(), &of_step).unwrap();
        assert_eq!(path, "/job");
        assert_eq!(dir.read(c"cgroup.procs", &mut Vec::new()).unwrap(), b"8\n");
        assert!(Cgroup::around(&fake.host(), &|_| None).is_none());
    }

    #[test]
    fn path_that_is_not_a_cgroup_is_refused_by_name() {
        let fake = v1().sys("fs/cgroup/memory/notes/readme", "");
        for wrong in ["/absent", "/sys/fs/cgroup/memory/notes", "/sys/fs/cgroup/none", "/../job"] {
            let error = Cgroup::at(&fake.host(), Path::new(wrong)).unwrap_err();
            assert_eq!(error.to_string(), format!("there is no cgroup {wrong}"));
        }
        let bare = FakeHost::new();
        let error = Cgroup::at(&bare.host(), Path::new("/job")).unwrap_err().to_string();
        assert!(error.starts_with("no cgroups are mounted below "), "{error}");
    }
}
