//! Starting the command: a forked child that waits until it may exec.
//!
//! fork and not vfork: a vfork child uses our memory, and exec would put our size into its
//! ru_maxrss. Between fork and exec the counters are opened that must cover the command from its
//! first instruction.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::pipe::PipeFlags;
use rustix::time::{ClockId, clock_gettime};

use super::descent_mark::DescentMark;
use super::limits::ResourceLimits;
use super::signals::SignalState;
use super::{environment, out_of_memory};
use crate::model::{Io, Usage};

/// Why a command cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such program.
    #[error("{program}: no such program")]
    NotFound {
        /// As given on the command line.
        program: String,
    },
    /// It exists, and its interpreter or loader is missing.
    #[error("{program}: the interpreter on its first line, or its loader, is missing")]
    NoInterpreter {
        /// As given on the command line.
        program: String,
    },
    /// It exists, and cannot be executed.
    #[error("{program}: {cause}")]
    NotExecutable {
        /// As given on the command line.
        program: String,
        /// The error of the kernel.
        cause: std::io::Error,
    },
    /// fork failed.
    #[error("cannot start a process: {0}")]
    Fork(#[from] std::io::Error),
}

impl Error {
    /// The error of exec for a program that was found.
    pub fn of_exec(program: String, errno: i32) -> Error {
        if errno == libc::ENOENT {
            // The file existed before exec: its interpreter does not.
            Error::NoInterpreter { program }
        } else {
            Error::NotExecutable { program, cause: std::io::Error::from_raw_os_error(errno) }
        }
    }
}

/// What this process inherited, before Rust's runtime changed it.
///
/// The command must get the same: Rust ignores SIGPIPE and opens closed standard
/// streams before `main` runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Inherited {
    /// Whether SIGPIPE was ignored.
    pub ignores_sigpipe: bool,
    /// Which of stdin, stdout and stderr were closed.
    pub closed: [bool; 3],
    /// What the process had used before it called exec for this program.
    pub used: Usage,
}

/// State that the command must find as weigh found it.
#[derive(Clone, Copy)]
pub struct Original {
    /// What Rust's runtime changed.
    pub inherited: Inherited,
    /// What weigh changes: signals,
    pub signals: SignalState,
    /// and limits.
    pub limits: ResourceLimits,
    /// What shows that a process is a descendant of the command, where that is wanted.
    pub mark: Option<DescentMark>,
}

impl Original {
    /// The current state, before weigh changes it.
    pub fn now(inherited: Inherited) -> Original {
        let (signals, limits) = (SignalState::now(), ResourceLimits::now());
        Original { inherited, signals, limits, mark: None }
    }

    /// Restores everything for the command: between fork and exec, or before exec in place of
    /// weigh.
    pub fn restore(&self) {
        let ignored = self.inherited.ignores_sigpipe;
        let sigpipe = if ignored { libc::SIG_IGN } else { libc::SIG_DFL };
        // SAFETY: SIGPIPE exists and both dispositions are valid.
        unsafe { libc::signal(libc::SIGPIPE, sigpipe) };
        self.signals.restore();
        for (fd, closed) in self.inherited.closed.into_iter().enumerate() {
            if closed {
                // SAFETY: Rust's runtime put /dev/null there; the command expects nothing.
                unsafe { libc::close(fd as i32) };
            }
        }
        self.limits.restore();
        self.mark.into_iter().for_each(DescentMark::set);
    }
}

/// Strings as exec takes them: a command and its arguments, or an environment.
struct Arguments {
    /// Ends with a null pointer; the strings outlive it.
    pointers: Vec<*const libc::c_char>,
    _strings: Vec<CString>,
}

impl Arguments {
    fn of(command: &[OsString]) -> std::io::Result<Arguments> {
        let strings: Vec<CString> = command
            .iter()
            .map(|argument| CString::new(argument.as_bytes()))
            .collect::<Result<_, _>>()
            .map_err(|nul| std::io::Error::new(std::io::ErrorKind::InvalidInput, nul))?;
        let ends = std::iter::once(std::ptr::null());
        let pointers = strings.iter().map(|argument| argument.as_ptr()).chain(ends).collect();
        Ok(Arguments { pointers, _strings: strings })
    }

    /// Calls exec; returns the error number if it fails.
    fn execute(&self) -> i32 {
        // SAFETY: the array ends with a null pointer and its strings outlive the call.
        unsafe { libc::execvp(self.pointers[0], self.pointers.as_ptr()) };
        last_errno()
    }

    /// The same with the path of the program, and another environment.
    fn execute_in(&self, program: &CStr, environment: &Arguments) -> i32 {
        // execvpe and not execve: a file without a first line that names its interpreter is a
        // script of sh. SAFETY: both arrays end with a null pointer and all strings outlive the
        // call.
        unsafe {
            libc::execvpe(program.as_ptr(), self.pointers.as_ptr(), environment.pointers.as_ptr())
        };
        last_errno()
    }
}

fn last_errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// A command that replaces weigh, unmeasured, when weigh cannot measure it.
pub struct Replacement {
    arguments: Arguments,
    original: Original,
}

impl Replacement {
    /// Prepares arguments and state.
    pub fn of(command: &[OsString], original: Original) -> Result<Replacement, Error> {
        Ok(Replacement { arguments: Arguments::of(command)?, original })
    }

    /// Calls exec; returns the error number if it fails. Allocates nothing.
    pub fn execute(&self) -> i32 {
        self.original.restore();
        self.arguments.execute()
    }
}

/// A forked child that waits to exec the command.
#[derive(Debug)]
pub struct ForkedChild {
    /// Its process id.
    pub pid: u32,
    go: std::fs::File,
    answer: std::fs::File,
    program: String,
}

/// What the child used before exec; it is not counted for the command.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PreExecUsage {
    /// Its CPU time.
    pub cpu: Duration,
    /// Its peak size in bytes. The command's ru_maxrss is never below it.
    pub largest_rss: u64,
}

impl PreExecUsage {
    /// Bytes written to the pipe.
    const BYTES: usize = 16;

    /// The I/O before exec: one byte read, this written.
    pub const IO: Io = Io {
        read_bytes: 1,
        read_calls: 1,
        written_bytes: PreExecUsage::BYTES as u64,
        write_calls: 1,
        storage_read_bytes: 0,
        storage_written_bytes: 0,
        cancelled_bytes: 0,
    };

    fn so_far() -> PreExecUsage {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let cpu = Duration::new(cpu.tv_sec as u64, cpu.tv_nsec as u32);
        PreExecUsage { cpu, largest_rss: largest_rss() }
    }

    fn to_bytes(self) -> [u8; PreExecUsage::BYTES] {
        let mut bytes = [0; PreExecUsage::BYTES];
        bytes[..8].copy_from_slice(&(self.cpu.as_nanos() as u64).to_ne_bytes());
        bytes[8..].copy_from_slice(&self.largest_rss.to_ne_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; PreExecUsage::BYTES]) -> PreExecUsage {
        let number = |half: &[u8]| half.try_into().map_or(0, u64::from_ne_bytes);
        let (cpu, rss) = bytes.split_at(8);
        PreExecUsage { cpu: Duration::from_nanos(number(cpu)), largest_rss: number(rss) }
    }
}

/// The largest size that the kernel may report for this process.
pub fn largest_rss() -> u64 {
    Usage::own().largest_rss_bytes + rss_counter_lag()
}

/// How far the kernel's memory counters of a process may lag, in bytes.
///
/// Since Linux 6.2 the counters are per CPU, and each CPU may hold back a batch of pages of each
/// kind (`percpu_counter_batch`). A child has run on few CPUs, and has memory of two kinds.
///
/// Computed once, before a fork: glibc reads a file for it, which would be I/O of the command.
fn rss_counter_lag() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        // SAFETY: it only returns a number.
        let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
        let batch = (2 * u64::try_from(cpus).unwrap_or(0)).max(32);
        2 * 2 * batch * rustix::param::page_size() as u64
    })
}

/// The path of the program that a shell would run, or why there is none.
pub fn find(program: &OsStr) -> Result<PathBuf, Error> {
    let shown = || program.to_string_lossy().into_owned();
    if program.as_bytes().contains(&b'/') {
        let path = PathBuf::from(program);
        return match executable(&path) {
            Ok(()) => Ok(path),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
                Err(Error::NotFound { program: shown() })
            }
            Err(cause) => Err(Error::NotExecutable { program: shown(), cause }),
        };
    }
    let paths = environment::variable("PATH").unwrap_or_else(|| OsString::from("/bin:/usr/bin"));
    let mut refused = None;
    for directory in paths.as_bytes().split(|byte| *byte == b':') {
        let directory = if directory.is_empty() { b"." } else { directory };
        let path = Path::new(OsStr::from_bytes(directory)).join(program);
        match executable(&path) {
            Ok(()) => return Ok(path),
            Err(cause) if cause.kind() == std::io::ErrorKind::PermissionDenied => {
                refused = Some(cause);
            }
            Err(_) => {}
        }
    }
    Err(match refused {
        Some(cause) => Error::NotExecutable { program: shown(), cause },
        None => Error::NotFound { program: shown() },
    })
}

#[expect(clippy::disallowed_methods, reason = "host is the access to the machine")]
fn executable(path: &Path) -> std::io::Result<()> {
    let found = std::fs::metadata(path)?;
    if found.is_dir() {
        return Err(std::io::Error::from_raw_os_error(libc::EISDIR));
    }
    // access(2) checks the real user, as whom exec will run. The mode bits are for root: access
    // grants it anything with one x bit.
    if found.permissions().mode() & 0o111 == 0 {
        return Err(std::io::Error::from_raw_os_error(libc::EACCES));
    }
    Ok(rustix::fs::access(path, rustix::fs::Access::EXEC_OK)?)
}

/// Forks a child that waits to exec `command`, with these variables added to the environment.
/// `path` is that of its program, which [`find`] has found.
///
/// Other threads may run: everything is allocated before the fork.
pub fn fork(
    path: &Path,
    command: &[OsString],
    variables: &[(&str, &OsStr)],
    original: &Original,
) -> Result<ForkedChild, Error> {
    rss_counter_lag();
    let arguments = Arguments::of(command)?;
    let environment = environment::with(variables);
    let environment = Arguments::of(&environment)?;
    let path = CString::new(path.as_os_str().as_bytes())
        .map_err(|nul| std::io::Error::new(std::io::ErrorKind::InvalidInput, nul))?;
    // Before the fork: if allocation failed after it, the child would never be started.
    let program = command.first().map_or_else(String::new, |p| p.to_string_lossy().into());
    let (go_read, go_write) = pipe()?;
    let (answer_read, answer_write) = pipe()?;
    // SAFETY: between fork and exec the child makes system calls only, and allocates nothing: a lock
    // that another thread holds stays held in it.
    match unsafe { libc::fork() } {
        -1 => Err(Error::Fork(std::io::Error::last_os_error())),
        0 => {
            drop((go_write, answer_read));
            become_command(&path, &arguments, &environment, original, go_read, answer_write)
        }
        pid => Ok(ForkedChild {
            pid: pid as u32,
            go: go_write.into(),
            answer: answer_read.into(),
            program,
        }),
    }
}

fn pipe() -> std::io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?)
}

/// The child's side: wait for the go byte, restore the original state, exec.
fn become_command(
    path: &CStr,
    arguments: &Arguments,
    environment: &Arguments,
    original: &Original,
    go: OwnedFd,
    answer: OwnedFd,
) -> ! {
    // A first exec that fails: the code from here to exec is then resident, and part of the usage
    // that is reported, and the command does not wait for it. No program has this name. SAFETY: an
    // empty string, and an array that ends with a null pointer.
    unsafe { libc::execvp(c"".as_ptr(), arguments.pointers.as_ptr()) };
    let _ = std::hint::black_box(PreExecUsage::so_far().to_bytes());
    let mut byte = [0];
    let read = rustix::io::read(&go, &mut byte[..]);
    if read != Ok(1) {
        // weigh exited before the command was started. SAFETY: _exit takes a number and does not
        // return.
        unsafe { libc::_exit(127) };
    }
    original.restore();
    // If this cannot be written, the usage before exec is not subtracted; it is small.
    let _ = rustix::io::write(&answer, &PreExecUsage::so_far().to_bytes());
    let errno = arguments.execute_in(path, environment);
    let _ = rustix::io::write(&answer, &errno.to_ne_bytes());
    // SAFETY: _exit takes a number and does not return.
    unsafe { libc::_exit(127) }
}

/// What a waiting child reads before it calls exec.
const GO: [u8; 1] = [1];

/// Lets the child at the other end of the pipe exec. Allocates nothing.
pub(super) fn release(go: BorrowedFd<'_>) {
    // A child that has exited cannot read it.
    let _ = rustix::io::write(go, &GO);
}

/// The pipe on which the child waits.
impl AsFd for ForkedChild {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.go.as_fd()
    }
}

impl ForkedChild {
    /// Lets the child exec, and returns when it has.
    pub fn exec(mut self) -> Result<PreExecUsage, Error> {
        out_of_memory::claim_start();
        self.go.write_all(&GO)?;
        let mut usage = [0; PreExecUsage::BYTES];
        self.answer.read_exact(&mut usage)?;
        let mut failure = Vec::new();
        self.answer.read_to_end(&mut failure)?;
        match <[u8; 4]>::try_from(failure) {
            Err(_) => Ok(PreExecUsage::from_bytes(usage)),
            Ok(errno) => Err(Error::of_exec(self.program, i32::from_ne_bytes(errno))),
        }
    }
}
