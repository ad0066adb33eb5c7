//! GPUs, network devices and InfiniBand adapters.
//!
//! Sources: `/proc/driver/nvidia`, `/sys/class/drm`, `/sys/class/net`, `/sys/class/infiniband`,
//! readable by every user. Addresses and serial numbers are left out: they identify a machine and
//! say nothing about its performance.
//!
//! What surprises: the console of a server is a graphics card to the kernel, the speed of a device
//! that is down is -1 or cannot be read, and NVIDIA's cards are in `drm` only when the module
//! nvidia-drm is loaded, which many servers lack.

use std::time::Duration;

use super::reader::{HardwareReader, text};
use crate::host::timeout::with_timeout;
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

/// How long a driver may take to describe its cards: the end of a short run waits for it.
const DRIVER_TIMEOUT: Duration = Duration::from_secs(1);

/// The GPUs.
pub(super) fn gpus(reader: &mut HardwareReader<'_>) -> Vec<HardwareGpu> {
    let mut found = nvidia(reader);
    let is_card = |name: &&String| {
        let number = name.strip_prefix("card").unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let cards = reader.names("sys/class/drm");
    for card in cards.iter().filter(is_card) {
        let device = format!("sys/class/drm/{card}/device");
        let uevent = reader.optional(&format!("{device}/uevent"), |bytes| Ok(bytes.to_vec()));
        let uevent = uevent.unwrap_or_default();
        let value = |key| attribute::line_value(&uevent, key).map(str::to_owned);
        let (bus, driver) = (value("PCI_SLOT_NAME="), value("DRIVER="));
        if driver.as_deref().is_some_and(|driver| CONSOLES.contains(&driver)) {
            continue;
        }
        let pci_id = value("PCI_ID=");
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
            // Only AMD's driver has the name and the memory.
            name: reader.optional(&format!("{device}/product_name"), text),
            firmware: reader.optional(&format!("{device}/vbios_version"), text),
            memory_bytes: reader
                .optional(&format!("{device}/mem_info_vram_total"), attribute::number),
            driver_version: None,
        });
    }
    if found.is_empty() {
        let why = "neither /sys/class/drm nor /proc/driver/nvidia has one";
        reader.missing.entry("gpus".to_owned()).or_insert_with(|| why.to_owned());
    }
    found
}

/// NVIDIA's cards. The driver itself produces the content of these files, and may hang.
fn nvidia(reader: &mut HardwareReader<'_>) -> Vec<HardwareGpu> {
    let cards = reader.names(NVIDIA);
    if cards.is_empty() {
        return Vec::new();
    }
    let root = reader.root().clone();
    let read =
        with_timeout(DRIVER_TIMEOUT, move || of_nvidia(&mut HardwareReader::at(&root), &cards));
    read.unwrap_or_else(|| {
        reader.missing.insert("gpus".to_owned(), "the NVIDIA driver does not answer".to_owned());
        Vec::new()
    })
}

fn of_nvidia(reader: &mut HardwareReader<'_>, cards: &[String]) -> Vec<HardwareGpu> {
    // NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 …
    let version = reader.optional("proc/driver/nvidia/version", |bytes| {
        let line = attribute::line_value(bytes, "NVRM version:").unwrap_or_default();
        let is_version = |word: &&str| {
            word.contains('.') && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        };
        Ok(line.split_ascii_whitespace().find(is_version).map(str::to_owned))
    });
    let version = version.flatten();
    let mut found = Vec::new();
    for card in cards {
        let file = format!("{NVIDIA}/{card}/information");
        let Some(card) = reader.optional(&file, |bytes| {
            let value = |key| attribute::line_value(bytes, key).map(str::to_owned);
            Ok(HardwareGpu {
                bus: value("Bus Location:"),
                vendor: Some("NVIDIA".to_owned()),
                name: value("Model:"),
                driver: Some("nvidia".to_owned()),
                driver_version: version.clone(),
                firmware: value("Video BIOS:").filter(|bios| !bios.contains('?')),
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
pub(super) fn nics(reader: &mut HardwareReader<'_>) -> Vec<HardwareNic> {
    let mut found = Vec::new();
    for name in reader.names("sys/class/net") {
        let file = |file: &str| format!("sys/class/net/{name}/{file}");
        let Some((driver, pci_id)) = reader.optional(&file("device/uevent"), |bytes| {
            let value = |key| attribute::line_value(bytes, key).map(str::to_owned);
            Ok((value("DRIVER="), value("PCI_ID=")))
        }) else {
            continue;
        };
        let megabits = reader.optional(&file("speed"), attribute::signed);
        let megabits = megabits.and_then(|speed| u64::try_from(speed).ok());
        found.push(HardwareNic {
            driver,
            pci_id,
            speed_bits_per_second: megabits.and_then(|speed| speed.checked_mul(1_000_000)),
            mtu_bytes: reader.optional(&file("mtu"), attribute::number),
            state: reader.optional(&file("operstate"), text),
            name,
        });
    }
    if found.is_empty() {
        let why = "/sys/class/net has no hardware";
        reader.missing.insert("network".to_owned(), why.to_owned());
    }
    found
}

/// The ports of InfiniBand, RoCE and Omni-Path adapters.
pub(super) fn ports(reader: &mut HardwareReader<'_>) -> Vec<HardwarePort> {
    const ADAPTERS: &str = "sys/class/infiniband";
    let mut found = Vec::new();
    for adapter in reader.names(ADAPTERS) {
        let model = reader.optional(&format!("{ADAPTERS}/{adapter}/hca_type"), text);
        let firmware = reader.optional(&format!("{ADAPTERS}/{adapter}/fw_ver"), text);
        for port in reader.names(&format!("{ADAPTERS}/{adapter}/ports")) {
            let file = |file: &str| format!("{ADAPTERS}/{adapter}/ports/{port}/{file}");
            found.push(HardwarePort {
                port: format!("{adapter}/{port}"),
                adapter: model.clone(),
                firmware: firmware.clone(),
                link_layer: reader.optional(&file("link_layer"), text),
                rate_bits_per_second: reader.optional(&file("rate"), attribute::port_rate),
                state: reader.optional(&file("state"), |bytes| {
                    Ok(String::from_utf8_lossy(attribute::port_state(bytes)?).into_owned())
                }),
            });
        }
    }
    if found.is_empty() {
        let why = format!("/{ADAPTERS} has no adapter");
        reader.missing.insert("infiniband".to_owned(), why);
    }
    found
}
