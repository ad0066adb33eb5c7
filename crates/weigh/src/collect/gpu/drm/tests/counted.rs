//! What the firmware of AMD's cards counts, as `gpu_metrics` has it.

use super::*;
use crate::catalog::metrics::{GpuActivity, GpuPower, GpuThrottle};
use crate::parse::gpu_metrics::tables::{v1_3, v1_7, v1_9};

const TABLE: &str = "class/drm/card2/device/gpu_metrics";
const JOULE: u64 = 1 << 16;

/// A machine whose first card is of this model.
fn with_model(number: &str) -> FakeHost {
    let fake = machine();
    let uevent = format!("DRIVER=amdgpu\nPCI_ID={number}\nPCI_SLOT_NAME=0000:41:00.0\n");
    fake.set_sys("class/drm/card2/device/uevent", &uevent);
    fake
}

/// Energy by its own counter at looks that find these tables.
fn energy(fake: &FakeHost, tables: &[Vec<u8>]) -> Vec<Option<f64>> {
    fake.set_sys_bytes(TABLE, &tables[0]);
    let mut run = Run::of(fake);
    let looks = tables.iter().map(|table| {
        fake.set_sys_bytes(TABLE, table);
        run.look(&[]).cards::<GpuPower>()[0].1.energy
    });
    looks.collect()
}

#[test]
fn a_card_counts_its_energy_how_busy_it_was_and_what_held_it_back() {
    let fake = with_model("1002:74A1");
    fake.set_sys_bytes(TABLE, &v1_7(500 * JOULE, [1000, 0, 50, 0, 0, 0], 7000));
    let mut run = Run::of(&fake);
    run.look(&[]).outcome.as_ref().unwrap();
    let (_, first) = run.cards::<GpuActivity>()[0];
    assert_eq!((first.busy, first.observed), (Some(0.0), Some(0.0)));
    fake.set_sys_bytes(TABLE, &v1_7(620 * JOULE, [2000, 0, 300, 500, 0, 0], 82_000));
    run.look(&[]).outcome.as_ref().unwrap();
    let (_, power) = run.cards::<GpuPower>()[0];
    assert_eq!((power.energy, power.energy_sampled), (Some(620.0), Some(100.0)));
    assert_eq!(power.draw, Some(100.0), "the card says that by itself");
    let (_, activity) = run.cards::<GpuActivity>()[0];
    assert_eq!((activity.busy, activity.observed), (Some(0.75), Some(1.0)));
    assert_eq!(activity.utilization, Some(0.4));
    let (_, throttle) = run.cards::<GpuThrottle>()[0];
    assert_eq!((throttle.power, throttle.thermal), (Some(0.25), Some(0.5)));
    let (_, other) = run.cards::<GpuPower>()[1];
    assert_eq!((other.energy, other.energy_sampled), (None, Some(100.0)));
}

#[test]
fn energy_is_taken_only_where_its_unit_is_documented() {
    let counted = [Some(1.0), Some(2.0)];
    let early = [v1_3(JOULE), v1_3(2 * JOULE)];
    assert_eq!(energy(&with_model("1002:740C"), &early), counted, "an MI200");
    assert_eq!(energy(&with_model("1002:738C"), &early), [None, None], "an MI100");
    assert_eq!(energy(&with_model("1002:73BF"), &early), [None, None], "a Radeon");
    let list = |joules| v1_9(&[(7, 6, 1, joules * JOULE), (9, 4, 1, 5)]);
    let late = [list(1), list(2)];
    assert_eq!(energy(&with_model("1002:74A1"), &late), counted);
    assert_eq!(energy(&with_model("1002:7999"), &late), [None, None], "nobody knows it");
}

#[test]
fn the_half_of_a_card_that_does_not_count_has_no_energy_of_its_own() {
    assert_eq!(energy(&with_model("1002:740C"), &[v1_3(0), v1_3(0)]), [None, None]);
}

#[test]
fn a_form_that_is_not_known_is_not_read_again() {
    let fake = with_model("1002:74A1");
    let mut unknown = v1_3(JOULE);
    unknown[3] = 77;
    let known = v1_7(JOULE, [1; 6], 0);
    assert_eq!(energy(&fake, &[unknown, known]), [None, None]);
}

#[test]
fn a_short_table_costs_what_is_in_it_and_is_told() {
    let fake = with_model("1002:74A1");
    let whole = v1_7(JOULE, [1; 6], 0);
    fake.set_sys_bytes(TABLE, &whole[..100]);
    let mut run = Run::of(&fake);
    run.look(&[]);
    assert!(run.skipped().contains("gpu_metrics"), "{:?}", run.outcome);
    let (_, power) = run.cards::<GpuPower>()[0];
    assert_eq!((power.energy, power.draw), (None, Some(100.0)));
    fake.set_sys_bytes(TABLE, &whole);
    run.look(&[]).outcome.as_ref().unwrap();
    assert_eq!(run.cards::<GpuPower>()[0].1.energy, Some(1.0));
}

#[test]
fn a_counter_that_stands_still_while_power_is_taken_is_told_and_left_out() {
    let fake = with_model("1002:74A1");
    fake.set_sys_bytes(TABLE, &v1_7(JOULE, [1; 6], 0));
    let mut run = Run::of(&fake);
    run.look(&[]).outcome.as_ref().unwrap();
    run.look(&[]);
    assert!(run.skipped().starts_with("amd0: its counter of energy stands"), "{:?}", run.outcome);
    let (_, power) = run.cards::<GpuPower>()[0];
    assert_eq!((power.energy, power.energy_sampled), (None, Some(100.0)));
}

#[test]
fn a_card_that_sleeps_is_not_asked_what_it_counts() {
    let fake = with_model("1002:74A1");
    fake.set_sys("class/drm/card2/device/power/runtime_status", "suspended\n");
    fake.set_sys_bytes(TABLE, b"whoever reads this wakes it");
    let mut run = Run::of(&fake);
    run.look(&[]).outcome.as_ref().unwrap();
    assert_eq!(run.cards::<GpuPower>()[0].1.energy, None);
}
