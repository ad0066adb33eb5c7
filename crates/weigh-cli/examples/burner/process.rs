//! The calls that every load is made of: fork, wait, burn, sleep, die.
//!
//! `burn_process`, `sleep` and `fork` itself make only system calls and no
//! allocation, so they may be used in a child of a process with many threads.

use std::io;
use std::mem;
use std::ptr;
use std::time::Duration;

use libc::{c_int, pid_t};

use crate::{Failure, failed};

/// Reading the clock is a system call of 1 µs or so: rarely while the end is
/// far (every 30 µs, 220 µs in a debug build, so that it is mostly user time),
/// often near it (every 3 µs, 22 µs), so that the overshoot is far below 0.2 ms.
/// The cost of _exit(2) itself, some 0.2 ms, is added.
const STEPS_WHILE_FAR: u64 = 25_000;
const STEPS_WHEN_NEAR: u64 = 2_500;
const NEAR: Duration = Duration::from_millis(1);

/// Uses CPU until this process has used `total`, counted from its fork.
///
/// The count survives exec, so usage of the launcher's child before exec is part
/// of `total`, as it is of what the kernel reports.
pub(crate) fn burn_process(total: Duration) {
    burn(libc::CLOCK_PROCESS_CPUTIME_ID, total);
}

/// Uses CPU until this thread has used `total`, counted from its creation.
pub(crate) fn burn_thread(total: Duration) {
    burn(libc::CLOCK_THREAD_CPUTIME_ID, total);
}

fn burn(clock: libc::clockid_t, total: Duration) {
    let mut value = 1_u64;
    loop {
        let left = total.saturating_sub(cpu_time(clock));
        if left.is_zero() {
            return;
        }
        let steps = if left > NEAR { STEPS_WHILE_FAR } else { STEPS_WHEN_NEAR };
        for step in 0..steps {
            value = std::hint::black_box(value.wrapping_mul(6_364_136_223_846_793_005) ^ step);
        }
    }
}

fn cpu_time(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place to write to. The call cannot fail for a
    // CPU clock of the caller, so its result carries nothing.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// What the kernel has counted of this process, or of the children it has waited for.
fn counted(who: c_int) -> libc::rusage {
    let mut usage = mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: `usage` is a valid place to write to, and the call cannot fail for these arguments.
    unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    }
}

/// Minor and major page faults, voluntary and involuntary context switches of this process and of
/// the children it has waited for.
pub(crate) fn faults_and_switches() -> [i64; 4] {
    let of =
        |usage: libc::rusage| [usage.ru_minflt, usage.ru_majflt, usage.ru_nvcsw, usage.ru_nivcsw];
    let (own, children) = (of(counted(libc::RUSAGE_SELF)), of(counted(libc::RUSAGE_CHILDREN)));
    std::array::from_fn(|which| own[which] + children[which])
}

/// The CPU time of this process and of the children it has waited for.
pub(crate) fn used_with_children() -> Duration {
    let usage = counted(libc::RUSAGE_CHILDREN);
    let of = |time: libc::timeval| {
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_usec.unsigned_abs() as u32 * 1000)
    };
    cpu_time(libc::CLOCK_PROCESS_CPUTIME_ID) + of(usage.ru_utime) + of(usage.ru_stime)
}

/// Sleeps for all of `duration`, whatever signals arrive.
pub(crate) fn sleep(duration: Duration) {
    let mut left = timespec(duration);
    // SAFETY: both pointers are to `left`, which nanosleep(2) allows; it fails
    // only by EINTR, after it wrote the rest.
    while unsafe { libc::nanosleep(&raw const left, &raw mut left) } == -1 {}
}

/// The duration as system calls take it.
pub(crate) fn timespec(duration: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: duration.as_secs().min(i32::MAX as u64) as libc::time_t,
        tv_nsec: duration.subsec_nanos().into(),
    }
}

/// Forks a child that runs `body` and exits with what it returns.
///
/// The child leaves by _exit(2): nothing that the parent buffered is written twice.
///
/// # Safety
///
/// Either this process has one thread, or `body` makes only async-signal-safe
/// calls (signal-safety(7)): another thread may have held a lock at the fork.
pub(crate) unsafe fn fork(body: impl FnOnce() -> c_int) -> Result<pid_t, Failure> {
    // SAFETY: the caller promises that the child does nothing a fork forbids.
    match unsafe { libc::fork() } {
        -1 => Err(failed("cannot fork", io::Error::last_os_error())),
        0 => {
            let code = body();
            // SAFETY: _exit takes any number and does not return.
            unsafe { libc::_exit(code) }
        }
        pid => Ok(pid),
    }
}

/// Runs the part of a load that belongs to a child and turns it into an exit code.
pub(crate) fn code_of(outcome: Result<(), Failure>) -> c_int {
    match outcome {
        Ok(()) => 0,
        Err(Failure::Usage(what) | Failure::Failed(what) | Failure::CannotBeHad(what)) => {
            eprintln!("burner: child {}: {what}", std::process::id());
            1
        }
    }
}

/// Waits for one child and fails unless it exited with 0.
pub(crate) fn wait_for(pid: pid_t) -> Result<(), Failure> {
    match wait(pid, 0) {
        Ok((_, status)) => check(pid, status),
        Err(why) => Err(failed(format!("cannot wait for {pid}"), why)),
    }
}

/// Waits until there is no child left, whether or not the kernel keeps their status.
pub(crate) fn wait_for_none_left() {
    while wait(-1, 0).is_ok() {}
}

/// waitpid(2), repeated when a signal interrupts it; `None` as pid if none is ready.
pub(crate) fn wait(pid: pid_t, options: c_int) -> io::Result<(Option<pid_t>, c_int)> {
    loop {
        let mut status = 0;
        // SAFETY: `status` is a valid place to write to.
        match unsafe { libc::waitpid(pid, &raw mut status, options) } {
            -1 => {
                let why = io::Error::last_os_error();
                if why.kind() != io::ErrorKind::Interrupted {
                    return Err(why);
                }
            }
            0 => return Ok((None, status)),
            ended => return Ok((Some(ended), status)),
        }
    }
}

/// Fails unless the status is that of an exit with 0.
pub(crate) fn check(pid: pid_t, status: c_int) -> Result<(), Failure> {
    if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        return Err(Failure::Failed(format!("child {pid} died of signal {signal}")));
    }
    match libc::WEXITSTATUS(status) {
        0 => Ok(()),
        code => Err(Failure::Failed(format!("child {pid} exited with {code}"))),
    }
}

/// Gives the signal the default or the ignoring handler.
///
/// Fails for SIGKILL, SIGSTOP and numbers that are no signal.
pub(crate) fn set_handler(signal: c_int, handler: libc::sighandler_t) -> io::Result<()> {
    debug_assert!(handler == libc::SIG_DFL || handler == libc::SIG_IGN);
    // SAFETY: both handlers run no code of ours.
    if unsafe { libc::signal(signal, handler) } == libc::SIG_ERR {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Blocks or unblocks (`how`) the signals in this thread.
pub(crate) fn change_mask(how: c_int, signals: &libc::sigset_t) {
    // SAFETY: `signals` is a valid set, the old one is not requested. The call
    // fails only for an unknown `how`.
    unsafe { libc::sigprocmask(how, signals, ptr::null_mut()) };
}

/// The set of these signals.
pub(crate) fn signal_set(signals: &[c_int]) -> libc::sigset_t {
    // SAFETY: sigset_t is plain bits, for which all zeroes is a value.
    let mut set: libc::sigset_t = unsafe { mem::zeroed() };
    for &signal in signals {
        // SAFETY: `set` is a valid set; a number out of range is refused.
        unsafe { libc::sigaddset(&raw mut set, signal) };
    }
    set
}

/// Sends the signal to this process; returns only if it survived.
pub(crate) fn die_of(signal: c_int) -> Failure {
    // RLIMIT_CORE would not do: a core_pattern that is a pipe runs in spite of
    // a limit of 0 (core(5)).
    // SAFETY: PR_SET_DUMPABLE takes a number and touches no memory of ours.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
    // The launcher may have left it ignored or blocked; the truth is that we
    // die of it. SIGKILL and SIGSTOP refuse, and need nothing.
    let _ = set_handler(signal, libc::SIG_DFL);
    change_mask(libc::SIG_UNBLOCK, &signal_set(&[signal]));
    // SAFETY: kill takes numbers and touches no memory of ours. It accepts 0,
    // which only checks whether the process exists.
    if signal == 0 || unsafe { libc::kill(libc::getpid(), signal) } == -1 {
        return Failure::Usage(format!("NUM should be the number of a signal, not {signal}"));
    }
    Failure::CannotBeHad(format!("signal {signal} does not end a process"))
}
