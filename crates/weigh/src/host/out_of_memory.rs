//! How the command continues when weigh cannot allocate memory.
//!
//! A memory limit (`ulimit -v`) that is meant for the command applies to weigh, too, and a hard
//! limit cannot be raised. Rust aborts a program when an allocation fails: the command's exit code
//! would be lost, or the command never started. So the program `weigh` allocates through
//! [`Allocator`]: when an allocation fails, measuring stops, the command goes on (or replaces this
//! process, if it was not forked yet) and its exit code becomes weigh's. Nothing here allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, Ordering::SeqCst};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, getrlimit};

use super::child::{self, ForkedChild, Replacement};
use super::signals::{self, Signals};
use super::wait;
use crate::model::End;

/// The system's allocator; when it fails, the command goes on without weigh.
pub struct Allocator;

// SAFETY: every call is forwarded to the system's allocator, and its result returned.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as our caller promises.
        checked(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as our caller promises.
        checked(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as our caller promises.
        checked(unsafe { System.realloc(old, layout, size) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as our caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn checked(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        stop_measuring();
    }
    memory
}

/// What replaces this process before the command has been forked.
static REPLACEMENT: AtomicPtr<Replacement> = AtomicPtr::new(ptr::null_mut());
/// The command's process, or 0.
static COMMAND: AtomicU32 = AtomicU32::new(0);
/// The pipe on which the forked child waits, or one of these.
static GO: AtomicI32 = AtomicI32::new(NONE_WAITING);
const NONE_WAITING: i32 = -1;
const STARTED_HERE: i32 = -2;
/// The descriptor on which signals for it arrive.
static SIGNALS: AtomicI32 = AtomicI32::new(-1);
/// Its exit code, or -1.
static CODE: AtomicI32 = AtomicI32::new(-1);
static HAS_WARNED: AtomicBool = AtomicBool::new(false);

/// From here on the command replaces this process when no memory is left.
pub fn replace_by(command: Replacement) {
    REPLACEMENT.store(Box::into_raw(Box::new(command)), SeqCst);
    grow_stack();
}

/// From here on, when no memory is left, the command is started if it was not, and waited for.
pub fn wait_for(command: &ForkedChild, signals: &Signals) {
    SIGNALS.store(signals.as_fd().as_raw_fd(), SeqCst);
    GO.store(command.as_fd().as_raw_fd(), SeqCst);
    COMMAND.store(command.pid, SeqCst);
}

/// [`ForkedChild`] starts the command now, unless it was started from here already: then the caller
/// must not close the pipe, and waits for the command as well.
pub(super) fn claim_start() {
    if GO.swap(NONE_WAITING, SeqCst) == STARTED_HERE {
        wait_for_command_and_exit(COMMAND.load(SeqCst))
    }
}

/// From here on weigh exits as the command did when no memory is left.
pub fn end_with(end: End) {
    CODE.store(end.exit_code(), SeqCst);
}

/// No command runs: a failed allocation is an error again.
pub fn forget() {
    COMMAND.store(0, SeqCst);
    GO.store(NONE_WAITING, SeqCst);
    // Not freed: another thread may be about to use it.
    REPLACEMENT.store(ptr::null_mut(), SeqCst);
}

/// A stack that cannot grow also kills a program: it is grown while it can.
fn grow_stack() {
    if getrlimit(Resource::As).current.is_some() {
        touch_stack();
    }
}

/// Not inlined: the frame of whatever has this variable is touched when it is entered.
#[inline(never)]
fn touch_stack() {
    const SIZE: usize = 256 << 10;
    std::hint::black_box([0u8; SIZE]);
}

/// Returns only when there is no command.
#[cold]
fn stop_measuring() {
    let (replacement, pid) = (REPLACEMENT.load(SeqCst), COMMAND.load(SeqCst));
    if pid != 0 || CODE.load(SeqCst) >= 0 {
        warn(
            "no memory is left (ulimit -v): measuring has ended before the command, and there is \
             no summary; what was recorded until now can be read: weigh show",
        );
        wait_for_command_and_exit(pid)
    }
    // SAFETY: it is null or what `replace_by` has put there, which is never freed.
    if let Some(replacement) = unsafe { replacement.as_ref() } {
        warn("the command runs, but nothing is measured: no memory is left (ulimit -v)");
        let code = if replacement.execute() == libc::ENOENT { 127 } else { 126 };
        // SAFETY: _exit takes a number and does not return.
        unsafe { libc::_exit(code) }
    }
}

/// Writes one line to stderr; only the first call of any thread does.
fn warn(text: &str) {
    if !HAS_WARNED.swap(true, SeqCst) {
        for part in ["weigh: warning: ", text, "\n"] {
            // stderr may be closed.
            let _ = rustix::io::write(rustix::stdio::stderr(), part.as_bytes());
        }
    }
}

/// Starts the command if it still waits, passes signals on to it until it exits, and exits as it
/// did.
fn wait_for_command_and_exit(pid: u32) -> ! {
    let waits = |go: i32| (go >= 0).then_some(STARTED_HERE);
    if let Ok(go) = GO.fetch_update(SeqCst, SeqCst, waits) {
        // SAFETY: code that closes it calls `claim_start` first, which does not return now.
        child::release(unsafe { BorrowedFd::borrow_raw(go) });
    }
    let number = SIGNALS.load(SeqCst);
    // SAFETY: it was open when the command was forked, and weigh closes it only after its exit.
    let fd = unsafe { BorrowedFd::borrow_raw(number) };
    // Another thread may read the SIGCHLD of its exit.
    let moment = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    loop {
        let code = CODE.load(SeqCst);
        if code >= 0 {
            // SAFETY: _exit takes a number and does not return.
            unsafe { libc::_exit(code) }
        }
        // After an error it is polled again.
        let _ = poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&moment));
        while let Some(signal) = signals::next(fd) {
            if signal.number != libc::SIGCHLD && signal.is_for(pid) {
                signals::send(pid, signal.number);
            }
        }
        while let Some(exited) = wait::next_exited() {
            // Orphans of the run are reaped as before, or zombies would accumulate.
            match wait::reap(exited) {
                Some((end, _)) if exited == pid => end_with(end),
                _ => {}
            }
        }
        if wait::newly_stopped(pid).is_some_and(signals::is_by_terminal)
            && signals::under_job_control()
        {
            signals::stop_self();
        }
    }
}
