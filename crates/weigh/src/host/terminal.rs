//! The terminal on stderr, for text beside the output of a command that has the same terminal.
//!
//! Writes never wait for it: a user who stops it with Ctrl-S, or a terminal that reads nothing,
//! would stop the monitor. `O_NONBLOCK` belongs to the open file, which stderr shares with the
//! command, so the terminal is opened once more.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};

/// How long to wait for the rest of a text that the terminal took in part: half of a control
/// sequence would change what the command writes next.
const REST: Duration = Duration::from_millis(100);

/// The terminal on stderr.
#[derive(Debug)]
pub struct Terminal {
    fd: OwnedFd,
}

impl Terminal {
    /// The terminal on stderr, if that is the one that controls this process.
    pub fn of_stderr() -> Option<Terminal> {
        foreground(rustix::stdio::stderr())?;
        let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = |path: &str| rustix::fs::open(path, flags, Mode::empty());
        // After su it belongs to another user.
        let fd = open("/proc/self/fd/2").or_else(|_| open("/dev/tty")).ok()?;
        Some(Terminal { fd })
    }

    /// Whether this process is in the terminal's foreground. A write from the background would
    /// appear among the output of another job.
    pub fn is_ours(&self) -> bool {
        foreground(self.fd.as_fd()) == Some(rustix::process::getpgrp().as_raw_pid())
    }

    /// Whether the terminal edits lines (canonical mode). Programs that draw on the whole screen
    /// turn it off.
    pub fn edits_lines(&self) -> bool {
        let mut settings = std::mem::MaybeUninit::<libc::termios>::uninit();
        // SAFETY: tcgetattr fills the structure when it returns 0, and only then it is read.
        unsafe {
            libc::tcgetattr(self.fd.as_raw_fd(), settings.as_mut_ptr()) == 0
                && settings.assume_init().c_lflag & libc::ICANON != 0
        }
    }

    /// Its rows and columns, where it knows them.
    pub fn size(&self) -> Option<(u16, u16)> {
        let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: TIOCGWINSZ fills the structure it is given.
        let failed = unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::TIOCGWINSZ, &mut size) } != 0;
        (!failed && size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
    }

    /// Writes all of a text, or nothing when the terminal takes nothing for so long. Returns
    /// whether it is written.
    pub fn write(&self, text: &str, patience: Duration) -> bool {
        let mut rest = text.as_bytes();
        let mut patience = patience;
        while !rest.is_empty() {
            if !self.is_writable_within(patience) {
                return false;
            }
            match rustix::io::write(&self.fd, rest) {
                Ok(written) => rest = &rest[written..],
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(_) => return false,
            }
            patience = patience.max(REST);
        }
        true
    }

    fn is_writable_within(&self, time: Duration) -> bool {
        let time =
            Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let mut one = [PollFd::new(&self.fd, PollFlags::OUT)];
        matches!(poll(&mut one, Some(&time)), Ok(1))
            && one[0].revents().contains(PollFlags::OUT)
            && !one[0].revents().contains(PollFlags::HUP)
    }
}

/// The process group in the foreground of this process's terminal; `None` when the descriptor is
/// not that terminal.
fn foreground(fd: BorrowedFd<'_>) -> Option<i32> {
    // SAFETY: tcgetpgrp takes a descriptor and returns a number.
    let group = unsafe { libc::tcgetpgrp(fd.as_raw_fd()) };
    (group > 0).then_some(group)
}
