//! Loads that hold memory: private pages of one process, pages shared by a fork or by vfork.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr;
use std::time::Duration;

use crate::process::{code_of, fork, sleep, timespec, wait_for};
use crate::{Failure, failed};

/// Anonymous private memory in base pages, given back when dropped.
struct Region {
    start: *mut u8,
    size: usize,
    page: usize,
}

impl Region {
    fn map(size: usize) -> Result<Self, Failure> {
        let start = map(size, 0).map_err(|why| failed(format!("cannot map {size} bytes"), why))?;
        // A huge page would hold 2 MiB for one touched byte. EINVAL means a
        // kernel without huge pages, which is as good.
        // SAFETY: the range is the mapping just made.
        unsafe { libc::madvise(start, size, libc::MADV_NOHUGEPAGE) };
        // SAFETY: sysconf takes a number; the page size is always known.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.unsigned_abs() as usize;
        Ok(Self { start: start.cast(), size, page })
    }

    /// The same in huge pages of the default size, which must be reserved.
    fn map_huge(size: usize) -> Result<Self, Failure> {
        let start = map(size, libc::MAP_HUGETLB)
            .map_err(|why| Failure::CannotBeHad(format!("{size} bytes in huge pages: {why}")))?;
        Ok(Self { start: start.cast(), size, page: 4096 })
    }

    /// Writes into every page, so that each is a page of our own.
    fn write_pages(&mut self) {
        for offset in (0..self.size).step_by(self.page) {
            // SAFETY: the offset is inside the mapping, which is writable and
            // not borrowed elsewhere. Volatile: the byte is never read.
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

fn map(size: usize, more_flags: libc::c_int) -> io::Result<*mut libc::c_void> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | more_flags;
    // SAFETY: a new mapping at an address of the kernel's choice replaces nothing.
    let start = unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(start) }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and no reference into it was ever given out.
        unsafe { libc::munmap(self.start.cast(), self.size) };
    }
}

/// Sleeps `after`, holds `size` bytes for `duration`, gives them back, sleeps `linger`.
pub(crate) fn touch(
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

/// Maps the first `size` bytes of a file and reads all of them: page cache, no memory of its own.
pub(crate) fn map_file(path: &Path, size: usize, duration: Duration) -> Result<(), Failure> {
    let why = |why| failed(format!("cannot map {size} bytes of {}", path.display()), why);
    let file = File::open(path).map_err(why)?;
    let (protection, flags) = (libc::PROT_READ, libc::MAP_SHARED);
    // SAFETY: a new mapping at an address of the kernel's choice replaces nothing.
    let start =
        unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, file.as_raw_fd(), 0) };
    if start == libc::MAP_FAILED {
        return Err(why(io::Error::last_os_error()));
    }
    let region = Region { start: start.cast(), size, page: 4096 };
    region.read_pages();
    sleep(duration);
    Ok(())
}

/// `count` children and the parent hold the same `size` bytes for `duration`.
///
/// RSS adds up to (count + 1) × size, PSS to size.
pub(crate) fn shared(size: usize, count: usize, duration: Duration) -> Result<(), Failure> {
    let mut region = Region::map(size)?;
    region.write_pages();
    at_once(count, duration, || {
        region.read_pages();
        Ok(None)
    })
}

/// `count` children hold `size` bytes of their own each, all of them for `duration`.
pub(crate) fn private(size: usize, count: usize, duration: Duration) -> Result<(), Failure> {
    at_once(count, duration, || {
        let mut region = Region::map(size)?;
        region.write_pages();
        Ok(Some(region))
    })
}

/// `count` children `prepare` memory and hold it for `duration`.
///
/// The time begins when the memory of every child is ready, and the children end
/// when the parent closes `go` (also if it dies).
fn at_once(
    count: usize,
    duration: Duration,
    prepare: impl Fn() -> Result<Option<Region>, Failure>,
) -> Result<(), Failure> {
    let no_pipe = |why| failed("cannot make a pipe", why);
    let (mut all_ready, ready) = io::pipe().map_err(no_pipe)?;
    let (gone, go) = io::pipe().map_err(no_pipe)?;
    let mut pids = Vec::with_capacity(count);
    for _ in 0..count {
        let body = || {
            // SAFETY: this child leaves by _exit, so the owner `go` never closes
            // it a second time.
            unsafe { libc::close(go.as_raw_fd()) };
            let region = match prepare() {
                Ok(region) => region,
                Err(failure) => return code_of(Err(failure)),
            };
            let held = (&ready).write_all(&[1]).and_then(|()| (&gone).read(&mut [0]));
            drop(region);
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

/// Holds `size` bytes of huge pages for `duration`.
pub(crate) fn huge_pages(size: usize, duration: Duration) -> Result<(), Failure> {
    let mut region = Region::map_huge(size)?;
    region.write_pages();
    sleep(duration);
    Ok(())
}

/// The arguments of a vfork child, which must not allocate.
struct Vforked {
    sleeps: libc::timespec,
    /// The arguments of exec, if it calls that.
    becomes: Option<[*const libc::c_char; 4]>,
}

/// What a vfork child does, in the parent's memory and on a stack of its own.
extern "C" fn vforked(arguments: *mut libc::c_void) -> libc::c_int {
    // SAFETY: the parent waits, and its arguments stay valid meanwhile.
    let arguments = unsafe { &*arguments.cast::<Vforked>() };
    // SAFETY: the time is valid and the remainder is not requested.
    unsafe { libc::nanosleep(&raw const arguments.sleeps, ptr::null_mut()) };
    if let Some(arguments) = &arguments.becomes {
        // SAFETY: the arguments are C strings and end with a null pointer.
        unsafe { libc::execv(c"/proc/self/exe".as_ptr(), arguments.as_ptr()) };
        return 1;
    }
    0
}

/// `count` children, one after the other, sleep in the parent's `size` bytes, as a program that
/// starts others with vfork or posix_spawn has them until exec.
pub(crate) fn vfork(
    size: usize,
    count: usize,
    duration: Duration,
    execs: bool,
) -> Result<(), Failure> {
    let mut region = Region::map(size)?;
    region.write_pages();
    let mut stack = Region::map(64 << 10)?;
    stack.write_pages();
    let time = std::ffi::CString::new(format!("{}ms", duration.as_millis())).unwrap_or_default();
    let arguments = [c"burner".as_ptr(), c"sleep".as_ptr(), time.as_ptr(), ptr::null()];
    let arguments = Vforked { sleeps: timespec(duration), becomes: execs.then_some(arguments) };
    for _ in 0..count {
        let arguments: *const Vforked = &raw const arguments;
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the child has a stack of its own, which grows down from its end, and this
        // thread waits until it has ended or called exec; it changes nothing of ours.
        let pid = unsafe {
            let top = stack.start.add(stack.size).cast();
            libc::clone(vforked, top, flags, arguments.cast_mut().cast())
        };
        if pid == -1 {
            return Err(failed("cannot vfork", io::Error::last_os_error()));
        }
        wait_for(pid)?;
    }
    Ok(())
}
