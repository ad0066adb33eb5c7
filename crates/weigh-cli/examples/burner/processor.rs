//! Loads that use CPU: in threads, in children, in a daemon, under a reused pid.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use libc::{c_int, pid_t};

use crate::process::{burn_process, burn_thread, fork, set_handler, wait_for, wait_for_none_left};
use crate::{Failure, failed, process};

const LAST_PID: &str = "/proc/sys/kernel/ns_last_pid";
const TRIES_FOR_A_PID: usize = 50;

/// `count` threads use `duration` of CPU each, beginning together.
pub(crate) fn threads(count: usize, duration: Duration) -> Result<(), Failure> {
    let together = Arc::new(Barrier::new(count));
    let mut workers = Vec::with_capacity(count);
    for _ in 0..count {
        let together = Arc::clone(&together);
        let worker = thread::Builder::new().spawn(move || {
            together.wait();
            burn_thread(duration);
        });
        workers.push(worker.map_err(|why| failed("cannot start a thread", why))?);
    }
    for worker in workers {
        worker.join().map_err(|_| Failure::Failed("a thread panicked".into()))?;
    }
    Ok(())
}

/// `count` children use `duration` of CPU each, in groups of `at_once`.
///
/// With `ignore_sigchld` the kernel reaps them: their CPU time never reaches
/// the parent's RUSAGE_CHILDREN (getrusage(2)).
pub(crate) fn children(
    count: usize,
    duration: Duration,
    at_once: usize,
    ignore_sigchld: bool,
) -> Result<(), Failure> {
    let handler = if ignore_sigchld { libc::SIG_IGN } else { libc::SIG_DFL };
    set_handler(libc::SIGCHLD, handler).map_err(|why| failed("cannot set SIGCHLD", why))?;
    let mut left = count;
    while left > 0 {
        let group = left.min(at_once);
        let mut pids = Vec::with_capacity(group);
        for _ in 0..group {
            pids.push(fork_burner(duration)?);
        }
        if ignore_sigchld {
            wait_for_none_left();
        } else {
            pids.into_iter().try_for_each(wait_for)?;
        }
        left -= group;
    }
    Ok(())
}

fn fork_burner(duration: Duration) -> Result<pid_t, Failure> {
    let body = || {
        burn_process(duration);
        0
    };
    // SAFETY: no load that comes here has started a thread.
    unsafe { fork(body) }
}

/// A grandchild in its own session uses `duration` of CPU and outlives us.
pub(crate) fn daemon(duration: Duration) -> Result<(), Failure> {
    let child = || {
        // SAFETY: setsid takes nothing; a fresh child leads no group, so it works.
        unsafe { libc::setsid() };
        let grandchild = || {
            let detached = process::code_of(detach_descriptors());
            burn_process(duration);
            detached
        };
        // SAFETY: this load has not started a thread.
        process::code_of(unsafe { fork(grandchild) }.map(drop))
    };
    // SAFETY: this load has not started a thread.
    wait_for(unsafe { fork(child) }?)
}

/// Redirects descriptors 0 to 2 to /dev/null, so that no reader waits for the end of a pipe.
fn detach_descriptors() -> Result<(), Failure> {
    // SAFETY: the path is a C string.
    let null = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
    if null == -1 {
        return Err(failed("/dev/null", io::Error::last_os_error()));
    }
    for standard in 0..3 {
        // SAFETY: the daemon writes nothing, no owner misses the old descriptor.
        unsafe { libc::dup2(null, standard) };
    }
    if null > 2 {
        // SAFETY: we opened it and it has no other owner.
        unsafe { libc::close(null) };
    }
    Ok(())
}

/// Two children, one after the other, use `duration` of CPU each under one pid.
///
/// The kernel gives out pids in ascending order from ns_last_pid (since Linux
/// 3.3; writing needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE over the pid
/// namespace). Any other fork in between takes the pid: hence the tries. A
/// child with the wrong pid exits without burning.
pub(crate) fn reuse_pid(duration: Duration) -> Result<pid_t, Failure> {
    let unavailable = |why| Failure::CannotBeHad(format!("{LAST_PID}: {why}"));
    let last_pid = OpenOptions::new().write(true).open(LAST_PID).map_err(unavailable)?;
    let first = fork_burner(duration)?;
    wait_for(first)?;
    let wanted = (first - 1).to_string();
    for _ in 0..TRIES_FOR_A_PID {
        let second = || -> c_int {
            // SAFETY: getpid takes nothing and cannot fail.
            if unsafe { libc::getpid() } == first {
                burn_process(duration);
            }
            0
        };
        // At offset 0 each time: writes further on are dropped (sysctl_writes_strict).
        last_pid.write_at(wanted.as_bytes(), 0).map_err(unavailable)?;
        // SAFETY: this load has not started a thread.
        let pid = unsafe { fork(second) }?;
        wait_for(pid)?;
        if pid == first {
            return Ok(pid);
        }
        process::sleep(Duration::from_millis(5));
    }
    Err(Failure::CannotBeHad(format!(
        "pid {first} did not come back in {TRIES_FOR_A_PID} tries: another process took it"
    )))
}

/// `count` children, one after the other, sleep for `duration` under one pid.
pub(crate) fn reuse_pid_often(count: usize, duration: Duration) -> Result<usize, Failure> {
    let unavailable = |why| Failure::CannotBeHad(format!("{LAST_PID}: {why}"));
    let last_pid = OpenOptions::new().write(true).open(LAST_PID).map_err(unavailable)?;
    let mut first = None;
    let mut reused = 0;
    for _ in 0..count {
        if let Some(first) = first {
            let before: pid_t = first - 1;
            last_pid.write_at(before.to_string().as_bytes(), 0).map_err(unavailable)?;
        }
        let body = || {
            process::sleep(duration);
            0
        };
        // SAFETY: this load has not started a thread.
        let pid = unsafe { fork(body) }?;
        wait_for(pid)?;
        reused += usize::from(*first.get_or_insert(pid) == pid);
    }
    Ok(reused)
}
