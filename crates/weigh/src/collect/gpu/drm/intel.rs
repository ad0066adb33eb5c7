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
//! hwmon: its energy is in the processor's (`energy`, uncore). xe says that the energy is 0 when
//! it could not be read.

use std::ffi::CString;
use std::time::Duration;

use super::super::reading::CardRead;
use super::sensor::{Look, Sensor};
use crate::catalog::metrics::{GpuActivity, GpuPower};
use crate::host::{Descriptors, Dir};
use crate::model::Name;

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

    /// Whether it was busy for less than this share of the time before the last look, for all that
    /// it tells.
    pub(super) fn is_idle(&self, share: f64) -> bool {
        self.asleep.share.is_none_or(|asleep| asleep > 1.0 - share)
    }

    /// What it does while the whole of it is asleep, at which it is not asked.
    pub(super) fn sleep(&mut self, at: Duration) -> GpuActivity {
        GpuActivity { asleep: Some(self.asleep.sleep(at)), ..GpuActivity::default() }
    }

    /// Asks everything once. The power is known to whoever knows the energy before.
    pub(super) fn look(&mut self, name: Name, at: Duration, look: &mut Look) -> CardRead {
        let asleep = self.asleep.seconds(at, look);
        CardRead {
            activity: GpuActivity { asleep, ..GpuActivity::default() },
            power: GpuPower {
                limit: self.limit(look),
                energy: self.energy.millionths(look).filter(|joules| *joules > 0.0),
                temperature: self.temperature.degrees(look),
                clock_graphics: self.clock.number(look).map(|megahertz| megahertz as f64 * 1e6),
                ..GpuPower::default()
            },
            ..CardRead::nothing(name)
        }
    }
}

/// How long a GPU was asleep: of its parts that sleep by themselves (GTs: each tile's, and media
/// of newer ones) the one that slept least between two looks; or the whole of it, without power.
struct Asleep {
    parts: Vec<Sensor>,
    before: Before,
    milliseconds: u64,
    /// The share of the time before the last look that it slept; before the second, none.
    share: Option<f64>,
}

/// What the last look found.
enum Before {
    Nothing,
    /// What each part had slept.
    Awake(Duration, Vec<u64>),
    /// The whole of it asleep.
    Asleep(Duration),
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
        Asleep { parts, before: Before::Nothing, milliseconds: 0, share: None }
    }

    /// Seconds, while the whole of it is asleep. When it fell asleep nobody knows.
    fn sleep(&mut self, at: Duration) -> f64 {
        if let Before::Asleep(then) = std::mem::replace(&mut self.before, Before::Asleep(at)) {
            self.milliseconds += at.saturating_sub(then).as_millis() as u64;
        }
        self.milliseconds as f64 / 1e3
    }

    /// Seconds, if all parts tell.
    fn seconds(&mut self, at: Duration, look: &mut Look) -> Option<f64> {
        let now: Option<Vec<u64>> = self.parts.iter_mut().map(|part| part.number(look)).collect();
        let Some(now) = now else {
            self.share = None;
            return None;
        };
        let mut share = Some(0.0);
        self.milliseconds += match &self.before {
            Before::Nothing => now.iter().copied().min().unwrap_or(0),
            Before::Awake(then, before) => {
                let slept = now.iter().zip(before).map(|(now, before)| now.saturating_sub(*before));
                let passed = at.saturating_sub(*then).as_millis() as u64;
                // A count that begins again, or that catches up, has not slept for longer.
                let slept = slept.min().unwrap_or(0).min(passed);
                share = (passed > 0).then(|| slept as f64 / passed as f64);
                slept
            }
            // When it awoke nobody knows.
            Before::Asleep(_) => 0,
        };
        (self.before, self.share) = (Before::Awake(at, now), share);
        Some(self.milliseconds as f64 / 1e3)
    }
}
