//! Caches, memory nodes and memory.
//!
//! Sources: `/sys/devices/system/cpu/cpu*/cache`, `/sys/devices/system/node`, `/proc/meminfo`,
//! `/sys/kernel/mm`, readable by every user. A machine without NUMA has one node, or none where the
//! kernel was built so. ARM machines without ACPI tables and many virtual machines list no caches.

use super::processor::{cpu_numbers, cpu_sets};
use super::reader::{CPU, HardwareReader, text};
use crate::model::hardware::{CpuCache, HardwareMemory, NumaNode};
use crate::parse::{MalformedFile, attribute, meminfo};

/// The caches, one entry for each name and size: small and large cores may have caches of different
/// sizes.
pub(super) fn caches(reader: &mut HardwareReader<'_>) -> Vec<CpuCache> {
    let online = reader.read("sys/devices/system/cpu/online", cpu_numbers).unwrap_or_default();
    let Some(first) = online.first() else { return Vec::new() };
    let indices = reader.names(&format!("{CPU}{first}/cache"));
    let mut caches: Vec<CpuCache> = Vec::new();
    for index in indices.iter().filter(|name| name.starts_with("index")) {
        let file = |cpu: u32, name: &str| format!("{CPU}{cpu}/cache/{index}/{name}");
        let level = reader.optional(&file(*first, "level"), attribute::number);
        let kind = reader.optional(&file(*first, "type"), text);
        let (Some(level), Some(kind)) = (level, kind) else { continue };
        let letter = match kind.as_str() {
            "Data" => "d",
            "Instruction" => "i",
            _ => "",
        };
        let name = format!("L{level}{letter}");
        // Without the list of its CPUs a cache would be counted wrongly.
        let Ok(sets) = cpu_sets(reader, &online, &format!("cache/{index}/shared_cpu_list")) else {
            continue;
        };
        for cpu in sets.iter().filter_map(|set| set.first()) {
            let Some(size) = reader.optional(&file(*cpu, "size"), attribute::cache_size) else {
                continue;
            };
            let is_same = |cache: &&mut CpuCache| cache.name == name && cache.size_bytes == size;
            match caches.iter_mut().find(is_same) {
                Some(cache) => cache.instances += 1,
                None => {
                    caches.push(CpuCache { name: name.clone(), size_bytes: size, instances: 1 });
                }
            }
        }
    }
    if caches.is_empty() {
        let why = format!("/{CPU}{first}/cache names none");
        reader.missing.insert("caches".to_owned(), why);
    }
    caches
}

/// The memory nodes.
pub(super) fn numa_nodes(reader: &mut HardwareReader<'_>) -> Vec<NumaNode> {
    let online = reader.read(NODES_ONLINE, cpu_numbers);
    let Some(online) = reader.or_missing("numa_nodes", online) else { return Vec::new() };
    let node = |node: u32| {
        let file = |name: &str| format!("sys/devices/system/node/node{node}/{name}");
        let cpus = reader.optional(&file("cpulist"), text);
        let memory_bytes =
            reader.optional(&file("meminfo"), |bytes| meminfo::node_total(bytes, node));
        NumaNode { node, cpus, memory_bytes }
    };
    online.into_iter().map(node).collect()
}

/// The list of online nodes, in the format of a CPU list.
pub(super) const NODES_ONLINE: &str = "sys/devices/system/node/online";

impl HardwareMemory {
    pub(super) fn of(reader: &mut HardwareReader<'_>) -> HardwareMemory {
        let memory = reader.read("proc/meminfo", meminfo::parse);
        let swap = memory.clone().and_then(|memory| {
            memory.swap_total.ok_or_else(|| "/proc/meminfo names no swap".to_owned())
        });
        HardwareMemory {
            total_bytes: reader.or_missing("memory.total_bytes", memory.map(|memory| memory.total)),
            swap_bytes: reader.or_missing("memory.swap_bytes", swap),
            transparent_huge_pages: reader.required(
                "memory.transparent_huge_pages",
                "sys/kernel/mm/transparent_hugepage/enabled",
                chosen,
            ),
        }
    }
}

fn chosen(bytes: &[u8]) -> Result<String, MalformedFile> {
    Ok(String::from_utf8_lossy(attribute::selected(bytes)?).into_owned())
}
