//! `/sys/class/drm/cardN/device/gpu_metrics`: counters of the firmware of an AMD GPU.
//!
//! A binary table in native byte order. Its header (`structure_size`, `format_revision`,
//! `content_revision`) identifies the layout, and nearly every generation of cards has another.
//! Sizes and offsets are from the kernel's `drivers/gpu/drm/amd/include/kgd_pp_interface.h`: the
//! fields of each `struct gpu_metrics_v1_*`, naturally aligned. A value of all ones is missing: the
//! kernel fills the table with ones first.
//!
//! What surprises: a layout was changed without another number (the first 1.6 was not the one that
//! AMD's own library reads), so the size is checked, too. The last one (1.9) is a list of
//! attributes, each with its id, type and number of values. Formats 2 and 3 are those of APUs.

use super::MalformedFile;
use super::native::{u16_at, u32_at, u64_at};

/// The counters of a table that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirmwareCounters {
    /// The layout, `content_revision`.
    pub content: u8,
    /// Energy (`energy_accumulator`). From content 4 to 8 in units of 2^-16 J, by that header;
    /// otherwise the unit depends on the card.
    pub energy: Option<u64>,
    /// Residencies in cycles of the firmware, from content 6 on.
    pub cycles: Option<Cycles>,
}

/// Accumulation cycles of the firmware: a millisecond each (amdsmi.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cycles {
    /// All of them (`accumulation_counter`).
    pub all: u64,
    /// Those throttled by PROCHOT (`prochot_residency_acc`).
    pub prochot: Option<u64>,
    /// Those throttled by the package power limit (`ppt_residency_acc`).
    pub power: Option<u64>,
    /// Those throttled by the socket temperature (`socket_thm_residency_acc`).
    pub socket_thermal: Option<u64>,
    /// Those throttled by the temperature of voltage regulators (`vr_thm_residency_acc`).
    pub regulator_thermal: Option<u64>,
    /// Those throttled by the memory temperature (`hbm_thm_residency_acc`).
    pub memory_thermal: Option<u64>,
    /// Utilisation in percent, summed over the cycles (`gfx_activity_acc`).
    pub busy_percent: Option<u64>,
}

/// Offsets of one layout.
struct MetricsLayout {
    content: u8,
    size: u16,
    /// The offset of `energy_accumulator`.
    energy: usize,
    /// The offsets of `accumulation_counter`, which the five residencies follow, and of
    /// `gfx_activity_acc`.
    cycles: Option<(usize, usize)>,
}

const LAYOUTS: [MetricsLayout; 6] = [
    MetricsLayout { content: 3, size: 120, energy: 24, cycles: None },
    MetricsLayout { content: 4, size: 288, energy: 24, cycles: None },
    MetricsLayout { content: 5, size: 360, energy: 88, cycles: None },
    MetricsLayout { content: 6, size: 1664, energy: 16, cycles: Some((32, 68)) },
    MetricsLayout { content: 7, size: 2208, energy: 24, cycles: Some((40, 76)) },
    MetricsLayout { content: 8, size: 3872, energy: 24, cycles: Some((40, 76)) },
];

/// The content that is a list of attributes.
const ATTRIBUTE_LIST: u8 = 9;

/// Values of an APU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Apu {
    /// Power of the graphics alone (`average_gfx_power`), where its unit is documented.
    pub graphics_milliwatts: Option<u64>,
}

/// The size of a table, and its layout: `format_revision` and `content_revision`.
fn layout(bytes: &[u8]) -> Result<(u16, [u8; 2]), MalformedFile> {
    let size = u16_at(bytes, 0, "structure_size")?;
    if usize::from(size) != bytes.len() {
        return Err(MalformedFile("structure_size"));
    }
    Ok((size, u16_at(bytes, 2, "revisions")?.to_ne_bytes()))
}

/// Reads the table of an APU; `None` when it is that of a card.
pub fn apu(bytes: &[u8]) -> Result<Option<Apu>, MalformedFile> {
    const FIELD: &str = "average_gfx_power";
    let milliwatts = match layout(bytes)? {
        // Earlier layouts of format 2 have an undocumented unit.
        (168, [2, 4]) => {
            Some(u16_at(bytes, 46, FIELD)?).filter(|power| *power != u16::MAX).map(u64::from)
        }
        (264, [3, 0]) => present32(u32_at(bytes, 124, FIELD)?),
        (_, [2 | 3, _]) => None,
        _ => return Ok(None),
    };
    Ok(Some(Apu { graphics_milliwatts: milliwatts }))
}

/// Reads the table of a card; `None` when its layout is unknown.
pub fn parse(bytes: &[u8]) -> Result<Option<FirmwareCounters>, MalformedFile> {
    let (size, [format, content]) = layout(bytes)?;
    if format != 1 {
        return Ok(None);
    }
    if content == ATTRIBUTE_LIST {
        return attribute_list(bytes).map(Some);
    }
    let Some(layout) =
        LAYOUTS.iter().find(|layout| layout.content == content && layout.size == size)
    else {
        return Ok(None);
    };
    let energy = present(u64_at(bytes, layout.energy, "energy_accumulator")?);
    let mut counts = [None; 7];
    if let Some((first, busy)) = layout.cycles {
        let places = [first, first + 4, first + 8, first + 12, first + 16, first + 20, busy];
        for (count, place) in counts.iter_mut().zip(places) {
            *count = present32(u32_at(bytes, place, "cycles")?);
        }
    }
    Ok(Some(FirmwareCounters { content, energy, cycles: cycles(counts) }))
}

/// Reads a list: the number of attributes, then for each 64 bits that describe it, and its values.
/// Bits 0 to 9 are the number of values, 10 to 19 the id (`enum amdgpu_metrics_attr_id`), 20 to 23
/// the type (`enum amdgpu_metrics_attr_type`). Nothing is aligned.
fn attribute_list(bytes: &[u8]) -> Result<FirmwareCounters, MalformedFile> {
    /// Signed and unsigned with 8, 16, 32 and 64 bits.
    const WIDTHS: [usize; 8] = [1, 1, 2, 2, 4, 4, 8, 8];
    const FIRST: usize = 7;
    // Ids: energy 7, clock 8, cycles 9, residencies 10 to 14, utilisation 20.
    let mut found = [None; 14];
    let mut place = 8;
    for _ in 0..u32_at(bytes, 4, "attr_count")? {
        let encoding = u64_at(bytes, place, "attribute")?;
        let (count, number) = ((encoding & 0x3ff) as usize, (encoding >> 10 & 0x3ff) as usize);
        let kind = (encoding >> 20 & 0xf) as usize;
        let width = WIDTHS.get(kind).ok_or(MalformedFile("type of an attribute"))?;
        place += 8;
        let value = match (count, kind) {
            (1, 4) => present32(u32_at(bytes, place, "value of an attribute")?),
            (1, 6) => present(u64_at(bytes, place, "value of an attribute")?),
            _ => None,
        };
        if let Some(slot) = number.checked_sub(FIRST).and_then(|slot| found.get_mut(slot)) {
            *slot = value;
        }
        place += width * count;
    }
    if place != bytes.len() {
        return Err(MalformedFile("attr_count"));
    }
    let [energy, _, all, prochot, power, socket, regulators, memory, .., busy] = found;
    let cycles = cycles([all, prochot, power, socket, regulators, memory, busy]);
    Ok(FirmwareCounters { content: ATTRIBUTE_LIST, energy, cycles })
}

/// The counters in the order of all layouts.
fn cycles(counts: [Option<u64>; 7]) -> Option<Cycles> {
    let [all, prochot, power, socket_thermal, regulator_thermal, memory_thermal, busy_percent] =
        counts;
    all.map(|all| Cycles {
        all,
        prochot,
        power,
        socket_thermal,
        regulator_thermal,
        memory_thermal,
        busy_percent,
    })
}

fn present(count: u64) -> Option<u64> {
    (count != u64::MAX).then_some(count)
}

fn present32(count: u32) -> Option<u64> {
    (count != u32::MAX).then_some(u64::from(count))
}

/// Tables as a kernel would write them, for tests: all ones where nothing is given.
#[cfg(test)]
pub(crate) mod tables {
    /// An MI300X: energy, cycles with residencies in their order, utilisation.
    pub(crate) fn v1_7(energy: u64, cycles: [u32; 6], busy_percent: u32) -> Vec<u8> {
        let mut bytes = table(7, 2208, 24, energy);
        for (index, count) in cycles.iter().enumerate() {
            put(&mut bytes, 40 + 4 * index, &count.to_ne_bytes());
        }
        put(&mut bytes, 76, &busy_percent.to_ne_bytes());
        bytes
    }

    /// An MI200 or a Radeon.
    pub(crate) fn v1_3(energy: u64) -> Vec<u8> {
        table(3, 120, 24, energy)
    }

    /// An APU such as a Ryzen AI 300: milliwatts of its graphics.
    pub(crate) fn v3_0(milliwatts: u32) -> Vec<u8> {
        let mut bytes = table(0, 264, 124, 0);
        put(&mut bytes, 2, &[3, 0]);
        put(&mut bytes, 124, &milliwatts.to_ne_bytes());
        bytes
    }

    /// A list of attributes: id, type, number of values, and the first value.
    pub(crate) fn v1_9(attributes: &[(u64, u64, u64, u64)]) -> Vec<u8> {
        let mut bytes = vec![0, 0, 1, 9];
        bytes.extend((attributes.len() as u32).to_ne_bytes());
        for (number, kind, count, value) in attributes {
            bytes.extend((kind << 20 | number << 10 | count).to_ne_bytes());
            let width = 1 << (kind / 2);
            bytes.extend(&value.to_ne_bytes()[..width]);
            bytes.resize(bytes.len() + width * (*count as usize - 1), 0xff);
        }
        let size = bytes.len() as u16;
        put(&mut bytes, 0, &size.to_ne_bytes());
        bytes
    }

    pub(super) fn table(content: u8, size: u16, place: usize, energy: u64) -> Vec<u8> {
        let mut bytes = vec![0xff; usize::from(size)];
        put(&mut bytes, 0, &size.to_ne_bytes());
        put(&mut bytes, 2, &[1, content]);
        put(&mut bytes, place, &energy.to_ne_bytes());
        bytes
    }

    pub(super) fn put(bytes: &mut [u8], place: usize, content: &[u8]) {
        bytes[place..place + content.len()].copy_from_slice(content);
    }
}

#[cfg(test)]
mod tests;
