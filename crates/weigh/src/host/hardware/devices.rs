//! Graphics processors, network devices and InfiniBand adapters.
//!
//! Sources: `/proc/driver/nvidia`, `/sys/class/drm`, `/sys/class/net`, `/sys/class/infiniband`,
//! readable by every user. Addresses and serial numbers are left out: they name a machine and say
//! nothing of what it can do.
//!
//! What surprises: the console of a server is a graphics card to the kernel, the speed of a device
//! that is down is -1 or cannot be read, and NVIDIA's cards are in `drm` only when a module of
//! theirs is loaded that many servers do without.

use std::time::Duration;

use super::look::{Look, text};
use crate::host::patience::within;
use crate::model::hardware::{HardwareGpu, HardwareNic, HardwarePort};
use crate::parse::attribute;

/// Drivers of cards that only show a console.
const CONSOLES: &[&str] = &[
    "ast",
    "mgag200",
    "bochs-drm",
    "cirrus",
    "cirrus-qemu",
    "hyperv_drm",
    "qxl",
    "simple-framebuffer",
];

const NVIDIA: &str = "proc/driver/nvidia/gpus";

/// How long a driver may take to say what its cards are: the end of a short run waits for it.
const PATIENCE: Duration = Duration::from_secs(1);

/// The graphics processors.
pub(super) fn gpus(look: &mut Look<'_>) -> Vec<HardwareGpu> {
    let mut found = nvidia(look);
    let is_card = |name: &&String| {
        let number = name.strip_prefix("card").unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let cards = look.names("sys/class/drm");
    for card in cards.iter().filter(is_card) {
        let device = format!("sys/class/drm/{card}/device");
        let uevent = look.find(&format!("{device}/uevent"), |bytes| Ok(bytes.to_vec()));
        let uevent = uevent.unwrap_or_default();
        let said = |key| attribute::valued(&uevent, key).map(str::to_owned);
        let (bus, driver) = (said("PCI_SLOT_NAME="), said("DRIVER="));
        if driver.as_deref().is_some_and(|driver| CONSOLES.contains(&driver)) {
            continue;
        }
        let pci_id = said("PCI_ID=");
        let known = found.iter_mut().find(|gpu| gpu.bus.is_some() && gpu.bus == bus);
        if let Some(known) = known {
            known.pci_id = pci_id;
            continue;
        }
        found.push(HardwareGpu {
            vendor: pci_id.as_deref().and_then(vendor).map(str::to_owned),
            bus,
            pci_id,
            driver,
            // The name and the memory are told by AMD's driver alone.
            name: look.find(&format!("{device}/product_name"), text),
            firmware: look.find(&format!("{device}/vbios_version"), text),
            memory_bytes: look.find(&format!("{device}/mem_info_vram_total"), attribute::number),
            driver_version: None,
        });
    }
    if found.is_empty() {
        let why = "neither /sys/class/drm nor /proc/driver/nvidia has one";
        look.missing.entry("gpus".to_owned()).or_insert_with(|| why.to_owned());
    }
    found
}

/// NVIDIA's cards. The driver itself writes what these files say, and may hang.
fn nvidia(look: &mut Look<'_>) -> Vec<HardwareGpu> {
    let cards = look.names(NVIDIA);
    if cards.is_empty() {
        return Vec::new();
    }
    let root = look.root().clone();
    let asked = within(PATIENCE, move || of_nvidia(&mut Look::at(&root), &cards));
    asked.unwrap_or_else(|| {
        look.missing.insert("gpus".to_owned(), "the NVIDIA driver does not answer".to_owned());
        Vec::new()
    })
}

fn of_nvidia(look: &mut Look<'_>, cards: &[String]) -> Vec<HardwareGpu> {
    // NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 …
    let version = look.find("proc/driver/nvidia/version", |bytes| {
        let line = attribute::valued(bytes, "NVRM version:").unwrap_or_default();
        let is_version = |word: &&str| {
            word.contains('.') && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        };
        Ok(line.split_ascii_whitespace().find(is_version).map(str::to_owned))
    });
    let version = version.flatten();
    let mut found = Vec::new();
    for card in cards {
        let file = format!("{NVIDIA}/{card}/information");
        let Some(card) = look.find(&file, |bytes| {
            let said = |key| attribute::valued(bytes, key).map(str::to_owned);
            Ok(HardwareGpu {
                bus: said("Bus Location:"),
                vendor: Some("NVIDIA".to_owned()),
                name: said("Model:"),
                driver: Some("nvidia".to_owned()),
                driver_version: version.clone(),
                firmware: said("Video BIOS:").filter(|bios| !bios.contains('?')),
                ..HardwareGpu::default()
            })
        }) else {
            continue;
        };
        found.push(card);
    }
    found
}

fn vendor(pci_id: &str) -> Option<&'static str> {
    Some(match pci_id.split(':').next()? {
        "10DE" => "NVIDIA",
        "1002" => "AMD",
        "8086" => "Intel",
        _ => return None,
    })
}

/// The network devices that are hardware: bridges, bonds and the loopback are made by the kernel.
pub(super) fn nics(look: &mut Look<'_>) -> Vec<HardwareNic> {
    let mut found = Vec::new();
    for name in look.names("sys/class/net") {
        let file = |file: &str| format!("sys/class/net/{name}/{file}");
        let Some((driver, pci_id)) = look.find(&file("device/uevent"), |bytes| {
            let said = |key| attribute::valued(bytes, key).map(str::to_owned);
            Ok((said("DRIVER="), said("PCI_ID=")))
        }) else {
            continue;
        };
        let megabits = look.find(&file("speed"), attribute::signed);
        let megabits = megabits.and_then(|speed| u64::try_from(speed).ok());
        found.push(HardwareNic {
            driver,
            pci_id,
            speed_bits_per_second: megabits.and_then(|speed| speed.checked_mul(1_000_000)),
            mtu_bytes: look.find(&file("mtu"), attribute::number),
            state: look.find(&file("operstate"), text),
            name,
        });
    }
    if found.is_empty() {
        let why = "/sys/class/net has no hardware";
        look.missing.insert("network".to_owned(), why.to_owned());
    }
    found
}

/// The ports of InfiniBand, RoCE and Omni-Path adapters.
pub(super) fn ports(look: &mut Look<'_>) -> Vec<HardwarePort> {
    const ADAPTERS: &str = "sys/class/infiniband";
    let mut found = Vec::new();
    for adapter in look.names(ADAPTERS) {
        let model = look.find(&format!("{ADAPTERS}/{adapter}/hca_type"), text);
        let firmware = look.find(&format!("{ADAPTERS}/{adapter}/fw_ver"), text);
        for port in look.names(&format!("{ADAPTERS}/{adapter}/ports")) {
            let file = |file: &str| format!("{ADAPTERS}/{adapter}/ports/{port}/{file}");
            found.push(HardwarePort {
                port: format!("{adapter}/{port}"),
                adapter: model.clone(),
                firmware: firmware.clone(),
                link_layer: look.find(&file("link_layer"), text),
                rate_bits_per_second: look.find(&file("rate"), attribute::port_rate),
                state: look.find(&file("state"), |bytes| {
                    Ok(String::from_utf8_lossy(attribute::port_state(bytes)?).into_owned())
                }),
            });
        }
    }
    if found.is_empty() {
        let why = format!("/{ADAPTERS} has no adapter");
        look.missing.insert("infiniband".to_owned(), why);
    }
    found
}
