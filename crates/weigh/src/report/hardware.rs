//! The hardware of a machine, as text of 80 columns: `weigh doctor --hardware`.
//!
//! Names of devices and distributions come from files, so everything is shown with control
//! characters escaped.

use std::collections::BTreeMap;

use super::style::{BOLD, DIM, Style};
use crate::model::hardware::{
    Hardware, HardwareGpu, HardwareNic, HardwarePort, LimitRange, NumaNode, Processor, Stated,
    Surroundings,
};
use crate::quantity;
use crate::text::{self, printable};

/// Where a line ends.
const WIDTH: usize = 80;
/// Where values begin, after their label.
const INDENT: usize = 12;
const NONE: &str = "none";

/// Lists that may be empty because nothing is installed: their own line says so.
const LISTS: [&str; 4] = ["container", "gpus", "infiniband", "network"];

/// The hardware of a machine, and the limits of a run on it.
pub fn text(hardware: &Hardware, surroundings: Option<&Surroundings>, style: Style) -> String {
    let mut page = HardwareText { out: String::new(), style };
    page.processor(hardware);
    page.memory(hardware);
    page.system(hardware);
    page.lines("gpu", hardware.gpus.iter().map(|each| gpu(each, style)));
    page.lines("network", hardware.network.iter().map(nic));
    page.lines("infiniband", hardware.infiniband.iter().map(port));
    let mut missing: Vec<_> =
        hardware.missing.iter().filter(|(key, _)| !LISTS.contains(&key.as_str())).collect();
    if let Some(surroundings) = surroundings {
        page.surroundings(surroundings);
        missing.extend(&surroundings.missing);
    }
    page.missing(&missing);
    page.out
}

/// Sockets, cores and threads as text.
pub fn topology(cpu: &Processor) -> String {
    let many = |count: u32, what: &str| match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    };
    let cpus = cpu.cpus.map_or_else(|| "CPUs unknown".to_owned(), |count| many(count, "CPU"));
    match (cpu.sockets, cpu.cores_per_socket, cpu.threads_per_core) {
        (Some(sockets), Some(cores), Some(threads)) => format!(
            "{} × {} × {} = {cpus}",
            many(sockets, "socket"),
            many(cores, "core"),
            many(threads, "thread")
        ),
        (Some(sockets), ..) => match cpu.cores {
            Some(cores) => {
                format!("{}, {}, {cpus}", many(sockets, "socket"), many(cores, "core"))
            }
            None => format!("{}, {cpus}", many(sockets, "socket")),
        },
        _ => cpus,
    }
}

/// The hypervisor, or that there is none.
pub fn virtual_machine(hardware: &Hardware) -> String {
    match &hardware.virtual_machine {
        Some(stated) if stated.name == NONE => "no: bare metal".to_owned(),
        Some(stated) => stated.name.clone(),
        None => "unknown".to_owned(),
    }
}

struct HardwareText {
    out: String,
    style: Style,
}

impl HardwareText {
    fn processor(&mut self, hardware: &Hardware) {
        let cpu = &hardware.cpu;
        let label = "processor";
        let name = cpu.model_name.as_deref().or(cpu.vendor.as_deref()).unwrap_or("unknown");
        self.line(label, vec![self.style.paint(BOLD, &printable(name))]);
        let numbered =
            |what: &str, number: Option<u32>| number.map(|number| format!("{what} {number}"));
        let said =
            |what: &str, said: &Option<String>| said.as_ref().map(|said| format!("{what} {said}"));
        self.some(
            "",
            [
                cpu.microarchitecture.clone(),
                cpu.vendor.clone().filter(|_| cpu.model_name.is_some()),
                numbered("family", cpu.family),
                match cpu.family {
                    Some(_) => numbered("model", cpu.model),
                    // ARM part numbers are written in hexadecimal.
                    None => cpu.model.map(|part| format!("part {part:#x}")),
                },
                said("stepping", &cpu.stepping),
                said("microcode", &cpu.microcode),
            ],
        );
        let smt = cpu.smt_active.map(|active| if active { "SMT on" } else { "SMT off" }.to_owned());
        let online = cpu.online.as_ref().map(|list| format!("online {list}"));
        let bogomips = cpu.bogomips.map(|count| format!("{count:.2} BogoMIPS"));
        self.some("", [Some(topology(cpu)), smt, online, bogomips]);
        let hertz = |value: u64| quantity::scaled(value as f64, "Hz");
        let range = cpu.frequency_min_hertz.zip(cpu.frequency_max_hertz);
        let boost = cpu.boost.map(|on| if on { "boost on" } else { "boost off" }.to_owned());
        let governors = cpu.governors.join(", ");
        self.some(
            "",
            [
                range.map(|(low, high)| format!("{} to {}", hertz(low), hertz(high))),
                cpu.frequency_base_hertz.map(|base| format!("base {}", hertz(base))),
                boost,
                (!governors.is_empty()).then(|| format!("governor {governors}")),
                said("driver", &cpu.frequency_driver),
                said("preference", &cpu.energy_preference),
            ],
        );
        let bytes = |value: u64| self.style.bytes(value as f64);
        let caches = hardware.caches.iter();
        let cache = caches.map(|cache| {
            let size = bytes(cache.size_bytes);
            match cache.instances {
                1 => format!("{} {size}", cache.name),
                count => format!("{} {count} × {size}", cache.name),
            }
        });
        self.some("caches", cache.map(Some).collect::<Vec<_>>());
    }

    fn memory(&mut self, hardware: &Hardware) {
        let bytes = |value: u64| self.style.bytes(value as f64);
        let memory = &hardware.memory;
        let swap = memory.swap_bytes.map(|swap| match swap {
            0 => "no swap".to_owned(),
            swap => format!("swap {}", bytes(swap)),
        });
        let huge = memory.transparent_huge_pages.as_ref();
        self.some(
            "memory",
            [
                memory.total_bytes.map(bytes),
                swap,
                huge.map(|when| format!("transparent huge pages {when}")),
            ],
        );
        let node = |node: &NumaNode| {
            let cpus = match &node.cpus {
                Some(cpus) => format!("CPUs {cpus}"),
                None => "no CPUs".to_owned(),
            };
            let memory = node.memory_bytes.map(|memory| self.style.bytes(memory as f64));
            [Some(format!("node {}", node.node)), Some(cpus), memory]
                .into_iter()
                .flatten()
                .collect()
        };
        let nodes: Vec<Vec<String>> = hardware.numa_nodes.iter().map(node).collect();
        for (place, items) in nodes.into_iter().enumerate() {
            self.line(if place == 0 { "numa" } else { "" }, items);
        }
    }

    fn system(&mut self, hardware: &Hardware) {
        let kernel = hardware.kernel.as_ref().map(|kernel| format!("Linux {kernel}"));
        self.some("kernel", [kernel, hardware.kernel_build.clone()]);
        let system = hardware.distribution.as_ref();
        let name = system.and_then(|system| system.name.clone().or(system.id.clone()));
        self.some("system", [name]);
        let source = |stated: &Option<Stated>| {
            stated.as_ref().map(|stated| format!("reported by {}", stated.told_by))
        };
        let machine = &hardware.virtual_machine;
        self.some("virtual", [Some(virtual_machine(hardware)), source(machine)]);
        let container = &hardware.container;
        let name = container.as_ref().map_or(NONE, |stated| &stated.name);
        self.some("container", [Some(name.to_owned()), source(container)]);
    }

    fn surroundings(&mut self, found: &Surroundings) {
        let limit = |(name, bounds): (&String, &LimitRange)| {
            let bytes = bounds.unit.as_deref() == Some("bytes");
            let shown = |bound: Option<u64>| match bound {
                None => "unlimited".to_owned(),
                Some(bound) if bytes => self.style.bytes(bound as f64),
                Some(bound) => bound.to_string(),
            };
            let name = name.trim_start_matches("Max ");
            let (soft, hard) = (shown(bounds.soft), shown(bounds.hard));
            if soft == hard { format!("{name} {soft}") } else { format!("{name} {soft} of {hard}") }
        };
        let limits: Vec<_> = found.limits.iter().map(|each| Some(limit(each))).collect();
        self.some("limits", limits);
        self.some(
            "allowed",
            [
                found.cpus_allowed.as_ref().map(|cpus| format!("CPUs {cpus}")),
                found.memory_nodes_allowed.as_ref().map(|nodes| format!("memory nodes {nodes}")),
            ],
        );
        for (place, distances) in found.numa_distances.iter().enumerate() {
            let row: Vec<String> = distances.iter().map(u64::to_string).collect();
            self.line(if place == 0 { "distances" } else { "" }, vec![row.join(" ")]);
        }
        let setting = |name: &str, value: Option<u64>| value.map(|value| format!("{name} {value}"));
        self.some(
            "settings",
            [
                setting("address randomization", found.address_randomization),
                setting("memory overcommit", found.memory_overcommit),
                setting("numa balancing", found.numa_balancing),
                setting("swappiness", found.swappiness),
            ],
        );
        let modules = found.modules.iter().flatten().cloned().map(Some);
        self.some("modules", modules.collect::<Vec<_>>());
    }

    /// Why values are unknown, each reason once.
    fn missing(&mut self, missing: &[(&String, &String)]) {
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (key, why) in missing {
            reasons.entry(why).or_default().push(key);
        }
        for (place, (why, keys)) in reasons.into_iter().enumerate() {
            let line = format!("{}: {why}", keys.join(", "));
            self.line(if place == 0 { "not known" } else { "" }, vec![line]);
        }
    }

    /// A line for each item; `none` when there is none.
    fn lines(&mut self, label: &str, lines: impl Iterator<Item = Vec<String>>) {
        let mut label = label;
        for items in lines {
            self.line(label, items);
            label = "";
        }
        if !label.is_empty() {
            self.line(label, vec![NONE.to_owned()]);
        }
    }

    /// A line of the known items; no line when all are unknown.
    fn some(&mut self, label: &str, items: impl IntoIterator<Item = Option<String>>) {
        let items: Vec<String> = items.into_iter().flatten().map(|item| printable(&item)).collect();
        if !items.is_empty() {
            self.line(label, items);
        }
    }

    /// Items separated by dots, on as many lines as they need.
    fn line(&mut self, label: &str, items: Vec<String>) {
        let mut label = label;
        for row in rows(&items) {
            let padded = format!("{label:<INDENT$}");
            self.out.push_str(&self.style.paint(DIM, &padded));
            self.out.push_str(&row);
            self.out.push('\n');
            label = "";
        }
    }
}

/// Items in rows that fit. One that is longer than a row is wrapped after a space or a comma.
fn rows(items: &[String]) -> Vec<String> {
    let width = WIDTH - INDENT;
    let mut rows: Vec<String> = Vec::new();
    for item in items {
        let fits = |row: &String| row.chars().count() + 3 + item.chars().count() <= width;
        match rows.last_mut().filter(|row| fits(row)) {
            Some(row) => *row += &format!(" · {item}"),
            None => rows.extend(text::wrap(item, width)),
        }
    }
    rows
}

fn gpu(gpu: &HardwareGpu, style: Style) -> Vec<String> {
    let driver = gpu.driver.as_ref().map(|driver| match &gpu.driver_version {
        Some(version) => format!("{driver} {version}"),
        None => driver.clone(),
    });
    let memory = gpu.memory_bytes.map(|memory| style.bytes(memory as f64));
    let items = [Some(gpu.called()), memory, gpu.bus.clone(), driver];
    items.into_iter().flatten().map(|item| printable(&item)).collect()
}

fn nic(nic: &HardwareNic) -> Vec<String> {
    let speed = nic.speed_bits_per_second.map(bits);
    let mtu = nic.mtu_bytes.map(|mtu| format!("MTU {mtu}"));
    let items = [Some(nic.name.clone()), nic.driver.clone(), speed, nic.state.clone(), mtu];
    items.into_iter().flatten().map(|item| printable(&item)).collect()
}

fn port(port: &HardwarePort) -> Vec<String> {
    let rate = port.rate_bits_per_second.map(bits);
    let firmware = port.firmware.as_ref().map(|firmware| format!("firmware {firmware}"));
    let items = [
        Some(port.port.clone()),
        port.adapter.clone(),
        port.link_layer.clone(),
        rate,
        port.state.clone(),
        firmware,
    ];
    items.into_iter().flatten().map(|item| printable(&item)).collect()
}

fn bits(per_second: u64) -> String {
    quantity::scaled(per_second as f64, "bit/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_items_are_wrapped_without_loss() {
        let items = ["a".repeat(40), "b".repeat(20), "c".repeat(20)];
        assert_eq!(rows(&items), [format!("{} · {}", items[0], items[1]), items[2].clone()]);
        let list: String = (0..60).map(|cpu| format!("{},", cpu * 2)).collect();
        let broken = rows(std::slice::from_ref(&list));
        assert!(broken.len() > 1 && broken.iter().all(|row| row.len() <= WIDTH - INDENT));
        assert_eq!(broken.concat(), list);
    }

    #[test]
    fn device_name_cannot_control_the_terminal() {
        let nic = HardwareNic {
            name: "eth0\x1b[31m".to_owned(),
            driver: None,
            pci_id: None,
            speed_bits_per_second: Some(25_000_000_000),
            mtu_bytes: None,
            state: None,
        };
        let hardware = Hardware { network: vec![nic], ..Hardware::default() };
        let page = text(&hardware, None, Style::default());
        assert!(page.contains("eth0\\u{1b}[31m · 25.0 Gbit/s"), "{page}");
        assert!(!page.contains('\x1b') && page.contains("gpu         none"), "{page}");
    }

    #[test]
    fn heterogeneous_cores_are_counted_not_multiplied() {
        let cpu = |threads| Processor {
            cpus: Some(24),
            sockets: Some(1),
            cores: Some(16),
            cores_per_socket: Some(16),
            threads_per_core: threads,
            ..Processor::default()
        };
        assert_eq!(topology(&cpu(None)), "1 socket, 16 cores, 24 CPUs");
        assert_eq!(topology(&cpu(Some(2))), "1 socket × 16 cores × 2 threads = 24 CPUs");
        assert_eq!(topology(&Processor::default()), "CPUs unknown");
    }
}
