//! Loads that hold memory: private pages of one process, pages shared by a fork.

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::ptr;
use std::time::Duration;

use crate::process::{code_of, fork, sleep, wait_for};
use crate::{Failure, failed};

/// Anonymous private memory in base pages, given back when dropped.
struct Region {
    start: *mut u8,
    size: usize,
    page: usize,
}

impl Region {
    fn map(size: usize) -> Result<Self, Failure> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address of the kernel's choice replaces nothing.
        let start = unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(failed(format!("cannot map {size} bytes"), io::Error::last_os_error()));
        }
        // A huge page would hold 2 MiB for one touched byte. EINVAL means a
        // kernel without huge pages, which is as good.
        // SAFETY: the range is the mapping just made.
        unsafe { libc::madvise(start, size, libc::MADV_NOHUGEPAGE) };
        // SAFETY: sysconf takes a number; the page size is always known.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.unsigned_abs() as usize;
        Ok(Self { start: start.cast(), size, page })
    }

    /// Writes into every page, so that each is a page of our own.
    fn write_pages(&mut self) {
        for offset in (0..self.size).step_by(self.page) {
            // SAFETY: the offset is inside the mapping, which is writable and
            // borrowed by nobody else. Volatile: the byte is never read.
            unsafe { self.start.add(offset).write_volatile(1) };
        }
    }

    /// Reads from every page, so that each is in the page table.
    fn read_pages(&self) {
        for offset in (0..self.size).step_by(self.page) {
            // SAFETY: the offset is inside the mapping, which is readable.
            unsafe { self.start.add(offset).read_volatile() };
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and no reference into it was ever given out.
        unsafe { libc::munmap(self.start.cast(), self.size) };
    }
}

/// Sleeps `after`, holds `size` bytes for `duration`, gives them back, sleeps `linger`.
pub fn touch(
    size: usize,
    duration: Duration,
    after: Duration,
    linger: Duration,
) -> Result<(), Failure> {
    sleep(after);
    let mut region = Region::map(size)?;
    region.write_pages();
    sleep(duration);
    drop(region);
    sleep(linger);
    Ok(())
}

/// `count` children and the parent hold the same `size` bytes for `duration`.
///
/// RSS adds up to (count + 1) × size, PSS to size. The time begins when every
/// child has read every page, and the children end when the parent closes `go`
/// (also if it dies).
pub fn shared(size: usize, count: usize, duration: Duration) -> Result<(), Failure> {
    let mut region = Region::map(size)?;
    region.write_pages();
    let no_pipe = |why| failed("cannot make a pipe", why);
    let (mut all_ready, ready) = io::pipe().map_err(no_pipe)?;
    let (gone, go) = io::pipe().map_err(no_pipe)?;
    let mut pids = Vec::with_capacity(count);
    for _ in 0..count {
        let body = || {
            // SAFETY: this child leaves by _exit, so the owner `go` never closes
            // it a second time.
            unsafe { libc::close(go.as_raw_fd()) };
            region.read_pages();
            let held = (&ready).write_all(&[1]).and_then(|()| (&gone).read(&mut [0]));
            code_of(held.map(drop).map_err(|why| failed("pipe to the parent", why)))
        };
        // SAFETY: this load has not started a thread.
        pids.push(unsafe { fork(body) }?);
    }
    drop(ready);
    all_ready
        .read_exact(&mut vec![0; count])
        .map_err(|why| failed("a child ended before its memory was ready", why))?;
    sleep(duration);
    drop(go);
    pids.into_iter().try_for_each(wait_for)
}
