//! Whether the machine is a virtual one, and whether this is a container: each with what told it.
//!
//! Sources: `/proc/cpuinfo`, `/sys/class/dmi/id`, `/sys/hypervisor/type`, `/proc/self/cgroup`, marks
//! that container engines leave in the file system, and variables that they set. Every user may
//! read all of them. A mark can be left over (an image that was made by one engine and is run by
//! another), so what is said always says who said it.
//!
//! What surprises: bare metal on x86 can be told, because guests have the flag `hypervisor`; on ARM
//! only the firmware's words tell, and where it has none nobody knows.

use std::ffi::OsString;

use super::reader::{HardwareReader, text};
use crate::host::environment;
use crate::model::hardware::Stated;
use crate::parse::{cgroup, cpuinfo};

/// What cannot be read from files: it is of the machine on which weigh runs.
#[derive(Debug, Clone, Copy)]
pub struct Live {
    /// A variable of this process.
    pub variable: fn(&str) -> Option<OsString>,
    /// The twelve letters by which a hypervisor presents itself.
    pub signature: fn() -> Option<[u8; 12]>,
}

impl Live {
    /// This machine.
    pub fn here() -> Live {
        Live { variable: environment::variable, signature }
    }

    /// A machine that is known by its files alone.
    pub fn elsewhere() -> Live {
        Live { variable: |_| None, signature: || None }
    }
}

/// What a guest is told by its processor (CPUID leaf 0x40000000), when it is one.
#[cfg(target_arch = "x86_64")]
fn signature() -> Option<[u8; 12]> {
    let mut letters = [0; 12];
    let said = std::arch::x86_64::__cpuid(0x4000_0000);
    for (place, register) in letters.chunks_exact_mut(4).zip([said.ebx, said.ecx, said.edx]) {
        place.copy_from_slice(&register.to_le_bytes());
    }
    Some(letters)
}

#[cfg(not(target_arch = "x86_64"))]
fn signature() -> Option<[u8; 12]> {
    None
}

/// Words of a firmware, and whose they are. The first that fits counts.
const FIRMWARES: &[(&str, &str)] = &[
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("KubeVirt", "kvm"),
    ("Amazon EC2", "amazon"),
    ("Google Compute Engine", "google"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("VMW", "vmware"),
    ("innotek GmbH", "virtualbox"),
    ("VirtualBox", "virtualbox"),
    ("Xen", "xen"),
    ("Bochs", "bochs"),
    ("Parallels", "parallels"),
    ("BHYVE", "bhyve"),
    ("Hyper-V", "hyper-v"),
    ("Apple Virtualization", "apple"),
];

/// The virtual machine this is, or `none`.
pub(super) fn virtual_machine(
    reader: &mut HardwareReader<'_>,
    live: Live,
) -> Result<Stated, String> {
    let release = reader.optional("proc/sys/kernel/osrelease", text).unwrap_or_default();
    if release.contains("WSL") || release.contains("Microsoft") || release.contains("microsoft") {
        return Ok(Stated::by("/proc/sys/kernel/osrelease", "wsl"));
    }
    let (is_uml, is_x86, is_guest) = reader.read("proc/cpuinfo", |bytes| {
        let cpu = cpuinfo::parse(bytes)?;
        let is_uml = cpu.vendor == Some("User Mode Linux");
        Ok((is_uml, cpu.family.is_some() && !is_uml, cpu.has_flag("hypervisor")))
    })?;
    if is_uml {
        return Ok(Stated::by("/proc/cpuinfo", "uml"));
    }
    if let Some(told) = firmware(reader) {
        return Ok(told);
    }
    if let Some(kind) = reader.optional("sys/hypervisor/type", text) {
        return Ok(Stated::by("/sys/hypervisor/type", &kind));
    }
    match (is_x86, is_guest) {
        (true, false) => Ok(Stated::by("no flag hypervisor in /proc/cpuinfo", "none")),
        (true, true) => by_signature((live.signature)()).ok_or_else(|| {
            "it is a virtual machine (flag hypervisor in /proc/cpuinfo), and nothing says whose"
                .to_owned()
        }),
        _ => Err("neither /sys/class/dmi/id nor /sys/hypervisor names one".to_owned()),
    }
}

fn firmware(reader: &mut HardwareReader<'_>) -> Option<Stated> {
    let file = |name: &str| format!("sys/class/dmi/id/{name}");
    let product = reader.optional(&file("product_name"), text);
    // EC2 has machines of metal, whose firmware says EC2 as well.
    if product.as_deref().is_some_and(|product| product.ends_with(".metal")) {
        return Some(Stated::by("/sys/class/dmi/id/product_name", "none"));
    }
    let vendor = reader.optional(&file("sys_vendor"), text);
    if vendor.as_deref() == Some("Microsoft Corporation")
        && product.as_deref() == Some("Virtual Machine")
    {
        return Some(Stated::by("/sys/class/dmi/id/product_name", "hyper-v"));
    }
    let others =
        ["board_vendor", "bios_vendor"].map(|name| (name, reader.optional(&file(name), text)));
    let words = [("product_name", product), ("sys_vendor", vendor)].into_iter().chain(others);
    for (name, word) in words {
        let word = word.unwrap_or_default();
        if let Some((_, whose)) = FIRMWARES.iter().find(|(known, _)| word.starts_with(known)) {
            return Some(Stated::by(&format!("/{}", file(name)), whose));
        }
    }
    None
}

fn by_signature(letters: Option<[u8; 12]>) -> Option<Stated> {
    let name = match &letters? {
        b"KVMKVMKVM\0\0\0" | b"Linux KVM Hv" => "kvm",
        b"TCGTCGTCGTCG" => "qemu",
        b"VMwareVMware" => "vmware",
        b"Microsoft Hv" => "hyper-v",
        b"XenVMMXenVMM" => "xen",
        b"bhyve bhyve " => "bhyve",
        b"VBoxVBoxVBox" => "virtualbox",
        b" prl hyperv " => "parallels",
        b"ACRNACRNACRN" => "acrn",
        _ => return None,
    };
    Some(Stated::by("CPUID", name))
}

/// Marks that engines leave in a container's file system.
const MARKS: &[(&str, &str)] =
    &[(".singularity.d", "apptainer"), ("run/.containerenv", "podman"), (".dockerenv", "docker")];

/// Parts of the names of control groups that engines make.
const GROUPS: &[(&str, &str)] = &[
    ("kubepods", "kubernetes"),
    ("libpod", "podman"),
    ("docker", "docker"),
    ("containerd", "containerd"),
    ("lxc.payload", "lxc"),
    ("/lxc/", "lxc"),
];

/// The container this is, where anything says so.
pub(super) fn container(reader: &mut HardwareReader<'_>, live: Live) -> Result<Stated, String> {
    let is_set = |name: &str| (live.variable)(name).is_some_and(|value| !value.is_empty());
    for name in ["APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"] {
        if is_set(name) {
            return Ok(Stated::by(&format!("${name}"), "apptainer"));
        }
    }
    // systemd's word for it, set by nspawn, podman, lxc and others.
    let plain = |name: &String| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let said = (live.variable)("container").and_then(|value| value.into_string().ok());
    if let Some(name) = said.filter(|name| !name.is_empty()).filter(plain) {
        return Ok(Stated::by("$container", &name));
    }
    if let Some(name) = reader.optional("run/systemd/container", text).filter(plain) {
        return Ok(Stated::by("/run/systemd/container", &name));
    }
    if let Some((mark, name)) = MARKS.iter().find(|(mark, _)| reader.has(mark)) {
        return Ok(Stated::by(&format!("/{mark}"), name));
    }
    if let Some(name) = reader.optional("proc/self/cgroup", |bytes| Ok(by_group(bytes))).flatten() {
        return Ok(Stated::by("/proc/self/cgroup", name));
    }
    if is_set("KUBERNETES_SERVICE_HOST") {
        return Ok(Stated::by("$KUBERNETES_SERVICE_HOST", "kubernetes"));
    }
    Err("nothing says that this is one".to_owned())
}

fn by_group(bytes: &[u8]) -> Option<&'static str> {
    cgroup::memberships(bytes).find_map(|membership| {
        let path = String::from_utf8_lossy(membership.path);
        // The daemon itself runs in a group of this name, too, and is no container.
        let is_inside = |part: &str| path.contains(part) && !path.ends_with(".service");
        GROUPS.iter().find(|(part, _)| is_inside(part)).map(|(_, name)| *name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    const X86: &str = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nflags\t\t: fpu sse\n\n";
    const GUEST: &str = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nflags\t\t: fpu hypervisor\n\n";

    fn machine(fake: &FakeHost, live: Live) -> Result<(String, String), String> {
        let host = fake.host();
        let told = virtual_machine(&mut HardwareReader::at(&host.root), live)?;
        Ok((told.name, told.told_by))
    }

    fn said(name: &str, by: &str) -> Result<(String, String), String> {
        Ok((name.to_owned(), by.to_owned()))
    }

    fn inside(fake: &FakeHost, live: Live) -> Result<(String, String), String> {
        let host = fake.host();
        let told = container(&mut HardwareReader::at(&host.root), live)?;
        Ok((told.name, told.told_by))
    }

    #[test]
    fn virtual_machines_are_told_by_their_firmware_and_bare_metal_by_a_flag_it_lacks() {
        let fake = FakeHost::new().proc("cpuinfo", X86);
        let flag = "no flag hypervisor in /proc/cpuinfo";
        assert_eq!(machine(&fake, Live::elsewhere()), said("none", flag));
        let fake = fake.sys("class/dmi/id/sys_vendor", "QEMU\n");
        let file = "/sys/class/dmi/id/sys_vendor";
        assert_eq!(machine(&fake, Live::elsewhere()), said("qemu", file));
        let fake = FakeHost::new()
            .proc("cpuinfo", GUEST)
            .sys("class/dmi/id/sys_vendor", "Amazon EC2\n")
            .sys("class/dmi/id/product_name", "c5.metal\n");
        let file = "/sys/class/dmi/id/product_name";
        assert_eq!(machine(&fake, Live::elsewhere()), said("none", file));
    }

    #[test]
    fn a_guest_without_firmware_presents_its_hypervisor_or_nobody_knows_whose_it_is() {
        let fake = FakeHost::new().proc("cpuinfo", GUEST);
        let kvm = Live { signature: || Some(*b"KVMKVMKVM\0\0\0"), ..Live::elsewhere() };
        assert_eq!(machine(&fake, kvm), said("kvm", "CPUID"));
        assert!(machine(&fake, Live::elsewhere()).unwrap_err().contains("nothing says whose"));
        let strange = Live { signature: || Some([7; 12]), ..Live::elsewhere() };
        assert!(machine(&fake, strange).is_err());
    }

    #[test]
    fn windows_and_user_mode_linux_are_told_by_the_kernel() {
        let fake = FakeHost::new().proc("sys/kernel/osrelease", "5.15.0-microsoft-standard-WSL2\n");
        let file = "/proc/sys/kernel/osrelease";
        assert_eq!(machine(&fake, Live::elsewhere()), said("wsl", file));
        let fake = FakeHost::new().proc("cpuinfo", "vendor_id\t: User Mode Linux\n");
        assert_eq!(machine(&fake, Live::elsewhere()), said("uml", "/proc/cpuinfo"));
        assert!(machine(&FakeHost::new(), Live::elsewhere()).is_err());
    }

    #[test]
    fn a_container_is_told_by_its_variable_its_mark_or_its_group() {
        let nothing = FakeHost::new().proc("self/cgroup", "0::/system.slice/docker.service\n");
        assert!(inside(&nothing, Live::elsewhere()).is_err());
        let set: fn(&str) -> Option<OsString> =
            |name| (name == "APPTAINER_CONTAINER").then(|| "/home/ada/x.sif".into());
        let apptainer = Live { variable: set, ..Live::elsewhere() };
        assert_eq!(inside(&nothing, apptainer), said("apptainer", "$APPTAINER_CONTAINER"));
        let group = FakeHost::new().proc("self/cgroup", "0::/kubepods/burstable/pod1/id\n");
        assert_eq!(inside(&group, Live::elsewhere()), said("kubernetes", "/proc/self/cgroup"));
        let mark = FakeHost::new().file(".dockerenv", "");
        assert_eq!(inside(&mark, Live::elsewhere()), said("docker", "/.dockerenv"));
        let systemd = FakeHost::new().file("run/systemd/container", "systemd-nspawn\n");
        let file = "/run/systemd/container";
        assert_eq!(inside(&systemd, Live::elsewhere()), said("systemd-nspawn", file));
    }
}
