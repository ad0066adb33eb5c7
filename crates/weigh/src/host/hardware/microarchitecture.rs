//! The microarchitecture of a processor by the names of archspec (`zen3`, `cascadelake`), which
//! Spack, EasyBuild and perfmon's event lists use.
//!
//! The crate `archspec` detects only the machine it runs on, by CPU features: a virtual machine
//! that hides features appears as an older microarchitecture. This table uses family and model,
//! which captured machines have, too. Sources: the kernel's `arch/x86/include/asm/intel-family.h`,
//! `arch/x86/kernel/cpu/amd.c` and `arch/arm64/include/asm/cputype.h`. Processors without an
//! archspec name have none here.

use crate::parse::cpuinfo::Cpuinfo;

/// An ARM core by its implementer and part number.
struct ArmCore {
    implementer: u32,
    part: u32,
    /// Its product name.
    name: &'static str,
    /// Its archspec name, if it has one.
    design: Option<&'static str>,
}

const fn core(implementer: u32, part: u32, name: &'static str) -> ArmCore {
    ArmCore { implementer, part, name, design: None }
}

impl ArmCore {
    const fn called(self, design: &'static str) -> ArmCore {
        ArmCore { design: Some(design), ..self }
    }
}

const ARM: u32 = 0x41;
const APPLE: u32 = 0x61;

const CORES: &[ArmCore] = &[
    core(ARM, 0xd03, "Cortex-A53"),
    core(ARM, 0xd05, "Cortex-A55"),
    core(ARM, 0xd07, "Cortex-A57"),
    core(ARM, 0xd08, "Cortex-A72").called("cortex_a72"),
    core(ARM, 0xd09, "Cortex-A73"),
    core(ARM, 0xd0a, "Cortex-A75"),
    core(ARM, 0xd0b, "Cortex-A76"),
    core(ARM, 0xd0c, "Neoverse-N1").called("neoverse_n1"),
    core(ARM, 0xd0d, "Cortex-A77"),
    core(ARM, 0xd40, "Neoverse-V1").called("neoverse_v1"),
    core(ARM, 0xd41, "Cortex-A78"),
    core(ARM, 0xd49, "Neoverse-N2").called("neoverse_n2"),
    core(ARM, 0xd4f, "Neoverse-V2").called("neoverse_v2"),
    core(ARM, 0xd84, "Neoverse-V3"),
    core(ARM, 0xd8e, "Neoverse-N3"),
    core(0x42, 0x516, "ThunderX2").called("thunderx2"),
    core(0x43, 0x0af, "ThunderX2").called("thunderx2"),
    core(0x46, 0x001, "A64FX").called("a64fx"),
    core(0x48, 0xd01, "Kunpeng 920"),
    core(0x50, 0x000, "X-Gene"),
    core(0xc0, 0xac3, "Ampere-1").called("ampere1"),
    core(0xc0, 0xac4, "Ampere-1a").called("ampere1a"),
    core(APPLE, 0x022, "M1 Icestorm").called("m1"),
    core(APPLE, 0x023, "M1 Firestorm").called("m1"),
    core(APPLE, 0x024, "M1 Pro Icestorm").called("m1"),
    core(APPLE, 0x025, "M1 Pro Firestorm").called("m1"),
    core(APPLE, 0x028, "M1 Max Icestorm").called("m1"),
    core(APPLE, 0x029, "M1 Max Firestorm").called("m1"),
    core(APPLE, 0x032, "M2 Blizzard").called("m2"),
    core(APPLE, 0x033, "M2 Avalanche").called("m2"),
];

/// The vendor of an ARM core.
pub(super) fn implementer(number: u32) -> Option<&'static str> {
    Some(match number {
        ARM => "ARM",
        0x42 => "Broadcom",
        0x43 => "Cavium",
        0x46 => "Fujitsu",
        0x48 => "HiSilicon",
        0x4e => "NVIDIA",
        0x50 => "APM",
        0x51 => "Qualcomm",
        0x53 => "Samsung",
        APPLE => "Apple",
        0xc0 => "Ampere",
        _ => return None,
    })
}

/// The product name of an ARM core.
pub(super) fn core_name(implementer: u32, part: u32) -> Option<&'static str> {
    find(implementer, part).map(|core| core.name)
}

fn find(implementer: u32, part: u32) -> Option<&'static ArmCore> {
    CORES.iter().find(|core| (core.implementer, core.part) == (implementer, part))
}

/// The archspec name of a processor, or why it is unknown.
pub fn of(cpu: &Cpuinfo<'_>) -> Result<&'static str, String> {
    if !cpu.parts.is_empty() {
        return of_cores(&cpu.parts);
    }
    if let Some(power) = cpu.name.filter(|name| name.starts_with("POWER")) {
        return of_power(power);
    }
    let (Some(vendor), Some(family), Some(model)) = (cpu.vendor, cpu.family, cpu.model) else {
        return Err("/proc/cpuinfo names neither family and model nor part".to_owned());
    };
    let stepping = cpu.stepping.and_then(|stepping| stepping.parse().ok());
    let name = match vendor {
        "GenuineIntel" => intel(family, model, stepping),
        "AuthenticAMD" => amd(family, model),
        _ => None,
    };
    name.ok_or_else(|| format!("no name is known for {vendor} family {family} model {model}"))
}

fn of_cores(parts: &[(u32, u32)]) -> Result<&'static str, String> {
    let design = |(implementer, part): (u32, u32)| {
        let found = find(implementer, part).and_then(|core| core.design);
        found.ok_or_else(|| {
            format!("no name is known for implementer {implementer:#x} part {part:#x}")
        })
    };
    let designs = parts.iter().map(|part| design(*part)).collect::<Result<Vec<_>, _>>()?;
    match designs[..] {
        [first, ref others @ ..] if others.iter().all(|other| *other == first) => Ok(first),
        _ => Err(format!("its cores are of several designs: {}", designs.join(", "))),
    }
}

fn of_power(name: &str) -> Result<&'static str, String> {
    let generation = name.split([',', ' ']).next().unwrap_or_default();
    // A program runs only on a machine of its own byte order.
    let is_little = cfg!(target_endian = "little");
    match (generation.trim_end_matches(|c: char| !c.is_ascii_digit()), is_little) {
        ("POWER8", true) => Ok("power8le"),
        ("POWER9", true) => Ok("power9le"),
        ("POWER10", true) => Ok("power10le"),
        ("POWER8", false) => Ok("power8"),
        ("POWER9", false) => Ok("power9"),
        ("POWER10", false) => Ok("power10"),
        _ => Err(format!("no name is known for {generation}")),
    }
}

fn intel(family: u32, model: u32, stepping: Option<u32>) -> Option<&'static str> {
    if family != 6 {
        return None;
    }
    Some(match model {
        0x0f | 0x17 | 0x1d => "core2",
        0x1a | 0x1e | 0x2e => "nehalem",
        0x25 | 0x2c | 0x2f => "westmere",
        0x2a | 0x2d => "sandybridge",
        0x3a | 0x3e => "ivybridge",
        0x3c | 0x3f | 0x45 | 0x46 => "haswell",
        0x3d | 0x47 | 0x4f | 0x56 => "broadwell",
        // Kaby, Coffee and Comet Lake are the same microarchitecture.
        0x4e | 0x5e | 0x8e | 0x9e | 0xa5 | 0xa6 => "skylake",
        // Cascade Lake begins with stepping 5; Cooper Lake (10 and on) is one to archspec.
        0x55 if stepping? >= 5 => "cascadelake",
        0x55 => "skylake_avx512",
        0x57 | 0x85 => "mic_knl",
        0x66 => "cannonlake",
        0x6a | 0x6c | 0x7d | 0x7e => "icelake",
        // Emerald Rapids has the cores of Sapphire Rapids.
        0x8f | 0xcf => "sapphirerapids",
        0x97 | 0x9a => "alderlake",
        _ => return None,
    })
}

fn amd(family: u32, model: u32) -> Option<&'static str> {
    Some(match (family, model) {
        (0x10, _) => "k10",
        (0x15, 0x01) => "bulldozer",
        (0x15, 0x02 | 0x10..=0x1f) => "piledriver",
        (0x15, 0x30..=0x3f) => "steamroller",
        (0x15, 0x60..=0x7f) => "excavator",
        (0x17, 0x00..=0x2f) => "zen",
        (0x17, 0x30..=0xaf) => "zen2",
        (0x19, 0x00..=0x0f | 0x20..=0x5f) => "zen3",
        (0x19, 0x10..=0x1f | 0x60..=0x7f | 0xa0..=0xaf) => "zen4",
        (0x1a, 0x00..=0x2f | 0x40..=0x4f | 0x60..=0x7f) => "zen5",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn x86(
        vendor: &'static str,
        family: u32,
        model: u32,
        stepping: &'static str,
    ) -> Cpuinfo<'static> {
        let (family, model) = (Some(family), Some(model));
        Cpuinfo {
            vendor: Some(vendor),
            family,
            model,
            stepping: Some(stepping),
            ..Cpuinfo::default()
        }
    }

    fn arm(parts: &[(u32, u32)]) -> Cpuinfo<'static> {
        Cpuinfo { parts: parts.to_vec(), ..Cpuinfo::default() }
    }

    #[test]
    fn processors_have_their_archspec_names() {
        for (model, stepping, name) in [
            (45, "7", "sandybridge"),
            (62, "4", "ivybridge"),
            (63, "2", "haswell"),
            (79, "1", "broadwell"),
            (94, "3", "skylake"),
            (85, "4", "skylake_avx512"),
            (85, "7", "cascadelake"),
            (106, "6", "icelake"),
            (143, "8", "sapphirerapids"),
        ] {
            assert_eq!(of(&x86("GenuineIntel", 6, model, stepping)), Ok(name), "{model}");
        }
        for (family, model, name) in
            [(23, 1, "zen"), (23, 49, "zen2"), (25, 1, "zen3"), (25, 17, "zen4"), (26, 2, "zen5")]
        {
            assert_eq!(of(&x86("AuthenticAMD", family, model, "0")), Ok(name), "{family} {model}");
        }
        assert_eq!(of(&arm(&[(0x41, 0xd0c)])), Ok("neoverse_n1"));
        assert_eq!(of(&arm(&[(0x46, 1)])), Ok("a64fx"));
        assert_eq!(of(&arm(&[(0x61, 0x22), (0x61, 0x23)])), Ok("m1"));
        let power = Cpuinfo { name: Some("POWER9, altivec supported"), ..Cpuinfo::default() };
        assert!(of(&power).unwrap().starts_with("power9"));
    }

    #[test]
    fn unknown_processor_is_described_and_not_guessed() {
        let reason = |cpu: &Cpuinfo<'_>| of(cpu).unwrap_err();
        let tomorrow = x86("GenuineIntel", 6, 250, "0");
        assert_eq!(reason(&tomorrow), "no name is known for GenuineIntel family 6 model 250");
        assert!(reason(&x86("AuthenticAMD", 15, 107, "1")).contains("family 15 model 107"));
        assert!(reason(&x86("HygonGenuine", 24, 0, "1")).contains("HygonGenuine"));
        assert!(reason(&arm(&[(0x41, 0xfff)])).contains("part 0xfff"));
        assert!(reason(&arm(&[(0x41, 0xd08), (0x41, 0xd0c)])).contains("several designs"));
        assert!(reason(&Cpuinfo::default()).contains("names neither"));
        let unstepped = Cpuinfo { stepping: None, ..x86("GenuineIntel", 6, 85, "") };
        assert!(of(&unstepped).is_err(), "two designs share this model");
    }
}
