//! What the machine is: its name, cores and memory, and how much of it a run may use.

use std::ffi::CString;

use crate::model::Facts;

use super::{Host, own};
use crate::parse::{self, cgroup};

impl Facts {
    /// Reads the facts of the machine.
    pub fn of(host: &Host) -> Facts {
        let system = rustix::system::uname();
        let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
        let cores = online(host);
        let affinity = rustix::thread::sched_getaffinity(None).map_or(cores, |set| set.count());
        let allowed = quota(host).map_or(f64::from(affinity), |quota| quota.min(affinity.into()));
        let mut buffer = Vec::new();
        let memory = host.proc.read(c"meminfo", &mut buffer).ok();
        Facts {
            name: own::host_name(),
            cores,
            cores_allowed: allowed,
            memory_bytes: memory
                .and_then(|bytes| parse::meminfo::parse(bytes).ok())
                .map(|memory| memory.total),
            memory_limit_bytes: memory_limit(host),
            kernel: text(system.release()),
            architecture: text(system.machine()),
            gpus: Vec::new(),
            boot: boot(host),
            pid_namespace: pid_namespace(host),
        }
    }
}

/// The boot id of the kernel; a container has that of its machine.
pub fn boot(host: &Host) -> Option<String> {
    let mut buffer = Vec::new();
    let bytes = host.proc.read(c"sys/kernel/random/boot_id", &mut buffer).ok()?;
    let boot = std::str::from_utf8(bytes).ok()?.trim();
    (!boot.is_empty()).then(|| boot.to_owned())
}

/// Our pid namespace, if `/proc` shows its pids.
fn pid_namespace(host: &Host) -> Option<String> {
    let link =
        host.proc.link(c"self/ns/pid").filter(|_| own::proc_is_our_pid_namespace(&host.proc))?;
    String::from_utf8(link).ok()
}

fn online(host: &Host) -> u32 {
    let mut buffer = Vec::new();
    let listed = host.sys.read(c"devices/system/cpu/online", &mut buffer).ok();
    listed.and_then(|bytes| parse::cpulist::count(bytes).ok()).unwrap_or_else(|| {
        std::thread::available_parallelism().map_or(1, |count| count.get() as u32)
    })
}

/// The smallest CPU quota on the way from our cgroup to the root, in cores.
pub(super) fn quota(host: &Host) -> Option<f64> {
    limits(host, "cpu", v2_quota, v1_quota).min_by(f64::total_cmp)
}

/// The smallest memory limit on the way from our cgroup to the root, in bytes.
pub(super) fn memory_limit(host: &Host) -> Option<u64> {
    limits(host, "memory", v2_memory, v1_memory).min()
}

/// The smallest limit from our cgroup up to the root, in each hierarchy.
fn limits<T: PartialOrd>(
    host: &Host,
    controller: &str,
    second: fn(&Host, &str) -> Option<T>,
    first: fn(&Host, &str) -> Option<T>,
) -> impl Iterator<Item = T> {
    let mut buffer = Vec::new();
    let bytes = host.proc.read(c"self/cgroup", &mut buffer).unwrap_or_default();
    let found = cgroup::memberships(bytes).filter_map(|membership| {
        let path = std::str::from_utf8(membership.path).ok()?;
        if membership.is_unified() {
            smallest(path, |group| second(host, group))
        } else if membership.controls(controller) {
            smallest(path, |group| first(host, group))
        } else {
            None
        }
    });
    found.collect::<Vec<T>>().into_iter()
}

/// The smallest value among a cgroup and its ancestors.
fn smallest<T: PartialOrd>(path: &str, limit: impl Fn(&str) -> Option<T>) -> Option<T> {
    let mut group = path.trim_end_matches('/');
    let mut least = limit(group);
    while let Some((parent, _)) = group.rsplit_once('/') {
        group = parent;
        least = match (least, limit(group)) {
            (Some(one), Some(other)) => Some(if other < one { other } else { one }),
            (one, other) => one.or(other),
        };
    }
    least
}

/// Beside cgroup v1, cgroup v2 is mounted at `unified`.
const V2_MOUNTS: [&str; 2] = ["fs/cgroup", "fs/cgroup/unified"];

fn v2_quota(host: &Host, group: &str) -> Option<f64> {
    let mut buffer = Vec::new();
    V2_MOUNTS.into_iter().find_map(|mount| {
        let path = CString::new(format!("{mount}{group}/cpu.max")).ok()?;
        cgroup::cpu_max(host.sys.read(&path, &mut buffer).ok()?).ok()?
    })
}

fn v2_memory(host: &Host, group: &str) -> Option<u64> {
    V2_MOUNTS.into_iter().find_map(|mount| bytes(host, &format!("{mount}{group}/memory.max")))
}

fn v1_memory(host: &Host, group: &str) -> Option<u64> {
    bytes(host, &format!("fs/cgroup/memory{group}/memory.limit_in_bytes"))
}

fn bytes(host: &Host, path: &str) -> Option<u64> {
    let mut buffer = Vec::new();
    let path = CString::new(path).ok()?;
    cgroup::bytes_limit(host.sys.read(&path, &mut buffer).ok()?).ok()?
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
    fn smallest_cpu_quota_up_to_the_root_counts() {
        let fake = FakeHost::new()
            .proc("self/cgroup", "0::/user.slice/job\n")
            .sys("fs/cgroup/user.slice/cpu.max", "150000 100000\n")
            .sys("fs/cgroup/user.slice/job/cpu.max", "max 100000\n");
        assert_eq!(quota(&fake.host()), Some(1.5));
    }

    #[test]
    fn smallest_memory_limit_counts_in_cgroup_v1_and_v2() {
        let second = FakeHost::new()
            .proc("self/cgroup", "0::/user.slice/job\n")
            .sys("fs/cgroup/user.slice/memory.max", "2147483648\n")
            .sys("fs/cgroup/user.slice/job/memory.max", "max\n");
        assert_eq!(memory_limit(&second.host()), Some(2 << 30));
        let first = FakeHost::new()
            .proc("self/cgroup", "4:memory:/job\n3:cpu:/other\n")
            .sys("fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
            .sys("fs/cgroup/memory/job/memory.limit_in_bytes", "1073741824\n")
            .sys("fs/cgroup/memory/other/memory.limit_in_bytes", "4096\n");
        assert_eq!(memory_limit(&first.host()), Some(1 << 30));
        assert_eq!(memory_limit(&FakeHost::new().host()), None);
    }

    #[test]
    fn limit_above_the_memory_of_the_machine_has_no_effect() {
        let facts = |limit| Facts { memory_limit_bytes: limit, ..Facts::example() };
        let (tight, wide) = (facts(Some(1 << 30)), facts(Some(1 << 40)));
        assert_eq!(tight.memory_allowed_bytes(), Some(1 << 30));
        assert_eq!(tight.tight_memory_limit_bytes(), Some(1 << 30));
        assert_eq!(wide.memory_allowed_bytes(), Some(8 << 30));
        assert_eq!(
            (wide.tight_memory_limit_bytes(), facts(None).tight_memory_limit_bytes()),
            (None, None)
        );
    }

    #[test]
    fn cgroup_v1_quota_is_read_and_may_be_unlimited() {
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

    #[test]
    fn boot_id_and_pid_namespace_are_read() {
        let own = std::process::id().to_string();
        let fake = FakeHost::new()
            .proc("sys/kernel/random/boot_id", "5ea1-b007\n")
            .proc_link(&format!("{own}/ns/pid"), "pid:[4026531836]")
            .proc_link("self", &own);
        let facts = Facts::of(&fake.host());
        assert_eq!(facts.boot.as_deref(), Some("5ea1-b007"));
        assert_eq!(facts.pid_namespace.as_deref(), Some("pid:[4026531836]"));
        let bare = Facts::of(&FakeHost::new().host());
        assert_eq!((bare.boot, bare.pid_namespace), (None, None));
    }

    #[test]
    fn pid_namespace_is_unknown_with_a_foreign_proc() {
        let fake = FakeHost::new().proc_link("1/ns/pid", "pid:[4026531836]").proc_link("self", "1");
        assert_eq!(Facts::of(&fake.host()).pid_namespace, None);
    }
}
