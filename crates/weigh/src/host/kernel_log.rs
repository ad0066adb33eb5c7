//! Messages of the kernel log written during a run: `/dev/kmsg`, for root (CAP_SYSLOG where
//! `kernel.dmesg_restrict` is set).
//!
//! Each read returns one record. What surprised us: records overwritten before they were read give
//! one EPIPE, and the next read continues after them.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::Errno;

/// The kernel log from the moment it was opened.
#[derive(Debug)]
pub struct KernelLog {
    fd: OwnedFd,
}

/// The longest record that the kernel returns.
const RECORD: usize = 8192;

/// At most so many records are read at once.
const MOST: usize = 100_000;

impl KernelLog {
    /// Opens the log at its end.
    pub fn from_now() -> std::io::Result<KernelLog> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::open("/dev/kmsg", flags, Mode::empty())?;
        rustix::fs::seek(&fd, SeekFrom::End(0))?;
        Ok(KernelLog { fd })
    }

    /// Calls `each` with the records written since the last call.
    pub fn next(&mut self, mut each: impl FnMut(&[u8])) {
        let mut buffer = [0; RECORD];
        for _ in 0..MOST {
            match rustix::io::read(&self.fd, &mut buffer) {
                Ok(0) => return,
                Ok(length) => each(&buffer[..length]),
                Err(Errno::PIPE | Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }
}
