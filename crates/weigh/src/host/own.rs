//! weigh's own process: its usage, its user, its children, its standard streams.
//!
//! In a session weigh is a few threads of another program ([`be_threads`]), and only those are its
//! own.

use std::cell::RefCell;
use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::os::unix::thread::JoinHandleExt;
use std::sync::OnceLock;
use std::thread::JoinHandle;

use rustix::fs::{Mode, OFlags};

use super::{Dir, Error, Host, clock, wait};
use crate::model::{Io, Usage};
use crate::parse;

/// What this process had used before it called exec and became weigh: exec keeps the counters.
static BEFORE: OnceLock<Usage> = OnceLock::new();

/// Stores what this process had used before it became weigh.
pub fn begin_account(before: Usage) {
    // Only the first call is from before weigh did anything.
    let _ = BEFORE.set(before);
}

thread_local! {
    /// The threads that weigh consists of, beside the sampling one; `None` when it is the process.
    static THREADS: RefCell<Option<Vec<ThreadClock>>> = const { RefCell::new(None) };
}

/// The CPU clock of a thread, and what it last showed: it cannot be read once the thread has exited.
struct ThreadClock {
    clock: libc::clockid_t,
    last: f64,
}

impl ThreadClock {
    fn read(&mut self) -> f64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the place is ours; the clock of a thread that exited is an error, not undefined.
        if unsafe { libc::clock_gettime(self.clock, &mut time) } == 0 {
            self.last = time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
        }
        self.last
    }
}

/// From now on this thread, which samples, and those that it counts are weigh: the process is
/// another program's.
pub fn be_threads() {
    THREADS.set(Some(Vec::new()));
}

/// Whether weigh is only some threads of this process.
pub fn is_threads() -> bool {
    THREADS.with_borrow(Option::is_some)
}

/// Counts a thread that this one has started as weigh's own.
pub fn count_thread<T>(thread: &JoinHandle<T>) {
    let mut clock = 0;
    // SAFETY: the handle is not joined, so the thread's id is valid; the place is ours.
    if unsafe { libc::pthread_getcpuclockid(thread.as_pthread_t(), &mut clock) } == 0 {
        THREADS.with_borrow_mut(|threads| {
            threads.iter_mut().for_each(|one| one.push(ThreadClock { clock, last: 0.0 }));
        });
    }
}

/// What this thread and those it has counted have used.
fn threads_usage() -> Option<Usage> {
    THREADS.with_borrow_mut(|threads| {
        let mut usage = Usage::of_thread();
        // The kernel divides the time of other threads only for themselves; most of it is encoding.
        usage.user_seconds += threads.as_mut()?.iter_mut().map(ThreadClock::read).sum::<f64>();
        Some(usage)
    })
}

/// What weigh itself has used so far.
pub fn usage() -> Usage {
    if let Some(usage) = threads_usage() {
        return usage;
    }
    let (mut usage, before) = (Usage::own(), BEFORE.get().copied().unwrap_or_default());
    usage.user_seconds = (usage.user_seconds - before.user_seconds).max(0.0);
    usage.system_seconds = (usage.system_seconds - before.system_seconds).max(0.0);
    usage
}

/// CPU time of this thread, in seconds, if it is the main thread or that of a session.
pub fn sampling_seconds() -> f64 {
    let before = BEFORE.get().filter(|_| !is_threads()).map_or(0.0, Usage::cpu_seconds);
    (clock::thread_cpu().as_secs_f64() - before).max(0.0)
}

/// The effective user id, unless it is root's.
pub fn unprivileged_user() -> Option<u32> {
    let user = rustix::process::geteuid();
    (!user.is_root()).then(|| user.as_raw())
}

/// The name of the effective user; `None` when it is unknown.
///
/// From /etc/passwd, else from $LOGNAME or $USER. A directory service is not queried: it may be
/// slow, and the command waits.
#[expect(clippy::disallowed_methods, reason = "who we are, not what the machine does")]
pub fn user() -> Option<String> {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let from_environment =
        || ["LOGNAME", "USER"].into_iter().find_map(|name| std::env::var(name).ok());
    name_in(&users, rustix::process::geteuid().as_raw())
        .or_else(from_environment)
        .filter(|n| !n.is_empty())
}

/// The host name of this machine.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The name of a user in the lines of /etc/passwd.
fn name_in(users: &str, number: u32) -> Option<String> {
    let number = number.to_string();
    let of = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == number).then(|| name.to_owned())
    };
    users.lines().find_map(of)
}

/// Whether this `/proc` is of our pid namespace: it shows us under our own pid. In one of another
/// namespace every pid would be another process's.
pub fn proc_is_our_pid_namespace(proc: &Dir) -> bool {
    proc.link(c"self").is_some_and(|pid| pid == std::process::id().to_string().as_bytes())
}

/// The children this process already has, from before it became weigh.
pub fn children(host: &Host) -> HashSet<u32> {
    let mut children = HashSet::new();
    if !wait::has_children() {
        return children;
    }
    let mut pids = Vec::new();
    // Children that cannot be listed are counted as the run's.
    let _ = host.proc.entries(&mut Vec::new(), |name, _| {
        pids.extend(name.to_str().ok().and_then(|name| name.parse::<u32>().ok()));
    });
    let mut buffer = Vec::new();
    for pid in pids {
        let stat = host.proc.read(super::ProcPath::new(pid, "stat").as_c_str(), &mut buffer).ok();
        let parent = stat.and_then(|bytes| parse::stat::parse(bytes).ok()).map(|stat| stat.parent);
        if parent == Some(std::process::id()) {
            children.insert(pid);
        }
    }
    children
}

/// Releases the streams that belong to the command: stdin, stdout and inherited descriptors.
///
/// A pipe reports end of file only when its last writer closes it. If weigh kept its copies open, a
/// command that closes its output early would leave its reader waiting.
pub fn release_stdio(keep_stderr: bool) -> std::io::Result<()> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    if !keep_stderr {
        rustix::stdio::dup2_stderr(&null)?;
    }
    for fd in inherited_descriptors()? {
        // SAFETY: these came from our parent, are above stderr and without close-on-exec:
        // everything weigh opens itself is close-on-exec, so nothing in here uses them.
        unsafe { libc::close(fd) };
    }
    Ok(())
}

/// Descriptors above stderr that an exec would pass on.
///
/// Almost always all have low numbers, and asking for each number takes a tenth of the time of
/// listing the directory, for which the kernel makes an inode of each entry.
fn inherited_descriptors() -> std::io::Result<Vec<i32>> {
    // Their number since Linux 6.2, zero before.
    let mut unseen = rustix::fs::stat(DESCRIPTORS)?.st_size;
    let mut inherited = Vec::new();
    for fd in 0..LOW_DESCRIPTORS {
        let Some(is_inherited) = is_inherited(fd) else { continue };
        inherited.extend(is_inherited.then_some(fd));
        unseen -= 1;
        if unseen == 0 {
            return Ok(inherited);
        }
    }
    listed_descriptors()
}

/// The descriptors of this process.
const DESCRIPTORS: &str = "/proc/self/fd";

/// Numbers of descriptors that are asked for one by one.
const LOW_DESCRIPTORS: i32 = 256;

/// The same, from the list of all descriptors.
fn listed_descriptors() -> std::io::Result<Vec<i32>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir: OwnedFd = rustix::fs::open(DESCRIPTORS, flags, Mode::empty())?;
    let mut inherited = Vec::new();
    for entry in rustix::fs::Dir::new(dir)? {
        let fd = entry?.file_name().to_str().ok().and_then(|name| name.parse().ok());
        inherited.extend(fd.filter(|fd| is_inherited(*fd) == Some(true)));
    }
    Ok(inherited)
}

/// Whether a descriptor is above stderr and an exec would pass it on; `None` where none is open.
fn is_inherited(fd: i32) -> Option<bool> {
    // SAFETY: F_GETFD changes nothing; a closed descriptor returns an error.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
    (flags >= 0).then_some(fd > 2 && flags & libc::FD_CLOEXEC == 0)
}

/// I/O of the children that this process has reaped.
///
/// `/proc/self/io` counts the process's own I/O and that of every child it reaped;
/// `/proc/self/task/TID/io` counts one thread's own. The difference is the children's, to the byte,
/// as long as none of our threads has exited.
pub fn reaped_io(host: &Host) -> Result<Io, Error> {
    let mut buffer = Vec::new();
    let mut own = Vec::new();
    let tasks = Dir::open(std::path::Path::new("/proc/self/task"))?;
    let mut names = Vec::new();
    tasks.entries(&mut Vec::new(), |name, _| {
        if name.to_bytes().first().is_some_and(u8::is_ascii_digit) {
            names.push(name.to_owned());
        }
    })?;
    // Our own reads count as soon as they return. Those between reading a thread's counters and the
    // process's are known: one call and its length each.
    let this_thread = rustix::thread::gettid().as_raw_nonzero().get().to_string();
    names.sort_by_key(|name| name.to_bytes() != this_thread.as_bytes());
    let mut own_reads = 0;
    for name in &names {
        let mut path = name.to_bytes().to_vec();
        path.extend_from_slice(b"/io\0");
        let path = std::ffi::CString::from_vec_with_nul(path).unwrap_or_default();
        let bytes = tasks.read(&path, &mut buffer)?;
        own_reads += bytes.len() as u64;
        own.push(parse_io(bytes)?);
    }
    let mut all = parse_io(host.proc.read(c"self/io", &mut buffer)?)?;
    for thread in own {
        all = all.less(&thread);
    }
    let ours = Io { read_bytes: own_reads, read_calls: names.len() as u64, ..Io::default() };
    Ok(all.less(&ours))
}

/// I/O of this process and of the children it has reaped, this reading included.
pub fn io_with_reaped() -> Result<Io, Error> {
    let mut buffer = Vec::new();
    let bytes = Dir::open(std::path::Path::new("/proc/self"))?.read(c"io", &mut buffer)?;
    let this = Io { read_bytes: bytes.len() as u64, read_calls: 1, ..Io::default() };
    Ok(parse_io(bytes)?.and(&this))
}

fn parse_io(bytes: &[u8]) -> Result<Io, Error> {
    parse::io::parse(bytes).map_err(|source| Error::Parse { path: "/proc/self/io".into(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_name_is_found_by_uid() {
        let users = "root:x:0:0:root:/root:/bin/sh\nbroken\nme:x:1000:1000::/home/me:/bin/sh\n";
        assert_eq!(name_in(users, 0).as_deref(), Some("root"));
        assert_eq!(name_in(users, 1000).as_deref(), Some("me"));
        assert_eq!(name_in(users, 100), None);
    }
}
