//! A pidfd of a process: its exit is noticed at once, and pid reuse cannot be mistaken for it.
//!
//! The kernel reports the exit status only to the parent; since Linux 6.15 also to holders of a
//! pidfd (`PIDFD_GET_INFO`).

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::model::{End, Usage};

/// An open pidfd.
#[derive(Debug)]
pub struct PidFd {
    /// Its pid.
    pub pid: u32,
    pidfd: OwnedFd,
}

/// `struct pidfd_info` as of its first version with an exit code (linux/pidfd.h).
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    pid: u32,
    tgid: u32,
    parent: u32,
    /// Real, effective, saved and file system user and group.
    owners: [u32; 8],
    exit_code: i32,
}

/// `PIDFD_INFO_EXIT`: set in the request, and in the answer when the exit code is valid.
const EXIT: u64 = 1 << 3;

/// `_IOWR(PIDFS_IOCTL_MAGIC, 11, struct pidfd_info)`.
const GET_INFO: libc::Ioctl =
    ((3 << 30) | ((size_of::<PidfdInfo>() as u32) << 16) | (0xff << 8) | 11) as libc::Ioctl;

impl PidFd {
    /// Opens a pidfd of a process.
    pub fn open(pid: u32) -> std::io::Result<PidFd> {
        let no_such_process = || std::io::Error::from_raw_os_error(libc::ESRCH);
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(no_such_process)?;
        Ok(PidFd { pid, pidfd: pidfd_open(number, PidfdFlags::empty())? })
    }

    /// Whether it has exited.
    pub fn has_ended(&self) -> bool {
        let mut source = [PollFd::new(&self.pidfd, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut source, Some(&at_once)), Ok(count) if count > 0)
    }

    /// How it ended; `None` while it runs, until it is reaped, and where the kernel does not report
    /// it.
    pub fn end(&self) -> Option<End> {
        let mut info = PidfdInfo { mask: EXIT, ..PidfdInfo::default() };
        // SAFETY: the descriptor is ours, and the place is as large as the request says.
        let answered = unsafe { libc::ioctl(self.pidfd.as_raw_fd(), GET_INFO, &raw mut info) } == 0;
        (answered && info.mask & EXIT != 0).then(|| End::from_status(info.exit_code))
    }
}

impl PidFd {
    /// Whether it is a child of this process that nobody has reaped.
    pub fn is_child(&self) -> bool {
        self.wait(libc::WEXITED | libc::WNOWAIT).is_ok()
    }

    /// Reaps it, if it is a child of this process that has exited: never another process that has
    /// its pid by now.
    pub fn reap(&self) -> Option<(End, Usage)> {
        self.wait(libc::WEXITED).ok().flatten()
    }

    /// The system call and not the function of the C library, which has no place for the usage.
    fn wait(&self, options: libc::c_int) -> std::io::Result<Option<(End, Usage)>> {
        // SAFETY: an all-zero siginfo is valid; the kernel leaves it so while the child runs.
        let mut found: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: both places are ours and large enough, and the descriptor is ours.
        let result = unsafe {
            libc::syscall(
                libc::SYS_waitid,
                libc::P_PIDFD,
                self.pidfd.as_raw_fd(),
                &raw mut found,
                options | libc::WNOHANG,
                usage.as_mut_ptr(),
            )
        };
        if result != 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: the kernel filled in both fields where a child has exited, and left zeros else;
        // all zeros is a valid rusage.
        let (pid, status, usage) =
            unsafe { (found.si_pid(), found.si_status(), usage.assume_init()) };
        let end = if found.si_code == libc::CLD_EXITED { End::Code } else { End::Signal };
        Ok((pid != 0).then(|| (end(status), Usage::from(&usage))))
    }

    /// How it ended, if it is reaped within this time.
    pub fn end_within(&self, timeout: Duration) -> Option<End> {
        const PAUSE: Duration = Duration::from_millis(5);
        let mut pauses = timeout.as_nanos() / PAUSE.as_nanos();
        loop {
            // Without requested events, poll returns only once it is reaped (POLLHUP).
            let mut source = [PollFd::new(&self.pidfd, PollFlags::empty())];
            let pause = Timespec { tv_sec: 0, tv_nsec: PAUSE.as_nanos() as i64 };
            let is_reaped = matches!(poll(&mut source, Some(&pause)), Ok(count) if count > 0);
            let end = self.end();
            if end.is_some() || is_reaped || pauses == 0 {
                return end;
            }
            pauses -= 1;
        }
    }
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn exit_is_noticed_and_its_code_read_where_supported() {
        let mut command = Command::new("sh");
        command.args(["-c", "read x; exit 7"]);
        let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pidfd = PidFd::open(child.id()).unwrap();
        assert!(!pidfd.has_ended() && pidfd.end().is_none());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(pidfd.has_ended());
        // Linux before 6.15 does not report it.
        assert!(matches!(pidfd.end(), None | Some(End::Code(7))), "{:?}", pidfd.end());
    }

    #[test]
    #[expect(clippy::zombie_processes, reason = "its pidfd reaps it")]
    fn only_a_child_is_reaped_and_only_once() {
        let mut command = Command::new("sh");
        command.args(["-c", "kill -9 $$"]);
        let child = command.spawn().unwrap();
        let pidfd = PidFd::open(child.id()).unwrap();
        while !pidfd.has_ended() {
            std::thread::yield_now();
        }
        assert!(pidfd.is_child());
        let (end, usage) = pidfd.reap().unwrap();
        assert_eq!(end, End::Signal(libc::SIGKILL));
        assert!(usage.minor_faults > 0);
        assert!(!pidfd.is_child() && pidfd.reap().is_none());
        let parent = PidFd::open(std::os::unix::process::parent_id()).unwrap();
        assert!(!parent.is_child() && parent.reap().is_none());
    }

    #[test]
    fn pid_without_process_is_refused() {
        let error = PidFd::open(0).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
        assert!(PidFd::open(u32::MAX).is_err());
    }
}
