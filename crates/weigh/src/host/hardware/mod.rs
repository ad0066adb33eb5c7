//! The hardware of the machine, to understand or repeat a run: processors, caches, memory, kernel,
//! distribution, GPUs, network; no `lscpu` needed.
//!
//! Every user may read all of it. It is a few hundred small files on a large machine, and
//! `/proc/cpuinfo` of Linux before 5.18 waits 10 ms for the frequencies in it. So the command does
//! not wait for this: the thread of the recording reads it once the command runs.

mod devices;
mod guest;
mod memory;
pub mod microarchitecture;
mod processor;
mod reader;
pub mod surroundings;
#[cfg(test)]
mod tests;

use super::Dir;
use crate::model::hardware::{Distribution, Hardware, HardwareMemory, Processor};
use crate::parse::{MalformedFile, os_release};
pub use guest::Live;
use reader::{HardwareReader, text};

impl Hardware {
    /// Reads the hardware of the machine with this root.
    pub fn of(root: &Dir, live: Live) -> Hardware {
        let reader = &mut HardwareReader::at(root);
        let cpu = Processor::of(reader);
        let caches = memory::caches(reader);
        let numa_nodes = memory::numa_nodes(reader);
        let memory = HardwareMemory::of(reader);
        let kernel = reader.required("kernel", "proc/sys/kernel/osrelease", text);
        let kernel_build = reader.required("kernel_build", "proc/sys/kernel/version", text);
        // The first usually links to the second, which an image may lack.
        let release = reader.read("etc/os-release", distribution);
        let release =
            release.or_else(|why| reader.read("usr/lib/os-release", distribution).map_err(|_| why));
        let distribution = reader.or_missing("distribution", release);
        let virtual_machine = guest::virtual_machine(reader, live);
        let virtual_machine = reader.or_missing("virtual_machine", virtual_machine);
        let container = guest::container(reader, live);
        let container = reader.or_missing("container", container);
        let gpus = devices::gpus(reader);
        let network = devices::nics(reader);
        let infiniband = devices::ports(reader);
        Hardware {
            cpu,
            caches,
            numa_nodes,
            memory,
            kernel,
            kernel_build,
            distribution,
            virtual_machine,
            container,
            gpus,
            network,
            infiniband,
            missing: std::mem::take(&mut reader.missing),
        }
    }
}

fn distribution(bytes: &[u8]) -> Result<Distribution, MalformedFile> {
    let found = os_release::parse(bytes)?;
    match found.pretty_name.is_some() || found.id.is_some() {
        true => Ok(Distribution { name: found.pretty_name, id: found.id, version: found.version }),
        false => Err(MalformedFile("a name")),
    }
}
