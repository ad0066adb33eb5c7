//! CPU time of the machine, and of each CPU on request.
//!
//! Source: `/proc/stat`, readable by everybody. Times are clock ticks since
//! boot. Guest time is inside user time already and is not counted again.

use super::{Collector, Fault, Probe, Source, group, malformed, readable};
use crate::catalog::metrics;
use crate::host::{Host, Kept};
use crate::parse::system_stat::{self, CpuTicks};
use crate::sample::{Entity, Tick};

metrics! {
    /// CPU time of the whole machine since boot.
    pub struct NodeCpu in Node / "cpu", "CPU of the machine" {
        /// Time in user mode, guests included.
        user: Counter f64 Seconds, "User", from "/proc/stat cpu user";
        /// Time in user mode at low priority.
        nice: Counter f64 Seconds, "Nice", from "/proc/stat cpu nice";
        /// Time in the kernel.
        system: Counter f64 Seconds, "System", from "/proc/stat cpu system";
        /// Time with nothing to do.
        idle: Counter f64 Seconds, "Idle", from "/proc/stat cpu idle";
        /// Time idle while I/O was under way.
        iowait: Counter f64 Seconds, "I/O wait", from "/proc/stat cpu iowait";
        /// Time in interrupts, hard and soft.
        interrupts: Counter f64 Seconds, "Interrupts", from "/proc/stat cpu irq + softirq";
        /// Time a hypervisor gave to others.
        steal: Counter f64 Seconds, "Stolen", from "/proc/stat cpu steal";
    }
}

impl NodeCpu {
    /// Time that was used, and all there was.
    pub fn busy_and_all(&self) -> Option<(f64, f64)> {
        let busy = self.user? + self.nice? + self.system? + self.interrupts.unwrap_or(0.0);
        // Time that a hypervisor gave to others was neither used here nor idle.
        let all = busy + self.idle? + self.iowait.unwrap_or(0.0) + self.steal.unwrap_or(0.0);
        Some((busy, all))
    }
}

metrics! {
    /// CPU time of one CPU since boot.
    pub struct CpuTime in Cpu / "time", "Each CPU" {
        /// Time in user mode, low priority and guests included.
        user: Counter f64 Seconds, "User", from "/proc/stat cpuN user + nice";
        /// Time in the kernel, interrupts included.
        system: Counter f64 Seconds, "System", from "/proc/stat cpuN system + irq + softirq";
        /// Time with nothing to do.
        idle: Counter f64 Seconds, "Idle", from "/proc/stat cpuN idle";
        /// Time idle while I/O was under way.
        iowait: Counter f64 Seconds, "I/O wait", from "/proc/stat cpuN iowait";
        /// Time a hypervisor gave to others.
        steal: Counter f64 Seconds, "Stolen", from "/proc/stat cpuN steal";
    }
}

pub(super) const SOURCE: Source = Source {
    name: "cpu",
    about: "CPU time of the machine: user, system, idle, I/O wait, steal",
    groups: &[group::<NodeCpu>()],
    probe,
    collector: Some(|_| Box::new(Cpu::new(false))),
    on_request: false,
    everywhere: true,
    descriptors: 1,
};

pub(super) const PER_CPU: Source = Source {
    name: "percpu",
    about: "CPU time of each CPU of the machine",
    groups: &[group::<CpuTime>()],
    probe,
    collector: Some(|_| Box::new(Cpu::new(true))),
    on_request: true,
    everywhere: true,
    descriptors: 1,
};

fn probe(host: &Host) -> Probe {
    readable(&host.proc, c"stat")
}

struct Cpu {
    stat: Kept,
    buffer: Vec<u8>,
    /// Each CPU, or all together.
    each: bool,
}

impl Cpu {
    fn new(each: bool) -> Cpu {
        Cpu { stat: Kept::always(), buffer: Vec::new(), each }
    }
}

impl Collector for Cpu {
    fn sample(&mut self, host: &Host, tick: &mut Tick) -> Result<(), Fault> {
        let bytes = self.stat.read(&host.proc, || c"stat", &mut self.buffer)?;
        if self.each {
            for (cpu, ticks) in system_stat::cpus(bytes) {
                tick.put(Entity::Cpu(cpu), &of_one(host, &ticks));
            }
        } else {
            let stat = system_stat::parse(bytes).map_err(malformed(&host.proc, c"stat"))?;
            tick.put(Entity::Single, &of_all(host, &stat.total));
        }
        Ok(())
    }
}

fn of_all(host: &Host, ticks: &CpuTicks) -> NodeCpu {
    NodeCpu {
        user: Some(host.seconds(ticks.user)),
        nice: Some(host.seconds(ticks.nice)),
        system: Some(host.seconds(ticks.system)),
        idle: Some(host.seconds(ticks.idle)),
        iowait: ticks.iowait.map(|ticks| host.seconds(ticks)),
        interrupts: interrupts(ticks).map(|ticks| host.seconds(ticks)),
        steal: ticks.steal.map(|ticks| host.seconds(ticks)),
    }
}

fn of_one(host: &Host, ticks: &CpuTicks) -> CpuTime {
    CpuTime {
        user: Some(host.seconds(ticks.user + ticks.nice)),
        system: Some(host.seconds(ticks.system + interrupts(ticks).unwrap_or(0))),
        idle: Some(host.seconds(ticks.idle)),
        iowait: ticks.iowait.map(|ticks| host.seconds(ticks)),
        steal: ticks.steal.map(|ticks| host.seconds(ticks)),
    }
}

fn interrupts(ticks: &CpuTicks) -> Option<u64> {
    Some(ticks.irq? + ticks.softirq?)
}
