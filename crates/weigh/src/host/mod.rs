//! The only access to the machine: files under a root, clocks, system calls.
//!
//! Nothing else in the library opens `/proc`, reads the clock or makes a system call. So a test can
//! replace the machine (`FakeHost`), and `--host-root` can point at another one.

pub mod address_space;
pub mod bpf;
pub mod cgroup;
pub mod child;
pub mod clock;
pub mod connector;
pub mod descent_mark;
mod dir;
pub mod disk_space;
pub mod environment;
mod event_files;
mod exit_tracker;
pub mod facts;
#[cfg(test)]
pub mod fake;
pub mod hardware;
pub mod kernel_log;
pub mod limits;
pub mod machine_proc;
mod netlink;
pub mod nvml;
pub mod out_of_memory;
pub mod own;
pub mod perf;
pub mod pidfd;
pub mod program;
pub mod run_cgroup;
pub mod signals;
#[cfg(test)]
pub(crate) mod skip;
pub mod sock_diag;
pub mod subreaper;
pub mod taskstats;
pub mod terminal;
pub mod timeout;
pub mod wait;

use std::path::{Path, PathBuf};

pub use address_space::AddressSpaces;
pub use clock::HostClock;
pub use dir::{CachedFile, CachedPath, Descriptors, Dir, ProcPath};
pub use perf::Perf;

/// A file of the machine that could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be opened or read.
    #[error("{}: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// It was read and is not what it should be.
    #[error("{}: {source}", path.display())]
    Parse {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        source: crate::parse::MalformedFile,
    },
}

impl Error {
    /// The error number, if the kernel returned one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Error::Read { source, .. } => source.raw_os_error(),
            Error::Parse { .. } => None,
        }
    }

    /// Whether the file or process does not exist, or no longer does.
    pub fn is_gone(&self) -> bool {
        matches!(self.errno(), Some(libc::ENOENT | libc::ESRCH | libc::ENODEV))
    }

    /// Whether permission was denied.
    pub fn is_denied(&self) -> bool {
        matches!(self.errno(), Some(libc::EACCES | libc::EPERM))
    }
}

/// The machine: its `/proc` and `/sys`, its clock and its constants.
#[derive(Debug, Clone)]
pub struct Host {
    /// Where its file system begins.
    pub root: Dir,
    /// `/proc`, or its replacement.
    pub proc: Dir,
    /// `/sys`, or its replacement.
    pub sys: Dir,
    /// The monotonic clock.
    pub clock: HostClock,
    /// Counters of the whole machine.
    pub perf: Perf,
    /// Which processes use one address space.
    pub address_spaces: AddressSpaces,
    /// Bytes in a page.
    pub page_size: u64,
    /// Clock ticks in a second, the unit of CPU times in `/proc`.
    pub ticks_per_second: u64,
}

impl Host {
    /// The machine whose file system begins at `root` (`/` for this one).
    pub fn at(root: &Path) -> Result<Host, Error> {
        Ok(Host {
            root: Dir::open(root)?,
            proc: Dir::open(&root.join("proc"))?,
            sys: Dir::open(&root.join("sys"))?,
            clock: HostClock::Monotonic,
            perf: Perf::Kernel,
            // Pids below another root are not those that the kernel knows.
            address_spaces: match root == Path::new("/") {
                true => AddressSpaces::Kernel,
                false => AddressSpaces::NotAvailable,
            },
            page_size: rustix::param::page_size() as u64,
            ticks_per_second: rustix::param::clock_ticks_per_second(),
        })
    }

    /// A time as clock ticks, as `/proc` has start times.
    pub fn ticks(&self, time: std::time::Duration) -> u64 {
        (time.as_nanos() * u128::from(self.ticks_per_second) / 1_000_000_000) as u64
    }

    /// CPU time in seconds from a number of clock ticks.
    pub fn seconds(&self, ticks: u64) -> f64 {
        ticks as f64 / self.ticks_per_second as f64
    }
}
