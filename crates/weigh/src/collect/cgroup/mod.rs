//! Usage of a cgroup, from the kernel's own counters.
//!
//! Source: the files of the cgroup's directory (`host::cgroup`), readable by every user who may
//! read it: `cpu.stat`, `memory.current`, `memory.peak`, `memory.stat`, `memory.events`, `io.stat`
//! and `pids.current` in cgroup v2, their equivalents in cgroup v1. They count every process that
//! is or was in the cgroup or its descendants, however short it lived. cgroup v2 also has
//! `cpu.pressure`, `memory.pressure` and `io.pressure`.
//!
//! What surprised us: a file exists only when its controller is enabled for the cgroup, but
//! pressure files always do; the root cgroup of v2 has no memory files. cgroup v1 does not count
//! writes through the page cache, which are most writes.

mod files;
#[cfg(test)]
mod tests;

use files::{CgroupFile, CgroupFiles};

use super::{Collector, Context, Fault, MissingParts, Probe, Provider};
use crate::catalog::metrics::{
    GroupCpu, GroupIo, GroupMemory, GroupPressure, GroupTasks, GroupThrottling,
};
use crate::catalog::{Row, Scope, SourceId};
use crate::host::Host;
use crate::host::cgroup::Cgroup;
use crate::model::{Entity, FaultSource, Tick};
use crate::parse::pressure::Pressure;

pub(super) const PROVIDER: Provider =
    Provider { id: SourceId::Cgroup, probe, collector: None, descriptors: 20 };

fn probe(host: &Host) -> Probe {
    match Cgroup::at(host, std::path::Path::new("/")) {
        Ok(_) => Probe::Ready,
        Err(error) => Probe::Absent { why: error.to_string() },
    }
}

/// The counters of one cgroup, read once a tick.
pub struct CgroupCollector {
    group: Cgroup,
    files: CgroupFiles,
    buffer: Vec<u8>,
    missing: MissingParts,
}

impl CgroupCollector {
    /// For this cgroup.
    pub fn of(group: Cgroup) -> CgroupCollector {
        let files = CgroupFiles::of(&group);
        let (buffer, missing) = (Vec::new(), MissingParts::default());
        let mut collector = CgroupCollector { group, files, buffer, missing };
        for (of, controller) in std::mem::take(&mut collector.files.missing) {
            let path = &collector.group.path;
            collector
                .miss(of, format!("there is no group {path} below the {controller} controller"));
        }
        if collector.files.misses_page_cache_writes() {
            let why = "cgroup v1 does not count writes through the page cache";
            collector.miss(IO, why.to_owned());
        }
        if collector.files.cpu_pressure.is_none() {
            collector.miss(PRESSURE, "only cgroup v2 reports it".to_owned());
        }
        collector
    }

    /// For a cgroup that weigh created itself, under the controllers that it needs.
    pub fn of_own(group: Cgroup) -> CgroupCollector {
        let files = CgroupFiles { missing: Vec::new(), ..CgroupFiles::of(&group) };
        let missing = MissingParts::all_but(&[IO, TASKS, PRESSURE]);
        CgroupCollector { group, files, buffer: Vec::new(), missing }
    }

    /// Something of a group of metrics is missing.
    fn miss(&mut self, group: &'static str, why: String) {
        self.missing.add(group, FaultSource::Group(Scope::Cgroup, group), || why);
    }

    /// Reads one of the files; a failure is reported once.
    fn needed<T>(
        &mut self,
        file: fn(&mut CgroupFiles) -> &mut Option<CgroupFile<T>>,
        of: &'static str,
    ) -> Option<T> {
        match file(&mut self.files).as_mut()?.read(&mut self.buffer)? {
            Ok(value) => Some(value),
            Err(error) => {
                let more = match (error.is_gone(), of) {
                    (false, _) => "",
                    (true, PRESSURE) => " (this kernel has no pressure stall information)",
                    (true, _) => " (its controller is not enabled for the group)",
                };
                self.miss(of, format!("{error}{more}"));
                None
            }
        }
    }

    /// Reads a file that not every kernel or cgroup has.
    fn optional<T>(
        &mut self,
        file: fn(&mut CgroupFiles) -> &mut Option<CgroupFile<T>>,
    ) -> Option<T> {
        file(&mut self.files).as_mut()?.read(&mut self.buffer)?.ok()
    }

    fn cpu(&mut self, host: &Host) -> (GroupCpu, GroupThrottling) {
        let mut cpu = GroupCpu::default();
        let stat = self.needed(|files| &mut files.cpu, CPU);
        if let Some(stat) = &stat {
            let seconds = |microseconds: Option<u64>| Some(microseconds? as f64 / 1e6);
            cpu.usage = seconds(stat.usage);
            (cpu.user, cpu.system) = (seconds(stat.user), seconds(stat.system));
        }
        if let Some(nanoseconds) = self.needed(|files| &mut files.cpu_nanoseconds, CPU) {
            cpu.usage = Some(nanoseconds as f64 / 1e9);
        }
        if let Some((user, system)) = self.needed(|files| &mut files.cpu_split, CPU) {
            (cpu.user, cpu.system) = (Some(host.seconds(user)), Some(host.seconds(system)));
        }
        let quota = self.optional(|files| &mut files.quota).or(stat).unwrap_or_default();
        let throttling = GroupThrottling {
            periods: quota.periods,
            throttled_periods: quota.throttled_periods,
            throttled: quota.throttled_nanoseconds.map(|time| time as f64 / 1e9),
        };
        (cpu, throttling)
    }

    fn memory(&mut self) -> GroupMemory {
        // The peak first: the current value read after it may exceed it only by what was allocated
        // in between.
        let peak = self.optional(|files| &mut files.memory_peak);
        let current = self.needed(|files| &mut files.memory, MEMORY);
        let stat = self.needed(|files| &mut files.memory_stat, MEMORY).unwrap_or_default();
        GroupMemory {
            current,
            peak,
            anonymous: stat.anonymous,
            file: stat.file,
            kernel: stat.kernel.or_else(|| self.optional(|files| &mut files.memory_kernel)),
            swap: stat.swap.or_else(|| self.optional(|files| &mut files.swap)),
        }
    }

    fn io(&mut self) -> GroupIo {
        if let Some(io) = self.needed(|files| &mut files.io, IO) {
            return GroupIo {
                read: Some(io.read),
                written: Some(io.written),
                reads: Some(io.reads),
                writes: Some(io.writes),
            };
        }
        let (read, written) = self.needed(|files| &mut files.io_bytes, IO).unzip();
        let (reads, writes) = self.needed(|files| &mut files.io_operations, IO).unzip();
        GroupIo { read, written, reads, writes }
    }

    fn pressure(&mut self) -> GroupPressure {
        let seconds = |microseconds: u64| microseconds as f64 / 1e6;
        let mut stalled = |file| match self.needed(file, PRESSURE) {
            Some(Pressure { some, full }) => (Some(seconds(some)), full.map(seconds)),
            None => (None, None),
        };
        let (cpu_some, cpu_full) = stalled(|files| &mut files.cpu_pressure);
        let (memory_some, memory_full) = stalled(|files| &mut files.memory_pressure);
        let (io_some, io_full) = stalled(|files| &mut files.io_pressure);
        GroupPressure { cpu_some, cpu_full, memory_some, memory_full, io_some, io_full }
    }
}

const CPU: &str = GroupCpu::GROUP;
const MEMORY: &str = GroupMemory::GROUP;
const IO: &str = GroupIo::GROUP;
const TASKS: &str = GroupTasks::GROUP;
const PRESSURE: &str = GroupPressure::GROUP;

impl Collector for CgroupCollector {
    fn sample(&mut self, context: &Context<'_>, tick: &mut Tick) -> Result<(), Fault> {
        let host = context.host;
        if let Err(error) = self.group.members.size(c"cgroup.procs")
            && error.is_gone()
        {
            return Err(Fault::Retire("the cgroup was removed".to_owned()));
        }
        let (cpu, throttling) = self.cpu(host);
        tick.put(Entity::Single, &cpu);
        tick.put(Entity::Single, &throttling);
        tick.put(Entity::Single, &self.memory());
        tick.put(Entity::Single, &self.io());
        let tasks = GroupTasks {
            current: self.needed(|files| &mut files.tasks, TASKS),
            oom_kills: self.optional(|files| &mut files.oom_kills).flatten(),
        };
        tick.put(Entity::Single, &tasks);
        tick.put(Entity::Single, &self.pressure());
        Ok(())
    }

    fn missing(&mut self) -> Option<&mut MissingParts> {
        Some(&mut self.missing)
    }
}
