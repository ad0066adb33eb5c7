//! A machine made of text, for tests: cause and effect on one screen.
#![allow(clippy::disallowed_methods, reason = "this is where the other machine is made")]

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use super::{Clock, Host};

/// A machine whose files a test writes.
#[derive(Debug)]
pub struct FakeHost {
    root: tempfile::TempDir,
    now: Rc<Cell<Duration>>,
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
        FakeHost { root, now: Rc::default() }
    }

    /// A machine with the files of a capture: `=== PATH` lines, each followed by the content.
    pub fn captured(archive: &str) -> FakeHost {
        let fake = FakeHost::new();
        fake.become_captured(archive);
        fake
    }

    /// Replaces the files by those of another capture.
    pub fn become_captured(&self, archive: &str) {
        for entry in archive.split("=== ").skip(1) {
            let (path, content) = entry.split_once('\n').unwrap();
            self.set(path.trim_start_matches('/'), content.as_bytes());
        }
    }

    /// With this file under `/proc`.
    pub fn proc(self, path: &str, content: &str) -> FakeHost {
        self.set_proc(path, content);
        self
    }

    /// With this file under `/sys`.
    pub fn sys(self, path: &str, content: &str) -> FakeHost {
        self.set(&format!("sys/{path}"), content.as_bytes());
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

    /// Takes a directory away from `/proc` and keeps it elsewhere: whoever comes under its name
    /// has another inode, as after a pid is used again.
    pub fn end_proc(&self, name: &str) {
        let path = self.root.path().join("proc").join(name);
        std::fs::rename(path, self.root.path().join(format!("ended-{name}"))).unwrap();
    }

    /// Lets time pass.
    pub fn pass(&self, time: Duration) {
        self.now.set(self.now.get() + time);
    }

    /// The door to this machine.
    pub fn host(&self) -> Host {
        let mut host = Host::at(self.root.path()).unwrap();
        host.clock = Clock::Manual(Rc::clone(&self.now));
        host.page_size = 4096;
        host.ticks_per_second = 100;
        host
    }

    fn set(&self, path: &str, content: &[u8]) {
        let path = self.root.path().join(Path::new(path));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}
