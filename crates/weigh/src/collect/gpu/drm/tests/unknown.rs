//! What a card says when it does not know: that is null, and no fault.

use super::*;

#[test]
fn a_link_that_is_down_and_errors_that_cannot_be_had_now_are_not_known() {
    let fake = machine();
    let device = "class/drm/card2/device";
    fake.set_sys(&format!("{device}/current_link_speed"), "Unknown\n");
    fake.set_sys(&format!("{device}/current_link_width"), "0\n");
    fake.set_sys(&format!("{device}/ras/umc_err_count"), "Query currently inaccessible\n");
    let mut run = Run::of(&fake);
    run.look(&[]).outcome.as_ref().unwrap();
    assert_eq!(run.cards::<GpuLink>()[0].1, GpuLink::default());
    assert_eq!(run.cards::<GpuEcc>()[0].1, GpuEcc::default());
    fake.set_sys(&format!("{device}/current_link_speed"), "16.0 GT/s PCIe\n");
    fake.set_sys(&format!("{device}/ras/umc_err_count"), "ue: 1\nce: 2\n");
    run.look(&[]).outcome.as_ref().unwrap();
    assert_eq!(run.cards::<GpuLink>()[0].1.pcie_generation, Some(4));
    assert_eq!(run.cards::<GpuEcc>()[0].1.uncorrected, Some(1));
}
