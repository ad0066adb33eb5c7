//! Values of AMD's GPUs, by amdgpu.
//!
//! Source: `/sys/class/drm/cardN/device/` (kernel documentation, "GPU sysfs information"), which
//! all users may read, and its hwmon. Each value is one request to the firmware of the GPU, which
//! takes from 20 µs to some milliseconds; amdgpu caches the results for a millisecond.
//!
//! What surprised us: `pcie_bw` blocks for a whole second, so it is never read. A card with a PCIe
//! switch of its own reports the link to that switch, not to the machine. Compute cards have no
//! edge temperature, only that of the hotspot. The counters of the firmware are in `gpu_metrics`,
//! whose format and units differ for nearly every GPU: it is used where both are documented
//! ([`unit_is_known`]). Of the two dies of an MI250 the first has power, limit and energy of both,
//! and the second reports 0 ("only from primary die", aldebaran_ppt.c). The power of a GPU in the
//! processor (APU, also the MI300A) is that of both (amdgpu_pm.c, "power1_average"), so it is not
//! the GPU's; and the VRAM of such a GPU is a small part of system memory that firmware reserves,
//! while most of what programs have is in the rest (GTT).

use std::ffi::CString;
use std::time::Duration;

use super::super::poll::DeviceRows;
use super::cycles::CycleIntegrator;
use super::device::DrmCard;
use super::energy::MAX_WATTS;
use super::sensor::{Sensor, SensorContext};
use crate::catalog::metrics::{GpuActivity, GpuEcc, GpuLink, GpuMemory, GpuPower, GpuThrottle};
use crate::host::{Descriptors, Dir};
use crate::model::Name;
use crate::parse::{attribute, gpu_metrics};

/// Joules of one count of the energy counter.
const UNIT: f64 = 1.0 / 65_536.0;

/// GPUs whose firmware counts energy in [`UNIT`] while the format of `gpu_metrics` does not document
/// it: those of the MI200 series (15.259 µJ in `smu13_driver_if_aldebaran.h`) have content 3, those
/// of the MI300 and MI350 series, whose formats 4 to 8 do, have content 9 in later kernels.
const MI200: [&str; 4] = ["1002:7408", "1002:740C", "1002:740F", "1002:7410"];
const MI300: [&str; 6] =
    ["1002:74A1", "1002:74A2", "1002:74A5", "1002:74A9", "1002:75A0", "1002:75A3"];

/// A compute GPU with processor cores, which its files do not show.
const MI300A: &str = "1002:74A0";

/// Whether energy in a format of `gpu_metrics` is known to be counted in [`UNIT`].
fn unit_is_known(content: u8, pci_id: &str) -> bool {
    match content {
        3 => MI200.contains(&pci_id),
        4..=8 => true,
        9 => MI300.contains(&pci_id),
        _ => false,
    }
}

/// The files of one GPU.
pub(super) struct Amd {
    busy: Sensor,
    memory_busy: Sensor,
    used: Sensor,
    total: Sensor,
    visible_used: Sensor,
    visible_total: Sensor,
    gtt_used: Sensor,
    gtt_total: Sensor,
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
    metrics: Sensor,
    cycles: CycleIntegrator,
    /// PCI vendor and device ID, as `1002:740C`.
    pci_id: String,
    /// Whether it is part of the processor, as far as that is known.
    is_apu: bool,
}

/// The counters of its firmware at a poll.
#[derive(Default)]
struct FirmwareIntegrator {
    /// In joules.
    energy: Option<f64>,
    cycles: Option<gpu_metrics::Cycles>,
    /// The power of the GPU alone, of one in the processor, in watts.
    graphics_watts: Option<f64>,
}

impl Amd {
    /// The files of a card, and those of its hwmon directory.
    pub(super) fn new(sys: &Dir, card: &DrmCard, hwmon: &str, allowance: &Descriptors) -> Amd {
        let device = format!("{}/device", card.directory);
        let first = |paths: &[String]| Sensor::first(sys, paths, allowance);
        let device_file = |file: &str| first(&[format!("{device}/{file}")]);
        let hwmon_file = |files: &[&str]| {
            first(&files.iter().map(|file| format!("{hwmon}/{file}")).collect::<Vec<_>>())
        };
        let label = CString::new(format!("{hwmon}/in1_label")).unwrap_or_default();
        let mut buffer = Vec::new();
        // Only APUs have a voltage of this name.
        let has_northbridge = sys.read(&label, &mut buffer).is_ok_and(|label| label == b"vddnb\n");
        Amd {
            busy: device_file("gpu_busy_percent"),
            memory_busy: device_file("mem_busy_percent"),
            used: device_file("mem_info_vram_used"),
            total: device_file("mem_info_vram_total"),
            visible_used: device_file("mem_info_vis_vram_used"),
            visible_total: device_file("mem_info_vis_vram_total"),
            gtt_used: device_file("mem_info_gtt_used"),
            gtt_total: device_file("mem_info_gtt_total"),
            power: hwmon_file(&["power1_average", "power1_input"]),
            limit: hwmon_file(&["power1_cap"]),
            temperature: hwmon_file(&["temp1_input", "temp2_input"]),
            fan: hwmon_file(&["pwm1"]),
            clock: hwmon_file(&["freq1_input"]),
            memory_clock: hwmon_file(&["freq2_input"]),
            link_speed: device_file("current_link_speed"),
            link_width: device_file("current_link_width"),
            replays: device_file("pcie_replay_count"),
            errors: device_file("ras/umc_err_count"),
            metrics: device_file("gpu_metrics"),
            cycles: CycleIntegrator::default(),
            pci_id: card.pci_id.clone(),
            is_apu: has_northbridge || card.pci_id == MI300A,
        }
    }

    /// Whether it is part of the processor, and uses system memory.
    pub(super) fn is_apu(&self) -> bool {
        self.is_apu
    }

    /// Reads whether it is part of the processor. Reading wakes it up.
    pub(super) fn detect_apu(&mut self, context: &mut SensorContext) {
        self.is_apu |= self.metrics.read(context, gpu_metrics::apu).flatten().is_some();
    }

    /// The power limit. Reading wakes it up. A die without a limit reports 0.
    pub(super) fn limit(&mut self, context: &mut SensorContext) -> Option<f64> {
        if self.is_apu {
            return None;
        }
        self.limit.millionths(context).filter(|watts| *watts > 0.0)
    }

    /// The power draw. A die that does not know it reports 0.
    fn draw(&mut self, context: &mut SensorContext) -> Option<f64> {
        if self.is_apu {
            return None;
        }
        self.power.millionths(context).filter(|watts| *watts > 0.0 && *watts < MAX_WATTS)
    }

    /// Memory, which the kernel counts in software: reading does not wake it up.
    pub(super) fn memory(&mut self, context: &mut SensorContext) -> GpuMemory {
        let (mut used, mut total) = (self.used.number(context), self.total.number(context));
        if self.is_apu {
            let add = |vram: Option<u64>, gtt: Option<u64>| vram?.checked_add(gtt?);
            used = add(used, self.gtt_used.number(context));
            total = add(total, self.gtt_total.number(context));
        }
        GpuMemory {
            used,
            total,
            free: total.zip(used).and_then(|(total, used)| total.checked_sub(used)),
            bar1_used: self.visible_used.number(context),
            bar1_total: self.visible_total.number(context),
        }
    }

    /// The counters of its firmware.
    fn firmware_counters(&mut self, context: &mut SensorContext) -> FirmwareIntegrator {
        let both = |bytes: &[u8]| Ok((gpu_metrics::parse(bytes)?, gpu_metrics::apu(bytes)?));
        let Some((table, apu)) = self.metrics.read(context, both) else {
            return FirmwareIntegrator::default();
        };
        let pci_id = &self.pci_id;
        let unit_is_known = |content| !self.is_apu && unit_is_known(content, pci_id);
        let table = table.filter(|table| table.cycles.is_some() || unit_is_known(table.content));
        let graphics = apu.and_then(|apu| apu.graphics_milliwatts);
        if table.is_none() && graphics.is_none() {
            // The format will not change until the next poll.
            self.metrics = Sensor::default();
        }
        // A die or a firmware that does not count reports 0.
        let energy =
            table.filter(|table| unit_is_known(table.content)).and_then(|table| table.energy);
        let watts = graphics.map(|milliwatts| milliwatts as f64 / 1e3);
        FirmwareIntegrator {
            energy: energy.filter(|count| *count > 0).map(|count| count as f64 * UNIT),
            cycles: table.and_then(|table| table.cycles),
            graphics_watts: watts.filter(|watts| *watts > 0.0 && *watts < MAX_WATTS),
        }
    }

    /// Its activity while it is suspended, when it is not read.
    pub(super) fn suspended(&mut self, at: Duration) -> GpuActivity {
        self.cycles.suspend(at);
        let mut activity = GpuActivity { utilization: Some(0.0), ..GpuActivity::default() };
        self.cycles.fill(&mut activity, &mut GpuThrottle::default());
        activity
    }

    /// Reads everything.
    pub(super) fn poll(
        &mut self,
        name: Name,
        at: Duration,
        context: &mut SensorContext,
    ) -> DeviceRows {
        let errors = self.errors.read(context, attribute::error_counts).flatten();
        let counters = self.firmware_counters(context);
        self.cycles.push(at, counters.cycles);
        let mut throttle = GpuThrottle::default();
        let mut activity = GpuActivity {
            utilization: self.busy.share(context),
            memory_utilization: self.memory_busy.share(context),
            ..GpuActivity::default()
        };
        self.cycles.fill(&mut activity, &mut throttle);
        DeviceRows {
            activity,
            throttle,
            memory: self.memory(context),
            power: GpuPower {
                energy: counters.energy,
                draw: self.draw(context).or(counters.graphics_watts),
                limit: self.limit(context),
                temperature: self.temperature.degrees(context),
                fan: self
                    .fan
                    .number(context)
                    .filter(|pwm| *pwm <= 255)
                    .map(|pwm| pwm as f64 / 255.0),
                clock_graphics: self.clock.number(context).map(|hertz| hertz as f64),
                clock_memory: self.memory_clock.number(context).map(|hertz| hertz as f64),
                ..GpuPower::default()
            },
            ecc: GpuEcc {
                corrected: errors.map(|(_, corrected)| corrected),
                uncorrected: errors.map(|(uncorrected, _)| uncorrected),
                ..GpuEcc::default()
            },
            link: GpuLink {
                pcie_generation: self
                    .link_speed
                    .read(context, attribute::link_generation)
                    .flatten(),
                // A link that is down has no lanes, or all bits set.
                pcie_width: self
                    .link_width
                    .number(context)
                    .filter(|lanes| (1..=32).contains(lanes)),
                pcie_replays: self.replays.number(context),
                ..GpuLink::default()
            },
            ..DeviceRows::empty(name)
        }
    }
}
