//! The hardware of a machine, and the limits of a run on it, as `run.json` holds it.
//!
//! Plain data: `host::hardware` reads it from the machine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The hardware of a machine. What is not known is null or an empty list, and `missing` says why.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hardware {
    /// The processors.
    pub cpu: Processor,
    /// The caches.
    pub caches: Vec<CpuCache>,
    /// The memory nodes.
    pub numa_nodes: Vec<NumaNode>,
    /// The memory.
    pub memory: HardwareMemory,
    /// The running kernel: `6.1.0-18-amd64`.
    pub kernel: Option<String>,
    /// When and how it was built.
    pub kernel_build: Option<String>,
    /// The distribution.
    pub distribution: Option<Distribution>,
    /// The virtual machine it is; `none` for bare metal.
    pub virtual_machine: Option<Stated>,
    /// The container weigh is in; null when nothing says that it is in one.
    pub container: Option<Stated>,
    /// The graphics processors.
    pub gpus: Vec<HardwareGpu>,
    /// The network devices that are hardware.
    pub network: Vec<HardwareNic>,
    /// The ports of InfiniBand, RoCE and Omni-Path adapters.
    pub infiniband: Vec<HardwarePort>,
    /// Why something is not known, by its key.
    pub missing: BTreeMap<String, String>,
}

/// The distribution; in a container, that of its image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Distribution {
    /// For people: `Debian GNU/Linux 12 (bookworm)`.
    pub name: Option<String>,
    /// For programs: `debian`.
    pub id: Option<String>,
    /// Its release: `12`.
    pub version: Option<String>,
}

/// The processors of a machine. What is not known is null, and `missing` says why.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Processor {
    /// Its vendor id: `GenuineIntel`, `AuthenticAMD`, `ARM`.
    pub vendor: Option<String>,
    /// Its model name.
    pub model_name: Option<String>,
    /// What archspec calls its design: `zen3`, `cascadelake`, `neoverse_n1`.
    pub microarchitecture: Option<String>,
    /// Its family, on x86.
    pub family: Option<u32>,
    /// Its model in the family; on ARM its part.
    pub model: Option<u32>,
    /// Its stepping; on ARM variant and revision, as in `r3p1`.
    pub stepping: Option<String>,
    /// The microcode that is loaded, on x86.
    pub microcode: Option<String>,
    /// What the kernel counted at boot; says nothing of its speed.
    pub bogomips: Option<f64>,
    /// CPUs that are online, as the kernel lists them: `0-63`.
    pub online: Option<String>,
    /// CPUs that are online.
    pub cpus: Option<u32>,
    /// Sockets.
    pub sockets: Option<u32>,
    /// Cores of all sockets.
    pub cores: Option<u32>,
    /// Cores in each socket; null where sockets differ.
    pub cores_per_socket: Option<u32>,
    /// Threads of each core; null where cores differ.
    pub threads_per_core: Option<u32>,
    /// Whether cores run several threads at once (SMT, Hyper-Threading).
    pub smt_active: Option<bool>,
    /// The SMT control of the kernel: `on`, `off`, `forceoff`, `notsupported`.
    pub smt_control: Option<String>,
    /// The lowest frequency that a CPU may have.
    pub frequency_min_hertz: Option<u64>,
    /// The highest frequency that a CPU may have, boost included.
    pub frequency_max_hertz: Option<u64>,
    /// The frequency it has without boost.
    pub frequency_base_hertz: Option<u64>,
    /// The frequency governors (`performance`, `schedutil`), each once.
    pub governors: Vec<String>,
    /// The driver that sets it.
    pub frequency_driver: Option<String>,
    /// The energy performance preference, where the processor itself decides.
    pub energy_preference: Option<String>,
    /// Whether it may be faster than its base frequency for a while.
    pub boost: Option<bool>,
}

/// One kind of cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CpuCache {
    /// As people call it: `L1d`, `L1i`, `L2`, `L3`.
    pub name: String,
    /// The size of one.
    pub size_bytes: u64,
    /// How many of this size there are.
    pub instances: u32,
}

/// One memory node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NumaNode {
    /// Its number.
    pub node: u32,
    /// Its CPUs, as the kernel lists them; null for memory without CPUs.
    pub cpus: Option<String>,
    /// Its memory.
    pub memory_bytes: Option<u64>,
}

/// The memory of the whole machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HardwareMemory {
    /// What the kernel can give out.
    pub total_bytes: Option<u64>,
    /// Swap space.
    pub swap_bytes: Option<u64>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
}

/// A graphics processor.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HardwareGpu {
    /// Its PCI address: `0000:3b:00.0`.
    pub bus: Option<String>,
    /// Its vendor.
    pub vendor: Option<String>,
    /// What it is called; null where only its number is known.
    pub name: Option<String>,
    /// Vendor and device by their numbers on the bus: `10DE:20B5`.
    pub pci_id: Option<String>,
    /// The driver that runs it.
    pub driver: Option<String>,
    /// The version of that driver; null for drivers that are part of the kernel.
    pub driver_version: Option<String>,
    /// Its firmware.
    pub firmware: Option<String>,
    /// Its own memory.
    pub memory_bytes: Option<u64>,
}

impl HardwareGpu {
    /// What it is called, as far as that is known.
    pub fn called(&self) -> String {
        let numbered = || match (&self.vendor, &self.pci_id) {
            (Some(vendor), Some(id)) => format!("{vendor} {id}"),
            (one, other) => one.clone().or(other.clone()).unwrap_or_else(|| "unnamed".to_owned()),
        };
        self.name.clone().unwrap_or_else(numbered)
    }
}

/// A network device that is hardware, or that a hypervisor gives out as such.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HardwareNic {
    /// Its name.
    pub name: String,
    /// The driver that runs it.
    pub driver: Option<String>,
    /// Vendor and device by their numbers on the bus.
    pub pci_id: Option<String>,
    /// Bits in a second; null while it is down, and for virtual ones.
    pub speed_bits_per_second: Option<u64>,
    /// The largest packet, in bytes.
    pub mtu_bytes: Option<u64>,
    /// `up`, `down` or `unknown`.
    pub state: Option<String>,
}

/// A port of an InfiniBand, RoCE or Omni-Path adapter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HardwarePort {
    /// Adapter and port: `mlx5_0/1`.
    pub port: String,
    /// The model of the adapter: `MT4123`.
    pub adapter: Option<String>,
    /// Its firmware.
    pub firmware: Option<String>,
    /// `InfiniBand` or `Ethernet`.
    pub link_layer: Option<String>,
    /// Bits in a second.
    pub rate_bits_per_second: Option<u64>,
    /// `ACTIVE`, `DOWN` and others.
    pub state: Option<String>,
}

/// What something is, and where that is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stated {
    /// Its name in small letters: `kvm`, `docker`; `none` for bare metal.
    pub name: String,
    /// The file, flag or variable that says so.
    pub told_by: String,
}

impl Stated {
    /// What it is, by the file that says so.
    pub fn by(told_by: &str, name: &str) -> Stated {
        Stated { name: name.to_owned(), told_by: told_by.to_owned() }
    }
}

/// The limits of a run. What is not known is null, and `missing` says why.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Surroundings {
    /// Limits on a process, by the kernel's names: `Max open files`.
    pub limits: BTreeMap<String, LimitRange>,
    /// CPUs it may run on, as the kernel lists them.
    pub cpus_allowed: Option<String>,
    /// Memory nodes it may have memory of.
    pub memory_nodes_allowed: Option<String>,
    /// How far each memory node is from each, in the order of `hardware.numa_nodes`; 10 is itself.
    pub numa_distances: Vec<Vec<u64>>,
    /// Whether the kernel moves memory to where it is used.
    pub numa_balancing: Option<u64>,
    /// Address space randomisation: 0 is off, 2 is full.
    pub address_randomization: Option<u64>,
    /// Memory overcommit: 0 heuristic, 1 always, 2 never.
    pub memory_overcommit: Option<u64>,
    /// The swappiness of the kernel.
    pub swappiness: Option<u64>,
    /// Environment modules that were loaded; null where there is no such thing.
    pub modules: Option<Vec<String>>,
    /// Names in that list that are no valid module names, and are not recorded.
    pub modules_left_out: u64,
    /// Why something is not known, by its key.
    pub missing: BTreeMap<String, String>,
}

/// A soft and a hard limit; null is no limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitRange {
    /// The soft limit.
    pub soft: Option<u64>,
    /// The hard limit.
    pub hard: Option<u64>,
    /// What it is counted in; null is a plain number.
    pub unit: Option<String>,
}
