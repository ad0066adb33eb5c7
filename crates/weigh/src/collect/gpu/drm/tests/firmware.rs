//! Counters of the firmware of AMD's GPUs, in `gpu_metrics`.

use super::*;
use crate::catalog::metrics::{GpuActivity, GpuPower, GpuThrottle};
use crate::parse::gpu_metrics::tables::{v1_3, v1_7, v1_9};

const TABLE: &str = "class/drm/card2/device/gpu_metrics";
const JOULE: u64 = 1 << 16;

/// A machine whose first GPU is of this model.
fn with_model(pci_id: &str) -> FakeHost {
    let fake = machine();
    let uevent = format!("DRIVER=amdgpu\nPCI_ID={pci_id}\nPCI_SLOT_NAME=0000:41:00.0\n");
    fake.set_sys("class/drm/card2/device/uevent", &uevent);
    fake
}

/// Energy by its own counter at polls of these tables.
fn energy(fake: &FakeHost, tables: &[Vec<u8>]) -> Vec<Option<f64>> {
    fake.set_sys_bytes(TABLE, &tables[0]);
    let mut run = PolledRun::of(fake);
    let polls = tables.iter().map(|table| {
        fake.set_sys_bytes(TABLE, table);
        run.poll(&[]).devices::<GpuPower>()[0].1.energy
    });
    polls.collect()
}

#[test]
fn firmware_counts_energy_utilization_and_throttling() {
    let fake = with_model("1002:74A1");
    fake.set_sys_bytes(TABLE, &v1_7(500 * JOULE, [1000, 0, 50, 0, 0, 0], 7000));
    let mut run = PolledRun::of(&fake);
    run.poll(&[]).outcome.as_ref().unwrap();
    let (_, first) = run.devices::<GpuActivity>()[0];
    assert_eq!((first.busy, first.observed), (Some(0.0), Some(0.0)));
    fake.set_sys_bytes(TABLE, &v1_7(620 * JOULE, [2000, 0, 300, 500, 0, 0], 82_000));
    run.poll(&[]).outcome.as_ref().unwrap();
    let (_, power) = run.devices::<GpuPower>()[0];
    assert_eq!((power.energy, power.energy_sampled), (Some(620.0), Some(100.0)));
    assert_eq!(power.draw, Some(100.0), "reported by the GPU");
    let (_, activity) = run.devices::<GpuActivity>()[0];
    assert_eq!((activity.busy, activity.observed), (Some(0.75), Some(1.0)));
    assert_eq!(activity.utilization, Some(0.4));
    let (_, throttle) = run.devices::<GpuThrottle>()[0];
    assert_eq!((throttle.power, throttle.thermal), (Some(0.25), Some(0.5)));
    let (_, other) = run.devices::<GpuPower>()[1];
    assert_eq!((other.energy, other.energy_sampled), (None, Some(100.0)));
}

#[test]
fn energy_is_used_only_where_its_unit_is_documented() {
    let counted = [Some(1.0), Some(2.0)];
    let early = [v1_3(JOULE), v1_3(2 * JOULE)];
    assert_eq!(energy(&with_model("1002:740C"), &early), counted, "an MI200");
    assert_eq!(energy(&with_model("1002:738C"), &early), [None, None], "an MI100");
    assert_eq!(energy(&with_model("1002:73BF"), &early), [None, None], "a Radeon");
    let list = |joules| v1_9(&[(7, 6, 1, joules * JOULE), (9, 4, 1, 5)]);
    let late = [list(1), list(2)];
    assert_eq!(energy(&with_model("1002:74A1"), &late), counted);
    assert_eq!(energy(&with_model("1002:7999"), &late), [None, None], "not documented");
}

#[test]
fn die_that_does_not_count_has_no_energy_of_its_own() {
    assert_eq!(energy(&with_model("1002:740C"), &[v1_3(0), v1_3(0)]), [None, None]);
}

#[test]
fn unknown_format_is_not_read_again() {
    let fake = with_model("1002:74A1");
    let mut unknown = v1_3(JOULE);
    unknown[3] = 77;
    let known = v1_7(JOULE, [1; 6], 0);
    assert_eq!(energy(&fake, &[unknown, known]), [None, None]);
}

#[test]
fn short_table_costs_its_values_and_is_reported() {
    let fake = with_model("1002:74A1");
    let whole = v1_7(JOULE, [1; 6], 0);
    fake.set_sys_bytes(TABLE, &whole[..100]);
    let mut run = PolledRun::of(&fake);
    run.poll(&[]);
    assert!(run.skipped().contains("gpu_metrics"), "{:?}", run.outcome);
    let (_, power) = run.devices::<GpuPower>()[0];
    assert_eq!((power.energy, power.draw), (None, Some(100.0)));
    fake.set_sys_bytes(TABLE, &whole);
    run.poll(&[]).outcome.as_ref().unwrap();
    assert_eq!(run.devices::<GpuPower>()[0].1.energy, Some(1.0));
}

#[test]
fn counter_that_does_not_advance_is_reported_and_dropped() {
    let fake = with_model("1002:74A1");
    fake.set_sys_bytes(TABLE, &v1_7(JOULE, [1; 6], 0));
    let mut run = PolledRun::of(&fake);
    run.poll(&[]).outcome.as_ref().unwrap();
    run.poll(&[]);
    assert!(
        run.skipped().starts_with("amd0: its energy counter does not advance"),
        "{:?}",
        run.outcome
    );
    let (_, power) = run.devices::<GpuPower>()[0];
    assert_eq!((power.energy, power.energy_sampled), (None, Some(100.0)));
}

#[test]
fn firmware_of_a_suspended_gpu_is_not_read() {
    let fake = with_model("1002:74A1");
    fake.set_sys("class/drm/card2/device/power/runtime_status", "suspended\n");
    fake.set_sys_bytes(TABLE, b"reading this wakes it up");
    let mut run = PolledRun::of(&fake);
    run.poll(&[]).outcome.as_ref().unwrap();
    assert_eq!(run.devices::<GpuPower>()[0].1.energy, None);
}
