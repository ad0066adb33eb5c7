//! What i915 and xe tell of a GPU of Intel's.
//!
//! Source: `/sys/class/drm/cardN/gt/gt0/` and, of older kernels, `cardN/gt_act_freq_mhz` and
//! `power/rc6_residency_ms` (i915); `cardN/device/tile0/gt0/` (xe); and their hwmon
//! (Documentation/ABI/testing/sysfs-driver-intel-{i915,xe}-hwmon). Everybody may read them.
//!
//! What surprised us: neither says how busy the GPU is, except to perf and to root, nor how much
//! of its memory is in use. They do say how long it was asleep: it was busy for the rest at most.
//! The power is told by the growth of the energy alone, and a GPU that is part of the processor
//! has no hwmon: its energy is in the processor's (`energy`, uncore).

use std::ffi::CString;

use super::super::reading::CardRead;
use super::super::{GpuActivity, GpuMemory, GpuPower};
use super::sensor::{Look, Sensor};
use crate::host::{Descriptors, Dir};
use crate::sample::Name;

/// Tiles that a GPU may have (`XE_MAX_TILES_PER_DEVICE` of the kernel). Clock and sleep are told of
/// the first.
const TILES: u32 = 2;

/// The files of one GPU.
pub(super) struct Intel {
    asleep: Sensor,
    clock: Sensor,
    totals: Vec<Sensor>,
    energy: Sensor,
    limit: Sensor,
    temperature: Sensor,
}

impl Intel {
    /// The files below a card's directory and its hwmon's.
    pub(super) fn new(sys: &Dir, card: &str, hwmon: &str, allowance: &Descriptors) -> Intel {
        let first = |directory: &str, files: &[&str]| {
            let paths: Vec<String> =
                files.iter().map(|file| format!("{directory}/{file}")).collect();
            Sensor::first(sys, &paths, allowance)
        };
        let file = |tile: u32| format!("device/tile{tile}/physical_vram_size_bytes");
        let is_there = |tile: &u32| {
            CString::new(format!("{card}/{}", file(*tile))).is_ok_and(|path| sys.has(&path))
        };
        let tiles = (0..TILES).take_while(is_there);
        Intel {
            asleep: first(
                card,
                &[
                    "gt/gt0/rc6_residency_ms",
                    "power/rc6_residency_ms",
                    "device/tile0/gt0/gtidle/idle_residency_ms",
                ],
            ),
            clock: first(
                card,
                &["gt/gt0/rps_act_freq_mhz", "gt_act_freq_mhz", "device/tile0/gt0/freq0/act_freq"],
            ),
            totals: tiles.map(|tile| first(card, &[&file(tile)])).collect(),
            // The whole card; where only its chip is metered, that.
            energy: first(hwmon, &["energy1_input", "energy2_input"]),
            limit: first(hwmon, &["power1_max", "power1_rated_max", "power2_max"]),
            temperature: first(hwmon, &["temp1_input", "temp2_input"]),
        }
    }

    /// Memory of all its tiles, where it has its own. Asking wakes nobody.
    pub(super) fn memory(&mut self, look: &mut Look) -> GpuMemory {
        let tiles = self.totals.iter_mut().map(|tile| tile.number(look));
        let total: Option<u64> = tiles.sum();
        GpuMemory { total: total.filter(|bytes| *bytes > 0), ..GpuMemory::default() }
    }

    /// The power it may take; asking wakes it up. Zero means that there is none.
    pub(super) fn limit(&mut self, look: &mut Look) -> Option<f64> {
        self.limit.millionths(look).filter(|watts| *watts > 0.0)
    }

    /// Asks everything once. The power is known to whoever knows the energy before.
    pub(super) fn look(&mut self, name: Name, look: &mut Look) -> CardRead {
        CardRead {
            activity: GpuActivity {
                asleep: self.asleep.number(look).map(|milliseconds| milliseconds as f64 / 1e3),
                ..GpuActivity::default()
            },
            memory: self.memory(look),
            power: GpuPower {
                limit: self.limit(look),
                energy: self.energy.millionths(look),
                temperature: self.temperature.degrees(look),
                clock_graphics: self.clock.number(look).map(|megahertz| megahertz as f64 * 1e6),
                ..GpuPower::default()
            },
            ..CardRead::nothing(name)
        }
    }
}
