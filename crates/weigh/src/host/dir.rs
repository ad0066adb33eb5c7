//! Directories of the machine, and cached files in them that are read at every tick.
//!
//! A cached descriptor saves the path lookup (`io`: 9.4 → 3.5 µs) and makes pid reuse harmless:
//! after its process exited, reads fail with ESRCH, even when the pid is in use again. Descriptors
//! are limited, so a cached file takes one from an allowance.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, SeekFrom};
use rustix::io::Errno;

use super::Error;

/// A directory that files are opened in, by paths relative to it.
#[derive(Debug, Clone)]
pub struct Dir {
    fd: Arc<OwnedFd>,
    path: PathBuf,
    /// Every path that was opened, if these are recorded (`capture-host`).
    opened: Option<Arc<Mutex<BTreeSet<PathBuf>>>>,
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Dir {
    /// Opens a directory.
    pub fn open(path: &Path) -> Result<Dir, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|errno| Error::Read { path: path.to_owned(), source: errno.into() })?;
        Ok(Dir { fd: Arc::new(fd), path: path.to_owned(), opened: None })
    }

    /// A directory below this one.
    pub fn sub(&self, path: &str) -> Result<Dir, Error> {
        let whole = self.path.join(path);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, path, flags, Mode::empty())
            .map_err(|errno| Error::Read { path: whole.clone(), source: errno.into() })?;
        Ok(Dir { fd: Arc::new(fd), path: whole, opened: self.opened.clone() })
    }

    /// The same directory, which from now on records the paths that are opened in it.
    pub fn recording_opened(mut self, opened: &Arc<Mutex<BTreeSet<PathBuf>>>) -> Dir {
        self.opened = Some(Arc::clone(opened));
        self
    }

    /// The path of a file in this directory, for messages.
    pub fn path(&self, file: &CStr) -> PathBuf {
        self.path.join(file.to_string_lossy().as_ref())
    }

    /// An error about a file in this directory.
    fn error(&self, file: &CStr, errno: Errno) -> Error {
        Error::Read { path: self.path(file), source: errno.into() }
    }

    fn remember(&self, file: &CStr) {
        if let Some(opened) = &self.opened
            && let Ok(mut opened) = opened.lock()
        {
            opened.insert(self.path(file));
        }
    }

    fn open_file(&self, file: &CStr) -> Result<OwnedFd, Error> {
        self.remember(file);
        rustix::fs::openat(&self.fd, file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| self.error(file, errno))
    }

    /// Whether a file may be read, without reading it: that of some takes the kernel long to make.
    pub fn check(&self, file: &CStr) -> Result<(), Error> {
        self.open_file(file).map(drop)
    }

    /// Reads a whole file into `buffer`, which grows only when it is too small.
    pub fn read<'b>(&self, file: &CStr, buffer: &'b mut Vec<u8>) -> Result<&'b [u8], Error> {
        let fd = self.open_file(file)?;
        read_whole(&fd, buffer).map_err(|errno| self.error(file, errno))
    }

    /// Creates a directory in this one, writable by its owner alone.
    pub fn create_dir(&self, name: &CStr) -> Result<(), Error> {
        let mode = Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH;
        rustix::fs::mkdirat(&self.fd, name, mode).map_err(|errno| self.error(name, errno))
    }

    /// Removes a directory in this one; a cgroup can be removed when it has no processes.
    pub fn remove_dir(&self, name: &CStr) -> Result<(), Error> {
        rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR)
            .map_err(|errno| self.error(name, errno))
    }

    /// Writes text to a file of the kernel.
    pub fn write(&self, file: &CStr, text: &str) -> Result<(), Error> {
        let failed = |errno| self.error(file, errno);
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, file, flags, Mode::empty()).map_err(failed)?;
        rustix::io::write(&fd, text.as_bytes()).map_err(failed)?;
        Ok(())
    }

    /// Whether this user may write to a file.
    pub fn is_writable(&self, file: &CStr) -> bool {
        rustix::fs::accessat(&self.fd, file, rustix::fs::Access::WRITE_OK, AtFlags::EACCESS).is_ok()
    }

    /// The size that `stat` reports.
    pub fn size(&self, file: &CStr) -> Result<u64, Error> {
        rustix::fs::statat(&self.fd, file, AtFlags::empty())
            .map(|stat| stat.st_size as u64)
            .map_err(|errno| self.error(file, errno))
    }

    /// Its device and inode; for a link, those of its target.
    pub fn file_id(&self, file: &CStr) -> Result<(u64, u64), Error> {
        rustix::fs::statat(&self.fd, file, AtFlags::empty())
            .map(|stat| (stat.st_dev, stat.st_ino))
            .map_err(|errno| self.error(file, errno))
    }

    /// The user that owns it.
    pub fn owner(&self, file: &CStr) -> Result<u32, Error> {
        rustix::fs::statat(&self.fd, file, AtFlags::empty())
            .map(|stat| stat.st_uid)
            .map_err(|errno| self.error(file, errno))
    }

    /// Whether an entry of this name exists.
    pub fn has(&self, file: &CStr) -> bool {
        self.remember(file);
        rustix::fs::statat(&self.fd, file, AtFlags::empty()).is_ok()
    }

    /// The names in a subdirectory, sorted, without hidden ones.
    pub fn names(&self, subdirectory: &CStr) -> Result<Vec<CString>, Error> {
        let mut names: Vec<CString> = Vec::new();
        self.each_name(subdirectory, |name| {
            if !name.to_bytes().starts_with(b".") {
                names.push(name.to_owned());
            }
        })?;
        names.sort_unstable();
        Ok(names)
    }

    /// The target of a symbolic link in this directory.
    pub fn link(&self, file: &CStr) -> Option<Vec<u8>> {
        rustix::fs::readlinkat(&self.fd, file, Vec::new()).ok().map(|target| target.into_bytes())
    }

    /// Calls `visit` with the name and inode of every entry of this directory.
    pub fn entries(
        &self,
        buffer: &mut Vec<MaybeUninit<u8>>,
        mut visit: impl FnMut(&CStr, u64),
    ) -> Result<(), Error> {
        let failed = |errno: Errno| Error::Read { path: self.path.clone(), source: errno.into() };
        rustix::fs::seek(&self.fd, SeekFrom::Start(0)).map_err(failed)?;
        buffer.resize(32 * 1024, MaybeUninit::uninit());
        let mut entries = RawDir::new(self.fd.as_fd(), buffer);
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(failed)?;
            visit(entry.file_name(), entry.ino());
        }
        Ok(())
    }

    /// How many entries a subdirectory has, `.` and `..` left out.
    pub fn count(&self, subdirectory: &CStr) -> Result<u64, Error> {
        let mut count = 0u64;
        self.each_name(subdirectory, |_| count += 1)?;
        Ok(count)
    }

    /// Calls `visit` with the name of every entry of a subdirectory, `.` and `..` left out.
    pub fn each_name(
        &self,
        subdirectory: &CStr,
        mut visit: impl FnMut(&CStr),
    ) -> Result<(), Error> {
        self.listed(subdirectory, |name, _| visit(name))
    }

    /// Calls `visit` with the name of every directory in a subdirectory.
    pub fn directories(
        &self,
        subdirectory: &CStr,
        mut visit: impl FnMut(&CStr),
    ) -> Result<(), Error> {
        self.listed(subdirectory, |name, kind| {
            if kind == FileType::Directory {
                visit(name);
            }
        })
    }

    fn listed(
        &self,
        subdirectory: &CStr,
        mut visit: impl FnMut(&CStr, FileType),
    ) -> Result<(), Error> {
        let fd = self.open_file(subdirectory)?;
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut entries = RawDir::new(fd, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(|errno| self.error(subdirectory, errno))?;
            if ![c".", c".."].contains(&entry.file_name()) {
                visit(entry.file_name(), entry.file_type());
            }
        }
        Ok(())
    }
}

/// How many more descriptors may stay open.
#[derive(Debug, Clone)]
pub struct Descriptors(Rc<Cell<usize>>);

impl Descriptors {
    /// At most this many.
    pub fn at_most(count: usize) -> Descriptors {
        Descriptors(Rc::new(Cell::new(count)))
    }

    /// Takes one, if there is one.
    pub fn take(&self) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        left > 0
    }

    /// Gives one back.
    pub fn release(&self) {
        self.0.set(self.0.get() + 1);
    }
}

/// A file that is read at every tick; it stays open as long as the allowance lasts.
#[derive(Debug)]
pub struct CachedFile {
    fd: Option<OwnedFd>,
    allowance: Descriptors,
}

impl CachedFile {
    /// Nothing opened yet.
    pub fn new(allowance: &Descriptors) -> CachedFile {
        CachedFile { fd: None, allowance: allowance.clone() }
    }

    /// A file that always stays open: one of the few that are read at every tick of every run.
    pub fn always() -> CachedFile {
        CachedFile::new(&Descriptors::at_most(1))
    }

    /// Reads the whole file, opening it when it is not open.
    ///
    /// `path` is called only to open the file or to report an error.
    pub fn read<'b, P: AsRef<CStr>>(
        &mut self,
        dir: &Dir,
        path: impl Fn() -> P,
        buffer: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], Error> {
        let failed = |errno| dir.error(path().as_ref(), errno);
        if let Some(fd) = &self.fd {
            return read_whole(fd, buffer).map_err(failed);
        }
        let fd = dir.open_file(path().as_ref())?;
        let bytes = read_whole(&fd, buffer).map_err(failed)?;
        if self.allowance.take() {
            self.fd = Some(fd);
        }
        Ok(bytes)
    }

    /// The size that `stat` reports.
    pub fn size(&mut self, dir: &Dir, path: &CStr) -> Result<u64, Error> {
        if self.fd.is_none() && self.allowance.take() {
            self.fd = Some(dir.open_file(path).inspect_err(|_| self.allowance.release())?);
        }
        match &self.fd {
            Some(fd) => rustix::fs::fstat(fd)
                .map(|stat| stat.st_size as u64)
                .map_err(|errno| dir.error(path, errno)),
            None => dir.size(path),
        }
    }
}

impl Drop for CachedFile {
    fn drop(&mut self) {
        if self.fd.is_some() {
            self.allowance.release();
        }
    }
}

/// A cached file with its path: for files that are found once and read at every tick.
#[derive(Debug)]
pub struct CachedPath {
    path: CString,
    file: CachedFile,
}

impl CachedPath {
    /// The file at this path, not opened yet.
    pub fn new(path: CString, allowance: &Descriptors) -> CachedPath {
        CachedPath { path, file: CachedFile::new(allowance) }
    }

    /// Where it is.
    pub fn path(&self) -> &CStr {
        &self.path
    }

    /// Reads the whole file, opening it when it is not open.
    pub fn read<'b>(&mut self, dir: &Dir, buffer: &'b mut Vec<u8>) -> Result<&'b [u8], Error> {
        let path: &CStr = &self.path;
        self.file.read(dir, || path, buffer)
    }
}

/// `PID/file`, built without allocating: it is needed for every process.
#[derive(Debug, Clone, Copy)]
pub struct ProcPath {
    bytes: [u8; 32],
}

impl ProcPath {
    /// The path of `file` of one process; `file` is a name of at most 20 bytes.
    pub fn new(pid: u32, file: &str) -> ProcPath {
        let mut digits = [0u8; 10];
        let mut first = digits.len();
        let mut rest = pid;
        loop {
            first -= 1;
            digits[first] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        // The last byte stays zero and ends the string.
        let mut bytes = [0u8; 32];
        let name = std::iter::once(b'/').chain(file.bytes());
        for (place, byte) in bytes[..31].iter_mut().zip(digits[first..].iter().copied().chain(name))
        {
            *place = byte;
        }
        ProcPath { bytes }
    }

    /// The path as the kernel wants it, for a file that is read once.
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"")
    }
}

impl AsRef<CStr> for ProcPath {
    fn as_ref(&self) -> &CStr {
        self.as_c_str()
    }
}

/// Files of records (`vmstat`, `diskstats`, `net/dev`, `cpuinfo`) come in pieces of at most a page,
/// a piece ends where the next record would not fit, and no record of ours is longer than half a
/// page. So a piece that is not the last has more bytes than these.
const HALF_A_PAGE: usize = 2048;

/// Reads a file from its beginning.
///
/// Small files are there after one call: the second, which would only say "end of file", is saved.
fn read_whole<'b>(fd: &OwnedFd, buffer: &'b mut Vec<u8>) -> Result<&'b [u8], Errno> {
    if buffer.len() < 4096 {
        buffer.resize(4096, 0);
    }
    let mut filled = 0;
    loop {
        let count = match rustix::io::pread(fd, &mut buffer[filled..], filled as u64) {
            Ok(count) => count,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno),
        };
        filled += count;
        if count < HALF_A_PAGE && filled < buffer.len() {
            return Ok(&buffer[..filled]);
        }
        if filled == buffer.len() {
            buffer.resize(buffer.len() * 2, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    #[test]
    fn proc_path_is_pid_and_file_name() {
        assert_eq!(ProcPath::new(1, "stat").as_c_str(), c"1/stat");
        assert_eq!(
            ProcPath::new(4_294_967_295, "smaps_rollup").as_c_str(),
            c"4294967295/smaps_rollup"
        );
    }

    #[test]
    fn file_larger_than_the_buffer_is_read_whole() {
        let long = "x".repeat(10_000);
        let fake = FakeHost::new().proc("stat", &long);
        let mut buffer = Vec::new();
        assert_eq!(fake.host().proc.read(c"stat", &mut buffer).unwrap().len(), 10_000);
    }

    #[test]
    fn file_read_in_several_pieces_is_read_whole() {
        let host = super::super::Host::at(Path::new("/")).unwrap();
        let lines = |bytes: &[u8]| bytes.split(|&byte| byte == b'\n').count();
        // Larger than a page on most kernels, and returned a page at a time.
        #[allow(clippy::disallowed_methods, reason = "the comparison needs another reader")]
        let all = std::fs::read("/proc/vmstat").unwrap();
        let mut buffer = vec![0; 16 * 1024];
        assert_eq!(lines(host.proc.read(c"vmstat", &mut buffer).unwrap()), lines(&all));
    }

    #[test]
    fn cached_file_is_reread_and_reopened_without_allowance() {
        for allowed in [1, 0] {
            let fake = FakeHost::new().proc("7/io", "one");
            let host = fake.host();
            let mut file = CachedFile::new(&Descriptors::at_most(allowed));
            let mut buffer = Vec::new();
            let path = || c"7/io";
            assert_eq!(file.read(&host.proc, path, &mut buffer).unwrap(), b"one");
            fake.set_proc("7/io", "two");
            assert_eq!(file.read(&host.proc, path, &mut buffer).unwrap(), b"two");
            assert_eq!(file.fd.is_some(), allowed == 1);
        }
    }

    #[test]
    fn error_names_the_file() {
        let fake = FakeHost::new();
        let error = fake.host().proc.read(c"7/io", &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("proc/7/io: No such file"), "{error}");
        assert!(error.is_gone());
    }
}
