//! What amdgpu tells of a card of AMD's.
//!
//! Source: `/sys/class/drm/cardN/device/` (kernel documentation, "GPU sysfs information"), which
//! everybody may read, and its hwmon. Each value is one question to the card's firmware, which
//! takes from 20 µs to some milliseconds; amdgpu keeps the answers for a millisecond.
//!
//! What surprised us: `pcie_bw` waits a whole second for its answer, so it is never read.
//! A card that is soldered onto its own switch tells the link to that switch, not to the
//! machine. Cards for computing have no temperature at their edge, only at the hottest place.
//! What the firmware counts is in `gpu_metrics`, whose form and whose units are another for
//! nearly every card: it is taken where both are documented ([`unit_is_known`]). Of the two halves
//! of an MI250 the first has power, limit and energy of both, and the second says 0 ("only from
//! primary die", aldebaran_ppt.c). The power of a GPU that is a part of the processor (APU, also
//! the MI300A) is that of both (amdgpu_pm.c, "power1_average"), so it is not the GPU's; and what
//! such a GPU calls its own memory is a small part of the machine's that firmware sets apart, while
//! most of what programs have is in the rest (GTT).

use std::ffi::CString;
use std::time::Duration;

use super::super::reading::CardRead;
use super::card::Place;
use super::cycles::Spent;
use super::energy::TOO_MUCH;
use super::sensor::{Look, Sensor};
use crate::catalog::metrics::{GpuActivity, GpuEcc, GpuLink, GpuMemory, GpuPower, GpuThrottle};
use crate::host::{Descriptors, Dir};
use crate::model::Name;
use crate::parse::{attribute, gpu_metrics};

/// Joules for a count of energy.
const UNIT: f64 = 1.0 / 65_536.0;

/// Cards whose firmware counts energy in [`UNIT`] while the form of `gpu_metrics` does not say so:
/// those of the MI200 series (15.259 µJ in `smu13_driver_if_aldebaran.h`) have content 3, those of
/// the MI300 and MI350 series, whose forms 4 to 8 do say so, have content 9 in later kernels.
const MI200: [&str; 4] = ["1002:7408", "1002:740C", "1002:740F", "1002:7410"];
const MI300: [&str; 6] =
    ["1002:74A1", "1002:74A2", "1002:74A5", "1002:74A9", "1002:75A0", "1002:75A3"];

/// A GPU for computing with processors beside it, which its files do not say.
const MI300A: &str = "1002:74A0";

/// Whether energy in a form of `gpu_metrics` is known to be counted in [`UNIT`].
fn unit_is_known(content: u8, number: &str) -> bool {
    match content {
        3 => MI200.contains(&number),
        4..=8 => true,
        9 => MI300.contains(&number),
        _ => false,
    }
}

/// The files of one card.
pub(super) struct Amd {
    busy: Sensor,
    memory_busy: Sensor,
    used: Sensor,
    total: Sensor,
    visible_used: Sensor,
    visible_total: Sensor,
    machine_used: Sensor,
    machine_total: Sensor,
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
    counts: Sensor,
    spent: Spent,
    /// Maker and model, as `1002:740C`.
    number: String,
    /// Whether it is a part of the processor, as far as that is known.
    is_apu: bool,
}

/// What its firmware told at a look.
#[derive(Default)]
struct Counted {
    /// In joules.
    energy: Option<f64>,
    cycles: Option<gpu_metrics::Cycles>,
    /// The power of a GPU in the processor alone, in watts.
    graphics: Option<f64>,
}

impl Amd {
    /// The files of the device at a place, and those below its hwmon's directory.
    pub(super) fn new(sys: &Dir, place: &Place, hwmon: &str, allowance: &Descriptors) -> Amd {
        let device = format!("{}/device", place.directory);
        let first = |paths: &[String]| Sensor::first(sys, paths, allowance);
        let here = |file: &str| first(&[format!("{device}/{file}")]);
        let metered = |files: &[&str]| {
            first(&files.iter().map(|file| format!("{hwmon}/{file}")).collect::<Vec<_>>())
        };
        let label = CString::new(format!("{hwmon}/in1_label")).unwrap_or_default();
        let mut buffer = Vec::new();
        // Only the voltage of what is beside processor cores has this name.
        let is_beside_cores = sys.read(&label, &mut buffer).is_ok_and(|label| label == b"vddnb\n");
        Amd {
            busy: here("gpu_busy_percent"),
            memory_busy: here("mem_busy_percent"),
            used: here("mem_info_vram_used"),
            total: here("mem_info_vram_total"),
            visible_used: here("mem_info_vis_vram_used"),
            visible_total: here("mem_info_vis_vram_total"),
            machine_used: here("mem_info_gtt_used"),
            machine_total: here("mem_info_gtt_total"),
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
            counts: here("gpu_metrics"),
            spent: Spent::default(),
            number: place.number.clone(),
            is_apu: is_beside_cores || place.number == MI300A,
        }
    }

    /// Whether it is a part of the processor, and has the machine's memory.
    pub(super) fn is_apu(&self) -> bool {
        self.is_apu
    }

    /// Looks whether it is a part of the processor. Asking wakes it up.
    pub(super) fn recognise(&mut self, look: &mut Look) {
        self.is_apu |= self.counts.read(look, gpu_metrics::apu).flatten().is_some();
    }

    /// The power it may take. Asking wakes it up. The half of a card that has no limit says 0.
    pub(super) fn limit(&mut self, look: &mut Look) -> Option<f64> {
        if self.is_apu {
            return None;
        }
        self.limit.millionths(look).filter(|watts| *watts > 0.0)
    }

    /// The power it takes. The half of a card that does not know says 0.
    fn draw(&mut self, look: &mut Look) -> Option<f64> {
        if self.is_apu {
            return None;
        }
        self.power.millionths(look).filter(|watts| *watts > 0.0 && *watts < TOO_MUCH)
    }

    /// Memory, which the kernel knows by itself: asking wakes nobody.
    pub(super) fn memory(&mut self, look: &mut Look) -> GpuMemory {
        let (mut used, mut total) = (self.used.number(look), self.total.number(look));
        if self.is_apu {
            let and = |own: Option<u64>, machine: Option<u64>| own?.checked_add(machine?);
            used = and(used, self.machine_used.number(look));
            total = and(total, self.machine_total.number(look));
        }
        GpuMemory {
            used,
            total,
            free: total.zip(used).and_then(|(total, used)| total.checked_sub(used)),
            bar1_used: self.visible_used.number(look),
            bar1_total: self.visible_total.number(look),
        }
    }

    /// What its firmware counts.
    fn counted(&mut self, look: &mut Look) -> Counted {
        let both = |bytes: &[u8]| Ok((gpu_metrics::parse(bytes)?, gpu_metrics::apu(bytes)?));
        let Some((told, apu)) = self.counts.read(look, both) else { return Counted::default() };
        let number = &self.number;
        let unit_is_known = |content| !self.is_apu && unit_is_known(content, number);
        let told = told.filter(|told| told.cycles.is_some() || unit_is_known(told.content));
        let graphics = apu.and_then(|apu| apu.graphics_milliwatts);
        if told.is_none() && graphics.is_none() {
            // It will not have another form at the next look.
            self.counts = Sensor::default();
        }
        // The half of a card that does not count, or firmware that does not, says 0.
        let energy = told.filter(|told| unit_is_known(told.content)).and_then(|told| told.energy);
        let watts = graphics.map(|milliwatts| milliwatts as f64 / 1e3);
        Counted {
            energy: energy.filter(|count| *count > 0).map(|count| count as f64 * UNIT),
            cycles: told.and_then(|told| told.cycles),
            graphics: watts.filter(|watts| *watts > 0.0 && *watts < TOO_MUCH),
        }
    }

    /// What it does while it is asleep, at which it is not asked.
    pub(super) fn sleep(&mut self, at: Duration) -> GpuActivity {
        self.spent.sleep(at);
        let mut activity = GpuActivity { utilization: Some(0.0), ..GpuActivity::default() };
        self.spent.tell(&mut activity, &mut GpuThrottle::default());
        activity
    }

    /// Asks everything once.
    pub(super) fn look(&mut self, name: Name, at: Duration, look: &mut Look) -> CardRead {
        let errors = self.errors.read(look, attribute::error_counts).flatten();
        let counted = self.counted(look);
        self.spent.see(at, counted.cycles);
        let mut throttle = GpuThrottle::default();
        let mut activity = GpuActivity {
            utilization: self.busy.share(look),
            memory_utilization: self.memory_busy.share(look),
            ..GpuActivity::default()
        };
        self.spent.tell(&mut activity, &mut throttle);
        CardRead {
            activity,
            throttle,
            memory: self.memory(look),
            power: GpuPower {
                energy: counted.energy,
                draw: self.draw(look).or(counted.graphics),
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
                pcie_generation: self.link_speed.read(look, attribute::link_generation).flatten(),
                // A link that is down has no lanes, or as many as all ones say.
                pcie_width: self.link_width.number(look).filter(|lanes| (1..=32).contains(lanes)),
                pcie_replays: self.replays.number(look),
                ..GpuLink::default()
            },
            ..CardRead::nothing(name)
        }
    }
}
