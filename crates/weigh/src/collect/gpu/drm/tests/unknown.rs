//! Values that a GPU reports as unknown: they are null, and not a fault.

use super::*;
use crate::catalog::metrics::{GpuEcc, GpuLink, GpuPower};

#[test]
fn link_that_is_down_and_inaccessible_errors_are_unknown() {
    let fake = machine();
    let device = "class/drm/card2/device";
    fake.set_sys(&format!("{device}/current_link_speed"), "Unknown\n");
    fake.set_sys(&format!("{device}/current_link_width"), "0\n");
    fake.set_sys(&format!("{device}/ras/umc_err_count"), "Query currently inaccessible\n");
    let mut run = PolledRun::of(&fake);
    run.poll(&[]).outcome.as_ref().unwrap();
    assert_eq!(run.devices::<GpuLink>()[0].1, GpuLink::default());
    assert_eq!(run.devices::<GpuEcc>()[0].1, GpuEcc::default());
    fake.set_sys(&format!("{device}/current_link_speed"), "16.0 GT/s PCIe\n");
    fake.set_sys(&format!("{device}/ras/umc_err_count"), "ue: 1\nce: 2\n");
    run.poll(&[]).outcome.as_ref().unwrap();
    assert_eq!(run.devices::<GpuLink>()[0].1.pcie_generation, Some(4));
    assert_eq!(run.devices::<GpuEcc>()[0].1.uncorrected, Some(1));
}

#[test]
fn second_die_has_no_power_and_no_limit_of_its_own() {
    let fake = machine();
    let hwmon = "class/drm/card1/device/hwmon/hwmon2";
    fake.set_sys(&format!("{hwmon}/power1_average"), "0\n");
    fake.set_sys(&format!("{hwmon}/power1_cap"), "0\n");
    let mut run = PolledRun::of(&fake);
    run.poll(&[]).outcome.as_ref().unwrap();
    let limit = run.tick.changes.iter().find_map(|change| match change {
        Change::Gpu(gpu) if gpu.name == "amd1" => Some(gpu.power_limit_watts),
        _ => None,
    });
    assert_eq!(limit, Some(None));
    let (_, power) = run.poll(&[]).devices::<GpuPower>()[1];
    assert_eq!((power.draw, power.limit, power.energy_sampled), (None, None, None));
}
