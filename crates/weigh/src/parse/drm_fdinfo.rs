//! GPU usage of a process through one open file: `/proc/<pid>/fdinfo/<fd>` of a DRM device.
//!
//! Lines of `key: value` (Documentation/gpu/drm-usage-stats.rst): time and memory since Linux 5.19
//! for amdgpu; of i915 time since 5.19 and memory since 6.8; of xe memory since 6.8 and cycles
//! since 6.11. Readable by the owner of the process and by root.
//!
//! What surprises: the same client may be open many times, in one process and in several, and each
//! file repeats all values; `drm-client-id` identifies it. Time is in nanoseconds, except for xe,
//! which has busy cycles and total cycles. amdgpu leaves out engines that have not been used yet,
//! and from VCN 4 on (RDNA3, MI300) it has one queue for all video, which is called `enc` although
//! it decodes, too. Memory without a unit is in bytes. `drm-memory-` is the old name of
//! `drm-resident-`, and some drivers have both.

use super::MalformedFile;
use super::fields::FieldCursor;

/// Usage of one client of a GPU. `None` is what the driver does not report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DrmClient<'a> {
    /// The PCI address of its GPU (`drm-pdev`).
    pub address: Option<&'a [u8]>,
    /// The id of the client on that GPU (`drm-client-id`).
    pub number: Option<u64>,
    /// Usage of each kind of engine, in the order of [`Engine`].
    pub engines: [Work; 6],
    /// Memory of the GPU in use.
    pub local: Option<u64>,
    /// System memory in use through the GPU.
    pub system: Option<u64>,
}

/// Kinds of engines, independent of the driver's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Graphics and compute.
    Graphics,
    /// Compute only.
    Compute,
    /// Copy.
    Copy,
    /// Video decode.
    Decode,
    /// Video encode; on AMD's RDNA3, MI300 and later also decode.
    Encode,
    /// Video encode and decode: Intel's.
    Video,
}

impl Engine {
    /// By its name in amdgpu, i915 or xe; others are ignored.
    fn named(name: &[u8]) -> Option<Engine> {
        match name {
            b"gfx" | b"render" | b"rcs" => Some(Engine::Graphics),
            b"compute" | b"ccs" => Some(Engine::Compute),
            b"dma" | b"copy" | b"bcs" => Some(Engine::Copy),
            b"dec" => Some(Engine::Decode),
            b"enc" | b"enc_1" => Some(Engine::Encode),
            b"video" | b"vcs" => Some(Engine::Video),
            _ => None,
        }
    }
}

/// Usage of engines of one kind by a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Busy time in nanoseconds (`drm-engine-`).
    pub nanoseconds: Option<u64>,
    /// Busy cycles (`drm-cycles-`).
    pub cycles: Option<u64>,
    /// Total cycles (`drm-total-cycles-`).
    pub total_cycles: Option<u64>,
    /// The number of engines, where there are several (`drm-engine-capacity-`).
    pub capacity: Option<u64>,
}

/// Memory of a region under its new key and its old one.
#[derive(Default)]
struct RegionBytes {
    resident: Option<u64>,
    memory: Option<u64>,
}

/// Reads the bytes of `/proc/<pid>/fdinfo/<fd>`. Files that are no DRM device give an empty result.
pub fn parse(bytes: &[u8]) -> Result<DrmClient<'_>, MalformedFile> {
    let mut lines = FieldCursor::new(bytes);
    let mut client = DrmClient::default();
    let (mut local, mut system) = (RegionBytes::default(), RegionBytes::default());
    while let Some(line) = lines.line()? {
        let Some(line) = line.strip_prefix(b"drm-") else { continue };
        let colon = line.iter().position(|byte| *byte == b':').ok_or(MalformedFile("drm- key"))?;
        let (key, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        match key {
            b"pdev" => client.address = Some(value),
            b"client-id" => client.number = Some(number(value, "drm-client-id", plain)?),
            _ => {}
        }
        // The capacity first: its key has that of the time as a prefix.
        if let Some(name) = key.strip_prefix(b"engine-capacity-") {
            let engine = Engine::named(name).map(|engine| &mut client.engines[engine as usize]);
            if let Some(work) = engine {
                work.capacity = Some(number(value, "drm-engine-capacity", plain)?);
            }
        } else if let Some(name) = key.strip_prefix(b"engine-") {
            add(&mut client, name, |work| &mut work.nanoseconds, value, "drm-engine", time)?;
        } else if let Some(name) = key.strip_prefix(b"total-cycles-") {
            let cycles = number(value, "drm-total-cycles", plain)?;
            if let Some(engine) = Engine::named(name) {
                client.engines[engine as usize].total_cycles = Some(cycles);
            }
        } else if let Some(name) = key.strip_prefix(b"cycles-") {
            add(&mut client, name, |work| &mut work.cycles, value, "drm-cycles", plain)?;
        } else if let Some(region) = key.strip_prefix(b"resident-") {
            let bytes = if is_local(region) { &mut local } else { &mut system };
            sum(&mut bytes.resident, number(value, "drm-resident", size)?, "drm-resident")?;
        } else if let Some(region) = key.strip_prefix(b"memory-") {
            let bytes = if is_local(region) { &mut local } else { &mut system };
            sum(&mut bytes.memory, number(value, "drm-memory", size)?, "drm-memory")?;
        }
    }
    client.local = local.resident.or(local.memory);
    client.system = system.resident.or(system.memory);
    Ok(client)
}

/// `vram` of amdgpu, `vram0` of xe, `local0` of i915.
fn is_local(region: &[u8]) -> bool {
    region.starts_with(b"vram") || region.starts_with(b"local")
}

fn add(
    client: &mut DrmClient,
    engine: &[u8],
    field: impl FnOnce(&mut Work) -> &mut Option<u64>,
    value: &[u8],
    name: &'static str,
    unit: fn(&[u8]) -> Option<u64>,
) -> Result<(), MalformedFile> {
    let Some(engine) = Engine::named(engine) else { return Ok(()) };
    sum(field(&mut client.engines[engine as usize]), number(value, name, unit)?, name)
}

/// Adds to an optional sum: a driver may have two engines of one kind.
fn sum(total: &mut Option<u64>, more: u64, field: &'static str) -> Result<(), MalformedFile> {
    *total = Some(total.unwrap_or(0).checked_add(more).ok_or(MalformedFile(field))?);
    Ok(())
}

/// A number and its unit.
fn number(
    value: &[u8],
    field: &'static str,
    unit: fn(&[u8]) -> Option<u64>,
) -> Result<u64, MalformedFile> {
    let mut rest = FieldCursor::new(value);
    let number = rest.digits(field)?;
    let factor = unit(rest.rest().trim_ascii()).ok_or(MalformedFile(field))?;
    number.checked_mul(factor).ok_or(MalformedFile(field))
}

fn plain(unit: &[u8]) -> Option<u64> {
    unit.is_empty().then_some(1)
}

fn time(unit: &[u8]) -> Option<u64> {
    (unit == b"ns").then_some(1)
}

fn size(unit: &[u8]) -> Option<u64> {
    match unit {
        b"" => Some(1),
        b"KiB" => Some(1 << 10),
        b"MiB" => Some(1 << 20),
        b"GiB" => Some(1 << 30),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cut_at_every_byte, lost_or_same, parser_tests};
    use super::*;

    const AMDGPU: &[u8] = b"pos:\t0\nflags:\t02100002\nmnt_id:\t24\nino:\t1186\n\
        drm-driver:\tamdgpu\ndrm-client-id:\t57\ndrm-pdev:\t0000:03:00.0\npasid:\t32771\n\
        drm-total-cpu:\t0\ndrm-shared-cpu:\t0\ndrm-resident-cpu:\t0\n\
        drm-total-gtt:\t35636 KiB\ndrm-resident-gtt:\t35636 KiB\n\
        drm-total-vram:\t2 GiB\ndrm-shared-vram:\t16 MiB\ndrm-resident-vram:\t1 GiB\n\
        drm-memory-vram:\t1048576 KiB\ndrm-memory-gtt: \t35636 KiB\ndrm-memory-cpu: \t0 KiB\n\
        amd-evicted-vram:\t0 KiB\ndrm-engine-gfx:\t1234567890 ns\ndrm-engine-compute:\t77 ns\n\
        drm-engine-enc:\t5 ns\ndrm-engine-enc_1:\t6 ns\ndrm-engine-jpeg:\t9 ns\n";

    const I915: &[u8] = b"pos:\t0\nflags:\t0100002\nmnt_id:\t21\ndrm-driver: i915\n\
        drm-pdev: 0000:00:02.0\ndrm-client-id: 7\ndrm-total-system0: 16 MiB\n\
        drm-shared-system0: 0\ndrm-active-system0: 0\ndrm-resident-system0: 12 MiB\n\
        drm-purgeable-system0: 0\ndrm-resident-stolen-system0: 4096\n\
        drm-engine-render: 9288864723 ns\ndrm-engine-copy: 2035071108 ns\n\
        drm-engine-video: 0 ns\ndrm-engine-capacity-video: 2\ndrm-engine-video-enhance: 0 ns\n";

    const XE: &[u8] = b"drm-driver:\txe\ndrm-client-id:\t3\ndrm-pdev:\t0000:03:00.0\n\
        drm-resident-system:\t0\ndrm-resident-gtt:\t192 KiB\ndrm-resident-vram0:\t23992 KiB\n\
        drm-cycles-rcs:\t28257900\ndrm-total-cycles-rcs:\t7655183225\n\
        drm-cycles-ccs:\t5\ndrm-total-cycles-ccs:\t7655183225\ndrm-engine-capacity-ccs:\t4\n";

    fn of(client: &DrmClient, engine: Engine) -> Work {
        client.engines[engine as usize]
    }

    #[test]
    fn amdgpu_memory_with_two_keys_counts_once() {
        let client = parse(AMDGPU).unwrap();
        assert_eq!((client.address, client.number), (Some(&b"0000:03:00.0"[..]), Some(57)));
        assert_eq!((client.local, client.system), (Some(1 << 30), Some(35_636 << 10)));
        assert_eq!(of(&client, Engine::Graphics).nanoseconds, Some(1_234_567_890));
        assert_eq!(of(&client, Engine::Compute).nanoseconds, Some(77));
        assert_eq!(of(&client, Engine::Encode).nanoseconds, Some(11));
        assert_eq!(of(&client, Engine::Decode), Work::default());
    }

    #[test]
    fn i915_has_engine_capacity_and_no_local_memory() {
        let client = parse(I915).unwrap();
        assert_eq!((client.local, client.system), (None, Some((12 << 20) + 4096)));
        let video = Work { nanoseconds: Some(0), capacity: Some(2), ..Work::default() };
        assert_eq!(of(&client, Engine::Video), video);
        assert_eq!(of(&client, Engine::Copy).nanoseconds, Some(2_035_071_108));
    }

    #[test]
    fn xe_has_busy_and_total_cycles() {
        let client = parse(XE).unwrap();
        assert_eq!((client.local, client.system), (Some(23_992 << 10), Some(192 << 10)));
        let compute = Work {
            nanoseconds: None,
            cycles: Some(5),
            total_cycles: Some(7_655_183_225),
            capacity: Some(4),
        };
        assert_eq!(of(&client, Engine::Compute), compute);
    }

    #[test]
    fn other_file_is_no_client_and_a_bad_number_is_refused() {
        assert_eq!(parse(b"pos:\t0\nflags:\t02\nmnt_id:\t24\n"), Ok(DrmClient::default()));
        for wrong in [
            &b"drm-client-id:\tseven\n"[..],
            b"drm-engine-gfx:\t12 ms\n",
            b"drm-memory-vram:\t12 kB\n",
            b"drm-resident-vram:\t18446744073709551615 KiB\n",
            b"drm-cycles-rcs:\t-1\n",
            b"drm-pdev\n",
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn truncated_file_loses_lines_and_changes_none() {
        // A sum over several lines may lack some of them.
        let lacks = |part: &Option<u64>, whole: &Option<u64>| part.is_none() || part <= whole;
        let worked = |(part, whole): (&Work, &Work)| {
            let Work { nanoseconds, cycles, total_cycles, capacity } = part;
            lacks(nanoseconds, &whole.nanoseconds)
                && lacks(cycles, &whole.cycles)
                && lost_or_same(total_cycles, &whole.total_cycles)
                && lost_or_same(capacity, &whole.capacity)
        };
        let agrees = |part: &DrmClient, whole: &DrmClient| {
            let DrmClient { address, number, engines, local, system } = part;
            lost_or_same(address, &whole.address)
                && lost_or_same(number, &whole.number)
                && engines.iter().zip(&whole.engines).all(worked)
                && lacks(local, &whole.local)
                && lacks(system, &whole.system)
        };
        for whole in [AMDGPU, I915, XE] {
            cut_at_every_byte(whole, parse, agrees);
            let within_lines = (1..whole.len()).filter(|end| whole[end - 1] != b'\n');
            within_lines.for_each(|end| assert!(parse(&whole[..end]).is_err(), "cut at {end}"));
        }
    }

    parser_tests! {
        mangled: fn arbitrary_bytes_never_panic() {
            parse; AMDGPU
        }
    }
}
