//! Exit status and usage of children that exited.
//!
//! `waitid` with WNOWAIT does not reap: the zombie's `stat` and `io` can still be read. `wait4`
//! then reaps it, and its rusage is the exact usage of the child and of every descendant that was
//! reaped.

use std::mem::MaybeUninit;
use std::time::Duration;

use libc::c_int;

use crate::model::{End, Usage};

impl End {
    /// From a wait status, the encoding that the kernel uses everywhere.
    pub fn from_status(status: c_int) -> End {
        // Seven bits, with or without a core dump; stopped processes are never passed here.
        match status & 0x7f {
            0 => End::Code(libc::WEXITSTATUS(status)),
            signal => End::Signal(signal),
        }
    }
}

impl Usage {
    /// What this process has used so far: its threads, not its children.
    pub fn own() -> Usage {
        of(libc::RUSAGE_SELF)
    }

    /// What the children of this process have used that were reaped so far.
    pub fn of_children() -> Usage {
        of(libc::RUSAGE_CHILDREN)
    }

    /// What this thread has used so far.
    pub fn of_thread() -> Usage {
        of(libc::RUSAGE_THREAD)
    }
}

fn of(whom: c_int) -> Usage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the place is ours, and all zeros is a valid rusage.
    let usage = unsafe {
        libc::getrusage(whom, usage.as_mut_ptr());
        usage.assume_init()
    };
    Usage::from(&usage)
}

impl From<&libc::rusage> for Usage {
    fn from(usage: &libc::rusage) -> Usage {
        Usage {
            user_seconds: seconds(usage.ru_utime),
            system_seconds: seconds(usage.ru_stime),
            largest_rss_bytes: usage.ru_maxrss as u64 * 1024,
            minor_faults: usage.ru_minflt as u64,
            major_faults: usage.ru_majflt as u64,
            voluntary_switches: usage.ru_nvcsw as u64,
            involuntary_switches: usage.ru_nivcsw as u64,
        }
    }
}

fn seconds(time: libc::timeval) -> f64 {
    Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000).as_secs_f64()
}

/// A child that has exited and is not reaped yet, if there is one.
pub fn next_exited() -> Option<u32> {
    waitid_now(libc::P_ALL, 0, libc::WEXITED | libc::WNOWAIT)
        // SAFETY: for a child that exited the kernel filled in the pid.
        .map(|found| unsafe { found.si_pid() } as u32)
}

/// The signal that stopped this child since the last call, if one did.
pub fn newly_stopped(pid: u32) -> Option<c_int> {
    waitid_now(libc::P_PID, pid, libc::WSTOPPED)
        // SAFETY: for a child that stopped the kernel filled in the status.
        .map(|found| unsafe { found.si_status() })
}

fn waitid_now(kind: libc::idtype_t, id: u32, options: c_int) -> Option<libc::siginfo_t> {
    // SAFETY: an all-zero siginfo is valid; the kernel leaves it so when it finds no child.
    let mut found: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: `found` is ours and large enough.
    let result = unsafe { libc::waitid(kind, id, &mut found, options | libc::WNOHANG) };
    // SAFETY: the field is valid in every siginfo that waitid fills, and zero otherwise.
    (result == 0 && unsafe { found.si_pid() } != 0).then_some(found)
}

/// Reaps a child that has exited.
pub fn reap(pid: u32) -> Option<(End, Usage)> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both places are ours; all zeros is a valid rusage.
    let (reaped, usage) = unsafe {
        let reaped =
            libc::wait4(pid as libc::pid_t, &mut status, libc::WNOHANG, usage.as_mut_ptr());
        (reaped, usage.assume_init())
    };
    if reaped != pid as libc::pid_t {
        return None;
    }
    Some((End::from_status(status), Usage::from(&usage)))
}

/// Reaps a child that is about to exit, however long that takes.
pub fn reap_now(pid: u32) {
    // SAFETY: without places for them, status and usage are not reported.
    while unsafe { libc::waitpid(pid as libc::pid_t, std::ptr::null_mut(), 0) } == -1
        && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
    {}
}

/// Whether this process still has children, dead or alive.
pub fn has_children() -> bool {
    // SAFETY: a null siginfo is allowed.
    let result = unsafe {
        libc::waitid(
            libc::P_ALL,
            0,
            std::ptr::null_mut(),
            libc::WEXITED | libc::WNOHANG | libc::WNOWAIT,
        )
    };
    result == 0
}
