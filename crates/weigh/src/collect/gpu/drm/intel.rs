//! What i915 and xe tell of a GPU of Intel's.
//!
//! Source: `/sys/class/drm/cardN/gt/gtM/` and, of older kernels, `cardN/gt_act_freq_mhz` and
//! `power/rc6_residency_ms` (i915); `cardN/device/tileL/gtM/` (xe); and their hwmon
//! (Documentation/ABI/testing/sysfs-driver-intel-{i915,xe}-hwmon). Everybody may read them.
//!
//! What surprised us: neither says how busy the GPU is, except to perf and to root, nor how much
//! memory it has or has in use: whoever wants that must open the device. They do say how long it
//! was asleep, for each part that sleeps by itself: media may work while the rest sleeps. The
//! power is told by the growth of the energy alone, and a GPU that is part of the processor has no
//! hwmon: its energy is in the processor's (`energy`, uncore).

use std::ffi::CString;

use super::super::reading::CardRead;
use super::super::{GpuActivity, GpuPower};
use super::sensor::{Look, Sensor};
use crate::host::{Descriptors, Dir};
use crate::sample::Name;

/// Tiles that a GPU may have (`XE_MAX_TILES_PER_DEVICE` of the kernel).
const TILES: u32 = 2;

/// The files of one GPU. The clock is the first tile's.
pub(super) struct Intel {
    asleep: Asleep,
    clock: Sensor,
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
        Intel {
            asleep: Asleep::new(sys, card, allowance),
            clock: first(
                card,
                &["gt/gt0/rps_act_freq_mhz", "gt_act_freq_mhz", "device/tile0/gt0/freq0/act_freq"],
            ),
            // The whole card; where only its chip is metered, that.
            energy: first(hwmon, &["energy1_input", "energy2_input"]),
            limit: first(hwmon, &["power1_max", "power1_rated_max", "power2_max"]),
            temperature: first(hwmon, &["temp1_input", "temp2_input"]),
        }
    }

    /// The power it may take; asking wakes it up. Zero means that there is none.
    pub(super) fn limit(&mut self, look: &mut Look) -> Option<f64> {
        self.limit.millionths(look).filter(|watts| *watts > 0.0)
    }

    /// Asks everything once. The power is known to whoever knows the energy before.
    pub(super) fn look(&mut self, name: Name, look: &mut Look) -> CardRead {
        CardRead {
            activity: GpuActivity { asleep: self.asleep.seconds(look), ..GpuActivity::default() },
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

/// How long a GPU was asleep: of its parts that sleep by themselves (GTs: each tile's, and media
/// of newer ones) the one that slept least between two looks.
struct Asleep {
    parts: Vec<Sensor>,
    /// What each had slept at the last look at all of them, nothing before the first.
    before: Vec<u64>,
    milliseconds: u64,
}

impl Asleep {
    fn new(sys: &Dir, card: &str, allowance: &Descriptors) -> Asleep {
        let one = |path: String| Sensor::first(sys, &[path], allowance);
        let mut parts: Vec<Sensor> = Vec::new();
        let mut add = |directory: String, file: &str| {
            let listed =
                CString::new(directory.as_str()).ok().and_then(|path| sys.names(&path).ok());
            let names = listed.unwrap_or_default();
            let parts_here = names.iter().filter_map(|name| name.to_str().ok()).filter(|name| {
                name.strip_prefix("gt").is_some_and(|number| number.parse::<u32>().is_ok())
            });
            parts.extend(parts_here.map(|part| one(format!("{directory}/{part}/{file}"))));
        };
        add(format!("{card}/gt"), "rc6_residency_ms");
        for tile in 0..TILES {
            add(format!("{card}/device/tile{tile}"), "gtidle/idle_residency_ms");
        }
        if parts.is_empty() {
            parts.push(one(format!("{card}/power/rc6_residency_ms")));
        }
        Asleep { parts, before: Vec::new(), milliseconds: 0 }
    }

    /// Seconds, if all parts tell.
    fn seconds(&mut self, look: &mut Look) -> Option<f64> {
        let now: Option<Vec<u64>> = self.parts.iter_mut().map(|part| part.number(look)).collect();
        let now = now?;
        let before = self.before.iter().copied().chain(std::iter::repeat(0));
        let slept = now.iter().zip(before).map(|(now, before)| now.saturating_sub(before));
        self.milliseconds += slept.min().unwrap_or(0);
        self.before = now;
        Some(self.milliseconds as f64 / 1e3)
    }
}
