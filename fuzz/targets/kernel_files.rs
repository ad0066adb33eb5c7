//! Every parser of the kernel's files, on any bytes: a value or an error, never a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh::parse::{
    attribute, cgroup, cpuinfo, cpulist, diskstats, drm_fdinfo, gpu_metrics, group_stat, io,
    kernel_log, limits, loadavg, meminfo, mounts, net_dev, net_snmp, os_release, pressure,
    schedstat, smaps, stat, status, system_stat, vmstat,
};

fuzz_target!(|bytes: &[u8]| {
    let _ = stat::parse(bytes);
    let _ = status::parse(bytes);
    let _ = smaps::parse(bytes);
    let _ = io::parse(bytes);
    let _ = schedstat::parse(bytes);
    let _ = system_stat::parse(bytes);
    system_stat::cpus(bytes).for_each(drop);
    let _ = meminfo::parse(bytes);
    let _ = meminfo::node_total(bytes, 0);
    let _ = loadavg::parse(bytes);
    let _ = vmstat::parse(bytes);
    let _ = pressure::parse(bytes);
    diskstats::devices(bytes).for_each(drop);
    net_dev::devices(bytes).for_each(drop);
    let _ = net_snmp::parse(bytes);
    let _ = limits::parse(bytes);
    let _ = mounts::of_type(bytes, b"cgroup2");
    let _ = cpuinfo::parse(bytes);
    let _ = cpulist::count(bytes);
    let _ = cpulist::iter(bytes).map(|cpus| cpus.take(1 << 16).for_each(drop));
    let _ = os_release::parse(bytes);
    let _ = kernel_log::oom_victim(bytes);
    let _ = drm_fdinfo::parse(bytes);
    let _ = gpu_metrics::parse(bytes);
    let _ = gpu_metrics::apu(bytes);
    cgroup::memberships(bytes).for_each(drop);
    let _ = cgroup::cpu_max(bytes);
    let half = bytes.split_at(bytes.len() / 2);
    let _ = cgroup::quota(half.0, half.1);
    let _ = cgroup::bytes_limit(bytes);
    let _ = group_stat::cpu_stat(bytes);
    let _ = group_stat::cpuacct_stat(bytes);
    let _ = group_stat::memory_stat(bytes);
    let _ = group_stat::memory_stat_v1(bytes);
    let _ = group_stat::oom_kills(bytes);
    let _ = group_stat::io_stat(bytes);
    let _ = group_stat::blkio(bytes);
    let _ = group_stat::number(bytes);
    group_stat::processes(bytes).for_each(drop);
    let _ = attribute::number(bytes);
    let _ = attribute::signed(bytes);
    let _ = attribute::text(bytes);
    let _ = attribute::scale(bytes);
    let _ = attribute::port_state(bytes);
    let _ = attribute::port_rate(bytes);
    let _ = attribute::cache_size(bytes);
    let _ = attribute::selected(bytes);
    let _ = attribute::numbers(bytes);
    let _ = attribute::line_value(bytes, "DRIVER=");
    let _ = attribute::link_generation(bytes);
    let _ = attribute::error_counts(bytes);
    let _ = attribute::event(bytes);
});
