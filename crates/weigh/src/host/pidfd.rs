//! A hold on a process that is not our child: its end is noticed at once, and its pid can
//! never be taken for somebody else's.
//!
//! How it ended the kernel tells only its parent; since Linux 6.15 also whoever holds a
//! pidfd (`PIDFD_GET_INFO`).

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::model::End;

/// A process that is held.
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

/// `PIDFD_INFO_EXIT`: wanted, and in the answer when it is there.
const EXIT: u64 = 1 << 3;

/// `_IOWR(PIDFS_IOCTL_MAGIC, 11, struct pidfd_info)`.
const GET_INFO: libc::Ioctl =
    ((3 << 30) | ((size_of::<PidfdInfo>() as u32) << 16) | (0xff << 8) | 11) as libc::Ioctl;

impl PidFd {
    /// Takes hold of a process that is there.
    pub fn open(pid: u32) -> std::io::Result<PidFd> {
        let nobody = || std::io::Error::from_raw_os_error(libc::ESRCH);
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(nobody)?;
        Ok(PidFd { pid, pidfd: pidfd_open(number, PidfdFlags::empty())? })
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        let mut source = [PollFd::new(&self.pidfd, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut source, Some(&at_once)), Ok(count) if count > 0)
    }

    /// How it ended; `None` while it lives, until its parent has taken note, and where the
    /// kernel does not tell.
    pub fn end(&self) -> Option<End> {
        let mut info = PidfdInfo { mask: EXIT, ..PidfdInfo::default() };
        // SAFETY: the descriptor is ours, and the place is as large as the request says.
        let told = unsafe { libc::ioctl(self.pidfd.as_raw_fd(), GET_INFO, &raw mut info) } == 0;
        (told && info.mask & EXIT != 0).then(|| End::from_status(info.exit_code))
    }
}

impl PidFd {
    /// How it ended, when its parent takes note of it within this time.
    pub fn end_within(&self, patience: Duration) -> Option<End> {
        const PAUSE: Duration = Duration::from_millis(5);
        let mut pauses = patience.as_nanos() / PAUSE.as_nanos();
        loop {
            // Without an event asked for, only that it is reaped is told.
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
    fn the_end_of_a_process_is_noticed_and_told_where_the_kernel_does() {
        let mut command = Command::new("sh");
        command.args(["-c", "read x; exit 7"]);
        let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        let held = PidFd::open(child.id()).unwrap();
        assert!(!held.has_ended() && held.end().is_none());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(held.has_ended());
        // Linux before 6.15 does not tell.
        assert!(matches!(held.end(), None | Some(End::Code(7))), "{:?}", held.end());
    }

    #[test]
    fn nobody_cannot_be_held() {
        let nobody = PidFd::open(0).unwrap_err();
        assert_eq!(nobody.raw_os_error(), Some(libc::ESRCH));
        assert!(PidFd::open(u32::MAX).is_err());
    }
}
