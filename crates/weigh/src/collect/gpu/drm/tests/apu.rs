//! GPUs of AMD that are part of the processor.

use super::*;
use crate::parse::gpu_metrics::tables::{v1_7, v3_0};

const DEVICE: &str = "class/drm/card0/device";
const SOLVER: ProcessId = ProcessId { pid: 7, started: 70 };

/// A Radeon 890M, as a user of nvtop reported it (nvtop #428).
fn radeon(pci_id: &str) -> FakeHost {
    let uevent = format!("DRIVER=amdgpu\nPCI_ID={pci_id}\nPCI_SLOT_NAME=0000:c4:00.0\n");
    let client = "drm-driver:\tamdgpu\ndrm-client-id:\t9\ndrm-pdev:\t0000:c4:00.0\n\
                  drm-memory-cpu: \t0 KiB\ndrm-memory-gtt: \t25258000 KiB\n\
                  drm-memory-vram:\t5348 KiB\n";
    FakeHost::new()
        .sys(&format!("{DEVICE}/uevent"), &uevent)
        .sys(&format!("{DEVICE}/mem_info_vram_used"), "450000000\n")
        .sys(&format!("{DEVICE}/mem_info_vram_total"), "536870912\n")
        .sys(&format!("{DEVICE}/mem_info_gtt_used"), "25900000000\n")
        .sys(&format!("{DEVICE}/mem_info_gtt_total"), "51539607552\n")
        .sys(&format!("{DEVICE}/hwmon/hwmon2/power1_average"), "54000000\n")
        .sys(&format!("{DEVICE}/hwmon/hwmon2/power1_cap"), "80000000\n")
        .proc("7/stat", "")
        .proc_link("7/fd/3", "/dev/dri/renderD128")
        .proc("7/fdinfo/3", client)
}

/// Memory in use, all of it, and that of the process; power, its limit, and energy.
fn measured(fake: &FakeHost) -> ([Option<u64>; 3], [Option<f64>; 3]) {
    let mut run = PolledRun::of(fake);
    run.poll(&[SOLVER]).outcome.as_ref().unwrap();
    run.poll(&[]).outcome.as_ref().unwrap();
    let (memory, power) = (run.devices::<GpuMemory>()[0].1, run.devices::<GpuPower>()[0].1);
    let share = run.shares()[0].2.memory;
    ([memory.used, memory.total, share], [power.draw, power.limit, power.energy])
}

const WITH_SYSTEM_MEMORY: [Option<u64>; 3] =
    [Some(26_350_000_000), Some(52_076_478_464), Some((25_258_000 + 5348) << 10)];
const VRAM_ALONE: [Option<u64>; 3] = [Some(450_000_000), Some(536_870_912), Some(5348 << 10)];

#[test]
fn apu_uses_system_memory_and_has_no_power_of_its_own() {
    let by_label = radeon("1002:150E").sys(&format!("{DEVICE}/hwmon/hwmon2/in1_label"), "vddnb\n");
    assert_eq!(measured(&by_label), (WITH_SYSTEM_MEMORY, [None; 3]));
    let card = radeon("1002:73BF").sys(&format!("{DEVICE}/hwmon/hwmon2/in0_label"), "vddgfx\n");
    assert_eq!(measured(&card), (VRAM_ALONE, [Some(54.0), Some(80.0), None]), "a card has both");
}

#[test]
fn apu_has_the_power_of_its_graphics_where_firmware_reports_it() {
    let fake = radeon("1002:150E");
    fake.set_sys_bytes(&format!("{DEVICE}/gpu_metrics"), &v3_0(7125));
    assert_eq!(measured(&fake), (WITH_SYSTEM_MEMORY, [Some(7.125), None, None]));
}

#[test]
fn mi300a_has_no_energy_because_its_counter_includes_the_cores() {
    let fake = radeon("1002:74A0");
    fake.set_sys_bytes(&format!("{DEVICE}/gpu_metrics"), &v1_7(1 << 20, [1000; 6], 0));
    assert_eq!(measured(&fake), (WITH_SYSTEM_MEMORY, [None; 3]));
    let mut run = PolledRun::of(&fake);
    assert_eq!(
        run.poll(&[]).devices::<GpuActivity>()[0].1.busy,
        Some(0.0),
        "it reports its utilization"
    );
}
