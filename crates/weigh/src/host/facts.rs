//! What the machine is: its name, cores and memory, and how much of it a run may use.

use std::ffi::CString;

use serde::{Deserialize, Serialize};

use super::Host;
use crate::parse::{self, cgroup};

/// The machine a run was on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Its host name.
    pub name: String,
    /// CPUs that are online.
    pub cores: u32,
    /// CPUs the run may use: its affinity, and its cgroup's quota where there is one.
    pub cores_allowed: f64,
    /// Memory in bytes; null when `/proc/meminfo` cannot be read.
    pub memory_bytes: Option<u64>,
    /// The running kernel.
    pub kernel: String,
    /// The processor architecture.
    pub architecture: String,
    /// GPUs; none is looked for yet.
    pub gpus: Vec<serde_json::Value>,
}

impl Facts {
    /// Looks at the machine.
    pub fn of(host: &Host) -> Facts {
        let system = rustix::system::uname();
        let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
        let cores = online(host);
        let affinity = rustix::thread::sched_getaffinity(None).map_or(cores, |set| set.count());
        let allowed = quota(host).map_or(f64::from(affinity), |quota| quota.min(affinity.into()));
        let mut buffer = Vec::new();
        let memory = host.proc.read(c"meminfo", &mut buffer).ok();
        Facts {
            name: text(system.nodename()),
            cores,
            cores_allowed: allowed,
            memory_bytes: memory
                .and_then(|bytes| parse::meminfo::parse(bytes).ok())
                .map(|memory| memory.total),
            kernel: text(system.release()),
            architecture: text(system.machine()),
            gpus: Vec::new(),
        }
    }
}

#[cfg(test)]
impl Facts {
    /// A machine for tests: four cores, 8 GiB.
    pub fn example() -> Facts {
        Facts {
            name: "node-a".to_owned(),
            cores: 4,
            cores_allowed: 4.0,
            memory_bytes: Some(8 << 30),
            kernel: "6.0".to_owned(),
            architecture: "x86_64".to_owned(),
            gpus: Vec::new(),
        }
    }
}

fn online(host: &Host) -> u32 {
    let mut buffer = Vec::new();
    let listed = host.sys.read(c"devices/system/cpu/online", &mut buffer).ok();
    listed.and_then(|bytes| parse::cpulist::count(bytes).ok()).unwrap_or_else(|| {
        std::thread::available_parallelism().map_or(1, |count| count.get() as u32)
    })
}

/// The smallest CPU quota on the way from our cgroup to the root, in cores.
fn quota(host: &Host) -> Option<f64> {
    let mut buffer = Vec::new();
    let memberships = host.proc.read(c"self/cgroup", &mut buffer).ok()?.to_vec();
    cgroup::memberships(&memberships)
        .filter_map(|membership| {
            let path = std::str::from_utf8(membership.path).ok()?;
            if membership.is_unified() {
                smallest(path, |group| v2_quota(host, group))
            } else if membership.controls("cpu") {
                smallest(path, |group| v1_quota(host, group))
            } else {
                None
            }
        })
        .min_by(f64::total_cmp)
}

/// The smallest answer among a cgroup and its ancestors.
fn smallest(path: &str, quota: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let mut group = path.trim_end_matches('/');
    let mut least = quota(group);
    while let Some((parent, _)) = group.rsplit_once('/') {
        group = parent;
        least = match (least, quota(group)) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
    least
}

fn v2_quota(host: &Host, group: &str) -> Option<f64> {
    let mut buffer = Vec::new();
    // Where version 1 is mounted beside it, version 2 hangs at `unified`.
    ["fs/cgroup", "fs/cgroup/unified"].into_iter().find_map(|mount| {
        let path = CString::new(format!("{mount}{group}/cpu.max")).ok()?;
        cgroup::cpu_max(host.sys.read(&path, &mut buffer).ok()?).ok()?
    })
}

fn v1_quota(host: &Host, group: &str) -> Option<f64> {
    let (mut quota, mut period) = (Vec::new(), Vec::new());
    ["fs/cgroup/cpu", "fs/cgroup/cpu,cpuacct"].into_iter().find_map(|mount| {
        let file = |name| CString::new(format!("{mount}{group}/{name}")).ok();
        let quota = host.sys.read(&file("cpu.cfs_quota_us")?, &mut quota).ok()?;
        let period = host.sys.read(&file("cpu.cfs_period_us")?, &mut period).ok()?;
        cgroup::quota(quota, period).ok()?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    #[test]
    fn the_tightest_quota_on_the_way_to_the_root_counts() {
        let fake = FakeHost::new()
            .proc("self/cgroup", "0::/user.slice/job\n")
            .sys("fs/cgroup/user.slice/cpu.max", "150000 100000\n")
            .sys("fs/cgroup/user.slice/job/cpu.max", "max 100000\n");
        assert_eq!(quota(&fake.host()), Some(1.5));
    }

    #[test]
    fn a_version_1_quota_is_found_too_and_none_is_none() {
        let fake = FakeHost::new()
            .proc("self/cgroup", "3:cpu,cpuacct:/job\n0::/\n")
            .sys("fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000\n")
            .sys("fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
        assert_eq!(quota(&fake.host()), Some(0.5));
        fake.host();
        let unlimited = FakeHost::new()
            .proc("self/cgroup", "3:cpu,cpuacct:/job\n")
            .sys("fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n")
            .sys("fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
        assert_eq!(quota(&unlimited.host()), None);
    }
}
