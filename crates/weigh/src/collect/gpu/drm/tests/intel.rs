//! Values of i915 and xe: how long a GPU was asleep, and its energy.

use super::*;
use crate::catalog::metrics::{GpuActivity, GpuPower};

const STATUS: &str = "class/drm/card0/device/power/runtime_status";
const ENERGY: &str = "class/drm/card0/device/hwmon/hwmon1/energy1_input";

fn gpu_of(driver: &str) -> FakeHost {
    let uevent = format!("DRIVER={driver}\nPCI_ID=8086:E20B\nPCI_SLOT_NAME=0000:03:00.0\n");
    FakeHost::new().sys("class/drm/card0/device/uevent", &uevent)
}

/// How long a GPU of Intel was asleep, at polls of the files of its two GTs.
fn asleep(driver: &str, gts: [&str; 2]) -> Vec<Option<f64>> {
    let fake = gpu_of(driver);
    let set = |milliseconds: [&str; 2]| {
        for (gt, milliseconds) in gts.iter().zip(milliseconds) {
            fake.set_sys(&format!("class/drm/card0/{gt}"), &format!("{milliseconds}\n"));
        }
    };
    let polls = [["1000", "5000"], ["2000", "5125"], ["garbage", "5250"], ["2250", "6125"]];
    set(polls[0]);
    let mut run = PolledRun::of(&fake);
    let asleep = polls.map(|milliseconds| {
        set(milliseconds);
        run.poll(&[]).devices::<GpuActivity>()[0].1.asleep
    });
    asleep.to_vec()
}

#[test]
fn gpu_slept_as_long_as_the_gt_that_slept_least() {
    let expected = [Some(1.0), Some(1.125), None, Some(1.375)];
    let gts = ["gt0", "gt1"].map(|gt| format!("device/tile0/{gt}/gtidle/idle_residency_ms"));
    assert_eq!(asleep("xe", gts.each_ref().map(String::as_str)), expected);
    let tiles =
        ["tile0/gt0", "tile1/gt2"].map(|gt| format!("device/{gt}/gtidle/idle_residency_ms"));
    assert_eq!(asleep("xe", tiles.each_ref().map(String::as_str)), expected);
    assert_eq!(asleep("i915", ["gt/gt0/rc6_residency_ms", "gt/gt1/rc6_residency_ms"]), expected);
}

#[test]
fn power_of_intel_is_the_rate_of_its_energy_and_unknown_after_a_reset() {
    let fake = gpu_of("xe").sys(ENERGY, "500000000\n");
    let mut run = PolledRun::of(&fake);
    let mut watts = Vec::new();
    for joules in [500, 530, 10, 15] {
        fake.set_sys(ENERGY, &format!("{joules}000000\n"));
        watts.push(run.poll(&[]).devices::<GpuPower>()[0].1.draw);
    }
    assert_eq!(watts, [None, Some(30.0), None, Some(5.0)]);
}

#[test]
fn energy_that_could_not_be_read_is_unknown_and_not_0() {
    let fake = gpu_of("xe").sys(ENERGY, "50000000000\n");
    let mut run = PolledRun::of(&fake);
    let polls = [50_000, 0, 50_060, 50_090].map(|joules| {
        fake.set_sys(ENERGY, &format!("{joules}000000\n"));
        let (_, power) = run.poll(&[]).devices::<GpuPower>()[0];
        run.outcome.as_ref().unwrap();
        (power.energy, power.draw)
    });
    let expected = [
        (Some(50_000.0), None),
        (None, None),
        (Some(50_060.0), Some(30.0)),
        (Some(50_090.0), Some(30.0)),
    ];
    assert_eq!(polls, expected);
}

#[test]
fn counter_that_starts_elsewhere_after_suspend_adds_no_energy() {
    let fake = gpu_of("xe").sys(ENERGY, "50000000\n").sys(STATUS, "active\n");
    let mut run = PolledRun::of(&fake);
    let mut poll = |status: &str, joules: u64| {
        fake.set_sys(STATUS, status);
        fake.set_sys(ENERGY, &format!("{joules}000000\n"));
        let (_, power) = run.poll(&[]).devices::<GpuPower>()[0];
        (power.energy, power.draw)
    };
    assert_eq!(poll("active\n", 50), (Some(50.0), None));
    assert_eq!(poll("suspended\n", 77), (None, None));
    assert_eq!(poll("active\n", 262_000), (Some(50.0), None));
    assert_eq!(poll("active\n", 262_040), (Some(90.0), Some(40.0)));
}

#[test]
fn suspended_time_counts_as_asleep_and_never_more_than_elapsed() {
    let slept = "class/drm/card0/device/tile0/gt0/gtidle/idle_residency_ms";
    let fake = gpu_of("xe").sys(slept, "1000\n").sys(STATUS, "active\n");
    let mut run = PolledRun::of(&fake);
    let mut poll = |status: &str, milliseconds: &str| {
        fake.set_sys(STATUS, status);
        fake.set_sys(slept, milliseconds);
        run.poll(&[]).devices::<GpuActivity>()[0].1.asleep
    };
    assert_eq!(poll("active\n", "1000\n"), Some(1.0));
    assert_eq!(poll("active\n", "1500\n"), Some(1.5));
    assert_eq!(poll("suspended\n", "reading this wakes it up\n"), Some(1.5));
    assert_eq!(poll("suspended\n", "reading this wakes it up\n"), Some(2.5));
    assert_eq!(poll("suspended\n", "reading this wakes it up\n"), Some(3.5));
    assert_eq!(poll("active\n", "9000\n"), Some(3.5), "when it woke up is not known");
    assert_eq!(poll("active\n", "99000\n"), Some(4.5), "a second has elapsed");
}
