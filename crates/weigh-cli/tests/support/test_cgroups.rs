//! Cgroups for tests, of cgroup v1 (memory, cpuacct, pids), which need root.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::weighed::{impossible, is_root, plain, signal, wait_until};

pub(crate) const CONTROLLERS: [&str; 3] = ["memory", "cpuacct", "pids"];

/// A cgroup that is removed with the test.
pub(crate) struct Group {
    name: String,
}

impl Group {
    /// A new one under each controller; prints why where that is not possible.
    pub(crate) fn new() -> Option<Group> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let group = Group { name: format!("weigh-test-{}-{count}", std::process::id()) };
        let made = is_root()
            && group.places().iter().all(|place| {
                place.parent().is_some_and(|tree| tree.join("cgroup.procs").exists())
                    && fs::create_dir(place).is_ok()
            });
        if !made {
            impossible("needs root and cgroup v1: memory, cpuacct, pids");
        }
        made.then_some(group)
    }

    pub(crate) fn path(&self) -> String {
        format!("/{}", self.name)
    }

    pub(crate) fn places(&self) -> [PathBuf; 3] {
        CONTROLLERS.map(|controller| Path::new("/sys/fs/cgroup").join(controller).join(&self.name))
    }

    fn pids(&self) -> Vec<u32> {
        let groups = self.places().into_iter().chain(self.below());
        let listed = groups.filter_map(|group| fs::read_to_string(group.join("cgroup.procs")).ok());
        listed
            .flat_map(|text| text.lines().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
            .collect()
    }

    /// The cgroups below it.
    pub(crate) fn below(&self) -> Vec<PathBuf> {
        let entries = self.places().map(|place| fs::read_dir(place).ok());
        let paths = entries.into_iter().flatten().flatten().flatten().map(|entry| entry.path());
        paths.filter(|path| path.is_dir()).collect()
    }

    fn take_in(&self, pid: u32) {
        for place in self.places() {
            fs::write(place.join("cgroup.procs"), pid.to_string()).unwrap();
        }
    }

    /// A shell in the cgroup, which runs a line after `resume`.
    pub(crate) fn shell(&self, directory: &Path, before: &str, script: &str) -> Child {
        let script = format!("read into; {before}\necho > ready; read go; {script}");
        let mut shell = plain("sh", directory);
        let mut child = shell.args(["-c", &script]).stdin(Stdio::piped()).spawn().unwrap();
        self.take_in(child.id());
        resume(&mut child);
        wait_until("the shell is ready", || directory.join("ready").exists());
        child
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        wait_until("the group is empty", || {
            self.pids().into_iter().for_each(|pid| signal(pid, libc::SIGKILL));
            self.below().iter().for_each(|group| drop(fs::remove_dir(group)));
            self.places().iter().all(|place| !place.exists() || fs::remove_dir(place).is_ok())
        });
    }
}

pub(crate) fn resume(shell: &mut Child) {
    shell.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
}
