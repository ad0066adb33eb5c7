//! Tables of every layout, complete and truncated.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::super::tests::{cut_at_every_byte, mangled};
use super::tables::{put, table, v1_3, v1_7, v1_9, v3_0};
use super::*;

static MI300X: LazyLock<Vec<u8>> = LazyLock::new(|| v1_7(1 << 40, [9, 8, 7, 6, 5, 4], 300));
static LIST: LazyLock<Vec<u8>> = LazyLock::new(|| {
    v1_9(&[(0, 2, 1, 61), (7, 6, 1, 1 << 40), (9, 4, 1, 9), (11, 4, 1, 7), (20, 4, 1, 300)])
});

static RYZEN: LazyLock<Vec<u8>> = LazyLock::new(|| v3_0(7125));

fn read(bytes: &[u8]) -> FirmwareCounters {
    parse(bytes).unwrap().expect("a known layout")
}

#[test]
fn energy_and_cycles_are_read_from_every_layout() {
    let cycles = Cycles {
        all: 9,
        prochot: Some(8),
        power: Some(7),
        socket_thermal: Some(6),
        regulator_thermal: Some(5),
        memory_thermal: Some(4),
        busy_percent: Some(300),
    };
    let counted = FirmwareCounters { content: 7, energy: Some(1 << 40), cycles: Some(cycles) };
    assert_eq!(read(&MI300X), counted);
    for (content, size, place) in [(4, 288, 24), (5, 360, 88), (6, 1664, 16), (8, 3872, 24)] {
        let counted = FirmwareCounters { content, energy: Some(77), cycles: None };
        assert_eq!(read(&table(content, size, place, 77)), counted);
    }
    let mut earlier = table(6, 1664, 16, 1);
    put(&mut earlier, 32, &9u32.to_ne_bytes());
    put(&mut earlier, 40, &7u32.to_ne_bytes());
    put(&mut earlier, 68, &300u32.to_ne_bytes());
    let cycles = read(&earlier).cycles.unwrap();
    assert_eq!((cycles.all, cycles.power, cycles.busy_percent), (9, Some(7), Some(300)));
}

#[test]
fn attributes_of_a_list_are_found_by_their_ids() {
    let cycles = read(&LIST).cycles.unwrap();
    assert_eq!(read(&LIST).energy, Some(1 << 40));
    assert_eq!((cycles.all, cycles.power, cycles.busy_percent), (9, Some(7), Some(300)));
    assert_eq!(cycles.prochot, None);
    let others = [(29, 6, 8, 1), (9, 6, 1, 1 << 33), (500, 1, 3, 2), (7, 6, 2, 5)];
    let counted = read(&v1_9(&others));
    assert_eq!((counted.energy, counted.cycles.unwrap().all), (None, 1 << 33));
    let mut unknown = LIST.clone();
    put(&mut unknown, 8, &(9u64 << 20 | 1).to_ne_bytes());
    assert_eq!(parse(&unknown), Err(MalformedFile("type of an attribute")));
}

#[test]
fn all_ones_is_a_missing_value() {
    let nothing = read(&v1_7(u64::MAX, [9, u32::MAX, 0, 0, 0, 0], u32::MAX));
    let cycles = nothing.cycles.unwrap();
    assert_eq!((nothing.energy, cycles.prochot, cycles.busy_percent), (None, None, None));
    assert_eq!(cycles.power, Some(0));
    assert_eq!(read(&v1_3(5)), FirmwareCounters { content: 3, energy: Some(5), cycles: None });
    let ones = v1_9(&[(7, 6, 1, u64::MAX), (9, 4, 1, u64::from(u32::MAX))]);
    assert_eq!(read(&ones), FirmwareCounters { content: 9, energy: None, cycles: None });
}

#[test]
fn unknown_layout_is_not_guessed() {
    for (revisions, size) in [([2, 3], 152), ([3, 0], 264), ([1, 10], 3872), ([1, 6], 384)] {
        let mut bytes = table(0, size, 8, 1);
        put(&mut bytes, 2, &revisions);
        assert_eq!(parse(&bytes), Ok(None), "{revisions:?}");
    }
    let mut longer = MI300X.clone();
    longer.push(0);
    assert_eq!(parse(&longer), Err(MalformedFile("structure_size")));
}

#[test]
fn apu_is_recognised_and_its_power_has_a_unit() {
    let milliwatts = |bytes: &[u8]| apu(bytes).unwrap().map(|apu| apu.graphics_milliwatts);
    assert_eq!(milliwatts(&RYZEN), Some(Some(7125)));
    assert_eq!(milliwatts(&v3_0(u32::MAX)), Some(None));
    let mut earlier = table(4, 168, 40, 0);
    put(&mut earlier, 2, &[2, 4]);
    put(&mut earlier, 46, &4500u16.to_ne_bytes());
    assert_eq!(milliwatts(&earlier), Some(Some(4500)));
    let mut first = table(3, 152, 40, 0);
    put(&mut first, 2, &[2, 3]);
    assert_eq!(milliwatts(&first), Some(None), "the unit is undocumented");
    assert_eq!(milliwatts(&MI300X), None);
    cut_at_every_byte(&RYZEN, apu, |_, _| false);
}

#[test]
fn truncated_table_is_refused() {
    cut_at_every_byte(&MI300X, parse, |_, _| false);
    cut_at_every_byte(&LIST, parse, |_, _| false);
    // Also one whose header has the truncated size.
    for end in 8..LIST.len() {
        let mut bytes = LIST[..end].to_vec();
        put(&mut bytes, 0, &(end as u16).to_ne_bytes());
        assert!(parse(&bytes).is_err(), "truncated at {end}");
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in mangled(&MI300X), other in mangled(&LIST)) {
        let _ = (parse(&bytes), apu(&bytes));
        let _ = (parse(&other), apu(&other));
    }
}
