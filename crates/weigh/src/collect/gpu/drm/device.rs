//! One GPU: its state between polls, and one poll of it.
//!
//! A suspended GPU is not read: even its temperature would wake it up, which takes power and a
//! tenth of a second. `power/runtime_status` does not wake it. It is read first, because xe wakes
//! the GPU up even for the fdinfo of a client. Polls of one that is awake and idle are paused at
//! times, so that it can suspend ([`Autosuspend`]).

use std::ffi::CString;
use std::time::Duration;

use super::super::poll::DeviceRows;
use super::amd::Amd;
use super::autosuspend::Autosuspend;
use super::energy::EnergyCounter;
use super::intel::Intel;
use super::sensor::{Sensor, SensorContext};
use crate::catalog::metrics::GpuMemory;
use crate::host::{Descriptors, Dir};
use crate::model::{Gpu, Name};
use crate::parse::attribute;

/// A GPU in `/sys/class/drm`.
#[derive(Debug, Clone)]
pub(super) struct DrmCard {
    /// Its directory, as `class/drm/card0`.
    pub(super) directory: String,
    pub(super) driver: DrmDriver,
    /// Its PCI address, as `0000:03:00.0`, by which fdinfo names it.
    pub(super) address: Vec<u8>,
    /// PCI vendor and device ID, as `1002:740C`.
    pub(super) pci_id: String,
}

/// The drivers whose GPUs are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DrmDriver {
    Amdgpu,
    I915,
    Xe,
}

impl DrmDriver {
    pub(super) const ALL: [DrmDriver; 3] = [DrmDriver::Amdgpu, DrmDriver::I915, DrmDriver::Xe];

    /// The name of its kernel module.
    pub(super) fn name(self) -> &'static str {
        match self {
            DrmDriver::Amdgpu => "amdgpu",
            DrmDriver::I915 => "i915",
            DrmDriver::Xe => "xe",
        }
    }

    /// The vendor of its GPUs.
    pub(super) fn vendor(self) -> &'static str {
        match self {
            DrmDriver::Amdgpu => "amd",
            DrmDriver::I915 | DrmDriver::Xe => "intel",
        }
    }
}

impl DrmCard {
    /// All GPUs, in the order of their PCI addresses: the kernel's numbers are in the order in
    /// which drivers were ready.
    pub(super) fn all(sys: &Dir) -> Vec<DrmCard> {
        let mut buffer = Vec::new();
        let names = sys.names(c"class/drm").unwrap_or_default();
        let names = names.iter().filter_map(|name| name.to_str().ok()).filter(|name| {
            // Without connectors: card0-DP-1.
            name.strip_prefix("card").is_some_and(|number| number.parse::<u32>().is_ok())
        });
        let mut cards: Vec<DrmCard> =
            names.filter_map(|name| DrmCard::read(sys, name, &mut buffer)).collect();
        cards.sort_by(|one, other| one.address.cmp(&other.address));
        cards
    }

    fn read(sys: &Dir, name: &str, buffer: &mut Vec<u8>) -> Option<DrmCard> {
        let directory = format!("class/drm/{name}");
        let uevent = uevent(sys, name, buffer)?;
        let driver = attribute::line_value(uevent, "DRIVER=")?;
        let driver = DrmDriver::ALL.into_iter().find(|one| one.name() == driver)?;
        let address = address(uevent)?;
        let pci_id = attribute::line_value(uevent, "PCI_ID=")?.to_owned();
        Some(DrmCard { directory, driver, address, pci_id })
    }

    fn hwmon(&self, sys: &Dir) -> String {
        let directory = format!("{}/device/hwmon", self.directory);
        let listed = CString::new(directory.as_str()).ok().and_then(|path| sys.names(&path).ok());
        let first = listed.and_then(|names| names.first()?.to_str().ok().map(str::to_owned));
        // Without hwmon the directory does not exist, nor its files.
        format!("{directory}/{}", first.unwrap_or_default())
    }

    fn text(&self, context: &mut SensorContext, file: &str) -> Option<String> {
        let path = CString::new(format!("{}/{file}", self.directory)).ok()?;
        let bytes = context.sys.read(&path, context.buffer).ok()?;
        attribute::text(bytes).ok().map(|text| String::from_utf8_lossy(text).into_owned())
    }
}

/// The PCI address of the GPU of a DRM node, as of `renderD128`.
pub(super) fn address_of(sys: &Dir, node: &str, buffer: &mut Vec<u8>) -> Option<Vec<u8>> {
    address(uevent(sys, node, buffer)?)
}

fn uevent<'b>(sys: &Dir, node: &str, buffer: &'b mut Vec<u8>) -> Option<&'b [u8]> {
    let path = CString::new(format!("class/drm/{node}/device/uevent")).ok()?;
    sys.read(&path, buffer).ok()
}

fn address(uevent: &[u8]) -> Option<Vec<u8>> {
    Some(attribute::line_value(uevent, "PCI_SLOT_NAME=")?.as_bytes().to_vec())
}

/// The files of the driver.
enum VendorFiles {
    Amd(Box<Amd>),
    Intel(Box<Intel>),
}

impl VendorFiles {
    fn memory(&mut self, context: &mut SensorContext) -> GpuMemory {
        match self {
            VendorFiles::Amd(files) => files.memory(context),
            VendorFiles::Intel(_) => GpuMemory::default(),
        }
    }
}

/// Below this utilization a GPU is idle.
const IDLE: f64 = 0.05;

/// One GPU.
pub(super) struct DrmDevice {
    pub(super) name: Name,
    pub(super) card: DrmCard,
    uevent: CString,
    runtime_status: Sensor,
    is_suspended: bool,
    autosuspend: Autosuspend,
    /// Whether its polls are paused.
    is_paused: bool,
    files: VendorFiles,
    energy: EnergyCounter,
}

impl DrmDevice {
    pub(super) fn new(sys: &Dir, name: Name, card: DrmCard, allowance: &Descriptors) -> DrmDevice {
        let device = format!("{}/device", card.directory);
        let hwmon = card.hwmon(sys);
        let files = match card.driver {
            DrmDriver::Amdgpu => {
                VendorFiles::Amd(Box::new(Amd::new(sys, &card, &hwmon, allowance)))
            }
            DrmDriver::I915 | DrmDriver::Xe => {
                VendorFiles::Intel(Box::new(Intel::new(sys, &card.directory, &hwmon, allowance)))
            }
        };
        let runtime_status = format!("{device}/power/runtime_status");
        DrmDevice {
            name,
            uevent: CString::new(format!("{device}/uevent")).unwrap_or_default(),
            runtime_status: Sensor::first(sys, &[runtime_status], allowance),
            is_suspended: false,
            autosuspend: Autosuspend::new(&device),
            is_paused: false,
            card,
            files,
            energy: EnergyCounter::default(),
        }
    }

    /// Model, memory, UUID and power limit.
    pub(super) fn describe(&mut self, context: &mut SensorContext) -> Gpu {
        self.read_runtime_status(context);
        if let (false, VendorFiles::Amd(files)) = (self.is_suspended, &mut self.files) {
            files.detect_apu(context);
        }
        let power_limit_watts = match (self.is_suspended, &mut self.files) {
            (true, _) => None,
            (false, VendorFiles::Amd(files)) => files.limit(context),
            (false, VendorFiles::Intel(files)) => files.limit(context),
        };
        let memory_bytes = self.files.memory(context).total;
        let driver = self.card.driver.name();
        let module = CString::new(format!("module/{driver}/version")).unwrap_or_default();
        let version = context.sys.read(&module, context.buffer).ok();
        let version = version.and_then(|bytes| attribute::text(bytes).ok());
        let version = version.map(|text| String::from_utf8_lossy(text).into_owned());
        // As in ROCR_VISIBLE_DEVICES.
        let unique = self.card.text(context, "device/unique_id");
        let model = self.card.text(context, "device/product_name");
        Gpu {
            name: self.name.to_string(),
            uuid: unique.map(|number| format!("GPU-{number}")),
            model: model.or_else(|| Some(format!("{driver} {}", self.card.pci_id))),
            memory_bytes,
            power_limit_watts,
            driver: version,
            usable: None,
            node: None,
        }
    }

    /// Whether it is still in the machine.
    pub(super) fn exists(&self, sys: &Dir) -> bool {
        sys.has(&self.uevent)
    }

    fn read_runtime_status(&mut self, context: &mut SensorContext) {
        let is_suspended = |bytes: &[u8]| Ok(bytes.starts_with(b"suspend"));
        self.is_suspended = self.runtime_status.read(context, is_suspended).unwrap_or(false);
    }

    /// Reads whether it is suspended or paused, which is needed before a poll.
    pub(super) fn read_power_state(&mut self, at: Duration, context: &mut SensorContext) {
        self.read_runtime_status(context);
        if self.is_suspended {
            self.autosuspend.resume();
        }
        self.is_paused = self.autosuspend.is_paused(at);
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.is_suspended
    }

    /// Whether reading the fdinfo of a client would wake it up, or keep it awake: xe reads the GPU
    /// for that. The other drivers count for clients in software.
    pub(super) fn fdinfo_keeps_awake(&self) -> bool {
        (self.is_suspended || self.is_paused) && self.card.driver == DrmDriver::Xe
    }

    /// Whether processes have system memory of it, too, beside its own.
    pub(super) fn uses_system_memory(&self) -> bool {
        matches!(&self.files, VendorFiles::Amd(files) if files.is_apu())
    }

    /// Reads everything, unless it is suspended or paused. A process of the run that uses it ends
    /// the pause.
    pub(super) fn poll(
        &mut self,
        at: Duration,
        is_used: bool,
        context: &mut SensorContext,
    ) -> DeviceRows {
        if self.is_suspended {
            self.energy.suspend();
            // It is known to be idle.
            let activity = match &mut self.files {
                VendorFiles::Amd(files) => files.suspended(at),
                VendorFiles::Intel(files) => files.suspended(at),
            };
            let memory = self.files.memory(context);
            return DeviceRows { activity, memory, ..DeviceRows::empty(self.name) };
        }
        if self.is_paused && !is_used {
            let memory = self.files.memory(context);
            return DeviceRows { memory, ..DeviceRows::empty(self.name) };
        }
        let mut rows = match &mut self.files {
            VendorFiles::Amd(files) => files.poll(self.name, at, context),
            VendorFiles::Intel(files) => files.poll(self.name, at, context),
        };
        if let Some(wrong) = self.energy.push(at, &mut rows.power) {
            context.problems.push(format!("{}: {wrong}", self.name));
        }
        let is_idle = match &self.files {
            VendorFiles::Amd(_) => rows.activity.utilization.is_none_or(|share| share < IDLE),
            VendorFiles::Intel(files) => files.is_idle(IDLE),
        };
        match is_idle && !is_used {
            true => self.autosuspend.pause(at, context),
            false => self.autosuspend.resume(),
        }
        rows
    }
}
