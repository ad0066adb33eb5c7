//! A cgroup v1 and a cgroup v2, written from the kernel's documentation
//! (Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/).

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::catalog::metrics::{
    GroupCpu, GroupIo, GroupMemory, GroupPressure, GroupTasks, GroupThrottling,
};
use crate::catalog::{Row, Scope, all_groups};
use crate::host::fake::FakeHost;

fn cgroup_v2() -> FakeHost {
    let fake = FakeHost::new().sys("fs/cgroup/cgroup.procs", "1\n");
    let files = [
        ("cgroup.procs", "7\n"),
        (
            "cpu.stat",
            "usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\nnr_periods 40\nnr_throttled 7\nthrottled_usec 350000\n",
        ),
        ("memory.current", "125829120\n"),
        ("memory.peak", "209715200\n"),
        ("memory.stat", "anon 104857600\nfile 16777216\nkernel 4194304\nshmem 0\n"),
        ("memory.swap.current", "4096\n"),
        ("memory.events", "low 0\nhigh 0\nmax 9\noom 2\noom_kill 2\n"),
        ("io.stat", "8:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n"),
        ("pids.current", "3\n"),
        ("cpu.pressure", "some avg10=0.00 total=1500000\nfull avg10=0.00 total=250000\n"),
        ("memory.pressure", "some avg10=0.00 total=20\nfull avg10=0.00 total=10\n"),
        ("io.pressure", "some avg10=0.00 total=4000000\nfull avg10=0.00 total=3000000\n"),
    ];
    files
        .into_iter()
        .fold(fake, |fake, (name, text)| fake.sys(&format!("fs/cgroup/job/{name}"), text))
}

fn cgroup_v1() -> FakeHost {
    let files = [
        ("cpuacct/job/cgroup.procs", "7\n"),
        ("cpuacct/job/cpuacct.usage", "2500000000\n"),
        ("cpuacct/job/cpuacct.stat", "user 200\nsystem 50\n"),
        ("cpu/job/cgroup.procs", "7\n"),
        ("cpu/job/cpu.stat", "nr_periods 40\nnr_throttled 7\nthrottled_time 350000000\n"),
        ("memory/job/cgroup.procs", "7\n"),
        ("memory/job/memory.usage_in_bytes", "125829120\n"),
        ("memory/job/memory.max_usage_in_bytes", "209715200\n"),
        (
            "memory/job/memory.stat",
            "cache 1\nrss 2\ntotal_cache 16777216\ntotal_rss 104857600\ntotal_swap 4096\n",
        ),
        ("memory/job/memory.kmem.usage_in_bytes", "4194304\n"),
        ("memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
        ("blkio/job/cgroup.procs", "7\n"),
        (
            "blkio/job/blkio.throttle.io_service_bytes_recursive",
            "8:0 Read 4096\n8:0 Write 8192\nTotal 12288\n",
        ),
        ("blkio/job/blkio.throttle.io_serviced_recursive", "8:0 Read 1\n8:0 Write 2\nTotal 3\n"),
        ("pids/job/cgroup.procs", "7\n"),
        ("pids/job/pids.current", "3\n"),
    ];
    files
        .into_iter()
        .fold(FakeHost::new(), |fake, (name, text)| fake.sys(&format!("fs/cgroup/{name}"), text))
}

fn collector(fake: &FakeHost) -> CgroupCollector {
    CgroupCollector::of(Cgroup::at(&fake.host(), Path::new("/job")).unwrap())
}

fn sampled(collector: &mut CgroupCollector, fake: &FakeHost) -> Tick {
    let mut tick = Tick::new(&all_groups());
    tick.begin(Duration::ZERO);
    collector.sample(&Context::of(&fake.host()), &mut tick).unwrap();
    tick
}

/// The metrics of which something is missing, and why.
fn reported(collector: &mut CgroupCollector) -> Vec<(String, String)> {
    collector.missing.report().map(|(of, why)| (of.to_string(), why)).collect()
}

fn row<R: Row>(tick: &Tick) -> R {
    tick.table(Scope::Cgroup).unwrap().get(0)
}

#[test]
fn cgroup_v1_and_v2_give_the_same_values() {
    for fake in [cgroup_v2(), cgroup_v1()] {
        let tick = sampled(&mut collector(&fake), &fake);
        let cpu = GroupCpu {
            usage: Some(2.5),
            user: Some(2.0),
            system: Some(0.5),
            ..GroupCpu::default()
        };
        assert_eq!(row::<GroupCpu>(&tick), cpu);
        let throttling = GroupThrottling {
            periods: Some(40),
            throttled_periods: Some(7),
            throttled: Some(0.35),
            ..GroupThrottling::default()
        };
        assert_eq!(row::<GroupThrottling>(&tick), throttling);
        let memory = GroupMemory {
            current: Some(120 << 20),
            peak: Some(200 << 20),
            anonymous: Some(100 << 20),
            file: Some(16 << 20),
            kernel: Some(4 << 20),
            swap: Some(4096),
            ..GroupMemory::default()
        };
        assert_eq!(row::<GroupMemory>(&tick), memory);
        let io = GroupIo {
            read: Some(4096),
            written: Some(8192),
            reads: Some(1),
            writes: Some(2),
            ..GroupIo::default()
        };
        assert_eq!(row::<GroupIo>(&tick), io);
        assert_eq!(
            row::<GroupTasks>(&tick),
            GroupTasks { current: Some(3), oom_kills: Some(2), ..GroupTasks::default() }
        );
    }
}

#[test]
fn cgroup_v1_reports_missing_writes_and_no_pressure() {
    let missing = reported(&mut collector(&cgroup_v1()));
    assert_eq!(missing.len(), 2);
    assert!(missing[0].0 == "cgroup.io" && missing[0].1.contains("page cache"), "{missing:?}");
    assert!(missing[1].0 == "cgroup.pressure" && missing[1].1.contains("cgroup v2"), "{missing:?}");
    assert!(reported(&mut collector(&cgroup_v2())).is_empty());
}

#[test]
fn pressure_of_the_cgroup_is_in_seconds() {
    let fake = cgroup_v2();
    let tick = sampled(&mut collector(&fake), &fake);
    let pressure = GroupPressure {
        cpu_some: Some(1.5),
        cpu_full: Some(0.25),
        memory_some: Some(2e-5),
        memory_full: Some(1e-5),
        io_some: Some(4.0),
        io_full: Some(3.0),
        ..GroupPressure::default()
    };
    assert_eq!(row::<GroupPressure>(&tick), pressure);
    let fake = cgroup_v1();
    let tick = sampled(&mut collector(&fake), &fake);
    assert_eq!(row::<GroupPressure>(&tick), GroupPressure::default());
}

#[test]
fn kernel_without_pressure_is_reported_once() {
    let fake = cgroup_v2();
    ["cpu", "memory", "io"]
        .iter()
        .for_each(|of| fake.remove_sys(&format!("fs/cgroup/job/{of}.pressure")));
    let mut collector = collector(&fake);
    assert_eq!(row::<GroupPressure>(&sampled(&mut collector, &fake)), GroupPressure::default());
    let missing = reported(&mut collector);
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert!(missing[0].1.contains("no pressure stall information"), "{missing:?}");
}

#[test]
fn controller_without_the_cgroup_is_named() {
    let fake = FakeHost::new()
        .sys("fs/cgroup/cpuacct/job/cgroup.procs", "")
        .sys("fs/cgroup/cpuacct/job/cpuacct.usage", "1000000000\n")
        .sys("fs/cgroup/cpuacct/job/cpuacct.stat", "user 90\nsystem 10\n");
    let mut collector = collector(&fake);
    let tick = sampled(&mut collector, &fake);
    assert_eq!(row::<GroupCpu>(&tick).usage, Some(1.0));
    assert_eq!(row::<GroupMemory>(&tick), GroupMemory::default());
    let missing = reported(&mut collector);
    let why = "there is no group /job below the memory controller";
    assert!(missing.contains(&("cgroup.memory".to_owned(), why.to_owned())), "{missing:?}");
    assert_eq!(missing.len(), 4, "memory, io, tasks and pressure: {missing:?}");
}

#[test]
fn disabled_controller_is_reported_once() {
    let fake = cgroup_v2();
    fake.remove_sys("fs/cgroup/job/io.stat");
    fake.remove_sys("fs/cgroup/job/memory.peak");
    let mut collector = collector(&fake);
    let tick = sampled(&mut collector, &fake);
    assert_eq!(row::<GroupIo>(&tick), GroupIo::default());
    assert_eq!(row::<GroupMemory>(&tick).peak, None, "a kernel before 5.19 has none");
    assert_eq!(row::<GroupMemory>(&tick).current, Some(120 << 20));
    let missing = reported(&mut collector);
    assert!(
        missing.len() == 1 && missing[0].1.contains("job/io.stat: No such file"),
        "{missing:?}"
    );
    sampled(&mut collector, &fake);
    assert!(reported(&mut collector).is_empty());
}

#[test]
fn malformed_file_loses_its_value_and_may_recover() {
    let fake = cgroup_v2();
    let mut collector = collector(&fake);
    let fake =
        fake.sys("fs/cgroup/job/memory.stat", "anon many\n").sys("fs/cgroup/job/pids.current", "3");
    let tick = sampled(&mut collector, &fake);
    let memory = row::<GroupMemory>(&tick);
    assert_eq!((memory.anonymous, memory.current), (None, Some(120 << 20)));
    assert_eq!(row::<GroupTasks>(&tick).current, None, "half a number is none");
    let missing: Vec<_> = reported(&mut collector).into_iter().map(|(of, _)| of).collect();
    assert_eq!(missing, ["cgroup.memory", "cgroup.tasks"]);
    let fake = fake.sys("fs/cgroup/job/memory.stat", "anon 5\nfile 6\n");
    assert_eq!(row::<GroupMemory>(&sampled(&mut collector, &fake)).anonymous, Some(5));
}

#[test]
fn removed_cgroup_retires_its_collector() {
    let fake = cgroup_v2();
    let mut collector = collector(&fake);
    sampled(&mut collector, &fake);
    fake.remove_sys("fs/cgroup/job");
    let mut tick = Tick::new(&all_groups());
    let fault = collector.sample(&Context::of(&fake.host()), &mut tick).unwrap_err();
    assert!(matches!(&fault, Fault::Retire(why) if why.contains("removed")), "{fault}");
}

#[test]
fn doctor_reports_whether_cgroups_are_mounted() {
    assert!(matches!(probe(&cgroup_v2().host()), Probe::Ready));
    assert!(
        matches!(probe(&cgroup_v1().host()), Probe::Absent { .. }),
        "no root group is written there"
    );
    assert!(matches!(probe(&FakeHost::new().host()), Probe::Absent { .. }));
}
