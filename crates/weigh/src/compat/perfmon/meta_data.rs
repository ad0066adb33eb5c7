//! `meta_data.json`: the hardware of each node, under the names that lscpu's lines got in perfmon.
//!
//! Sizes are bytes and frequencies MHz. What is not known is null.

use super::json::JsonWriter;
use crate::compat::python::PythonValue;
use crate::model::hardware::Hardware;
use crate::record::Recording;

/// The document of these recordings, each of one node.
pub(super) fn document(recordings: &[&Recording]) -> std::io::Result<Vec<u8>> {
    let mut nodes: Vec<(&str, Vec<(String, PythonValue)>)> = recordings
        .iter()
        .map(|recording| (recording.manifest().host.name.as_str(), node(recording)))
        .collect();
    nodes.sort_by_key(|(host, _)| *host);
    let names = || nodes.iter().map(|(host, _)| *host);
    let mut keys: Vec<&str> = names().chain(["host_names"]).collect();
    keys.sort_unstable();
    let mut json = JsonWriter::new(Vec::new(), 0);
    json.open('{')?;
    for key in keys {
        json.key(key)?;
        match nodes.iter().find(|(host, _)| *host == key) {
            Some((_, entries)) => {
                json.open('{')?;
                for (name, value) in entries {
                    json.key(name)?;
                    json.value(value)?;
                }
                json.close('}')?;
            }
            None => {
                json.open('[')?;
                names().try_for_each(|name| json.item(&PythonValue::Text(name.to_owned())))?;
                json.close(']')?;
            }
        }
    }
    json.close('}')?;
    json.finish()
}

/// What is known of one node, in the order of the names.
fn node(recording: &Recording) -> Vec<(String, PythonValue)> {
    let text = |text: Option<&str>| {
        text.map_or(PythonValue::Missing, |text| PythonValue::Text(text.to_owned()))
    };
    let number = |number: Option<u32>| PythonValue::whole(number.map(u64::from));
    let megahertz = |hertz: Option<u64>| PythonValue::real(hertz.map(|hertz| hertz as f64 / 1e6));
    let manifest = recording.manifest();
    let unknown = Hardware::default();
    let hardware = manifest.hardware.as_ref().unwrap_or(&unknown);
    let (cpu, memory) = (&hardware.cpu, &hardware.memory);
    let smt = cpu.smt_active.map(u64::from);
    let nodes = u64::try_from(hardware.numa_nodes.len()).ok().filter(|count| *count > 0);
    let mut entries: Vec<(String, PythonValue)> = [
        ("Architecture", text(Some(&manifest.host.architecture))),
        ("BogoMIPS", PythonValue::real(cpu.bogomips)),
        ("CPU_Family", number(cpu.family)),
        ("CPU_Max_Speed_MHz", megahertz(cpu.frequency_max_hertz)),
        ("CPU_Min_Speed_MHz", megahertz(cpu.frequency_min_hertz)),
        ("CPU_Model", text(cpu.model_name.as_deref())),
        ("CPU_num", PythonValue::Whole(i64::from(manifest.host.cores))),
        ("Cores_per_socket", number(cpu.cores_per_socket)),
        ("Memory_Total", PythonValue::whole(memory.total_bytes.or(manifest.host.memory_bytes))),
        ("Microcode", text(cpu.microcode.as_deref())),
        ("NUMA_nodes", PythonValue::whole(nodes)),
        ("Online_CPUs_list", text(cpu.online.as_deref())),
        ("Power_Driver", text(cpu.frequency_driver.as_deref())),
        ("Power_Policy", text(cpu.governors.first().map(String::as_str))),
        ("SMT_Enabled?", PythonValue::whole(smt)),
        ("Sockets", number(cpu.sockets)),
        ("Stepping", text(cpu.stepping.as_deref())),
        ("Swap_Total", PythonValue::whole(memory.swap_bytes)),
        ("Threads_per_core", number(cpu.threads_per_core)),
        ("Vendor_ID", text(cpu.vendor.as_deref())),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec();
    entries.extend(hardware.caches.iter().map(|cache| {
        (format!("{}_cache", cache.name), PythonValue::whole(Some(cache.size_bytes)))
    }));
    entries.extend(
        hardware
            .numa_nodes
            .iter()
            .map(|node| (format!("NUMA_node{}_CPUs", node.node), text(node.cpus.as_deref()))),
    );
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    entries
}
