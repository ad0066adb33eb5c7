//! One card between two looks.
//!
//! A card that sleeps is left asleep: to ask for its temperature would wake it up, which takes
//! power and a tenth of a second. `power/runtime_status` tells, and asking that wakes nobody. It is
//! asked first, because xe wakes its card even to say what it did for a client. One that is awake
//! and idle is left alone at times, so that it can fall asleep ([`Rest`]).

use std::ffi::CString;
use std::time::Duration;

use super::super::reading::CardRead;
use super::amd::Amd;
use super::energy::Energy;
use super::intel::Intel;
use super::rest::Rest;
use super::sensor::{Look, Sensor};
use crate::catalog::metrics::GpuMemory;
use crate::host::{Descriptors, Dir};
use crate::model::{Gpu, Name};
use crate::parse::attribute;

/// A card that is there: where it is, and which driver it has.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// Its directory, as `class/drm/card0`.
    pub(super) directory: String,
    pub(super) driver: Driver,
    /// Where it is on the bus, as `0000:03:00.0`: which process uses it is told by that.
    pub(super) address: Vec<u8>,
    /// Maker and model, as `1002:740C`.
    pub(super) number: String,
}

/// The drivers whose cards are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Driver {
    Amdgpu,
    I915,
    Xe,
}

impl Driver {
    pub(super) const ALL: [Driver; 3] = [Driver::Amdgpu, Driver::I915, Driver::Xe];

    /// What it is called in the kernel.
    pub(super) fn name(self) -> &'static str {
        match self {
            Driver::Amdgpu => "amdgpu",
            Driver::I915 => "i915",
            Driver::Xe => "xe",
        }
    }

    /// Whose cards it drives.
    pub(super) fn maker(self) -> &'static str {
        match self {
            Driver::Amdgpu => "amd",
            Driver::I915 | Driver::Xe => "intel",
        }
    }
}

impl Place {
    /// All cards, in the order of their places on the bus: the numbers of the kernel's are those
    /// of the order in which drivers were ready.
    pub(super) fn all(sys: &Dir) -> Vec<Place> {
        let mut buffer = Vec::new();
        let names = sys.names(c"class/drm").unwrap_or_default();
        let cards = names.iter().filter_map(|name| name.to_str().ok()).filter(|name| {
            // Outputs are there, too: card0-DP-1.
            name.strip_prefix("card").is_some_and(|number| number.parse::<u32>().is_ok())
        });
        let mut places: Vec<Place> =
            cards.filter_map(|card| Place::of(sys, card, &mut buffer)).collect();
        places.sort_by(|one, other| one.address.cmp(&other.address));
        places
    }

    fn of(sys: &Dir, card: &str, buffer: &mut Vec<u8>) -> Option<Place> {
        let directory = format!("class/drm/{card}");
        let uevent = uevent(sys, card, buffer)?;
        let driver = attribute::line_value(uevent, "DRIVER=")?;
        let driver = Driver::ALL.into_iter().find(|one| one.name() == driver)?;
        let address = address(uevent)?;
        let number = attribute::line_value(uevent, "PCI_ID=")?.to_owned();
        Some(Place { directory, driver, address, number })
    }

    fn hwmon(&self, sys: &Dir) -> String {
        let directory = format!("{}/device/hwmon", self.directory);
        let listed = CString::new(directory.as_str()).ok().and_then(|path| sys.names(&path).ok());
        let first = listed.and_then(|names| names.first()?.to_str().ok().map(str::to_owned));
        // Without one, there is no such directory, and none of its files.
        format!("{directory}/{}", first.unwrap_or_default())
    }

    fn text(&self, look: &mut Look, file: &str) -> Option<String> {
        let path = CString::new(format!("{}/{file}", self.directory)).ok()?;
        let bytes = look.sys.read(&path, look.buffer).ok()?;
        attribute::text(bytes).ok().map(|text| String::from_utf8_lossy(text).into_owned())
    }
}

/// Where the card of a node is on the bus, as of `renderD128`.
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

enum Files {
    Amd(Box<Amd>),
    Intel(Box<Intel>),
}

impl Files {
    fn memory(&mut self, look: &mut Look) -> GpuMemory {
        match self {
            Files::Amd(files) => files.memory(look),
            Files::Intel(_) => GpuMemory::default(),
        }
    }
}

/// A card below this share was idle.
const IDLE: f64 = 0.05;

/// One card.
pub(super) struct Card {
    pub(super) name: Name,
    pub(super) place: Place,
    uevent: CString,
    sleep: Sensor,
    is_asleep: bool,
    rest: Rest,
    /// Whether it is left alone at this look.
    is_alone: bool,
    files: Files,
    energy: Energy,
}

impl Card {
    pub(super) fn new(sys: &Dir, name: Name, place: Place, allowance: &Descriptors) -> Card {
        let device = format!("{}/device", place.directory);
        let hwmon = place.hwmon(sys);
        let files = match place.driver {
            Driver::Amdgpu => Files::Amd(Box::new(Amd::new(sys, &place, &hwmon, allowance))),
            Driver::I915 | Driver::Xe => {
                Files::Intel(Box::new(Intel::new(sys, &place.directory, &hwmon, allowance)))
            }
        };
        Card {
            name,
            uevent: CString::new(format!("{device}/uevent")).unwrap_or_default(),
            sleep: Sensor::first(sys, &[format!("{device}/power/runtime_status")], allowance),
            is_asleep: false,
            rest: Rest::new(&device),
            is_alone: false,
            place,
            files,
            energy: Energy::default(),
        }
    }

    /// What it is.
    pub(super) fn what(&mut self, look: &mut Look) -> Gpu {
        self.see_whether_it_sleeps(look);
        if let (false, Files::Amd(files)) = (self.is_asleep, &mut self.files) {
            files.recognise(look);
        }
        let power_limit_watts = match (self.is_asleep, &mut self.files) {
            (true, _) => None,
            (false, Files::Amd(files)) => files.limit(look),
            (false, Files::Intel(files)) => files.limit(look),
        };
        let memory_bytes = self.files.memory(look).total;
        let driver = self.place.driver.name();
        let module = CString::new(format!("module/{driver}/version")).unwrap_or_default();
        let version = look.sys.read(&module, look.buffer).ok();
        let version = version.and_then(|bytes| attribute::text(bytes).ok());
        let version = version.map(|text| String::from_utf8_lossy(text).into_owned());
        // As ROCR_VISIBLE_DEVICES has it.
        let unique = self.place.text(look, "device/unique_id");
        let model = self.place.text(look, "device/product_name");
        Gpu {
            name: self.name.to_string(),
            uuid: unique.map(|number| format!("GPU-{number}")),
            model: model.or_else(|| Some(format!("{driver} {}", self.place.number))),
            memory_bytes,
            power_limit_watts,
            driver: version,
            usable: None,
            node: None,
        }
    }

    /// Whether it is still in the machine.
    pub(super) fn is_there(&self, sys: &Dir) -> bool {
        sys.has(&self.uevent)
    }

    fn see_whether_it_sleeps(&mut self, look: &mut Look) {
        let is_so = |bytes: &[u8]| Ok(bytes.starts_with(b"suspend"));
        self.is_asleep = self.sleep.read(look, is_so).unwrap_or(false);
    }

    /// Asks whether it sleeps or is left alone, which is to be done before a look.
    pub(super) fn see_whether_to_ask(&mut self, at: Duration, look: &mut Look) {
        self.see_whether_it_sleeps(look);
        if self.is_asleep {
            self.rest.end();
        }
        self.is_alone = self.rest.is_on(at);
    }

    /// Whether it sleeps.
    pub(super) fn is_asleep(&self) -> bool {
        self.is_asleep
    }

    /// Whether reading what a client has would wake it up, or keep it awake: xe asks the card for
    /// that. The other drivers count for clients by themselves.
    pub(super) fn minds_clients(&self) -> bool {
        (self.is_asleep || self.is_alone) && self.place.driver == Driver::Xe
    }

    /// Whether what processes have of it is memory of the machine, too, beside its own.
    pub(super) fn has_memory_of_the_machine(&self) -> bool {
        matches!(&self.files, Files::Amd(files) if files.is_apu())
    }

    /// Asks everything once, unless it sleeps or is left alone, which it is not when somebody of
    /// the run uses it.
    pub(super) fn look(&mut self, at: Duration, is_used: bool, look: &mut Look) -> CardRead {
        if self.is_asleep {
            self.energy.sleep();
            // It does nothing, that is known.
            let activity = match &mut self.files {
                Files::Amd(files) => files.sleep(at),
                Files::Intel(files) => files.sleep(at),
            };
            let memory = self.files.memory(look);
            return CardRead { activity, memory, ..CardRead::nothing(self.name) };
        }
        if self.is_alone && !is_used {
            return CardRead { memory: self.files.memory(look), ..CardRead::nothing(self.name) };
        }
        let mut read = match &mut self.files {
            Files::Amd(files) => files.look(self.name, at, look),
            Files::Intel(files) => files.look(self.name, at, look),
        };
        if let Some(wrong) = self.energy.see(at, &mut read.power) {
            look.trouble.push(format!("{}: {wrong}", self.name));
        }
        let is_idle = match &self.files {
            Files::Amd(_) => read.activity.utilization.is_none_or(|share| share < IDLE),
            Files::Intel(files) => files.is_idle(IDLE),
        };
        match is_idle && !is_used {
            true => self.rest.begin(at, look),
            false => self.rest.end(),
        }
        read
    }
}
