//! The files of a cgroup and their parsers, in cgroup v1 and v2.

use std::ffi::CStr;

use super::{CPU, IO, MEMORY, TASKS};
use crate::host::cgroup::Cgroup;
use crate::host::{self, CachedFile, Dir};
use crate::parse::MalformedFile;
use crate::parse::group_stat::{self, CpuStat, IoStat, MemoryStat};
use crate::parse::pressure::{self, Pressure};

/// A file of the cgroup, and its parser.
pub(super) struct CgroupFile<T> {
    dir: Dir,
    name: &'static CStr,
    cached: CachedFile,
    parse: fn(&[u8]) -> Result<T, MalformedFile>,
    is_absent: bool,
}

impl<T> CgroupFile<T> {
    /// Its value; `None` when it was found to be absent before.
    pub(super) fn read(&mut self, buffer: &mut Vec<u8>) -> Option<Result<T, host::Error>> {
        if self.is_absent {
            return None;
        }
        let read = self.cached.read(&self.dir, || self.name, buffer).and_then(|bytes| {
            let path = || self.dir.path(self.name);
            (self.parse)(bytes).map_err(|source| host::Error::Parse { path: path(), source })
        });
        // Its controller is not enabled for the cgroup; reading again would not change that.
        self.is_absent = read.as_ref().is_err_and(host::Error::is_gone);
        Some(read)
    }
}

/// All files that are read.
#[derive(Default)]
pub(super) struct CgroupFiles {
    /// All of CPU time, in cgroup v2.
    pub cpu: Option<CgroupFile<CpuStat>>,
    /// CPU time in nanoseconds, in cgroup v1.
    pub cpu_nanoseconds: Option<CgroupFile<u64>>,
    /// User and system time in clock ticks, in cgroup v1.
    pub cpu_split: Option<CgroupFile<(u64, u64)>>,
    /// Throttling, in cgroup v1.
    pub quota: Option<CgroupFile<CpuStat>>,
    /// Current memory.
    pub memory: Option<CgroupFile<u64>>,
    /// Peak memory; in cgroup v2 since Linux 5.19.
    pub memory_peak: Option<CgroupFile<u64>>,
    /// Memory by kind.
    pub memory_stat: Option<CgroupFile<MemoryStat>>,
    /// Kernel memory, in cgroup v1.
    pub memory_kernel: Option<CgroupFile<u64>>,
    /// Swap, in cgroup v2.
    pub swap: Option<CgroupFile<u64>>,
    /// Out-of-memory kills.
    pub oom_kills: Option<CgroupFile<Option<u64>>>,
    /// All of I/O, in cgroup v2.
    pub io: Option<CgroupFile<IoStat>>,
    /// Bytes, in cgroup v1.
    pub io_bytes: Option<CgroupFile<(u64, u64)>>,
    /// Operations, in cgroup v1.
    pub io_operations: Option<CgroupFile<(u64, u64)>>,
    /// Current tasks.
    pub tasks: Option<CgroupFile<u64>>,
    /// Stall times, in cgroup v2.
    pub cpu_pressure: Option<CgroupFile<Pressure>>,
    pub memory_pressure: Option<CgroupFile<Pressure>>,
    pub io_pressure: Option<CgroupFile<Pressure>>,
    /// Metrics whose controller has no such cgroup.
    pub missing: Vec<(&'static str, &'static str)>,
}

fn file<T>(
    dir: &Dir,
    name: &'static CStr,
    parse: fn(&[u8]) -> Result<T, MalformedFile>,
) -> Option<CgroupFile<T>> {
    Some(CgroupFile {
        dir: dir.clone(),
        name,
        cached: CachedFile::always(),
        parse,
        is_absent: false,
    })
}

impl CgroupFiles {
    /// The files of a cgroup. A controller belongs to one version: where cgroup v1 has it, cgroup
    /// v2 has only pressure.
    pub(super) fn of(group: &Cgroup) -> CgroupFiles {
        let mut files = CgroupFiles::default();
        files.add_cpu(group);
        files.add_memory(group);
        match (&group.blkio, &group.unified) {
            (Some(dir), _) => {
                let (bytes, operations) = (
                    c"blkio.throttle.io_service_bytes_recursive",
                    c"blkio.throttle.io_serviced_recursive",
                );
                files.io_bytes = file(dir, bytes, group_stat::blkio);
                files.io_operations = file(dir, operations, group_stat::blkio);
            }
            (None, Some(dir)) => files.io = file(dir, c"io.stat", group_stat::io_stat),
            (None, None) => files.missing.push((IO, "blkio")),
        }
        match group.pids.as_ref().or(group.unified.as_ref()) {
            Some(dir) => files.tasks = file(dir, c"pids.current", group_stat::number),
            None => files.missing.push((TASKS, "pids")),
        }
        // They need no controller: a cgroup has them also where cgroup v1 has the controllers.
        if let Some(dir) = &group.unified {
            files.cpu_pressure = file(dir, c"cpu.pressure", pressure::parse);
            files.memory_pressure = file(dir, c"memory.pressure", pressure::parse);
            files.io_pressure = file(dir, c"io.pressure", pressure::parse);
        }
        files
    }

    /// Whether writes through the page cache are not counted.
    pub(super) fn misses_page_cache_writes(&self) -> bool {
        self.io_bytes.is_some()
    }

    fn add_cpu(&mut self, group: &Cgroup) {
        match (&group.cpuacct, &group.unified) {
            (Some(dir), _) => {
                self.cpu_nanoseconds = file(dir, c"cpuacct.usage", group_stat::number);
                self.cpu_split = file(dir, c"cpuacct.stat", group_stat::cpuacct_stat);
            }
            (None, Some(dir)) => self.cpu = file(dir, c"cpu.stat", group_stat::cpu_stat),
            (None, None) => self.missing.push((CPU, "cpuacct")),
        }
        if let Some(dir) = &group.cpu {
            self.quota = file(dir, c"cpu.stat", group_stat::cpu_stat);
        }
    }

    fn add_memory(&mut self, group: &Cgroup) {
        use group_stat::{memory_stat, memory_stat_v1, number, oom_kills};
        match (&group.memory, &group.unified) {
            (Some(dir), _) => {
                self.memory = file(dir, c"memory.usage_in_bytes", number);
                self.memory_peak = file(dir, c"memory.max_usage_in_bytes", number);
                self.memory_stat = file(dir, c"memory.stat", memory_stat_v1);
                self.memory_kernel = file(dir, c"memory.kmem.usage_in_bytes", number);
                self.oom_kills = file(dir, c"memory.oom_control", oom_kills);
            }
            (None, Some(dir)) => {
                self.memory = file(dir, c"memory.current", number);
                self.memory_peak = file(dir, c"memory.peak", number);
                self.memory_stat = file(dir, c"memory.stat", memory_stat);
                self.swap = file(dir, c"memory.swap.current", number);
                self.oom_kills = file(dir, c"memory.events", oom_kills);
            }
            (None, None) => self.missing.push((MEMORY, "memory")),
        }
    }
}
