//! Values of Intel's GPUs, by i915 and xe.
//!
//! Source: `/sys/class/drm/cardN/gt/gtM/` and, of older kernels, `cardN/gt_act_freq_mhz` and
//! `power/rc6_residency_ms` (i915); `cardN/device/tileL/gtM/` (xe); and their hwmon
//! (Documentation/ABI/testing/sysfs-driver-intel-{i915,xe}-hwmon). All users may read them.
//!
//! What surprised us: neither has the utilization of the GPU, except for perf and root, nor its
//! memory, in all and in use: for that the device must be opened. They do have the time it was idle
//! (RC6), for each GT: media may work while render is idle. The power is the rate of the energy
//! alone, and a GPU that is part of the processor has no hwmon: its energy is in the processor's
//! (`energy`, uncore). xe reports an energy of 0 when it could not be read.

use std::ffi::CString;
use std::time::Duration;

use super::super::poll::DeviceRows;
use super::sensor::{Sensor, SensorContext};
use crate::catalog::metrics::{GpuActivity, GpuPower};
use crate::host::{Descriptors, Dir};
use crate::model::Name;

/// Tiles that a GPU may have (`XE_MAX_TILES_PER_DEVICE` of the kernel).
const TILES: u32 = 2;

/// The files of one GPU. The clock is the first tile's.
pub(super) struct Intel {
    sleep: SleepTime,
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
            sleep: SleepTime::new(sys, card, allowance),
            clock: first(
                card,
                &["gt/gt0/rps_act_freq_mhz", "gt_act_freq_mhz", "device/tile0/gt0/freq0/act_freq"],
            ),
            // The whole card; else its chip alone.
            energy: first(hwmon, &["energy1_input", "energy2_input"]),
            limit: first(hwmon, &["power1_max", "power1_rated_max", "power2_max"]),
            temperature: first(hwmon, &["temp1_input", "temp2_input"]),
        }
    }

    /// The power limit; reading wakes it up. Zero means that there is none.
    pub(super) fn limit(&mut self, context: &mut SensorContext) -> Option<f64> {
        self.limit.millionths(context).filter(|watts| *watts > 0.0)
    }

    /// Whether its utilization was below this before the last poll, as far as it is known.
    pub(super) fn is_idle(&self, share: f64) -> bool {
        self.sleep.share.is_none_or(|asleep| asleep > 1.0 - share)
    }

    /// Its activity while it is suspended, when it is not read.
    pub(super) fn suspended(&mut self, at: Duration) -> GpuActivity {
        GpuActivity { asleep: Some(self.sleep.suspended(at)), ..GpuActivity::default() }
    }

    /// Reads everything. The power follows from the energy before.
    pub(super) fn poll(
        &mut self,
        name: Name,
        at: Duration,
        context: &mut SensorContext,
    ) -> DeviceRows {
        let asleep = self.sleep.seconds(at, context);
        DeviceRows {
            activity: GpuActivity { asleep, ..GpuActivity::default() },
            power: GpuPower {
                limit: self.limit(context),
                energy: self.energy.millionths(context).filter(|joules| *joules > 0.0),
                temperature: self.temperature.degrees(context),
                clock_graphics: self.clock.number(context).map(|megahertz| megahertz as f64 * 1e6),
                ..GpuPower::default()
            },
            ..DeviceRows::empty(name)
        }
    }
}

/// How long a GPU was asleep: the GT that slept least between two polls (one for each tile, and
/// media of newer GPUs); or the whole GPU, while it is suspended.
struct SleepTime {
    gts: Vec<Sensor>,
    before: LastSleep,
    milliseconds: u64,
    /// The share of the time before the last poll that it slept; none before the second.
    share: Option<f64>,
}

/// The last poll.
enum LastSleep {
    None,
    /// When, and the time that each GT had slept.
    Awake(Duration, Vec<u64>),
    /// When; the GPU was suspended.
    Suspended(Duration),
}

impl SleepTime {
    fn new(sys: &Dir, card: &str, allowance: &Descriptors) -> SleepTime {
        let one = |path: String| Sensor::first(sys, &[path], allowance);
        let mut gts: Vec<Sensor> = Vec::new();
        let mut add = |directory: String, file: &str| {
            let listed =
                CString::new(directory.as_str()).ok().and_then(|path| sys.names(&path).ok());
            let names = listed.unwrap_or_default();
            let here = names.iter().filter_map(|name| name.to_str().ok()).filter(|name| {
                name.strip_prefix("gt").is_some_and(|number| number.parse::<u32>().is_ok())
            });
            gts.extend(here.map(|gt| one(format!("{directory}/{gt}/{file}"))));
        };
        add(format!("{card}/gt"), "rc6_residency_ms");
        for tile in 0..TILES {
            add(format!("{card}/device/tile{tile}"), "gtidle/idle_residency_ms");
        }
        if gts.is_empty() {
            gts.push(one(format!("{card}/power/rc6_residency_ms")));
        }
        SleepTime { gts, before: LastSleep::None, milliseconds: 0, share: None }
    }

    /// Seconds so far, while it is suspended. When it was suspended is not known.
    fn suspended(&mut self, at: Duration) -> f64 {
        let before = std::mem::replace(&mut self.before, LastSleep::Suspended(at));
        if let LastSleep::Suspended(before) = before {
            self.milliseconds += at.saturating_sub(before).as_millis() as u64;
        }
        self.milliseconds as f64 / 1e3
    }

    /// Seconds so far, if all GTs can be read.
    fn seconds(&mut self, at: Duration, context: &mut SensorContext) -> Option<f64> {
        let now: Option<Vec<u64>> = self.gts.iter_mut().map(|gt| gt.number(context)).collect();
        let Some(now) = now else {
            self.share = None;
            return None;
        };
        let mut share = Some(0.0);
        self.milliseconds += match &self.before {
            LastSleep::None => now.iter().copied().min().unwrap_or(0),
            LastSleep::Awake(before_at, before) => {
                let slept = now.iter().zip(before).map(|(now, before)| now.saturating_sub(*before));
                let elapsed = at.saturating_sub(*before_at).as_millis() as u64;
                // A counter that resets or catches up is not longer sleep.
                let slept = slept.min().unwrap_or(0).min(elapsed);
                share = (elapsed > 0).then(|| slept as f64 / elapsed as f64);
                slept
            }
            // When it woke up is not known.
            LastSleep::Suspended(_) => 0,
        };
        (self.before, self.share) = (LastSleep::Awake(at, now), share);
        Some(self.milliseconds as f64 / 1e3)
    }
}
