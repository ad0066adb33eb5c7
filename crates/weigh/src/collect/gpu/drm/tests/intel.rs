//! What i915 and xe tell: how long a card was asleep, and its energy.

use super::*;
use crate::catalog::metrics::{GpuActivity, GpuPower};

const STATUS: &str = "class/drm/card0/device/power/runtime_status";
const ENERGY: &str = "class/drm/card0/device/hwmon/hwmon1/energy1_input";

fn card_of(driver: &str) -> FakeHost {
    let uevent = format!("DRIVER={driver}\nPCI_ID=8086:E20B\nPCI_SLOT_NAME=0000:03:00.0\n");
    FakeHost::new().sys("class/drm/card0/device/uevent", &uevent)
}

/// How long a card of Intel's says to be asleep, at looks that find its two parts like this.
fn asleep(driver: &str, parts: [&str; 2]) -> Vec<Option<f64>> {
    let fake = card_of(driver);
    let set = |milliseconds: [&str; 2]| {
        for (part, milliseconds) in parts.iter().zip(milliseconds) {
            fake.set_sys(&format!("class/drm/card0/{part}"), &format!("{milliseconds}\n"));
        }
    };
    let looks = [["1000", "5000"], ["2000", "5125"], ["garbage", "5250"], ["2250", "6125"]];
    set(looks[0]);
    let mut run = Run::of(&fake);
    let told = looks.map(|milliseconds| {
        set(milliseconds);
        run.look(&[]).cards::<GpuActivity>()[0].1.asleep
    });
    told.to_vec()
}

#[test]
fn a_card_slept_as_long_as_the_part_of_it_that_slept_least() {
    let told = [Some(1.0), Some(1.125), None, Some(1.375)];
    let parts = ["gt0", "gt1"].map(|gt| format!("device/tile0/{gt}/gtidle/idle_residency_ms"));
    assert_eq!(asleep("xe", parts.each_ref().map(String::as_str)), told);
    let tiles =
        ["tile0/gt0", "tile1/gt2"].map(|gt| format!("device/{gt}/gtidle/idle_residency_ms"));
    assert_eq!(asleep("xe", tiles.each_ref().map(String::as_str)), told);
    assert_eq!(asleep("i915", ["gt/gt0/rc6_residency_ms", "gt/gt1/rc6_residency_ms"]), told);
}

#[test]
fn power_of_intel_is_the_growth_of_its_energy_and_unknown_when_that_goes_back() {
    let fake = card_of("xe").sys(ENERGY, "500000000\n");
    let mut run = Run::of(&fake);
    let mut watts = Vec::new();
    for joules in [500, 530, 10, 15] {
        fake.set_sys(ENERGY, &format!("{joules}000000\n"));
        watts.push(run.look(&[]).cards::<GpuPower>()[0].1.draw);
    }
    assert_eq!(watts, [None, Some(30.0), None, Some(5.0)]);
}

#[test]
fn energy_that_could_not_be_read_is_unknown_and_not_nothing() {
    let fake = card_of("xe").sys(ENERGY, "50000000000\n");
    let mut run = Run::of(&fake);
    let looks = [50_000, 0, 50_060, 50_090].map(|joules| {
        fake.set_sys(ENERGY, &format!("{joules}000000\n"));
        let (_, power) = run.look(&[]).cards::<GpuPower>()[0];
        run.outcome.as_ref().unwrap();
        (power.energy, power.draw)
    });
    let told = [
        (Some(50_000.0), None),
        (None, None),
        (Some(50_060.0), Some(30.0)),
        (Some(50_090.0), Some(30.0)),
    ];
    assert_eq!(looks, told);
}

#[test]
fn a_counter_that_begins_elsewhere_after_sleep_is_no_energy() {
    let fake = card_of("xe").sys(ENERGY, "50000000\n").sys(STATUS, "active\n");
    let mut run = Run::of(&fake);
    let mut look = |status: &str, joules: u64| {
        fake.set_sys(STATUS, status);
        fake.set_sys(ENERGY, &format!("{joules}000000\n"));
        let (_, power) = run.look(&[]).cards::<GpuPower>()[0];
        (power.energy, power.draw)
    };
    assert_eq!(look("active\n", 50), (Some(50.0), None));
    assert_eq!(look("suspended\n", 77), (None, None));
    assert_eq!(look("active\n", 262_000), (Some(50.0), None));
    assert_eq!(look("active\n", 262_040), (Some(90.0), Some(40.0)));
}

#[test]
fn while_the_whole_card_sleeps_time_passes_and_never_more_than_passed() {
    let slept = "class/drm/card0/device/tile0/gt0/gtidle/idle_residency_ms";
    let fake = card_of("xe").sys(slept, "1000\n").sys(STATUS, "active\n");
    let mut run = Run::of(&fake);
    let mut look = |status: &str, milliseconds: &str| {
        fake.set_sys(STATUS, status);
        fake.set_sys(slept, milliseconds);
        run.look(&[]).cards::<GpuActivity>()[0].1.asleep
    };
    assert_eq!(look("active\n", "1000\n"), Some(1.0));
    assert_eq!(look("active\n", "1500\n"), Some(1.5));
    assert_eq!(look("suspended\n", "whoever reads this wakes it\n"), Some(1.5));
    assert_eq!(look("suspended\n", "whoever reads this wakes it\n"), Some(2.5));
    assert_eq!(look("suspended\n", "whoever reads this wakes it\n"), Some(3.5));
    assert_eq!(look("active\n", "9000\n"), Some(3.5), "nobody knows when it awoke");
    assert_eq!(look("active\n", "99000\n"), Some(4.5), "a second has passed");
}
