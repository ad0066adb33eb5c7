//! A machine made of text, for tests: cause and effect on one screen.
#![allow(clippy::disallowed_methods, reason = "this is where the other machine is made")]

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use super::{AddressSpaces, Host, HostClock, Perf};

/// Processes that share an address space, the child first.
type SharedPairs = Rc<RefCell<BTreeSet<(u32, u32)>>>;

/// A machine whose files a test writes.
#[derive(Debug)]
pub struct FakeHost {
    root: tempfile::TempDir,
    now: Rc<Cell<Duration>>,
    counts: Rc<RefCell<BTreeMap<(u64, u32), u64>>>,
    /// `None`: it is not known which processes share an address space.
    sharing: Option<SharedPairs>,
}

impl Default for FakeHost {
    fn default() -> FakeHost {
        FakeHost::new()
    }
}

impl FakeHost {
    /// A machine without any files.
    pub fn new() -> FakeHost {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        std::fs::create_dir(root.path().join("sys")).unwrap();
        FakeHost { root, now: Rc::default(), counts: Rc::default(), sharing: Some(Rc::default()) }
    }

    /// A machine with the files of a capture: `=== PATH` lines, each followed by the content,
    /// `=== PATH (hex)` by that of a file that is not text, and `=== PATH -> TARGET` for a link.
    pub fn captured(archive: &str) -> FakeHost {
        let fake = FakeHost::new();
        fake.load_capture(archive);
        fake
    }

    /// Replaces the files by those of another capture.
    pub fn load_capture(&self, archive: &str) {
        for entry in archive.split("=== ").skip(1) {
            let (path, content) = entry.split_once('\n').unwrap();
            let path = path.trim_start_matches('/');
            match (path.split_once(" -> "), path.strip_suffix(" (hex)")) {
                (Some((link, target)), _) => self.link(link, target),
                (_, Some(binary)) => self.set(binary, &from_hex(content)),
                _ => self.set(path, content.as_bytes()),
            }
        }
    }

    /// With this file under `/proc`.
    pub fn proc(self, path: &str, content: &str) -> FakeHost {
        self.set_proc(path, content);
        self
    }

    /// The path of one of its directories on this machine.
    pub fn path(&self, directory: &str) -> std::path::PathBuf {
        self.root.path().join(directory)
    }

    /// With this symbolic link under `/proc`.
    pub fn proc_link(self, path: &str, target: &str) -> FakeHost {
        self.link(&format!("proc/{path}"), target);
        self
    }

    /// With this file under `/sys`.
    pub fn sys(self, path: &str, content: &str) -> FakeHost {
        self.set(&format!("sys/{path}"), content.as_bytes());
        self
    }

    /// With this file anywhere.
    pub fn file(self, path: &str, content: &str) -> FakeHost {
        self.set(path, content.as_bytes());
        self
    }

    /// Changes a file under `/proc`.
    pub fn set_proc(&self, path: &str, content: &str) {
        self.set(&format!("proc/{path}"), content.as_bytes());
    }

    /// Changes a file under `/sys`.
    pub fn set_sys(&self, path: &str, content: &str) {
        self.set(&format!("sys/{path}"), content.as_bytes());
    }

    /// Changes a file under `/sys` that is not text.
    pub fn set_sys_bytes(&self, path: &str, content: &[u8]) {
        self.set(&format!("sys/{path}"), content);
    }

    /// Removes a file or directory under `/proc`.
    pub fn remove_proc(&self, path: &str) {
        self.remove(&format!("proc/{path}"));
    }

    /// Removes a file or directory under `/sys`.
    pub fn remove_sys(&self, path: &str) {
        self.remove(&format!("sys/{path}"));
    }

    fn remove(&self, path: &str) {
        let path = self.root.path().join(path);
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }

    /// Moves a directory out of `/proc`: a new one of its name then has another inode, as after pid
    /// reuse.
    pub fn exit_proc(&self, name: &str) {
        let path = self.root.path().join("proc").join(name);
        std::fs::rename(path, self.root.path().join(format!("ended-{name}"))).unwrap();
    }

    /// Removes all permissions of a file under `/sys`: see [`as_unprivileged`].
    pub fn deny_sys(&self, path: &str) {
        self.deny(&format!("sys/{path}"));
    }

    /// Removes all permissions of a file or directory under `/proc`: see [`as_unprivileged`].
    pub fn deny_proc(&self, path: &str) {
        self.deny(&format!("proc/{path}"));
    }

    fn deny(&self, path: &str) {
        let path = self.root.path().join(path);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o000)).unwrap();
    }

    /// Sets the counter of an event on a CPU.
    pub fn set_count(&self, event: u64, cpu: u32, count: u64) {
        self.counts.borrow_mut().insert((event, cpu), count);
    }

    /// Removes a counter of the machine.
    pub fn forget_count(&self, event: u64, cpu: u32) {
        self.counts.borrow_mut().remove(&(event, cpu));
    }

    /// Sets whether a process uses the address space of another.
    pub fn set_shared(&self, child: u32, parent: u32, is_shared: bool) {
        let mut pairs = self.sharing.as_ref().unwrap().borrow_mut();
        let pair = (child, parent);
        if is_shared {
            pairs.insert(pair)
        } else {
            pairs.remove(&pair)
        };
    }

    /// As on a kernel without kcmp.
    pub fn without_kcmp(mut self) -> FakeHost {
        self.sharing = None;
        self
    }

    /// Advances the clock.
    pub fn advance(&self, time: Duration) {
        self.now.set(self.now.get() + time);
    }

    /// The host of this machine.
    pub fn host(&self) -> Host {
        let mut host = Host::at(self.root.path()).unwrap();
        host.clock = HostClock::Manual(Rc::clone(&self.now));
        host.perf = Perf::Manual(Rc::clone(&self.counts));
        if let Some(pairs) = &self.sharing {
            host.address_spaces = AddressSpaces::Manual(Rc::clone(pairs));
        }
        host.page_size = 4096;
        host.ticks_per_second = 100;
        host
    }

    fn link(&self, path: &str, target: &str) {
        let path = self.root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        // An old link is replaced.
        let _ = std::fs::remove_file(&path);
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    fn set(&self, path: &str, content: &[u8]) {
        let path = self.root.path().join(Path::new(path));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

/// The bytes that a capture has in hexadecimal digits, in lines.
pub fn from_hex(content: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        content.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Runs `action` with the file access of an unprivileged user.
pub fn as_unprivileged<T>(action: impl FnOnce() -> T) -> T {
    // SAFETY: setfsuid takes a number and affects this thread alone. Without root it changes
    // nothing, and nothing has to be changed.
    let before = unsafe { libc::setfsuid(65534) };
    let result = action();
    // SAFETY: as above.
    unsafe { libc::setfsuid(before as u32) };
    result
}
