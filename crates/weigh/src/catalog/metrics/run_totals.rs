//! The run as a whole at each complete tick: sums over its processes, and over its GPUs.
//!
//! These are derived when a recording is read, from the same values as the summary, so that every
//! recording has them and nobody has to carry values of processes forward. No collector fills them.

use crate::catalog::{Metric, Row, metrics};

metrics! {
    /// CPU time of the run.
    pub struct RunTotalCpu in Run / "usage", "Usage of the run" {
        /// CPU time of the run so far, by the counter that the summary uses while the run lasts.
        cpu: Counter f64 Seconds, "CPU time so far", from "perf task-clock, cpu.stat, or the sum of /proc/PID/stat";
    }
}

metrics! {
    /// Memory of all live processes of the run.
    pub struct RunTotalMemory in Run / "memory", "Memory of the run" {
        /// Memory in use: the sum of PSS, and at least the RSS of the largest process. The mean of the
        /// run has this basis, and so has its peak, unless a high-water mark of the kernel is higher.
        used: Gauge u64 Bytes, "Used", from "the sum of Pss, at least the largest rss";
        /// Sum of resident memory, shared pages counted for each process.
        rss: Gauge u64 Bytes, "Resident", from "the sum of rss";
        /// Sum of proportional memory, each value as it was last read.
        pss: Gauge u64 Bytes, "Proportional", from "the sum of Pss";
        /// Sum of private memory, each value as it was last read.
        uss: Gauge u64 Bytes, "Private", from "the sum of Private_Clean + Private_Dirty";
        /// Sum of the peaks that these processes have reached so far: an upper bound of what they had
        /// together, huge pages excepted.
        high_water: Gauge u64 Bytes, "Sum of peaks", from "the sum of VmHWM, at least rss less huge pages";
        /// Sum of swapped memory.
        swap: Gauge u64 Bytes, "Swapped", from "the sum of VmSwap";
    }
}

metrics! {
    /// Live processes of the run.
    pub struct RunTotalProcesses in Run / "processes", "Processes of the run" {
        /// Live processes.
        alive: Gauge u64 One, "Processes", from "/proc";
        /// Their threads.
        threads: Gauge u64 One, "Threads", from "the sum of num_threads";
        /// Their open files.
        files_open: Gauge u64 One, "Open files", from "the number of /proc/PID/fd";
    }
}

metrics! {
    /// I/O of the run.
    pub struct RunTotalIo in Run / "io", "Input and output of the run" {
        /// Bytes that read calls returned so far, by live and exited processes.
        read: Counter u64 Bytes, "Read", from "the sum of rchar";
        /// Bytes passed to write calls so far.
        written: Counter u64 Bytes, "Written", from "the sum of wchar";
        /// Read calls so far.
        read_calls: Counter u64 One, "Read calls", from "the sum of syscr";
        /// Write calls so far.
        write_calls: Counter u64 One, "Write calls", from "the sum of syscw";
        /// Bytes read from storage so far.
        storage_read: Counter u64 Bytes, "Read from storage", from "the sum of read_bytes";
        /// Bytes written to storage so far.
        storage_written: Counter u64 Bytes, "Written to storage", from "the sum of write_bytes";
    }
}

metrics! {
    /// GPUs of the run.
    pub struct RunTotalGpu in Run / "gpu", "GPUs of the run" {
        /// GPU memory of the run's processes.
        memory: Gauge u64 Bytes, "GPU memory", from "the sum over its processes on all GPUs";
        /// GPUs in use: the sum of the utilization of those that the run could use.
        busy: Gauge f64 One, "GPUs in use", from "the sum of utilization";
    }
}

/// Groups of metrics that readers derive; no source collects them.
pub const DERIVED: &[&[Metric]] = &[
    RunTotalCpu::METRICS,
    RunTotalMemory::METRICS,
    RunTotalProcesses::METRICS,
    RunTotalIo::METRICS,
    RunTotalGpu::METRICS,
];
