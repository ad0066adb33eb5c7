//! Whether this is a virtual machine or a container, each with the source that says so.
//!
//! Sources: `/proc/cpuinfo`, `/sys/class/dmi/id`, `/sys/hypervisor/type`, `/proc/self/cgroup`,
//! marker files of container engines, and variables that they set. Every user may read all of them.
//! A marker file can be stale (an image built by one engine and run by another), so the source is
//! always given.
//!
//! What surprises: bare metal is detectable on x86, because guests have the flag `hypervisor`; on
//! ARM only strings of the firmware identify a guest, and without them it is unknown.

use std::ffi::OsString;

use super::reader::{HardwareReader, text};
use crate::host::environment;
use crate::model::hardware::Stated;
use crate::parse::{cgroup, cpuinfo};

/// Sources other than files, of the machine on which weigh runs.
#[derive(Debug, Clone, Copy)]
pub struct Live {
    /// An environment variable of this process.
    pub variable: fn(&str) -> Option<OsString>,
    /// The 12-byte signature of the hypervisor.
    pub signature: fn() -> Option<[u8; 12]>,
}

impl Live {
    /// This machine.
    pub fn here() -> Live {
        Live { variable: environment::variable, signature }
    }

    /// A machine of which only files are known.
    pub fn elsewhere() -> Live {
        Live { variable: |_| None, signature: || None }
    }
}

/// The hypervisor signature (CPUID leaf 0x40000000) of a guest.
#[cfg(target_arch = "x86_64")]
fn signature() -> Option<[u8; 12]> {
    let mut letters = [0; 12];
    let cpuid = std::arch::x86_64::__cpuid(0x4000_0000);
    for (place, register) in letters.chunks_exact_mut(4).zip([cpuid.ebx, cpuid.ecx, cpuid.edx]) {
        place.copy_from_slice(&register.to_le_bytes());
    }
    Some(letters)
}

#[cfg(not(target_arch = "x86_64"))]
fn signature() -> Option<[u8; 12]> {
    None
}

/// Strings of a firmware, and the hypervisor they belong to. The first match counts.
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
    if let Some(found) = firmware(reader) {
        return Ok(found);
    }
    if let Some(kind) = reader.optional("sys/hypervisor/type", text) {
        return Ok(Stated::by("/sys/hypervisor/type", &kind));
    }
    match (is_x86, is_guest) {
        (true, false) => Ok(Stated::by("no flag hypervisor in /proc/cpuinfo", "none")),
        (true, true) => by_signature((live.signature)()).ok_or_else(|| {
            "it is a virtual machine (flag hypervisor in /proc/cpuinfo), and nothing identifies the \
             hypervisor"
                .to_owned()
        }),
        _ => Err("neither /sys/class/dmi/id nor /sys/hypervisor names one".to_owned()),
    }
}

fn firmware(reader: &mut HardwareReader<'_>) -> Option<Stated> {
    let file = |name: &str| format!("sys/class/dmi/id/{name}");
    let product = reader.optional(&file("product_name"), text);
    // Bare-metal instances of EC2 have a firmware that says EC2, too.
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
    let strings = [("product_name", product), ("sys_vendor", vendor)].into_iter().chain(others);
    for (name, string) in strings {
        let string = string.unwrap_or_default();
        if let Some((_, whose)) = FIRMWARES.iter().find(|(known, _)| string.starts_with(known)) {
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

/// Marker files of engines in a container's file system.
const MARKER_FILES: &[(&str, &str)] =
    &[(".singularity.d", "apptainer"), ("run/.containerenv", "podman"), (".dockerenv", "docker")];

/// Parts of the names of cgroups created by engines.
const GROUPS: &[(&str, &str)] = &[
    ("kubepods", "kubernetes"),
    ("libpod", "podman"),
    ("docker", "docker"),
    ("containerd", "containerd"),
    ("lxc.payload", "lxc"),
    ("/lxc/", "lxc"),
];

/// The container engine, if one is detected.
pub(super) fn container(reader: &mut HardwareReader<'_>, live: Live) -> Result<Stated, String> {
    let is_set = |name: &str| (live.variable)(name).is_some_and(|value| !value.is_empty());
    for name in ["APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"] {
        if is_set(name) {
            return Ok(Stated::by(&format!("${name}"), "apptainer"));
        }
    }
    // systemd's convention, set by nspawn, podman, lxc and others.
    let plain = |name: &String| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let value = (live.variable)("container").and_then(|value| value.into_string().ok());
    if let Some(name) = value.filter(|name| !name.is_empty()).filter(plain) {
        return Ok(Stated::by("$container", &name));
    }
    if let Some(name) = reader.optional("run/systemd/container", text).filter(plain) {
        return Ok(Stated::by("/run/systemd/container", &name));
    }
    if let Some((mark, name)) = MARKER_FILES.iter().find(|(mark, _)| reader.has(mark)) {
        return Ok(Stated::by(&format!("/{mark}"), name));
    }
    if let Some(name) = reader.optional("proc/self/cgroup", |bytes| Ok(by_group(bytes))).flatten() {
        return Ok(Stated::by("/proc/self/cgroup", name));
    }
    if is_set("KUBERNETES_SERVICE_HOST") {
        return Ok(Stated::by("$KUBERNETES_SERVICE_HOST", "kubernetes"));
    }
    Err("no sign of a container was found".to_owned())
}

fn by_group(bytes: &[u8]) -> Option<&'static str> {
    cgroup::memberships(bytes).find_map(|membership| {
        let path = String::from_utf8_lossy(membership.path);
        // The daemon itself runs in a cgroup of this name, too, and is no container.
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
        let found = virtual_machine(&mut HardwareReader::at(&host.root), live)?;
        Ok((found.name, found.told_by))
    }

    fn expected(name: &str, by: &str) -> Result<(String, String), String> {
        Ok((name.to_owned(), by.to_owned()))
    }

    fn inside(fake: &FakeHost, live: Live) -> Result<(String, String), String> {
        let host = fake.host();
        let found = container(&mut HardwareReader::at(&host.root), live)?;
        Ok((found.name, found.told_by))
    }

    #[test]
    fn firmware_identifies_a_guest_and_a_missing_flag_bare_metal() {
        let fake = FakeHost::new().proc("cpuinfo", X86);
        let flag = "no flag hypervisor in /proc/cpuinfo";
        assert_eq!(machine(&fake, Live::elsewhere()), expected("none", flag));
        let fake = fake.sys("class/dmi/id/sys_vendor", "QEMU\n");
        let file = "/sys/class/dmi/id/sys_vendor";
        assert_eq!(machine(&fake, Live::elsewhere()), expected("qemu", file));
        let fake = FakeHost::new()
            .proc("cpuinfo", GUEST)
            .sys("class/dmi/id/sys_vendor", "Amazon EC2\n")
            .sys("class/dmi/id/product_name", "c5.metal\n");
        let file = "/sys/class/dmi/id/product_name";
        assert_eq!(machine(&fake, Live::elsewhere()), expected("none", file));
    }

    #[test]
    fn guest_without_firmware_is_identified_by_cpuid_or_unknown() {
        let fake = FakeHost::new().proc("cpuinfo", GUEST);
        let kvm = Live { signature: || Some(*b"KVMKVMKVM\0\0\0"), ..Live::elsewhere() };
        assert_eq!(machine(&fake, kvm), expected("kvm", "CPUID"));
        assert!(machine(&fake, Live::elsewhere()).unwrap_err().contains("nothing identifies"));
        let strange = Live { signature: || Some([7; 12]), ..Live::elsewhere() };
        assert!(machine(&fake, strange).is_err());
    }

    #[test]
    fn kernel_identifies_wsl_and_user_mode_linux() {
        let fake = FakeHost::new().proc("sys/kernel/osrelease", "5.15.0-microsoft-standard-WSL2\n");
        let file = "/proc/sys/kernel/osrelease";
        assert_eq!(machine(&fake, Live::elsewhere()), expected("wsl", file));
        let fake = FakeHost::new().proc("cpuinfo", "vendor_id\t: User Mode Linux\n");
        assert_eq!(machine(&fake, Live::elsewhere()), expected("uml", "/proc/cpuinfo"));
        assert!(machine(&FakeHost::new(), Live::elsewhere()).is_err());
    }

    #[test]
    fn variable_marker_file_or_cgroup_identifies_a_container() {
        let nothing = FakeHost::new().proc("self/cgroup", "0::/system.slice/docker.service\n");
        assert!(inside(&nothing, Live::elsewhere()).is_err());
        let set: fn(&str) -> Option<OsString> =
            |name| (name == "APPTAINER_CONTAINER").then(|| "/home/ada/x.sif".into());
        let apptainer = Live { variable: set, ..Live::elsewhere() };
        assert_eq!(inside(&nothing, apptainer), expected("apptainer", "$APPTAINER_CONTAINER"));
        let group = FakeHost::new().proc("self/cgroup", "0::/kubepods/burstable/pod1/id\n");
        assert_eq!(inside(&group, Live::elsewhere()), expected("kubernetes", "/proc/self/cgroup"));
        let mark = FakeHost::new().file(".dockerenv", "");
        assert_eq!(inside(&mark, Live::elsewhere()), expected("docker", "/.dockerenv"));
        let systemd = FakeHost::new().file("run/systemd/container", "systemd-nspawn\n");
        let file = "/run/systemd/container";
        assert_eq!(inside(&systemd, Live::elsewhere()), expected("systemd-nspawn", file));
    }
}
