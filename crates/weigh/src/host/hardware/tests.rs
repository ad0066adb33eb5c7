//! The hardware of every captured machine against its golden file.
#![allow(clippy::disallowed_methods, reason = "fixtures are files of the repository")]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rustix::fs::{FileType, Mode};

use super::surroundings::LimitsOf;
use super::*;
use crate::collect::golden::{assert_golden, machines, read};
use crate::host::fake::FakeHost;
use crate::model::hardware::{Hardware, Processor, Surroundings};
use crate::report::hardware::text as page;
use crate::report::text::Style;

fn hardware_of(fake: &FakeHost) -> Hardware {
    Hardware::of(&fake.host().root, Live::elsewhere())
}

fn captured(machine: &str) -> Hardware {
    let hosts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts");
    hardware_of(&FakeHost::captured(&read(&hosts.join(machine), "t0.host")))
}

#[test]
fn hardware_of_captured_machines_matches_golden_files() {
    for machine in machines() {
        let fake = FakeHost::captured(&read(&machine, "t0.host"));
        let hardware = hardware_of(&fake);
        let surroundings = Surroundings::of(&fake.host().root, LimitsOf::Own, |_| None);
        let mut golden = page(&hardware, Some(&surroundings), Style::default());
        assert!(golden.lines().all(|line| line.chars().count() <= 80), "{golden}");
        writeln!(golden, "\n{}", serde_json::to_string_pretty(&hardware).unwrap()).unwrap();
        assert_golden(&machine, "hardware.txt", &golden);
    }
}

#[test]
fn hanging_driver_is_reported_and_other_devices_are_read() {
    let fake = FakeHost::new()
        .proc("driver/nvidia/gpus/0000:18:00.0/power", "")
        .sys("class/drm/card0/device/uevent", "DRIVER=xe\nPCI_SLOT_NAME=0000:03:00.0\n");
    // Opening a pipe without a writer blocks for ever, like a hanging driver.
    let pipe = fake.path("proc/driver/nvidia/gpus/0000:18:00.0/information");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
    let found = hardware_of(&fake);
    assert_eq!(found.missing["gpus"], "the NVIDIA driver does not answer");
    assert_eq!(found.gpus.len(), 1, "the GPU of the other vendor");
}

#[test]
fn everything_perfmon_read_from_lscpu_is_present() {
    let Hardware { cpu, caches, numa_nodes, .. } = captured("xeon-2s");
    assert_eq!(cpu.vendor.as_deref(), Some("GenuineIntel"));
    assert_eq!(cpu.model_name.as_deref(), Some("Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz"));
    assert_eq!((cpu.family, cpu.model, cpu.stepping.as_deref()), (Some(6), Some(85), Some("7")));
    assert_eq!((cpu.cpus, cpu.online.as_deref()), (Some(8), Some("0-7")));
    let topology = (cpu.sockets, cpu.cores_per_socket, cpu.threads_per_core);
    assert_eq!(topology, (Some(2), Some(2), Some(2)));
    assert_eq!(cpu.frequency_max_hertz, Some(3_900_000_000));
    assert_eq!((cpu.frequency_min_hertz, cpu.bogomips), (Some(1_000_000_000), Some(5000.0)));
    let sizes = caches.iter().map(|cache| (cache.name.as_str(), cache.size_bytes >> 10));
    let sizes: Vec<_> = sizes.collect();
    assert_eq!(sizes, [("L1d", 32), ("L1i", 32), ("L2", 1024), ("L3", 28_160)]);
    assert_eq!(numa_nodes[1].cpus.as_deref(), Some("4-7"));
    assert_eq!(cpu.governors, ["performance"]);
    assert_eq!(cpu.frequency_driver.as_deref(), Some("intel_pstate"));
    assert_eq!((cpu.microcode.as_deref(), cpu.smt_active), (Some("0x5003604"), Some(true)));
}

#[test]
fn garbage_files_give_missing_values_with_reasons() {
    let fake = FakeHost::new();
    for machine in machines() {
        let files = read(&machine, "t0.host");
        for entry in files.split("=== ").skip(1) {
            let (path, _) = entry.split_once('\n').unwrap();
            fake.load_capture(&format!("=== {path}\n\u{fffd} \0 garbage"));
        }
    }
    let found = hardware_of(&fake);
    assert_eq!((found.cpu.cpus, found.cpu.vendor.clone(), found.caches.len()), (None, None, 0));
    assert_eq!((found.memory.total_bytes, found.kernel.clone()), (None, None));
    for key in ["cpu.online", "cpu.vendor", "memory.total_bytes", "numa_nodes", "distribution"] {
        assert!(found.missing.contains_key(key), "{key} in {:?}", found.missing);
    }
}

#[test]
fn machine_without_files_has_no_values() {
    let found = hardware_of(&FakeHost::new());
    assert_eq!(found.cpu, Processor::default());
    assert_eq!(found.missing["cpu.microarchitecture"], "there is no /proc/cpuinfo");
}

/// Two sockets of 32 cores with two threads each, as the kernel numbers them.
fn large() -> FakeHost {
    let mut files = "=== /sys/devices/system/cpu/online\n0-127\n".to_owned();
    for cpu in 0..128 {
        let (core, at) = (cpu % 64, format!("=== /sys/devices/system/cpu/cpu{cpu}"));
        let (first, last) = if core < 32 { (0, 31) } else { (32, 63) };
        let socket = format!("{first}-{last},{}-{}", first + 64, last + 64);
        writeln!(files, "{at}/topology/thread_siblings_list\n{core},{}", core + 64).unwrap();
        writeln!(files, "{at}/topology/core_siblings_list\n{socket}").unwrap();
        for (index, level, kind) in [(0, 1, "Data"), (1, 1, "Instruction"), (2, 2, "Unified")] {
            let cache = format!("{at}/cache/index{index}");
            writeln!(files, "{cache}/level\n{level}\n{cache}/type\n{kind}").unwrap();
            writeln!(files, "{cache}/size\n32K\n{cache}/shared_cpu_list\n{core},{}", core + 64)
                .unwrap();
        }
    }
    FakeHost::captured(&files)
}

#[test]
fn topology_is_read_once_for_each_core_and_socket() {
    let fake = large();
    let opened = Arc::new(Mutex::new(BTreeSet::new()));
    let root = fake.host().root.recording_opened(&opened);
    let found = Hardware::of(&root, Live::elsewhere());
    let topology = (found.cpu.sockets, found.cpu.cores, found.cpu.threads_per_core);
    assert_eq!(topology, (Some(2), Some(64), Some(2)));
    assert_eq!(found.caches[0].instances, 64);
    let opened = opened.lock().unwrap();
    let read = opened.iter().filter(|path| path.to_string_lossy().contains("/topology/")).count();
    assert_eq!(read, 2 + 64, "a list for each socket and each core");
    let read = opened.iter().filter(|path| path.to_string_lossy().contains("/cache/")).count();
    assert!(read <= 64 * 3 * 2 + 10, "{read} files of caches");
}
