//! GPUs that are awake and idle, and could suspend without polls.

use super::*;
use crate::catalog::metrics::{GpuActivity, GpuMemory, GpuPower};

const SOLVER: ProcessId = ProcessId { pid: 7, started: 70 };
const DEVICE: &str = "class/drm/card0/device";

/// A GPU that suspends after so long without a read.
fn gpu(driver: &str, pci_id: &str, milliseconds: u32) -> FakeHost {
    let uevent = format!("DRIVER={driver}\nPCI_ID={pci_id}\nPCI_SLOT_NAME=0000:03:00.0\n");
    FakeHost::new()
        .sys(&format!("{DEVICE}/uevent"), &uevent)
        .sys("class/drm/renderD128/device/uevent", &uevent)
        .sys(&format!("{DEVICE}/power/runtime_status"), "active\n")
        .sys(&format!("{DEVICE}/power/control"), "auto\n")
        .sys(&format!("{DEVICE}/power/autosuspend_delay_ms"), &format!("{milliseconds}\n"))
        .sys(&format!("{DEVICE}/hwmon/hwmon2/temp1_input"), "40000\n")
}

fn radeon(busy: &str) -> FakeHost {
    let fake = gpu("amdgpu", "1002:73BF", 5000);
    fake.sys(&format!("{DEVICE}/gpu_busy_percent"), busy)
        .sys(&format!("{DEVICE}/mem_info_vram_used"), "1000\n")
}

/// At which of so many polls, a second apart, it was read.
fn reads(run: &mut PolledRun, polls: usize) -> Vec<usize> {
    let is_read =
        |run: &mut PolledRun| run.poll(&[]).devices::<GpuPower>()[0].1.temperature.is_some();
    (0..polls).filter(|_| is_read(run)).collect()
}

#[test]
fn polls_of_an_idle_gpu_are_paused_for_as_long_as_it_needs_to_suspend() {
    let fake = radeon("0\n");
    let mut run = PolledRun::of(&fake);
    assert_eq!(reads(&mut run, 14), [0, 6, 12]);
    assert_eq!(
        run.devices::<GpuMemory>()[0].1.used,
        Some(1000),
        "the kernel counts that in software"
    );
    assert_eq!(run.devices::<GpuActivity>()[0].1.utilization, None, "not read");
    assert_eq!(run.devices::<GpuActivity>()[0].1.processes, Some(0));
}

#[test]
fn suspend_and_wake_up_end_the_pause() {
    let fake = radeon("0\n");
    let mut run = PolledRun::of(&fake);
    assert_eq!(reads(&mut run, 3), [0]);
    fake.set_sys(&format!("{DEVICE}/power/runtime_status"), "suspended\n");
    assert_eq!(reads(&mut run, 9), [0; 0]);
    assert_eq!(run.devices::<GpuActivity>()[0].1.utilization, Some(0.0));
    fake.set_sys(&format!("{DEVICE}/power/runtime_status"), "active\n");
    assert_eq!(reads(&mut run, 3), [0]);
}

#[test]
fn busy_gpu_or_one_without_autosuspend_is_read_at_each_poll() {
    assert_eq!(reads(&mut PolledRun::of(&radeon("40\n")), 3), [0, 1, 2]);
    let fake = radeon("0\n");
    fake.set_sys(&format!("{DEVICE}/power/control"), "on\n");
    assert_eq!(reads(&mut PolledRun::of(&fake), 3), [0, 1, 2]);
    let fake = radeon("0\n");
    fake.set_sys(&format!("{DEVICE}/power/autosuspend_delay_ms"), "-1\n");
    assert_eq!(reads(&mut PolledRun::of(&fake), 3), [0, 1, 2]);
}

#[test]
fn process_of_the_run_that_uses_it_ends_the_pause() {
    let client = "drm-driver:\tamdgpu\ndrm-client-id:\t5\ndrm-pdev:\t0000:03:00.0\n\
                  drm-memory-vram:\t100 KiB\ndrm-engine-gfx:\t0 ns\n";
    let fake = radeon("0\n")
        .proc("7/stat", "")
        .proc_link("7/fd/3", "/dev/dri/renderD128")
        .proc("7/fdinfo/3", client);
    let mut run = PolledRun::of(&fake);
    run.poll(&[SOLVER]);
    assert_eq!(reads(&mut run, 2), [0; 0], "it only has it open");
    fake.set_proc("7/fdinfo/3", &client.replace("0 ns", "9 ns"));
    assert_eq!(reads(&mut run, 3), [0, 1, 2]);
}

/// At which polls a GPU of xe was read whose GT is always asleep.
fn reads_of_idle_arc(run: &mut PolledRun, polls: std::ops::Range<u64>) -> Vec<u64> {
    let slept = format!("{DEVICE}/tile0/gt0/gtidle/idle_residency_ms");
    let is_read = |poll: &u64| {
        run.fake.set_sys(&slept, &format!("{}\n", 1000 * poll));
        run.poll(&[]).devices::<GpuPower>()[0].1.temperature.is_some()
    };
    polls.filter(is_read).collect()
}

#[test]
fn gpu_of_intel_is_idle_when_its_gts_sleep() {
    let fake = gpu("xe", "8086:E20B", 1000)
        .sys(&format!("{DEVICE}/tile0/gt0/gtidle/idle_residency_ms"), "0\n");
    let mut run = PolledRun::of(&fake);
    assert_eq!(reads_of_idle_arc(&mut run, 0..8), [0, 1, 3, 5, 7], "known after two polls");
    let mut run = PolledRun::of(&fake);
    assert_eq!(reads(&mut run, 4), [0, 1, 2, 3], "it is busy");
}

#[test]
fn client_that_only_has_a_gpu_of_xe_open_does_not_keep_it_awake() {
    let client = "drm-driver:\txe\ndrm-client-id:\t3\ndrm-pdev:\t0000:03:00.0\n\
                  drm-resident-vram0:\t200 KiB\ndrm-cycles-rcs:\t0\ndrm-total-cycles-rcs:\t1000\n";
    let fake = gpu("xe", "8086:E20B", 1000)
        .proc("7/stat", "")
        .proc_link("7/fd/3", "/dev/dri/renderD128")
        .proc("7/fdinfo/3", client);
    let mut run = PolledRun::of(&fake);
    let share = |run: &PolledRun| {
        let (_, _, share) = run.shares()[0];
        (share.memory, share.utilization)
    };
    assert_eq!(share(run.poll(&[SOLVER])), (Some(204_800), None));
    let works = client.replace("200 KiB", "400 KiB").replace("rcs:\t0", "rcs:\t500");
    fake.set_proc("7/fdinfo/3", &works.replace("rcs:\t1000", "rcs:\t3000"));
    assert_eq!(share(run.poll(&[])), (Some(204_800), None), "not read now");
    assert_eq!(
        share(run.poll(&[])),
        (Some(409_600), Some(0.25)),
        "of all the time since the last read"
    );
    assert_eq!(reads(&mut run, 3), [0, 1, 2], "it uses it");
}
