//! Signals that are for the command, taken from a descriptor instead of a handler.
//!
//! A terminal sends Ctrl-C and Ctrl-Z to the whole foreground group, so the
//! command has them already; what somebody sends to weigh alone is passed on.
//! The kernel tells the two apart: `si_code` says who sent it.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::c_int;

/// Signals that are taken from the descriptor.
///
/// Not taken: those that report a fault of weigh's own (SEGV and its like) and
/// those that cannot be (KILL, STOP).
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

/// What weigh does with signals that somebody may have set otherwise for it.
///
/// Children of a process that ignores SIGCHLD are never waited for. And a limit on file sizes
/// is the command's: for weigh it means a recording that is not whole, not the end.
const OWN: [(c_int, libc::sighandler_t); 2] =
    [(libc::SIGCHLD, libc::SIG_DFL), (libc::SIGXFSZ, libc::SIG_IGN)];

/// The signal mask and dispositions as they were before weigh changed them.
#[derive(Clone, Copy)]
pub struct Before {
    mask: libc::sigset_t,
    dispositions: [libc::sighandler_t; OWN.len()],
}

impl Before {
    /// Puts everything in force again, for the command.
    pub fn restore(&self) {
        for ((number, _), disposition) in OWN.into_iter().zip(self.dispositions) {
            // SAFETY: what signal(2) returned is what it takes; handlers do not survive exec.
            unsafe { libc::signal(number, disposition) };
        }
        // SAFETY: the set was filled by the kernel in `Signals::take`.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &self.mask, std::ptr::null_mut()) };
    }
}

/// A signal that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// Its number.
    pub number: c_int,
    /// The process that sent it; `None` when the kernel did (a terminal, for one).
    pub sender: Option<u32>,
}

/// The descriptor on which signals arrive.
pub struct Signals {
    fd: OwnedFd,
}

impl Signals {
    /// Blocks the signals that are for the command and opens the descriptor they arrive on.
    pub fn take() -> std::io::Result<(Signals, Before)> {
        let mut set = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: the numbers and dispositions are valid, and no handler is installed.
        let dispositions = OWN.map(|(number, own)| unsafe { libc::signal(number, own) });
        // SAFETY: sigemptyset fills the set before anything reads it; sigprocmask fills
        // `before`; signalfd is given a filled set and returns a descriptor or -1.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            let realtime = libc::SIGRTMIN()..=libc::SIGRTMAX();
            for number in TAKEN.into_iter().chain(realtime) {
                libc::sigaddset(set.as_mut_ptr(), number);
            }
            if libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr()) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
            let fd = libc::signalfd(-1, set.as_ptr(), flags);
            if fd < 0 {
                return Err(std::io::Error::last_os_error());
            }
            let before = Before { mask: before.assume_init(), dispositions };
            Ok((Signals { fd: OwnedFd::from_raw_fd(fd) }, before))
        }
    }

    /// The next signal that has arrived, if any.
    pub fn arrived(&mut self) -> Option<Arrived> {
        let mut bytes = [0u8; size_of::<libc::signalfd_siginfo>()];
        let count = rustix::io::read(&self.fd, &mut bytes).ok()?;
        if count != bytes.len() {
            return None;
        }
        // SAFETY: the kernel filled the whole structure, which is plain numbers.
        let arrived: libc::signalfd_siginfo =
            unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) };
        // Codes above zero are the kernel's own; SI_USER, SI_QUEUE and SI_TKILL are not.
        let sender = (arrived.ssi_code <= 0).then_some(arrived.ssi_pid);
        Some(Arrived { number: arrived.ssi_signo as c_int, sender })
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Sends a signal to a process; one that is gone does not mind.
pub fn send(pid: u32, number: c_int) {
    // SAFETY: kill takes two numbers.
    unsafe { libc::kill(pid as libc::pid_t, number) };
}

/// Stops this process until somebody continues it, as Ctrl-Z would.
pub fn stop_self() {
    // SAFETY: raise takes a number.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Whether a terminal's job control applies: some shell would continue a stopped job.
pub fn under_job_control() -> bool {
    rustix::fs::open(
        "/dev/tty",
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )
    .is_ok()
}

/// The name of a signal, as `kill -l` says it.
pub fn name(number: c_int) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
        "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
        "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    match usize::try_from(number).ok().and_then(|number| NAMES.get(number.wrapping_sub(1))) {
        Some(name) => format!("SIG{name}"),
        None => format!("signal {number}"),
    }
}
