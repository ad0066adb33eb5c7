//! CPU time of the machine: all CPUs together, and each.

use crate::catalog::{Row, Source, SourceId, metrics};

metrics! {
    /// CPU time of the whole machine since boot.
    pub struct NodeCpu in Node / "cpu", "CPU of the machine" {
        /// Time in user mode, guests included.
        user: Counter f64 Seconds, "User", from "/proc/stat cpu user";
        /// Time in user mode at low priority.
        nice: Counter f64 Seconds, "Nice", from "/proc/stat cpu nice";
        /// Time in the kernel.
        system: Counter f64 Seconds, "System", from "/proc/stat cpu system";
        /// Idle time.
        idle: Counter f64 Seconds, "Idle", from "/proc/stat cpu idle";
        /// Idle time while I/O was in flight.
        iowait: Counter f64 Seconds, "I/O wait", from "/proc/stat cpu iowait";
        /// Time in interrupts, hard and soft.
        interrupts: Counter f64 Seconds, "Interrupts", from "/proc/stat cpu irq + softirq";
        /// Time in which the hypervisor ran other guests.
        steal: Counter f64 Seconds, "Stolen", from "/proc/stat cpu steal";
    }
}

metrics! {
    /// CPU time of one CPU since boot.
    pub struct CpuTime in Cpu / "time", "Each CPU" {
        /// Time in user mode, low priority and guests included.
        user: Counter f64 Seconds, "User", from "/proc/stat cpuN user + nice";
        /// Time in the kernel, interrupts included.
        system: Counter f64 Seconds, "System", from "/proc/stat cpuN system + irq + softirq";
        /// Idle time.
        idle: Counter f64 Seconds, "Idle", from "/proc/stat cpuN idle";
        /// Idle time while I/O was in flight.
        iowait: Counter f64 Seconds, "I/O wait", from "/proc/stat cpuN iowait";
        /// Time in which the hypervisor ran other guests.
        steal: Counter f64 Seconds, "Stolen", from "/proc/stat cpuN steal";
    }
}

/// What `--collect` and `--skip` call this source.
pub const SOURCE: Source = Source {
    id: SourceId::Cpu,
    name: "cpu",
    about: "CPU time of the machine: user, system, idle, I/O wait, steal",
    groups: &[NodeCpu::METRICS],
    on_request: false,
    everywhere: true,
};

/// What `--collect` and `--skip` call this source.
pub const PER_CPU: Source = Source {
    id: SourceId::PerCpu,
    name: "percpu",
    about: "CPU time of each CPU of the machine",
    groups: &[CpuTime::METRICS],
    on_request: true,
    everywhere: true,
};

impl NodeCpu {
    /// Busy time, and all time.
    pub fn busy_and_all(&self) -> Option<(f64, f64)> {
        let busy = self.user? + self.nice? + self.system? + self.interrupts.unwrap_or(0.0);
        // Stolen time was neither busy nor idle here.
        let all = busy + self.idle? + self.iowait.unwrap_or(0.0) + self.steal.unwrap_or(0.0);
        Some((busy, all))
    }
}
