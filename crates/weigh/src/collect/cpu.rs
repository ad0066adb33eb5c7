//! CPU time of the machine, and of each CPU on request.
//!
//! Source: `/proc/stat`, readable by every user. Times are clock ticks since boot. Guest time is
//! part of user time already and is not counted again.

use super::{Collector, Context, Fault, Probe, Provider, malformed, openable};
use crate::catalog::SourceId;
use crate::catalog::metrics::{CpuTime, NodeCpu};
use crate::host::{CachedFile, Host};
use crate::model::{Entity, Tick};
use crate::parse::system_stat::{self, CpuTicks};

pub(super) const PROVIDER: Provider = Provider {
    id: SourceId::Cpu,
    probe,
    collector: Some(|_| Box::new(CpuCollector::new(false))),
    descriptors: 1,
};

pub(super) const PER_CPU: Provider = Provider {
    id: SourceId::PerCpu,
    probe,
    collector: Some(|_| Box::new(CpuCollector::new(true))),
    descriptors: 1,
};

fn probe(host: &Host) -> Probe {
    openable(&host.proc, c"stat")
}

struct CpuCollector {
    stat: CachedFile,
    buffer: Vec<u8>,
    /// Each CPU, or all together.
    each: bool,
}

impl CpuCollector {
    fn new(each: bool) -> CpuCollector {
        CpuCollector { stat: CachedFile::always(), buffer: Vec::new(), each }
    }
}

impl Collector for CpuCollector {
    fn sample(&mut self, context: &Context<'_>, tick: &mut Tick) -> Result<(), Fault> {
        let host = context.host;
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
