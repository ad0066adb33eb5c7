//! GPUs of AMD's that are a part of the processor.

use super::*;
use crate::parse::gpu_metrics::tables::{v1_7, v3_0};

const DEVICE: &str = "class/drm/card0/device";
const SOLVER: ProcessId = ProcessId { pid: 7, started: 70 };

/// A Radeon 890M, as a user of nvtop's saw it (nvtop #428).
fn radeon(number: &str) -> FakeHost {
    let uevent = format!("DRIVER=amdgpu\nPCI_ID={number}\nPCI_SLOT_NAME=0000:c4:00.0\n");
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

/// Memory in use and all of it, that of the process, power and its limit.
fn told(fake: &FakeHost) -> ([Option<u64>; 3], [Option<f64>; 3]) {
    let mut run = Run::of(fake);
    run.look(&[SOLVER]).outcome.as_ref().unwrap();
    run.look(&[]).outcome.as_ref().unwrap();
    let (memory, power) = (run.cards::<GpuMemory>()[0].1, run.cards::<GpuPower>()[0].1);
    let share = run.shares()[0].2.memory;
    ([memory.used, memory.total, share], [power.draw, power.limit, power.energy])
}

const OF_THE_MACHINE: [Option<u64>; 3] =
    [Some(26_350_000_000), Some(52_076_478_464), Some((25_258_000 + 5348) << 10)];
const OWN: [Option<u64>; 3] = [Some(450_000_000), Some(536_870_912), Some(5348 << 10)];

#[test]
fn it_has_memory_of_the_machine_and_no_power_of_its_own() {
    let by_label = radeon("1002:150E").sys(&format!("{DEVICE}/hwmon/hwmon2/in1_label"), "vddnb\n");
    assert_eq!(told(&by_label), (OF_THE_MACHINE, [None; 3]));
    let card = radeon("1002:73BF").sys(&format!("{DEVICE}/hwmon/hwmon2/in0_label"), "vddgfx\n");
    assert_eq!(told(&card), (OWN, [Some(54.0), Some(80.0), None]), "a card is as before");
}

#[test]
fn the_power_of_its_graphics_alone_is_told_where_firmware_tells_it() {
    let fake = radeon("1002:150E");
    fake.set_sys_bytes(&format!("{DEVICE}/gpu_metrics"), &v3_0(7125));
    assert_eq!(told(&fake), (OF_THE_MACHINE, [Some(7.125), None, None]));
}

#[test]
fn an_mi300a_counts_its_processors_too_and_so_has_no_energy() {
    let fake = radeon("1002:74A0");
    fake.set_sys_bytes(&format!("{DEVICE}/gpu_metrics"), &v1_7(1 << 20, [1000; 6], 0));
    assert_eq!(told(&fake), (OF_THE_MACHINE, [None; 3]));
    let mut run = Run::of(&fake);
    assert_eq!(
        run.look(&[]).cards::<GpuActivity>()[0].1.busy,
        Some(0.0),
        "how busy it is, it says"
    );
}
