//! Cards that are awake and idle, and that could fall asleep if nobody looked.

use super::*;
use crate::catalog::metrics::{GpuActivity, GpuMemory, GpuPower};

const SOLVER: ProcessId = ProcessId { pid: 7, started: 70 };
const DEVICE: &str = "class/drm/card0/device";

/// A card that falls asleep after so long, unless somebody looks.
fn card(driver: &str, number: &str, milliseconds: u32) -> FakeHost {
    let uevent = format!("DRIVER={driver}\nPCI_ID={number}\nPCI_SLOT_NAME=0000:03:00.0\n");
    FakeHost::new()
        .sys(&format!("{DEVICE}/uevent"), &uevent)
        .sys("class/drm/renderD128/device/uevent", &uevent)
        .sys(&format!("{DEVICE}/power/runtime_status"), "active\n")
        .sys(&format!("{DEVICE}/power/control"), "auto\n")
        .sys(&format!("{DEVICE}/power/autosuspend_delay_ms"), &format!("{milliseconds}\n"))
        .sys(&format!("{DEVICE}/hwmon/hwmon2/temp1_input"), "40000\n")
}

fn radeon(busy: &str) -> FakeHost {
    let fake = card("amdgpu", "1002:73BF", 5000);
    fake.sys(&format!("{DEVICE}/gpu_busy_percent"), busy)
        .sys(&format!("{DEVICE}/mem_info_vram_used"), "1000\n")
}

/// At which of so many looks, a second apart, it was asked.
fn asked(run: &mut Run, looks: usize) -> Vec<usize> {
    let was_asked = |run: &mut Run| run.look(&[]).cards::<GpuPower>()[0].1.temperature.is_some();
    (0..looks).filter(|_| was_asked(run)).collect()
}

#[test]
fn an_idle_card_is_left_alone_for_as_long_as_it_needs_to_fall_asleep() {
    let fake = radeon("0\n");
    let mut run = Run::of(&fake);
    assert_eq!(asked(&mut run, 14), [0, 6, 12]);
    assert_eq!(run.cards::<GpuMemory>()[0].1.used, Some(1000), "the kernel knows that by itself");
    assert_eq!(run.cards::<GpuActivity>()[0].1.utilization, None, "nobody has asked");
    assert_eq!(run.cards::<GpuActivity>()[0].1.processes, Some(0));
}

#[test]
fn one_that_falls_asleep_or_awakes_is_looked_at_as_ever() {
    let fake = radeon("0\n");
    let mut run = Run::of(&fake);
    assert_eq!(asked(&mut run, 3), [0]);
    fake.set_sys(&format!("{DEVICE}/power/runtime_status"), "suspended\n");
    assert_eq!(asked(&mut run, 9), [0; 0]);
    assert_eq!(run.cards::<GpuActivity>()[0].1.utilization, Some(0.0));
    fake.set_sys(&format!("{DEVICE}/power/runtime_status"), "active\n");
    assert_eq!(asked(&mut run, 3), [0]);
}

#[test]
fn a_card_that_works_or_may_not_sleep_is_looked_at_each_time() {
    assert_eq!(asked(&mut Run::of(&radeon("40\n")), 3), [0, 1, 2]);
    let fake = radeon("0\n");
    fake.set_sys(&format!("{DEVICE}/power/control"), "on\n");
    assert_eq!(asked(&mut Run::of(&fake), 3), [0, 1, 2]);
    let fake = radeon("0\n");
    fake.set_sys(&format!("{DEVICE}/power/autosuspend_delay_ms"), "-1\n");
    assert_eq!(asked(&mut Run::of(&fake), 3), [0, 1, 2]);
}

#[test]
fn somebody_of_the_run_who_uses_it_ends_the_rest_at_once() {
    let client = "drm-driver:\tamdgpu\ndrm-client-id:\t5\ndrm-pdev:\t0000:03:00.0\n\
                  drm-memory-vram:\t100 KiB\ndrm-engine-gfx:\t0 ns\n";
    let fake = radeon("0\n")
        .proc("7/stat", "")
        .proc_link("7/fd/3", "/dev/dri/renderD128")
        .proc("7/fdinfo/3", client);
    let mut run = Run::of(&fake);
    run.look(&[SOLVER]);
    assert_eq!(asked(&mut run, 2), [0; 0], "it merely has it open");
    fake.set_proc("7/fdinfo/3", &client.replace("0 ns", "9 ns"));
    assert_eq!(asked(&mut run, 3), [0, 1, 2]);
}

/// A card of xe's whose parts sleep as long as this says, look by look.
fn idle_arc(run: &mut Run, looks: std::ops::Range<u64>) -> Vec<u64> {
    let slept = format!("{DEVICE}/tile0/gt0/gtidle/idle_residency_ms");
    let was_asked = |look: &u64| {
        run.fake.set_sys(&slept, &format!("{}\n", 1000 * look));
        run.look(&[]).cards::<GpuPower>()[0].1.temperature.is_some()
    };
    looks.filter(was_asked).collect()
}

#[test]
fn a_card_of_intel_s_is_idle_when_its_parts_sleep() {
    let fake = card("xe", "8086:E20B", 1000)
        .sys(&format!("{DEVICE}/tile0/gt0/gtidle/idle_residency_ms"), "0\n");
    let mut run = Run::of(&fake);
    assert_eq!(idle_arc(&mut run, 0..8), [0, 1, 3, 5, 7], "two looks tell that it does");
    let mut run = Run::of(&fake);
    assert_eq!(asked(&mut run, 4), [0, 1, 2, 3], "it works");
}

#[test]
fn a_client_that_has_a_card_of_xe_s_merely_open_does_not_keep_it_awake() {
    let client = "drm-driver:\txe\ndrm-client-id:\t3\ndrm-pdev:\t0000:03:00.0\n\
                  drm-resident-vram0:\t200 KiB\ndrm-cycles-rcs:\t0\ndrm-total-cycles-rcs:\t1000\n";
    let fake = card("xe", "8086:E20B", 1000)
        .proc("7/stat", "")
        .proc_link("7/fd/3", "/dev/dri/renderD128")
        .proc("7/fdinfo/3", client);
    let mut run = Run::of(&fake);
    let share = |run: &Run| {
        let (_, _, share) = run.shares()[0];
        (share.memory, share.utilization)
    };
    assert_eq!(share(run.look(&[SOLVER])), (Some(204_800), None));
    let works = client.replace("200 KiB", "400 KiB").replace("rcs:\t0", "rcs:\t500");
    fake.set_proc("7/fdinfo/3", &works.replace("rcs:\t1000", "rcs:\t3000"));
    assert_eq!(share(run.look(&[])), (Some(204_800), None), "nobody reads that now");
    assert_eq!(share(run.look(&[])), (Some(409_600), Some(0.25)), "of all the time since then");
    assert_eq!(asked(&mut run, 3), [0, 1, 2], "it uses it");
}
