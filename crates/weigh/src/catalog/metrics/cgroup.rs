//! What a cgroup counts for all processes in it.

use crate::catalog::{Row, Source, SourceId, metrics};

metrics! {
    /// CPU time of a cgroup since it was created.
    pub struct GroupCpu in Cgroup / "cpu", "CPU of the cgroup" {
        /// All CPU time.
        usage: Counter f64 Seconds, "CPU time", from "cpu.stat usage_usec; cpuacct.usage";
        /// Time in user mode.
        user: Counter f64 Seconds, "User", from "cpu.stat user_usec; cpuacct.stat user";
        /// Time in the kernel.
        system: Counter f64 Seconds, "System", from "cpu.stat system_usec; cpuacct.stat system";
    }
}

metrics! {
    /// How a cgroup was throttled by its CPU quota.
    pub struct GroupThrottling in Cgroup / "throttling", "Throttling of the cgroup" {
        /// Quota periods in which it was runnable.
        periods: Counter u64 One, "Periods", from "cpu.stat nr_periods";
        /// Quota periods in which it was throttled.
        throttled_periods: Counter u64 One, "Throttled periods", from "cpu.stat nr_throttled";
        /// Time it was throttled, summed over CPUs.
        throttled: Counter f64 Seconds, "Throttled", from "cpu.stat throttled_usec; throttled_time";
    }
}

metrics! {
    /// Memory of a cgroup.
    pub struct GroupMemory in Cgroup / "memory", "Memory of the cgroup" {
        /// Current memory, page cache included.
        current: Gauge u64 Bytes, "Current", from "memory.current; memory.usage_in_bytes";
        /// Peak memory since it was created, page cache included.
        peak: Gauge u64 Bytes, "Peak", from "memory.peak; memory.max_usage_in_bytes";
        /// Anonymous memory of programs: heap and stacks.
        anonymous: Gauge u64 Bytes, "Anonymous", from "memory.stat anon; total_rss";
        /// File contents: the page cache, which is reclaimable, and tmpfs, which is not.
        file: Gauge u64 Bytes, "Page cache", from "memory.stat file; total_cache";
        /// Kernel memory: stacks, page tables, directory entries.
        kernel: Gauge u64 Bytes, "Kernel", from "memory.stat kernel; memory.kmem.usage_in_bytes";
        /// Memory in swap.
        swap: Gauge u64 Bytes, "Swap", from "memory.swap.current; memory.stat total_swap";
    }
}

metrics! {
    /// Storage I/O of a cgroup since it was created.
    pub struct GroupIo in Cgroup / "io", "Storage traffic of the cgroup" {
        /// Bytes read from storage.
        read: Counter u64 Bytes, "Read", from "io.stat rbytes; blkio.throttle.io_service_bytes";
        /// Bytes written to storage.
        written: Counter u64 Bytes, "Written", from "io.stat wbytes; blkio.throttle.io_service_bytes";
        /// Read operations.
        reads: Counter u64 One, "Reads", from "io.stat rios; blkio.throttle.io_serviced";
        /// Write operations.
        writes: Counter u64 One, "Writes", from "io.stat wios; blkio.throttle.io_serviced";
    }
}

metrics! {
    /// Tasks of a cgroup.
    pub struct GroupTasks in Cgroup / "tasks", "Tasks of the cgroup" {
        /// Current processes and threads.
        current: Gauge u64 One, "Tasks", from "pids.current";
        /// Out-of-memory kills.
        oom_kills: Counter u64 One, "OOM kills", from "memory.events; memory.oom_control oom_kill";
    }
}

metrics! {
    /// Time in which tasks of a cgroup stalled, since it was created.
    pub struct GroupPressure in Cgroup / "pressure", "Pressure in the cgroup" {
        /// Time in which at least one of its tasks waited for a CPU.
        cpu_some: Counter f64 SecondsInState, "Some wait for a CPU", from "cpu.pressure some";
        /// Time in which all of its tasks that had work waited for a CPU, or for their quota.
        cpu_full: Counter f64 SecondsInState, "All wait for a CPU", from "cpu.pressure full";
        /// Time in which at least one of its tasks waited for memory.
        memory_some: Counter f64 SecondsInState, "Some wait for memory", from "memory.pressure some";
        /// Time in which all of its tasks that had work waited for memory.
        memory_full: Counter f64 SecondsInState, "All wait for memory", from "memory.pressure full";
        /// Time in which at least one of its tasks waited for storage.
        io_some: Counter f64 SecondsInState, "Some wait for storage", from "io.pressure some";
        /// Time in which all of its tasks that had work waited for storage.
        io_full: Counter f64 SecondsInState, "All wait for storage", from "io.pressure full";
    }
}

/// What `--collect` and `--skip` call this source.
pub const SOURCE: Source = Source {
    id: SourceId::Cgroup,
    name: "cgroup",
    about: "usage of a cgroup, exact: for weigh attach --cgroup",
    groups: &[
        GroupCpu::METRICS,
        GroupThrottling::METRICS,
        GroupMemory::METRICS,
        GroupIo::METRICS,
        GroupTasks::METRICS,
        GroupPressure::METRICS,
    ],
    on_request: true,
    // It is requested only where there is a cgroup to monitor.
    everywhere: true,
};
