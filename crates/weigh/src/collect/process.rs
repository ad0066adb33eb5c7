//! What one process uses.
//!
//! Source: `/proc/PID/{schedstat,stat,status,io,fd}`. `stat`, `status` and `schedstat` are readable
//! by every user who can see the process; `io` and the number of open files only by its owner.
//!
//! What surprised us: `schedstat` (2 µs) covers the main thread only, so it shows that a process
//! did not run only while it has one thread; the context switches in `status` are the main
//! thread's, too. With one thread, `schedstat` has the CPU time in nanoseconds, where `stat` has
//! clock ticks of 10 ms.

use std::time::Duration;

use crate::catalog::metrics::{
    AddressSpace, ProcessCpu, ProcessEvents, ProcessIo, ProcessMemory, ProcessState, TaskState,
};
use crate::host::perf::TaskClock;
use crate::host::{self, CachedFile, Descriptors, Host, ProcPath};
use crate::model::{Entity, Io, ProcessId, Program, Tick};
use crate::parse::{self, stat::Stat};

/// Whether a process shares its address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// It has not been compared with its parent yet.
    Unknown,
    /// It has its own, or its memory is counted here.
    NotShared,
    /// With a process whose memory is counted for both.
    With(ProcessId),
}

/// How often `status` of a running process is read although its memory did not change.
const STATUS_EVERY: Duration = Duration::from_secs(1);

/// The result of reading a process.
#[derive(Debug, PartialEq, Eq)]
pub enum ProcessRead {
    /// It did not run: nothing can have changed.
    Asleep,
    /// It ran, and its row is in the tick.
    Ran,
    /// It has exited.
    Exited,
}

/// Buffers and constants shared by all process readers.
pub struct ReadContext {
    /// The buffer that files are read into.
    pub buffer: Vec<u8>,
    /// The allowance of open descriptors.
    pub descriptors: Descriptors,
    /// Whether the size of `/proc/PID/fd` is the number of open files (Linux 6.2).
    pub counts_files: bool,
}

impl ReadContext {
    /// A context for this machine, with at most so many descriptors open.
    pub fn new(host: &Host, descriptors: usize) -> ReadContext {
        let counts_files = host.proc.size(c"self/fd").is_ok_and(|size| size > 0);
        ReadContext {
            buffer: Vec::new(),
            descriptors: Descriptors::at_most(descriptors),
            counts_files,
        }
    }
}

/// A process of the run, with the cached files it is read from.
pub struct ProcessReader {
    /// Which one.
    pub id: ProcessId,
    /// Resident memory and huge pages at the last read, in bytes.
    pub resident: u64,
    /// Huge pages when `status` was last read, in bytes.
    hugetlb: u64,
    virtual_bytes: u64,
    /// Page faults of reaped children at the last read.
    pub children_faults: u64,
    /// Why its I/O cannot be read, until it is reported.
    pub denied: Option<host::Error>,
    /// How often its command line is still to be read, because it was empty.
    pub cmdline_retries_left: u8,
    /// Counts its CPU time until it exits, if it was found early enough.
    pub clock: Option<ProcessClock>,
    /// Whether the last read found it gone, and its exit event has not arrived yet.
    pub exit_pending: bool,
    /// Whether it had not run since the read before.
    pub is_asleep: bool,
    /// Whether it shares its address space.
    pub sharing: Sharing,
    /// Its parent when it was found.
    pub parent: u32,
    stat: CachedFile,
    schedstat: CachedFile,
    io: CachedFile,
    files: CachedFile,
    io_denied: bool,
    /// CPU time of the main thread at the last read, in nanoseconds.
    ran: Option<u64>,
    threads: u32,
    /// Whether `schedstat` has been all of its CPU time at every sample so far. Once it was not, it
    /// never is again: readers rely on the value from the first row on.
    is_single_threaded: bool,
    faults: u64,
    status_read: Option<Duration>,
    name: [u8; 16],
}

impl ProcessReader {
    /// A process of this name that has not been read yet.
    pub fn new(id: ProcessId, parent: u32, name: &[u8], context: &ReadContext) -> ProcessReader {
        ProcessReader {
            id,
            resident: 0,
            hugetlb: 0,
            virtual_bytes: 0,
            children_faults: 0,
            denied: None,
            cmdline_retries_left: 0,
            clock: None,
            exit_pending: false,
            is_asleep: false,
            sharing: Sharing::Unknown,
            parent,
            stat: CachedFile::new(&context.descriptors),
            schedstat: CachedFile::new(&context.descriptors),
            io: CachedFile::new(&context.descriptors),
            files: CachedFile::new(&context.descriptors),
            io_denied: false,
            ran: None,
            threads: 0,
            is_single_threaded: true,
            faults: 0,
            status_read: None,
            name: padded(name),
        }
    }

    /// Reads what has changed since the last read into the tick.
    ///
    /// `renamed` is called when the name of the process has changed, as after exec.
    pub fn read(
        &mut self,
        host: &Host,
        context: &mut ReadContext,
        tick: &mut Tick,
        renamed: impl FnOnce(),
    ) -> ProcessRead {
        let pid = self.id.pid;
        let mut current_run_ns = None;
        if self.threads <= 1 {
            let path = || ProcPath::new(pid, "schedstat");
            match self.schedstat.read(&host.proc, path, &mut context.buffer) {
                Err(error) if error.is_gone() => {
                    // Without a cached file a missing one may be a kernel without schedstat; `stat`
                    // below decides.
                    if error.errno() == Some(libc::ESRCH) {
                        return ProcessRead::Exited;
                    }
                }
                Err(_) => {}
                Ok(bytes) => {
                    let ran = parse::schedstat::parse(bytes).ok().map(|stat| stat.running_ns);
                    if ran.is_some() && ran == self.ran {
                        return ProcessRead::Asleep;
                    }
                    self.ran = ran;
                    current_run_ns = ran;
                }
            }
        }
        let path = || ProcPath::new(pid, "stat");
        let stat = self.stat.read(&host.proc, path, &mut context.buffer);
        let Some(stat) = stat.ok().and_then(|bytes| parse::stat::parse(bytes).ok()) else {
            return ProcessRead::Exited;
        };
        // Without a cached file the pid may have been reused.
        if stat.started != self.id.started {
            return ProcessRead::Exited;
        }
        let faults = stat.minor_faults + stat.major_faults;
        let rss_without_hugetlb = stat.resident_pages * host.page_size;
        let entity = Entity::Process(self.id);
        self.is_single_threaded &= stat.threads <= 1 && current_run_ns.is_some();
        let run_time =
            current_run_ns.filter(|_| self.is_single_threaded).map(|ran| ran as f64 / 1e9);
        put_stat(host, tick, entity, &stat, run_time);
        if let Some(clock) = &mut self.clock {
            let ticks = host.seconds(stat.user_ticks + stat.system_ticks);
            // User and system time are each truncated to a clock tick.
            let most = run_time.unwrap_or(ticks + host.seconds(2));
            clock.correct(run_time.unwrap_or(ticks), most);
        }
        if self.note_name(stat.name) {
            renamed();
        }
        let status_due = self.status_read.is_none_or(|then| tick.at >= then + STATUS_EVERY)
            || faults != self.faults
            || rss_without_hugetlb + self.hugetlb != self.resident
            // Huge pages may be allocated with their mapping, without a fault, and freed without
            // one.
            || self.hugetlb > 0
            || stat.virtual_bytes != self.virtual_bytes;
        self.threads = stat.threads;
        self.children_faults = stat.children_minor_faults + stat.children_major_faults;
        self.faults = faults;
        self.virtual_bytes = stat.virtual_bytes;
        // A zombie has no memory to check permissions against: only root may read its I/O. Nothing
        // is lost, because it is added to its parent's counters.
        let zombie = stat.state == b'Z';
        self.read_io(host, context, tick);
        if zombie {
            self.denied = None;
            self.hugetlb = 0;
        } else {
            self.count_files(host, context, tick);
            if status_due {
                self.read_status(host, context, tick);
            }
        }
        self.put_resident(tick, rss_without_hugetlb);
        ProcessRead::Ran
    }

    /// Memory that is counted for another process is not counted here; the row says so.
    fn put_resident(&mut self, tick: &mut Tick, rss_without_hugetlb: u64) {
        let (rss, address_space) = match self.shares_memory() {
            // A zombie has freed its memory.
            false => (Some(rss_without_hugetlb + self.hugetlb), AddressSpace::Own),
            true => (None, AddressSpace::Shared),
        };
        self.resident = rss.unwrap_or(0);
        let address_space = Some(address_space);
        // Nor does it have huge pages, which no file of a zombie shows.
        let hugetlb = Some(0).filter(|_| rss == Some(0));
        let row = ProcessMemory { rss, address_space, hugetlb, ..ProcessMemory::default() };
        tick.put(Entity::Process(self.id), &row);
    }

    /// Whether its memory is counted for another process.
    pub fn shares_memory(&self) -> bool {
        matches!(self.sharing, Sharing::With(_))
    }

    /// Whether it has been read.
    pub fn has_been_read(&self) -> bool {
        self.threads > 0
    }

    /// Forces the next read although it may not have run.
    pub fn force_next_read(&mut self) {
        self.ran = None;
    }

    /// The name of its program.
    pub fn name(&self) -> &[u8] {
        let end = self.name.iter().position(|byte| *byte == 0).unwrap_or(self.name.len());
        &self.name[..end]
    }

    /// Stores the program it runs now.
    pub fn note_program(&mut self, program: &Program) {
        self.note_name(&program.name);
    }

    /// Stores the name; returns whether it has changed.
    fn note_name(&mut self, name: &[u8]) -> bool {
        let now = padded(name);
        std::mem::replace(&mut self.name, now) != now
    }

    fn read_io(&mut self, host: &Host, context: &mut ReadContext, tick: &mut Tick) {
        if self.io_denied {
            return;
        }
        let pid = self.id.pid;
        match self.io.read(&host.proc, || ProcPath::new(pid, "io"), &mut context.buffer) {
            Ok(bytes) => {
                if let Ok(io) = parse::io::parse(bytes) {
                    tick.put(Entity::Process(self.id), &io_row(&io));
                }
            }
            Err(error) => {
                self.io_denied = error.is_denied();
                if self.io_denied {
                    self.denied = Some(error);
                }
            }
        }
    }

    fn count_files(&mut self, host: &Host, context: &ReadContext, tick: &mut Tick) {
        // Both need the same permission.
        if self.io_denied {
            return;
        }
        let path = ProcPath::new(self.id.pid, "fd");
        let count = if context.counts_files {
            self.files.size(&host.proc, path.as_c_str())
        } else {
            host.proc.count(path.as_c_str())
        };
        if let Ok(count) = count {
            let row = ProcessState { files_open: Some(count), ..ProcessState::default() };
            tick.put(Entity::Process(self.id), &row);
        }
    }

    fn read_status(&mut self, host: &Host, context: &mut ReadContext, tick: &mut Tick) {
        self.status_read = Some(tick.at);
        let path = ProcPath::new(self.id.pid, "status");
        let Ok(bytes) = host.proc.read(path.as_c_str(), &mut context.buffer) else { return };
        let Ok(status) = parse::status::parse(bytes) else { return };
        let entity = Entity::Process(self.id);
        if !self.shares_memory() {
            let (peak, swap, hugetlb) = (status.resident_peak, status.swap, status.hugetlb);
            self.hugetlb = hugetlb.unwrap_or(0);
            tick.put(entity, &ProcessMemory { peak, swap, hugetlb, ..ProcessMemory::default() });
        }
        let events = ProcessEvents {
            switches_voluntary: status.voluntary_switches,
            switches_involuntary: status.involuntary_switches,
            ..ProcessEvents::default()
        };
        tick.put(entity, &events);
    }
}

/// All CPU time of one process, which can be read after its exit.
pub struct ProcessClock {
    /// What it had used when the clocks were attached, in seconds.
    before: f64,
    /// One for each thread that it had then; later threads inherit one.
    clocks: Vec<TaskClock>,
    allowance: Descriptors,
}

impl ProcessClock {
    /// Attaches a clock to a process; `None` when the kernel refuses, or when it has more threads
    /// than descriptors are allowed.
    pub fn on(host: &Host, pid: u32, context: &mut ReadContext) -> Option<ProcessClock> {
        let allowance = context.descriptors.clone();
        let mut clock = ProcessClock { before: 0.0, clocks: Vec::new(), allowance };
        let mut threads = vec![pid];
        // A thread that is started meanwhile inherits the clock of the one that started it.
        let _ = host.proc.each_name(ProcPath::new(pid, "task").as_c_str(), |name| {
            let thread = name.to_str().ok().and_then(|name| name.parse::<u32>().ok());
            threads.extend(thread.filter(|thread| *thread != pid));
        });
        for thread in &threads {
            if !clock.allowance.take() {
                return None;
            }
            match TaskClock::of(*thread) {
                Ok(one) => clock.clocks.push(one),
                Err(error) => {
                    clock.allowance.release();
                    // The first thread stays until the process exits, others may exit.
                    if *thread == pid || error.raw_os_error() != Some(libc::ESRCH) {
                        return None;
                    }
                }
            }
        }
        clock.before = match threads.len() {
            1 => {
                let path = ProcPath::new(pid, "schedstat");
                let bytes = host.proc.read(path.as_c_str(), &mut context.buffer).ok()?;
                parse::schedstat::parse(bytes).ok()?.running_ns as f64 / 1e9
            }
            // In clock ticks: `schedstat` is of one thread, and some may have exited.
            _ => {
                let path = ProcPath::new(pid, "stat");
                let bytes = host.proc.read(path.as_c_str(), &mut context.buffer).ok()?;
                let stat = parse::stat::parse(bytes).ok()?;
                host.seconds(stat.user_ticks + stat.system_ticks)
            }
        };
        Some(clock)
    }

    /// Corrects what was counted so far by a sample, which has the used time to within these
    /// bounds. The clocks run on while an interrupt or another guest of the hypervisor has the CPU:
    /// so that is at most in what is counted after the last sample.
    fn correct(&mut self, least: f64, most: f64) {
        if let Some(counted) = self.read() {
            self.before += counted.max(least).min(most.max(least)) - counted;
        }
    }

    /// What the process has used so far.
    pub fn read(&mut self) -> Option<f64> {
        let counted: std::io::Result<Duration> = self.clocks.iter_mut().map(TaskClock::read).sum();
        Some(self.before + counted.ok()?.as_secs_f64())
    }
}

impl Drop for ProcessClock {
    fn drop(&mut self) {
        self.clocks.iter().for_each(|_| self.allowance.release());
    }
}

/// The kernel's names have at most 15 bytes.
fn padded(name: &[u8]) -> [u8; 16] {
    let mut padded = [0; 16];
    for (place, byte) in padded.iter_mut().zip(name) {
        *place = *byte;
    }
    padded
}

fn put_stat(host: &Host, tick: &mut Tick, entity: Entity, stat: &Stat<'_>, run_time: Option<f64>) {
    let (user, system) = (host.seconds(stat.user_ticks), host.seconds(stat.system_ticks));
    // Threads that started and exited between two samples are in the clock ticks, and not in
    // `run_time`.
    const ONE_TICK_EACH: f64 = 0.02;
    let run_time = run_time.filter(|ran| ran + ONE_TICK_EACH >= user + system);
    tick.put(
        entity,
        &ProcessCpu {
            user: Some(user),
            system: Some(system),
            run_time,
            children_user: Some(host.seconds(stat.children_user_ticks)),
            children_system: Some(host.seconds(stat.children_system_ticks)),
        },
    );
    tick.put(
        entity,
        &ProcessEvents {
            faults_minor: Some(stat.minor_faults),
            faults_major: Some(stat.major_faults),
            children_faults: Some(stat.children_minor_faults + stat.children_major_faults),
            ..ProcessEvents::default()
        },
    );
    let threads = Some(u64::from(stat.threads));
    let doing = TaskState::from_letter(stat.state);
    tick.put(entity, &ProcessState { threads, doing, files_open: None });
}

fn io_row(io: &Io) -> ProcessIo {
    ProcessIo {
        read: Some(io.read_bytes),
        written: Some(io.written_bytes),
        read_calls: Some(io.read_calls),
        write_calls: Some(io.write_calls),
        storage_read: Some(io.storage_read_bytes),
        storage_written: Some(io.storage_written_bytes),
    }
}

/// The start time of a process, in clock ticks since boot; `None` when it does not exist.
pub fn started(host: &Host, pid: u32, buffer: &mut Vec<u8>) -> Option<u64> {
    let bytes = host.proc.read(ProcPath::new(pid, "stat").as_c_str(), buffer).ok()?;
    parse::stat::parse(bytes).ok().map(|stat| stat.started)
}

/// The parent of a process, after reparenting if it was orphaned.
pub fn parent(host: &Host, pid: u32, buffer: &mut Vec<u8>) -> Option<u32> {
    let bytes = host.proc.read(ProcPath::new(pid, "stat").as_c_str(), buffer).ok()?;
    parse::stat::parse(bytes).ok().map(|stat| stat.parent)
}

/// The name of a process, and its arguments when they are wanted.
pub fn program(host: &Host, pid: u32, arguments: bool, buffer: &mut Vec<u8>) -> Program {
    let read = |file, buffer: &mut Vec<u8>| {
        host.proc.read(ProcPath::new(pid, file).as_c_str(), buffer).map(<[u8]>::to_vec).ok()
    };
    let name = read("comm", buffer).unwrap_or_default();
    // The kernel ends the name with one newline; it may contain others.
    let name = name.strip_suffix(b"\n").unwrap_or(&name).to_vec();
    // During exec the command line is empty.
    let line = arguments.then(|| read("cmdline", buffer)).flatten().filter(|l| !l.is_empty());
    let arguments = line.map(|line| {
        let line = line.strip_suffix(&[0]).unwrap_or(&line);
        line.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
    });
    Program { name, arguments, tool: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_corrects_a_clock_that_ran_on_in_interrupts() {
        let counted = |counted: f64, least: f64, most: f64| {
            let allowance = Descriptors::at_most(0);
            let mut clock = ProcessClock { before: counted, clocks: Vec::new(), allowance };
            clock.correct(least, most);
            clock.read()
        };
        assert_eq!(counted(5.1, 5.0, 5.0), Some(5.0), "of one thread the kernel has nanoseconds");
        assert_eq!(counted(5.1, 5.0, 5.02), Some(5.02));
        assert_eq!(counted(5.01, 5.0, 5.02), Some(5.01), "finer than clock ticks");
        assert_eq!(counted(4.9, 5.0, 5.02), Some(5.0), "the clock began late");
    }
}
