//! What the kernel writes into its log while somebody is watched: `/dev/kmsg`, for root
//! (CAP_SYSLOG where `kernel.dmesg_restrict` is set).
//!
//! Each read gives one record. What surprised us: a record that was overwritten before it was
//! read is told once, as EPIPE, and reading goes on behind it.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::Errno;

/// The log from some moment on.
#[derive(Debug)]
pub struct KernelLog {
    fd: OwnedFd,
}

/// The longest record that the kernel gives out.
const RECORD: usize = 8192;

/// More than these nobody waits for.
const MOST: usize = 100_000;

impl KernelLog {
    /// What is written from now on.
    pub fn from_now() -> std::io::Result<KernelLog> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::open("/dev/kmsg", flags, Mode::empty())?;
        rustix::fs::seek(&fd, SeekFrom::End(0))?;
        Ok(KernelLog { fd })
    }

    /// Hands over the records that were written since the last call.
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
