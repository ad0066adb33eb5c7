//! The floor: the reads that weigh makes, and nothing else.
//!
//! Cached descriptors, the same conditions (of a process that did not run only
//! `schedstat` is read; /proc is listed only when `loadavg` shows forks), but no
//! other parsing, no table, no recording, no summary. It runs beside weigh on the
//! same processes, so both have the same machine.

use std::collections::HashSet;
use std::ffi::CString;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use weigh::host::perf::TaskClock;

/// How to read.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Milliseconds between two ticks
    #[arg(long)]
    interval: u64,
    /// Ticks that count; one before them opens the files
    #[arg(long)]
    ticks: u32,
}

/// Files of the machine, read in every tick.
const SYSTEM: [&str; 9] = [
    "/proc/stat",
    "/proc/meminfo",
    "/proc/self/net/dev",
    "/proc/self/net/snmp",
    "/proc/diskstats",
    "/proc/vmstat",
    "/proc/pressure/cpu",
    "/proc/pressure/memory",
    "/proc/pressure/io",
];

/// `status` is the most expensive file, and weigh reads it once a second for a running process.
const STATUS_EVERY: Duration = Duration::from_secs(1);

/// Reads the pids of stdin again and again, then prints what [`Found::parse`] takes in.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut pids = String::new();
    std::io::stdin().read_to_string(&mut pids).context("pids on stdin")?;
    raise_open_files();
    let mut probe = Probe {
        loadavg: open("/proc/loadavg").context("/proc/loadavg")?,
        system: SYSTEM.into_iter().filter_map(open).collect(),
        task_clock: TaskClock::on_exec(std::process::id()).ok(),
        proc: open("/proc").context("/proc")?,
        known: HashSet::new(),
        births: Vec::new(),
        listings: 0,
        processes: pids.split_whitespace().filter_map(Process::open).collect(),
        buffer: vec![0; 64 * 1024],
    };
    probe.tick();
    probe.listings = 0;
    let interval = Duration::from_millis(options.interval);
    let (begin, before) = (Instant::now(), thread_cpu());
    let (mut taken, mut due) = (0, 1);
    while due <= options.ticks {
        std::thread::sleep((interval * due).saturating_sub(begin.elapsed()));
        probe.tick();
        taken += 1;
        due = (due + 1).max((begin.elapsed().as_nanos() / interval.as_nanos()) as u32 + 1);
    }
    let cost = thread_cpu().saturating_sub(before).as_secs_f64() / f64::from(taken);
    println!("{cost} {taken} {} {}", options.ticks, probe.listings);
    Ok(())
}

/// The result of the bare reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    /// CPU seconds of a tick.
    pub cpu: f64,
    /// The share of ticks that were on time.
    pub on_time: f64,
    /// The share of ticks in which /proc had to be listed, because of a fork.
    pub listed: f64,
}

impl Found {
    /// Reads the line that [`run`] prints: CPU seconds, ticks taken, ticks due, listings.
    pub(crate) fn parse(line: &str) -> Option<Found> {
        let mut numbers = line.split_whitespace().map(|word| word.parse::<f64>().ok());
        let mut next = || numbers.next().flatten();
        let (cpu, taken, due, listings) = (next()?, next()?, next()?, next()?);
        Some(Found { cpu, on_time: taken / due, listed: listings / taken })
    }
}

struct Probe {
    loadavg: OwnedFd,
    system: Vec<OwnedFd>,
    /// One counter: weigh's is inherited by every process of the run, and more expensive to read.
    task_clock: Option<TaskClock>,
    proc: OwnedFd,
    known: HashSet<u64>,
    /// The last pid of loadavg.
    births: Vec<u8>,
    listings: u32,
    processes: Vec<Process>,
    buffer: Vec<u8>,
}

struct Process {
    schedstat: OwnedFd,
    /// Opened when it has run, as weigh does.
    rest: Option<Rest>,
    pid: String,
    ran: Vec<u8>,
}

struct Rest {
    stat: OwnedFd,
    io: OwnedFd,
    status: OwnedFd,
    files: OwnedFd,
    status_read: Instant,
}

impl Probe {
    fn tick(&mut self) {
        let line = pread(&self.loadavg, &mut self.buffer);
        let births = line.split(|byte| *byte == b' ').next_back().unwrap_or_default();
        if births != self.births.as_slice() {
            self.births = births.to_vec();
            self.list();
        }
        for process in &mut self.processes {
            process.read(&mut self.buffer);
        }
        if let Some(clock) = &mut self.task_clock {
            let _ = clock.read();
        }
        for file in &self.system {
            pread(file, &mut self.buffer);
        }
        // SAFETY: all zeros is a valid rusage, and getrusage fills it.
        unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        }
    }

    /// Lists /proc and reads `stat` of every new process.
    fn list(&mut self) {
        self.listings += 1;
        let mut new = Vec::new();
        // SAFETY: lseek takes numbers.
        unsafe { libc::lseek(self.proc.as_raw_fd(), 0, libc::SEEK_SET) };
        loop {
            let (fd, buffer) = (self.proc.as_raw_fd(), &mut self.buffer[..32 * 1024]);
            // SAFETY: the kernel writes at most the length of the buffer.
            let filled = unsafe {
                libc::syscall(libc::SYS_getdents64, fd, buffer.as_mut_ptr(), buffer.len())
            };
            let Ok(filled @ 1..) = usize::try_from(filled) else { break };
            let mut rest = &buffer[..filled];
            // struct linux_dirent64: inode 8, offset 8, length 2, type 1, then the name.
            while let (Some(inode), Some(length)) = (rest.first_chunk::<8>(), rest.get(16..18)) {
                let length = usize::from(u16::from_ne_bytes([length[0], length[1]]));
                let Some(entry) = rest.get(..length) else { break };
                if entry[19].is_ascii_digit() && self.known.insert(u64::from_ne_bytes(*inode)) {
                    let name = entry[19..].split(|byte| *byte == 0).next().unwrap_or_default();
                    new.push(String::from_utf8_lossy(name).into_owned());
                }
                rest = &rest[length..];
            }
        }
        for pid in new {
            if let Some(stat) = open(&format!("/proc/{pid}/stat")) {
                pread(&stat, &mut self.buffer);
            }
        }
    }
}

impl Process {
    fn open(pid: &str) -> Option<Process> {
        let schedstat = open(&format!("/proc/{pid}/schedstat"))?;
        Some(Process { schedstat, rest: None, pid: pid.to_owned(), ran: Vec::new() })
    }

    fn read(&mut self, buffer: &mut [u8]) {
        let line = pread(&self.schedstat, buffer);
        let ran = line.split(|byte| *byte == b' ').next().unwrap_or_default();
        if ran == self.ran.as_slice() {
            return;
        }
        self.ran.clear();
        self.ran.extend_from_slice(ran);
        let first = self.rest.is_none();
        if first {
            self.rest = Rest::open(&self.pid);
        }
        let Some(rest) = &mut self.rest else { return };
        pread(&rest.stat, buffer);
        pread(&rest.io, buffer);
        // SAFETY: all zeros is a valid stat, and fstat fills it.
        unsafe {
            let mut stat: libc::stat = std::mem::zeroed();
            libc::fstat(rest.files.as_raw_fd(), &raw mut stat);
        }
        if first || rest.status_read.elapsed() >= STATUS_EVERY {
            rest.status_read = Instant::now();
            pread(&rest.status, buffer);
        }
    }
}

impl Rest {
    fn open(pid: &str) -> Option<Rest> {
        let file = |name: &str| open(&format!("/proc/{pid}/{name}"));
        Some(Rest {
            stat: file("stat")?,
            io: file("io")?,
            status: file("status")?,
            files: file("fd")?,
            status_read: Instant::now(),
        })
    }
}

fn open(path: &str) -> Option<OwnedFd> {
    let path = CString::new(path).ok()?;
    // SAFETY: the path ends in NUL; a descriptor that is not negative is ours.
    unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd))
    }
}

/// Reads from the beginning; nothing when the process has exited.
fn pread<'b>(file: &OwnedFd, buffer: &'b mut [u8]) -> &'b [u8] {
    // SAFETY: the kernel writes at most the length of the buffer.
    let count =
        unsafe { libc::pread(file.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    &buffer[..usize::try_from(count).unwrap_or(0)]
}

fn thread_cpu() -> Duration {
    weigh::host::clock::thread_cpu()
}

fn raise_open_files() {
    weigh::host::limits::ResourceLimits::now().raise();
}
