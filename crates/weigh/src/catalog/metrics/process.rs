//! Metrics of one process of the run.

use crate::catalog::{Row, Source, SourceId, Stored, Type, Value, metrics};

metrics! {
    /// CPU time of one process since it started.
    pub struct ProcessCpu in Process / "cpu", "CPU of the processes" {
        /// Time in user mode, all threads.
        user: Counter f64 Seconds, "User time", from "/proc/PID/stat utime";
        /// Time in the kernel, all threads.
        system: Counter f64 Seconds, "System time", from "/proc/PID/stat stime";
        /// User time of reaped children and their descendants.
        children_user: Counter f64 Seconds Reaped(user), "User time of children", from "/proc/PID/stat cutime";
        /// System time of reaped children and their descendants.
        children_system: Counter f64 Seconds Reaped(system), "System time of children", from "/proc/PID/stat cstime";
        /// User and system time to the nanosecond, of a process that never had more than one thread.
        run_time: Counter f64 Seconds SupersededBy(user, system), "Run time", from "/proc/PID/schedstat";
    }
}

metrics! {
    /// Memory of one process.
    pub struct ProcessMemory in Process / "memory", "Memory" {
        /// Resident memory and huge pages, shared pages counted in full.
        rss: Gauge u64 Bytes, "Resident", from "/proc/PID/stat rss + status HugetlbPages";
        /// Peak resident memory, without huge pages.
        peak: Gauge u64 Bytes HighWaterMarkOf(rss), "Peak resident", from "/proc/PID/status VmHWM";
        /// Resident memory and huge pages, each shared page divided by the number of its users.
        pss: Gauge u64 Bytes, "Proportional", from "/proc/PID/smaps_rollup Pss + Private_Hugetlb + Shared_Hugetlb / processes of the run that have any";
        /// Resident memory and huge pages that no other process shares.
        uss: Gauge u64 Bytes, "Private", from "/proc/PID/smaps_rollup Private_Clean + Private_Dirty + Private_Hugetlb";
        /// The part of the proportional memory that is no page cache of files (program text, mapped
        /// files): what it still needs when the kernel drops that.
        without_cache: Gauge u64 Bytes, "Without page cache", from "/proc/PID/smaps_rollup Pss_Anon + Pss_Shmem + Private_Hugetlb + Shared_Hugetlb / processes of the run that have any";
        /// Memory in swap.
        swap: Gauge u64 Bytes, "Swapped", from "/proc/PID/status VmSwap";
        /// Huge pages of hugetlbfs (MAP_HUGETLB), shared ones in full; part of `rss`.
        hugetlb: Gauge u64 Bytes, "Huge pages", from "/proc/PID/status HugetlbPages";
        /// Whether its address space is its own. While it shares its parent's, as after vfork,
        /// its memory is that of the parent and the other cells are empty.
        address_space: Gauge AddressSpace One, "Address space", from "kcmp KCMP_VM";
    }
}

metrics! {
    /// I/O of one process and of its reaped children.
    pub struct ProcessIo in Process / "io", "Input and output" {
        /// Bytes that read calls returned, from anything: files, pipes, sockets, terminals.
        read: Counter u64 Bytes WithReaped, "Read", from "/proc/PID/io rchar";
        /// Bytes passed to write calls.
        written: Counter u64 Bytes WithReaped, "Written", from "/proc/PID/io wchar";
        /// Read calls.
        read_calls: Counter u64 One WithReaped, "Read calls", from "/proc/PID/io syscr";
        /// Write calls.
        write_calls: Counter u64 One WithReaped, "Write calls", from "/proc/PID/io syscw";
        /// Bytes read from storage.
        storage_read: Counter u64 Bytes WithReaped, "Read from storage", from "/proc/PID/io read_bytes";
        /// Bytes written to storage.
        storage_written: Counter u64 Bytes WithReaped, "Written to storage", from "/proc/PID/io write_bytes";
    }
}

metrics! {
    /// Page faults and context switches of one process.
    pub struct ProcessEvents in Process / "events", "Page faults and switches" {
        /// Minor page faults: without I/O.
        faults_minor: Counter u64 One, "Minor faults", from "/proc/PID/stat minflt";
        /// Major page faults: with a read from storage.
        faults_major: Counter u64 One, "Major faults", from "/proc/PID/stat majflt";
        /// Page faults of reaped children.
        children_faults: Counter u64 One Reaped(faults_minor, faults_major), "Faults of children", from "/proc/PID/stat cminflt + cmajflt";
        /// Voluntary context switches of the main thread.
        switches_voluntary: Counter u64 One, "Voluntary switches", from "/proc/PID/status voluntary_ctxt_switches";
        /// Involuntary context switches of the main thread.
        switches_involuntary: Counter u64 One, "Involuntary switches", from "/proc/PID/status nonvoluntary_ctxt_switches";
    }
}

metrics! {
    /// State of one process.
    pub struct ProcessState in Process / "state", "Threads and open files" {
        /// Threads.
        threads: Gauge u64 One, "Threads", from "/proc/PID/stat num_threads";
        /// Open files.
        files_open: Gauge u64 One, "Open files", from "/proc/PID/fd";
        /// State of the process.
        doing: Gauge TaskState One, "State", from "/proc/PID/stat state";
    }
}

/// The state of a process, from the kernel's letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskState(u8);

const STATES: [&str; 9] = [
    "running",
    "sleeping",
    "waiting for disk",
    "zombie",
    "stopped",
    "traced",
    "dead",
    "idle",
    "parked",
];
const LETTERS: [u8; 9] = *b"RSDZTtXIP";

impl TaskState {
    /// It has exited, and its parent has not reaped it yet.
    pub const ZOMBIE: TaskState = TaskState(3);

    /// From the letter in `/proc/PID/stat`.
    pub fn from_letter(letter: u8) -> Option<TaskState> {
        LETTERS.iter().position(|known| *known == letter).map(|place| TaskState(place as u8))
    }
}

impl Stored for TaskState {
    const TYPE: Type = Type::Symbol(&STATES);
    fn value(self) -> Value {
        Value::Symbol(self.0)
    }
    fn from_value(value: Value) -> Option<TaskState> {
        if let Value::Symbol(place) = value { Some(TaskState(place)) } else { None }
    }
}

/// Whether a process has its own address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressSpace {
    /// Its own.
    Own,
    /// That of another process of the run.
    Shared,
}

impl Stored for AddressSpace {
    const TYPE: Type = Type::Symbol(&["own", "shared"]);
    fn value(self) -> Value {
        Value::Symbol(self as u8)
    }
    fn from_value(value: Value) -> Option<AddressSpace> {
        match value {
            Value::Symbol(0) => Some(AddressSpace::Own),
            Value::Symbol(1) => Some(AddressSpace::Shared),
            _ => None,
        }
    }
}

/// What `--collect` and `--skip` call this source.
pub const SOURCE: Source = Source {
    id: SourceId::Process,
    name: "process",
    about: "CPU, memory, I/O, faults, switches, threads and files of each process of the run",
    groups: &[
        ProcessCpu::METRICS,
        ProcessMemory::METRICS,
        ProcessIo::METRICS,
        ProcessEvents::METRICS,
        ProcessState::METRICS,
    ],
    on_request: false,
    everywhere: true,
};
