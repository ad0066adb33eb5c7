//! What amdgpu tells of a card of AMD's.
//!
//! Source: `/sys/class/drm/cardN/device/` (kernel documentation, "GPU sysfs information"), which
//! everybody may read, and its hwmon. Each value is one question to the card's firmware, which
//! takes from 20 µs to some milliseconds; amdgpu keeps the answers for a millisecond.
//!
//! What surprised us: `pcie_bw` waits a whole second for its answer, so it is never read.
//! A card that is soldered onto its own switch tells the link to that switch, not to the
//! machine. Cards for computing have no temperature at their edge, only at the hottest place.
//! The energy that the firmware counts is in `gpu_metrics`, whose form is another for nearly
//! every card, so energy is what the power adds up to.

use super::super::reading::CardRead;
use super::super::{GpuActivity, GpuEcc, GpuLink, GpuMemory, GpuPower};
use super::sensor::{Look, Sensor};
use crate::host::{Descriptors, Dir};
use crate::parse::attribute;
use crate::sample::Name;

/// More power than any card takes, in watts.
const TOO_MUCH: f64 = 100_000.0;

/// The files of one card.
pub(super) struct Amd {
    busy: Sensor,
    memory_busy: Sensor,
    used: Sensor,
    total: Sensor,
    visible_used: Sensor,
    visible_total: Sensor,
    power: Sensor,
    limit: Sensor,
    temperature: Sensor,
    fan: Sensor,
    clock: Sensor,
    memory_clock: Sensor,
    link_speed: Sensor,
    link_width: Sensor,
    replays: Sensor,
    errors: Sensor,
}

impl Amd {
    /// The files below a device's directory and its hwmon's.
    pub(super) fn new(sys: &Dir, device: &str, hwmon: &str, allowance: &Descriptors) -> Amd {
        let first = |paths: &[String]| Sensor::first(sys, paths, allowance);
        let here = |file: &str| first(&[format!("{device}/{file}")]);
        let metered = |files: &[&str]| {
            first(&files.iter().map(|file| format!("{hwmon}/{file}")).collect::<Vec<_>>())
        };
        Amd {
            busy: here("gpu_busy_percent"),
            memory_busy: here("mem_busy_percent"),
            used: here("mem_info_vram_used"),
            total: here("mem_info_vram_total"),
            visible_used: here("mem_info_vis_vram_used"),
            visible_total: here("mem_info_vis_vram_total"),
            power: metered(&["power1_average", "power1_input"]),
            limit: metered(&["power1_cap"]),
            temperature: metered(&["temp1_input", "temp2_input"]),
            fan: metered(&["pwm1"]),
            clock: metered(&["freq1_input"]),
            memory_clock: metered(&["freq2_input"]),
            link_speed: here("current_link_speed"),
            link_width: here("current_link_width"),
            replays: here("pcie_replay_count"),
            errors: here("ras/umc_err_count"),
        }
    }

    /// The power it may take. Asking wakes it up.
    pub(super) fn limit(&mut self, look: &mut Look) -> Option<f64> {
        self.limit.millionths(look)
    }

    /// Memory, which the kernel knows by itself: asking wakes nobody.
    pub(super) fn memory(&mut self, look: &mut Look) -> GpuMemory {
        let (used, total) = (self.used.number(look), self.total.number(look));
        GpuMemory {
            used,
            total,
            free: total.zip(used).and_then(|(total, used)| total.checked_sub(used)),
            bar1_used: self.visible_used.number(look),
            bar1_total: self.visible_total.number(look),
        }
    }

    /// Asks everything once.
    pub(super) fn look(&mut self, name: Name, look: &mut Look) -> CardRead {
        let errors = self.errors.read(look, attribute::error_counts);
        CardRead {
            activity: GpuActivity {
                utilization: self.busy.share(look),
                memory_utilization: self.memory_busy.share(look),
                ..GpuActivity::default()
            },
            memory: self.memory(look),
            power: GpuPower {
                draw: self.power.millionths(look).filter(|watts| *watts < TOO_MUCH),
                limit: self.limit(look),
                temperature: self.temperature.degrees(look),
                fan: self.fan.number(look).filter(|pwm| *pwm <= 255).map(|pwm| pwm as f64 / 255.0),
                clock_graphics: self.clock.number(look).map(|hertz| hertz as f64),
                clock_memory: self.memory_clock.number(look).map(|hertz| hertz as f64),
                ..GpuPower::default()
            },
            ecc: GpuEcc {
                corrected: errors.map(|(_, corrected)| corrected),
                uncorrected: errors.map(|(uncorrected, _)| uncorrected),
                ..GpuEcc::default()
            },
            link: GpuLink {
                pcie_generation: self.link_speed.read(look, attribute::link_generation),
                pcie_width: self.link_width.number(look),
                pcie_replays: self.replays.number(look),
                ..GpuLink::default()
            },
            ..CardRead::nothing(name)
        }
    }
}
