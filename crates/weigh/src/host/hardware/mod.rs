//! What the machine is made of, for whoever wants to understand or repeat a run: processors,
//! caches, memory, kernel, distribution, graphics, network; no `lscpu` needed.
//!
//! Every user may read all of it. It is a few hundred small files on a large machine, and
//! `/proc/cpuinfo` of Linux before 5.18 waits a hundredth of a second for the frequencies in it.
//! So nobody who is measured waits for this: the thread of the recording looks, once the command
//! runs.

mod devices;
mod guest;
mod look;
mod memory;
mod microarchitecture;
mod processor;
pub mod surroundings;
#[cfg(test)]
mod tests;

use super::Dir;
use crate::model::hardware::{Distribution, Hardware, HardwareMemory, Processor};
use crate::parse::{Malformed, os_release};
pub use guest::Live;
use look::{Look, text};

impl Hardware {
    /// Looks at the machine whose file system begins here.
    pub fn of(root: &Dir, live: Live) -> Hardware {
        let look = &mut Look::at(root);
        let cpu = Processor::of(look);
        let caches = memory::caches(look);
        let numa_nodes = memory::numa_nodes(look);
        let memory = HardwareMemory::of(look);
        let kernel = look.ask("kernel", "proc/sys/kernel/osrelease", text);
        let kernel_build = look.ask("kernel_build", "proc/sys/kernel/version", text);
        // The second is where the first points to, unless an image has removed it.
        let release = look.read("etc/os-release", distribution);
        let release =
            release.or_else(|why| look.read("usr/lib/os-release", distribution).map_err(|_| why));
        let distribution = look.known("distribution", release);
        let virtual_machine = guest::virtual_machine(look, live);
        let virtual_machine = look.known("virtual_machine", virtual_machine);
        let container = guest::container(look, live);
        let container = look.known("container", container);
        let gpus = devices::gpus(look);
        let network = devices::nics(look);
        let infiniband = devices::ports(look);
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
            missing: std::mem::take(&mut look.missing),
        }
    }
}

fn distribution(bytes: &[u8]) -> Result<Distribution, Malformed> {
    let found = os_release::parse(bytes)?;
    match found.pretty_name.is_some() || found.id.is_some() {
        true => Ok(Distribution { name: found.pretty_name, id: found.id, version: found.version }),
        false => Err(Malformed("a name")),
    }
}
