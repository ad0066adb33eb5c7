//! Signals for the command, read from a signalfd instead of a handler.
//!
//! A terminal sends Ctrl-C and Ctrl-Z to the whole foreground group, so the command gets them
//! itself; signals sent to weigh alone are passed on. `si_code` says whether the kernel sent it.
//! One signal of the kernel is for weigh alone and is passed on, too: when a terminal hangs up, its
//! session leader gets SIGHUP and SIGCONT (`tty_signal_session_leader` in
//! drivers/tty/tty_jobctrl.c), and the others only once the leader has exited.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::c_int;

/// Signals that are read from the descriptor.
///
/// Not included: signals for faults of weigh itself (SEGV and others) and those that cannot be
/// blocked (KILL, STOP).
const TAKEN: [c_int; 20] = [
    libc::SIGCHLD,
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGCONT,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGWINCH,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGURG,
    libc::SIGXCPU,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGSTKFLT,
];

/// Dispositions that weigh sets for itself.
///
/// Children of a process that ignores SIGCHLD are auto-reaped. And a limit on file sizes is meant
/// for the command: for weigh it must mean an incomplete recording, not termination.
const OWN: [(c_int, libc::sighandler_t); 2] =
    [(libc::SIGCHLD, libc::SIG_DFL), (libc::SIGXFSZ, libc::SIG_IGN)];

/// The signal mask and dispositions before weigh changes them.
#[derive(Clone, Copy)]
pub struct SignalState {
    mask: libc::sigset_t,
    dispositions: [libc::sighandler_t; OWN.len()],
}

impl SignalState {
    /// The current state.
    pub fn now() -> SignalState {
        let mut mask = MaybeUninit::uninit();
        // SAFETY: without a set the mask is unchanged and is written to `mask`; without an action a
        // disposition is only read, and all zeros is a valid sigaction.
        unsafe {
            libc::sigprocmask(libc::SIG_BLOCK, std::ptr::null(), mask.as_mut_ptr());
            let dispositions = OWN.map(|(number, _)| {
                let mut action: libc::sigaction = std::mem::zeroed();
                libc::sigaction(number, std::ptr::null(), &mut action);
                action.sa_sigaction
            });
            SignalState { mask: mask.assume_init(), dispositions }
        }
    }

    /// Restores mask and dispositions, for the command.
    pub fn restore(&self) {
        for ((number, _), disposition) in OWN.into_iter().zip(self.dispositions) {
            // SAFETY: what signal(2) returned is what it takes; handlers do not survive exec.
            unsafe { libc::signal(number, disposition) };
        }
        // SAFETY: the set was filled by the kernel in `SignalState::now`.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &self.mask, std::ptr::null_mut()) };
    }
}

/// A signal that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedSignal {
    /// Its number.
    pub number: c_int,
    /// The process that sent it; `None` when the kernel did (for example a terminal).
    pub sender: Option<u32>,
}

impl ReceivedSignal {
    /// Whether it must be passed on to the command, because it was sent to this process alone.
    ///
    /// A command that signals its parent does not want the signal itself. What the kernel sends is
    /// for the whole group (a terminal's Ctrl-C) or for us (an alarm), except a hang-up.
    pub fn is_for(&self, command: u32) -> bool {
        self.sender.map_or_else(|| self.is_hang_up(), |sender| sender != command)
    }

    /// Whether the terminal has hung up. The kernel notifies the session leader alone: this
    /// process, where without weigh it would be the command.
    pub fn is_hang_up(&self) -> bool {
        self.is_hang_up_to(is_session_leader())
    }

    fn is_hang_up_to(&self, session_leader: bool) -> bool {
        let by_hang_up = [libc::SIGHUP, libc::SIGCONT].contains(&self.number);
        session_leader && self.sender.is_none() && by_hang_up
    }
}

/// Whether this process leads its session.
///
/// The session is 0 where its leader is in an outer pid namespace (`docker exec`, `unshare --pid`)
/// or is the kernel's (started by an init without setsid). rustix's `Pid` cannot be 0: hence libc.
fn is_session_leader() -> bool {
    // SAFETY: getsid and getpid take and return numbers.
    unsafe { libc::getsid(0) == libc::getpid() }
}

/// Blocks all signals in this thread: those of the process are delivered to its other threads.
pub fn block_all() {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigfillset fills the set before it is used; the mask is that of this thread alone.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut());
    }
}

/// Whether the kernel reaps the children of this process, because SIGCHLD is ignored.
pub fn children_are_auto_reaped() -> bool {
    // SAFETY: without an action the disposition is only read, and all zeros is a valid sigaction.
    let action = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGCHLD, std::ptr::null(), &mut action);
        action
    };
    action.sa_sigaction == libc::SIG_IGN || action.sa_flags & libc::SA_NOCLDWAIT != 0
}

/// The descriptor on which signals arrive.
pub struct Signals {
    fd: OwnedFd,
}

impl Signals {
    /// Blocks the signals for the command and opens the descriptor they arrive on.
    pub fn take() -> std::io::Result<Signals> {
        let mut set = MaybeUninit::uninit();
        for (number, own) in OWN {
            // SAFETY: the numbers and dispositions are valid, and no handler is installed.
            unsafe { libc::signal(number, own) };
        }
        // SAFETY: sigemptyset fills the set before anything reads it; signalfd is given a
        // filled set and returns a descriptor or -1.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            let realtime = libc::SIGRTMIN()..=libc::SIGRTMAX();
            for number in TAKEN.into_iter().chain(realtime) {
                libc::sigaddset(set.as_mut_ptr(), number);
            }
            if libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
            let fd = libc::signalfd(-1, set.as_ptr(), flags);
            if fd < 0 {
                return Err(std::io::Error::last_os_error());
            }
            Ok(Signals { fd: OwnedFd::from_raw_fd(fd) })
        }
    }

    /// The next signal that has arrived, if any.
    pub fn arrived(&mut self) -> Option<ReceivedSignal> {
        next(self.fd.as_fd())
    }
}

/// The next signal that has arrived on the descriptor of [`Signals`], if any.
pub fn next(fd: BorrowedFd<'_>) -> Option<ReceivedSignal> {
    let mut bytes = [0u8; size_of::<libc::signalfd_siginfo>()];
    let count = rustix::io::read(fd, &mut bytes).ok()?;
    if count != bytes.len() {
        return None;
    }
    // SAFETY: the kernel filled the whole structure, which is plain numbers.
    let arrived: libc::signalfd_siginfo =
        unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) };
    // Codes above zero are the kernel's own; SI_USER, SI_QUEUE and SI_TKILL are not.
    let sender = (arrived.ssi_code <= 0).then_some(arrived.ssi_pid);
    Some(ReceivedSignal { number: arrived.ssi_signo as c_int, sender })
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Sends a signal to a process; nothing happens if it has exited.
pub fn send(pid: u32, number: c_int) {
    // SAFETY: kill takes two numbers.
    unsafe { libc::kill(pid as libc::pid_t, number) };
}

/// Stops this process until SIGCONT, as Ctrl-Z would.
pub fn stop_self() {
    // SAFETY: raise takes a number.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Whether this is a signal by which a terminal stops its jobs.
pub fn is_by_terminal(number: c_int) -> bool {
    [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU].contains(&number)
}

/// Runs `work` on a thread with a stack of this size, which also receives the signals; on this
/// thread if none can be started.
pub fn on_a_thread<T: Send>(stack: usize, work: fn() -> T) -> T {
    let original = SignalState::now();
    let mut all = MaybeUninit::uninit();
    // SAFETY: sigfillset fills the set before it is read.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
    }
    let work = move || {
        original.restore();
        work()
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(stack).spawn_scoped(scope, work);
        match thread.map(|thread| thread.join()) {
            Ok(Ok(done)) => done,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => work(),
        }
    })
}

/// Whether there is a controlling terminal, so that a shell can continue a stopped job.
pub fn under_job_control() -> bool {
    rustix::fs::open(
        "/dev/tty",
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )
    .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::signal_name;

    #[test]
    fn only_a_session_leader_passes_a_hang_up_on() {
        for number in [libc::SIGHUP, libc::SIGCONT] {
            let by_kernel = ReceivedSignal { number, sender: None };
            assert!(by_kernel.is_hang_up_to(true) && !by_kernel.is_hang_up_to(false));
            assert!(!ReceivedSignal { number, sender: Some(7) }.is_hang_up_to(true));
        }
        for number in [libc::SIGINT, libc::SIGALRM, libc::SIGWINCH] {
            assert!(
                !ReceivedSignal { number, sender: None }.is_hang_up_to(true),
                "{}",
                signal_name(number)
            );
        }
    }

    #[test]
    fn process_in_a_session_of_an_outer_pid_namespace_leads_none() {
        // Runs this test again as the first process of a new pid namespace: its session is 0.
        if std::process::id() == 1 {
            return assert!(!is_session_leader());
        }
        let this = "host::signals::tests::\
                    process_in_a_session_of_an_outer_pid_namespace_leads_none";
        let mut inside = std::process::Command::new("unshare");
        inside.args(["--pid", "--fork", "--"]).arg(std::env::current_exe().unwrap());
        let output = inside.args(["--exact", this]).output();
        let output = output.unwrap_or_else(|error| panic!("unshare: {error}"));
        let (printed, errors) = (output.stdout, output.stderr);
        if errors.starts_with(b"unshare:") {
            return crate::host::skip::impossible(String::from_utf8_lossy(&errors).trim());
        }
        let printed = String::from_utf8_lossy(&printed);
        assert!(printed.contains("1 passed"), "{printed}");
    }

    #[test]
    fn signal_is_passed_on_unless_the_command_sent_it() {
        let from = |sender| ReceivedSignal { number: libc::SIGUSR1, sender };
        assert!(from(Some(7)).is_for(8) && !from(Some(8)).is_for(8) && !from(None).is_for(8));
        // The pid of a sender in another pid namespace is 0.
        assert!(from(Some(0)).is_for(8));
    }
}
