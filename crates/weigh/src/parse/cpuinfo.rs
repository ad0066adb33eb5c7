//! The model of the processors: `/proc/cpuinfo`, readable by every user.
//!
//! A block of `key : value` lines for each CPU, followed by an empty line. The keys depend on the
//! architecture: x86 has names (`vendor_id`, `cpu family`), ARM has numbers (`CPU implementer`,
//! `CPU part`), POWER has its name in `cpu`, User Mode Linux only its vendor.
//!
//! What surprises: `cpu family`, `model` and `stepping` are decimal, ARM's numbers and the
//! microcode hexadecimal. On x86 all CPUs are of one family and model, even where some are small
//! and some large; on ARM each kind of core has its own part number.

use super::MalformedFile;
use super::fields::FieldCursor;

/// The first CPU, and all kinds of ARM cores.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cpuinfo<'a> {
    /// The vendor: `GenuineIntel`, `AuthenticAMD`; User Mode Linux is `User Mode Linux`.
    pub vendor: Option<&'a str>,
    /// x86: the family.
    pub family: Option<u32>,
    /// x86: the model in its family.
    pub model: Option<u32>,
    /// The model name; POWER: `POWER9, altivec supported`.
    pub name: Option<&'a str>,
    /// x86: the stepping; POWER: the revision.
    pub stepping: Option<&'a str>,
    /// x86: the microcode, as the kernel writes it.
    pub microcode: Option<&'a str>,
    /// BogoMIPS, measured at boot; not a measure of speed, but often requested.
    pub bogomips: Option<f64>,
    /// The feature flags, separated by spaces.
    pub flags: Option<&'a str>,
    /// ARM: variant and revision, as in `r3p1`.
    pub revision: Option<(u32, u32)>,
    /// ARM: implementer and part of each kind of core, in file order.
    pub parts: Vec<(u32, u32)>,
}

impl Cpuinfo<'_> {
    /// Whether the feature flags contain a flag, such as `hypervisor` (x86).
    pub fn has_flag(&self, wanted: &str) -> bool {
        self.flags.is_some_and(|flags| flags.split(' ').any(|flag| flag == wanted))
    }
}

/// Reads the bytes of `/proc/cpuinfo`.
pub fn parse(bytes: &[u8]) -> Result<Cpuinfo<'_>, MalformedFile> {
    let mut found = Cpuinfo::default();
    let mut lines = FieldCursor::new(bytes);
    let (mut implementer, mut variant) = (None, None);
    while let Some(line) = lines.line()? {
        let Some((key, value)) = split(line) else { continue };
        match key {
            "vendor_id" => set_once(&mut found.vendor, Some(value)),
            "cpu family" => set_once(&mut found.family, value.parse().ok()),
            "model" => set_once(&mut found.model, value.parse().ok()),
            "model name" | "cpu" => set_once(&mut found.name, Some(value)),
            "stepping" => set_once(&mut found.stepping, Some(value)),
            "revision" => set_once(&mut found.stepping, Some(value)),
            "microcode" => set_once(&mut found.microcode, Some(value)),
            "bogomips" | "BogoMIPS" => set_once(&mut found.bogomips, number(value)),
            "flags" | "Features" => set_once(&mut found.flags, Some(value)),
            "CPU implementer" => implementer = hexadecimal(value),
            "CPU variant" => variant = hexadecimal(value),
            "CPU part" => {
                let part = implementer.zip(hexadecimal(value));
                let new = part.filter(|part| !found.parts.contains(part));
                found.parts.extend(new);
            }
            "CPU revision" => set_once(&mut found.revision, variant.zip(value.parse().ok())),
            _ => {}
        }
    }
    Ok(found)
}

/// The first CPU with a value counts.
fn set_once<T>(slot: &mut Option<T>, value: Option<T>) {
    if slot.is_none() {
        *slot = value;
    }
}

/// A key and its value; neither can be empty.
fn split(line: &[u8]) -> Option<(&str, &str)> {
    let (key, value) = std::str::from_utf8(line).ok()?.split_once(':')?;
    let (key, value) = (key.trim(), value.trim());
    (!key.is_empty() && !value.is_empty()).then_some((key, value))
}

fn hexadecimal(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cut_at_every_byte, lost_or_same, parser_tests};
    use super::*;

    const XEON: &[u8] = b"processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n\
        model\t\t: 85\nmodel name\t: Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz\nstepping\t: 7\n\
        microcode\t: 0x5003604\nflags\t\t: fpu vme avx512f hypervisor\nbogomips\t: 5000.00\n\
        power management:\n\nprocessor\t: 1\nmodel\t\t: 99\n\n";

    const LITTLE: &[u8] = b"processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\n\
        CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n\
        CPU revision\t: 1\n\nprocessor\t: 1\nCPU implementer\t: 0x41\nCPU variant\t: 0x0\n\
        CPU part\t: 0xd05\nCPU revision\t: 0\n\n";

    #[test]
    fn x86_values_are_those_of_the_first_cpu() {
        let xeon = parse(XEON).unwrap();
        assert_eq!(xeon.vendor, Some("GenuineIntel"));
        assert_eq!((xeon.family, xeon.model, xeon.stepping), (Some(6), Some(85), Some("7")));
        assert_eq!(xeon.name, Some("Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz"));
        assert_eq!((xeon.microcode, xeon.bogomips), (Some("0x5003604"), Some(5000.0)));
        assert!(xeon.has_flag("hypervisor") && !xeon.has_flag("hyper"));
    }

    #[test]
    fn each_kind_of_arm_core_is_listed() {
        let little = parse(LITTLE).unwrap();
        assert_eq!(little.parts, [(0x41, 0xd0c), (0x41, 0xd05)]);
        assert_eq!((little.revision, little.vendor, little.family), (Some((3, 1)), None, None));
    }

    #[test]
    fn power_and_user_mode_linux_are_recognised() {
        let power = b"processor\t: 0\ncpu\t\t: POWER9, altivec supported\nrevision\t: 2.2\n\n";
        let power = parse(power).unwrap();
        assert_eq!((power.name, power.stepping), (Some("POWER9, altivec supported"), Some("2.2")));
        let uml = parse(b"processor\t: 0\nvendor_id\t: User Mode Linux\n").unwrap();
        assert_eq!(uml.vendor, Some("User Mode Linux"));
        assert_eq!(parse(b"\xff\xfe\n: 3\nmodel : many\n"), Ok(Cpuinfo::default()));
    }

    #[test]
    fn truncated_file_loses_values_but_changes_none() {
        cut_at_every_byte(XEON, parse, |part, whole| {
            lost_or_same(&part.vendor, &whole.vendor)
                && lost_or_same(&part.model, &whole.model)
                && lost_or_same(&part.name, &whole.name)
                && lost_or_same(&part.flags, &whole.flags)
                && lost_or_same(&part.bogomips, &whole.bogomips)
        });
        cut_at_every_byte(LITTLE, parse, |part, whole| {
            whole.parts.starts_with(&part.parts) && lost_or_same(&part.revision, &whole.revision)
        });
    }

    parser_tests! {
        mangled: fn arbitrary_bytes_never_panic() {
            parse; LITTLE
        }
    }
}
