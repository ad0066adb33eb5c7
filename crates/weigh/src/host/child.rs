//! Starting the command: a fork that waits for a word, then exec.
//!
//! fork and not vfork: a vforked child borrows our memory, and exec would write
//! our size into its ru_maxrss. The pause between fork and exec is where the
//! counters are opened that must see the command from its first instruction.

use std::ffi::{CString, OsStr, OsString};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::pipe::PipeFlags;
use rustix::time::{ClockId, clock_gettime};

use super::environment;
use super::signals::Before;
use super::wait::Usage;
use crate::parse::io::Io;

/// Why a command cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such program.
    #[error("{program}: no such program")]
    NotFound {
        /// As it was asked for.
        program: String,
    },
    /// There is one, and what should interpret or load it is missing.
    #[error("{program}: the interpreter on its first line, or its loader, is missing")]
    NoInterpreter {
        /// As it was asked for.
        program: String,
    },
    /// There is one, and it cannot be executed.
    #[error("{program}: {cause}")]
    NotExecutable {
        /// As it was asked for.
        program: String,
        /// What the kernel said.
        cause: std::io::Error,
    },
    /// No process could be made.
    #[error("cannot start a process: {0}")]
    Fork(#[from] std::io::Error),
}

/// What this process got from whoever started it, before Rust's runtime changed it.
///
/// The command must get the same: Rust ignores SIGPIPE and opens closed standard
/// streams before `main` runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Inherited {
    /// Whether SIGPIPE was ignored.
    pub ignores_sigpipe: bool,
    /// Which of stdin, stdout and stderr were closed.
    pub closed: [bool; 3],
    /// What the process had used before it became this program.
    pub used: Usage,
}

/// A child that waits for the word to become the command.
#[derive(Debug)]
pub struct Waiting {
    /// Its process id.
    pub pid: u32,
    go: std::fs::File,
    answer: std::fs::File,
    program: String,
}

/// What the child used while it was still weigh; it must not be charged to the command.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pause {
    /// Its CPU time.
    pub cpu: Duration,
    /// Its largest size in bytes, below which the command's ru_maxrss says nothing.
    pub largest_rss: u64,
}

impl Pause {
    /// How much of it arrives through the pipe.
    const BYTES: usize = 16;

    /// The I/O of the pause: one byte read, the figures written.
    pub const IO: Io = Io {
        read_bytes: 1,
        read_calls: 1,
        written_bytes: Pause::BYTES as u64,
        write_calls: 1,
        storage_read_bytes: 0,
        storage_written_bytes: 0,
        cancelled_bytes: 0,
    };

    fn so_far() -> Pause {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let cpu = Duration::new(cpu.tv_sec as u64, cpu.tv_nsec as u32);
        Pause { cpu, largest_rss: Usage::own().largest_rss_bytes + uncounted() }
    }

    fn to_bytes(self) -> [u8; Pause::BYTES] {
        let mut bytes = [0; Pause::BYTES];
        bytes[..8].copy_from_slice(&(self.cpu.as_nanos() as u64).to_ne_bytes());
        bytes[8..].copy_from_slice(&self.largest_rss.to_ne_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; Pause::BYTES]) -> Pause {
        let number = |half: &[u8]| half.try_into().map_or(0, u64::from_ne_bytes);
        let (cpu, rss) = bytes.split_at(8);
        Pause { cpu: Duration::from_nanos(number(cpu)), largest_rss: number(rss) }
    }
}

/// How far the kernel's count of a process's memory may be behind, in bytes.
///
/// Since Linux 6.2 each CPU keeps a part of it to itself, up to a batch of pages of each kind
/// (`percpu_counter_batch`), and it is only added up when the process ends. A child has run on
/// few CPUs, and has memory of two kinds.
fn uncounted() -> u64 {
    const PAGE: u64 = 4096;
    // SAFETY: it only asks for a number.
    let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    let batch = (2 * u64::try_from(cpus).unwrap_or(0)).max(32);
    2 * 2 * batch * PAGE
}

/// Where the program is that a shell would run, or why it would not.
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

#[expect(clippy::disallowed_methods, reason = "this is the door")]
fn executable(path: &Path) -> std::io::Result<()> {
    let found = std::fs::metadata(path)?;
    if found.is_dir() {
        return Err(std::io::Error::from_raw_os_error(libc::EISDIR));
    }
    // access(2) asks for the real user, which is who exec will run as; the mode bits
    // catch root, to whom access grants execution of anything with one x bit.
    if found.permissions().mode() & 0o111 == 0 {
        return Err(std::io::Error::from_raw_os_error(libc::EACCES));
    }
    Ok(rustix::fs::access(path, rustix::fs::Access::EXEC_OK)?)
}

/// Forks a child that waits to become `command`.
///
/// Must be called while this process has one thread: the child allocates and
/// sets its environment before exec.
pub fn fork(
    command: &[OsString],
    variables: &[(&str, &OsStr)],
    inherited: Inherited,
    before: &Before,
) -> Result<Waiting, Error> {
    let arguments: Vec<CString> = command
        .iter()
        .map(|argument| CString::new(argument.as_bytes()))
        .collect::<Result<_, _>>()
        .map_err(|nul| std::io::Error::new(std::io::ErrorKind::InvalidInput, nul))?;
    let mut pointers: Vec<*const libc::c_char> = arguments.iter().map(|a| a.as_ptr()).collect();
    pointers.push(std::ptr::null());
    let variables: Vec<(CString, CString)> = variables
        .iter()
        .filter_map(|(name, value)| {
            Some((CString::new(*name).ok()?, CString::new(value.as_bytes()).ok()?))
        })
        .collect();
    let (go_read, go_write) = pipe()?;
    let (answer_read, answer_write) = pipe()?;
    // SAFETY: one thread, so the child may do what a program may do.
    match unsafe { libc::fork() } {
        -1 => Err(Error::Fork(std::io::Error::last_os_error())),
        0 => {
            drop((go_write, answer_read));
            become_command(&pointers, &variables, inherited, before, go_read, answer_write)
        }
        pid => Ok(Waiting {
            pid: pid as u32,
            go: go_write.into(),
            answer: answer_read.into(),
            program: command.first().map_or_else(String::new, |p| p.to_string_lossy().into()),
        }),
    }
}

fn pipe() -> std::io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?)
}

/// The child's side: wait for the word, put everything back as it was, exec.
fn become_command(
    arguments: &[*const libc::c_char],
    variables: &[(CString, CString)],
    inherited: Inherited,
    before: &Before,
    go: OwnedFd,
    answer: OwnedFd,
) -> ! {
    let mut word = [0];
    let told = rustix::io::read(&go, &mut word[..]);
    if told != Ok(1) {
        // weigh is gone before the command began.
        // SAFETY: _exit takes a number and does not return.
        unsafe { libc::_exit(127) };
    }
    for (name, value) in variables {
        // SAFETY: both are strings that end in NUL; one thread.
        unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 1) };
    }
    let sigpipe = if inherited.ignores_sigpipe { libc::SIG_IGN } else { libc::SIG_DFL };
    // SAFETY: SIGPIPE exists and both dispositions are valid.
    unsafe { libc::signal(libc::SIGPIPE, sigpipe) };
    before.restore();
    for (fd, closed) in inherited.closed.into_iter().enumerate() {
        if closed {
            // SAFETY: Rust's runtime put /dev/null there; the command expects nothing.
            unsafe { libc::close(fd as i32) };
        }
    }
    // Nobody hears of the pause when this cannot be written, and it is small.
    let _ = rustix::io::write(&answer, &Pause::so_far().to_bytes());
    // SAFETY: the array ends with a null pointer and its strings outlive the call.
    unsafe { libc::execvp(arguments[0], arguments.as_ptr()) };
    let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
    let _ = rustix::io::write(&answer, &errno.to_ne_bytes());
    // SAFETY: _exit takes a number and does not return.
    unsafe { libc::_exit(127) }
}

impl Waiting {
    /// Gives the word, and returns when the child has become the command.
    pub fn exec(mut self) -> Result<Pause, Error> {
        self.go.write_all(&[1])?;
        let mut pause = [0; Pause::BYTES];
        self.answer.read_exact(&mut pause)?;
        let mut failure = Vec::new();
        self.answer.read_to_end(&mut failure)?;
        match <[u8; 4]>::try_from(failure) {
            Err(_) => Ok(Pause::from_bytes(pause)),
            Ok(errno) => {
                let errno = i32::from_ne_bytes(errno);
                let program = self.program;
                Err(if errno == libc::ENOENT {
                    // The file was there when we looked: it names a program that is not.
                    Error::NoInterpreter { program }
                } else {
                    let cause = std::io::Error::from_raw_os_error(errno);
                    Error::NotExecutable { program, cause }
                })
            }
        }
    }
}
