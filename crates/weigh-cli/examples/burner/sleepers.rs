//! Idle loads: thousands of sleepers, forks from threads, unusual names.

use std::collections::BTreeSet;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use libc::{c_int, pid_t};

use crate::process::{
    change_mask, check, code_of, fork, set_handler, signal_set, sleep, timespec, wait, wait_for,
};
use crate::{Failure, failed};

const CHAIN_LENGTH: usize = 10;
const ENDED_BY_SIGTERM: c_int = 128 + libc::SIGTERM;
/// TASK_COMM_LEN without its NUL: the kernel silently truncates the rest.
const LONGEST_NAME: usize = 15;

/// Sleeps under a thread name of any bytes.
pub(crate) fn named(name: &OsStr, duration: Duration) -> Result<(), Failure> {
    let long = name.len() > LONGEST_NAME;
    let (false, Ok(name)) = (long, CString::new(name.as_bytes())) else {
        return Err(Failure::Usage(format!("NAME should have at most {LONGEST_NAME} bytes")));
    };
    // SAFETY: the name is a C string; the kernel copies it.
    if unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr(), 0, 0, 0) } == -1 {
        return Err(failed("cannot set the name", io::Error::last_os_error()));
    }
    sleep(duration);
    Ok(())
}

/// `count` threads fork one child each and wait for it.
///
/// Such children are in /proc/PID/task/TID/children of their thread, not of
/// the main one.
pub(crate) fn thread_forks(count: usize, duration: Duration) -> Result<(), Failure> {
    let mut workers = Vec::with_capacity(count);
    for _ in 0..count {
        let worker = thread::Builder::new().spawn(move || {
            let body = || {
                sleep(duration);
                0
            };
            // SAFETY: the child calls nanosleep and _exit only.
            wait_for(unsafe { fork(body) }?)
        });
        workers.push(worker.map_err(|why| failed("cannot start a thread", why))?);
    }
    for worker in workers {
        worker.join().map_err(|_| Failure::Failed("a thread panicked".into()))??;
    }
    Ok(())
}

/// Forks `count` sleepers, side by side or in chains, and returns the exit code.
///
/// Every process that has children keeps SIGTERM and SIGCHLD blocked and takes
/// them by sigtimedwait(2): no handler, so no race with a fork under way.
/// Sleepers without children have the default handler.
pub(crate) fn spawn(count: usize, duration: Duration, tree: bool) -> Result<c_int, Failure> {
    for signal in [libc::SIGTERM, libc::SIGCHLD] {
        set_handler(signal, libc::SIG_DFL).map_err(|why| failed("cannot set a signal", why))?;
    }
    change_mask(libc::SIG_BLOCK, &signal_set(&[libc::SIGTERM, libc::SIGCHLD]));
    let longest = if tree { CHAIN_LENGTH } else { 1 };
    let mut children = BTreeSet::new();
    let mut left = count;
    while left > 0 {
        if next_signal(&[libc::SIGTERM], Some(Duration::ZERO)).is_some() {
            return Ok(end_all(&children));
        }
        let length = left.min(longest);
        // SAFETY: this load has not started a thread.
        match unsafe { fork(|| chain(length, duration)) } {
            Ok(pid) => children.insert(pid),
            Err(failure) => {
                end_all(&children);
                return Err(failure);
            }
        };
        left -= length;
    }
    wait_or_end(children)
}

/// A sleeper that has forked the rest of its chain, in its own process.
fn chain(length: usize, duration: Duration) -> c_int {
    if length == 1 {
        change_mask(libc::SIG_UNBLOCK, &signal_set(&[libc::SIGTERM, libc::SIGCHLD]));
        sleep(duration);
        return 0;
    }
    let end = Instant::now() + duration;
    // SAFETY: this load has not started a thread.
    let next = match unsafe { fork(|| chain(length - 1, duration)) } {
        Ok(pid) => BTreeSet::from([pid]),
        Err(failure) => return code_of(Err(failure)),
    };
    let left = end.saturating_duration_since(Instant::now());
    if next_signal(&[libc::SIGTERM], Some(left)).is_some() {
        return end_all(&next);
    }
    wait_or_end(next).unwrap_or_else(|failure| code_of(Err(failure)))
}

/// Waits for all children, or ends them on SIGTERM; returns the exit code.
fn wait_or_end(mut children: BTreeSet<pid_t>) -> Result<c_int, Failure> {
    let mut first_failure = Ok(0);
    loop {
        // One SIGCHLD may stand for many children, and for some that ended
        // before: check first, then wait.
        while let Ok((Some(pid), status)) = wait(-1, libc::WNOHANG) {
            children.remove(&pid);
            if let (Ok(_), Err(failure)) = (&first_failure, check(pid, status)) {
                first_failure = Err(failure);
            }
        }
        if children.is_empty() {
            return first_failure;
        }
        if next_signal(&[libc::SIGTERM, libc::SIGCHLD], None) == Some(libc::SIGTERM) {
            return Ok(end_all(&children));
        }
    }
}

/// Ends the children (each ends its own) and waits for them. None of them has
/// been waited for, so no pid can belong to another process by now.
fn end_all(children: &BTreeSet<pid_t>) -> c_int {
    for &pid in children {
        // SAFETY: kill takes numbers and touches no memory of ours.
        unsafe { libc::kill(pid, libc::SIGTERM) };
    }
    for &pid in children {
        // They end by our own signal: their exit status does not matter.
        let _ = wait(pid, 0);
    }
    ENDED_BY_SIGTERM
}

/// Takes the next of these (blocked) signals; none if `limit` passes before.
fn next_signal(signals: &[c_int], limit: Option<Duration>) -> Option<c_int> {
    let set = signal_set(signals);
    let end = limit.map(|limit| Instant::now() + limit);
    loop {
        let left = end.map(|end| timespec(end.saturating_duration_since(Instant::now())));
        let left = left.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the set and the time are valid or, the time, null for no limit;
        // details of the signal are not requested.
        let signal = unsafe { libc::sigtimedwait(&raw const set, ptr::null_mut(), left) };
        if signal > 0 {
            return Some(signal);
        }
        // EINTR (also after a stop and a continue) is no answer: wait on.
        if io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN) {
            return None;
        }
    }
}
