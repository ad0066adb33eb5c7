//! What becomes of the command when weigh gets no memory any more.
//!
//! A limit on memory (`ulimit -v`) that is meant for the command holds for weigh, too, and one
//! that binds cannot be raised. Rust aborts a program that gets no memory: the command's exit
//! code would be lost, and the command, not yet started, never run. So the program `weigh`
//! allocates through [`Allocator`]: when nothing is left, measuring ends, the command goes on (or
//! takes this process's place, when it has not begun) and its exit code is weigh's. Everything
//! here does without allocating.

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

/// The system's allocator, after whose failure the command goes on.
pub struct Allocator;

// SAFETY: every call is passed on to the system's allocator, and so is its answer.
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

/// What takes this process's place before the command has been forked.
static REPLACEMENT: AtomicPtr<Replacement> = AtomicPtr::new(ptr::null_mut());
/// The command's process, or 0.
static COMMAND: AtomicU32 = AtomicU32::new(0);
/// The pipe on which it waits for the word to become the command, or one of these.
static GO: AtomicI32 = AtomicI32::new(NONE_WAITING);
const NONE_WAITING: i32 = -1;
const STARTED_HERE: i32 = -2;
/// The descriptor on which its signals arrive.
static SIGNALS: AtomicI32 = AtomicI32::new(-1);
/// Its exit code, or -1.
static CODE: AtomicI32 = AtomicI32::new(-1);
static HAS_WARNED: AtomicBool = AtomicBool::new(false);

/// From here on the command takes this process's place when no memory is left.
pub fn replace_by(command: Replacement) {
    REPLACEMENT.store(Box::into_raw(Box::new(command)), SeqCst);
    grow_stack();
}

/// From here on the command is started, if it has not been, and waited for when no memory is left.
pub fn wait_for(command: &ForkedChild, signals: &Signals) {
    SIGNALS.store(signals.as_fd().as_raw_fd(), SeqCst);
    GO.store(command.as_fd().as_raw_fd(), SeqCst);
    COMMAND.store(command.pid, SeqCst);
}

/// The command gets the word from its [`ForkedChild`] now, unless it has it from here already: then
/// the caller must not close the pipe, and waits for the command's end as well.
pub(super) fn claim_start() {
    if GO.swap(NONE_WAITING, SeqCst) == STARTED_HERE {
        wait_for_command_and_exit(COMMAND.load(SeqCst))
    }
}

/// From here on weigh ends as the command did when no memory is left.
pub fn end_with(end: End) {
    CODE.store(end.exit_code(), SeqCst);
}

/// No command runs: whoever gets no memory fails.
pub fn forget() {
    COMMAND.store(0, SeqCst);
    GO.store(NONE_WAITING, SeqCst);
    // Not freed: another thread may be about to use it.
    REPLACEMENT.store(ptr::null_mut(), SeqCst);
}

/// A stack that cannot grow is the end of a program as well: it gets its size while it can.
fn grow_stack() {
    const SIZE: usize = 256 << 10;
    if getrlimit(Resource::As).current.is_some() {
        std::hint::black_box([0u8; SIZE]);
    }
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

/// A line on stderr; the first one alone, whichever thread has it.
fn warn(text: &str) {
    if !HAS_WARNED.swap(true, SeqCst) {
        for part in ["weigh: warning: ", text, "\n"] {
            // Nobody may be there to read it.
            let _ = rustix::io::write(rustix::stdio::stderr(), part.as_bytes());
        }
    }
}

/// Starts the command if it still waits, passes signals on to it until it ends, and ends as it
/// did.
fn wait_for_command_and_exit(pid: u32) -> ! {
    let waits = |go: i32| (go >= 0).then_some(STARTED_HERE);
    if let Ok(go) = GO.fetch_update(SeqCst, SeqCst, waits) {
        // SAFETY: whoever would close it calls `claim_start` before, which does not return now.
        child::release(unsafe { BorrowedFd::borrow_raw(go) });
    }
    let number = SIGNALS.load(SeqCst);
    // SAFETY: it was open when the command was forked, and weigh closes it only after its end.
    let fd = unsafe { BorrowedFd::borrow_raw(number) };
    // Another thread may take the signal that tells of the end.
    let moment = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    loop {
        let code = CODE.load(SeqCst);
        if code >= 0 {
            // SAFETY: _exit takes a number and does not return.
            unsafe { libc::_exit(code) }
        }
        // An error only means that it is asked again.
        let _ = poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&moment));
        while let Some(signal) = signals::next(fd) {
            if signal.number != libc::SIGCHLD && signal.is_for(pid) {
                signals::send(pid, signal.number);
            }
        }
        while let Some(dead) = wait::next_exited() {
            // Orphans of the run are reaped as before, or they would pile up.
            match wait::reap(dead) {
                Some((end, _)) if dead == pid => end_with(end),
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
