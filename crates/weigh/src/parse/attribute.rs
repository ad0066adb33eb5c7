//! One value in one file, as in sysfs: `262143328850\n`, `4: ACTIVE\n`.
//!
//! Documentation/filesystems/sysfs.rst: a file holds one attribute, as text, with a newline.
//!
//! What surprises: an energy or a frequency may be `<unknown>` or empty, and a power meter
//! may be below zero for a moment; neither is a number here.

use super::MalformedFile;
use super::fields::{FieldCursor, only_number};

/// A whole number.
pub fn number(bytes: &[u8]) -> Result<u64, MalformedFile> {
    only_number(bytes, "a whole number")
}

/// A whole number that may be below zero: a temperature, or the speed of a device that is down.
pub fn signed(bytes: &[u8]) -> Result<i64, MalformedFile> {
    const FIELD: &str = "a whole number";
    let (is_below, digits) = match bytes.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, bytes),
    };
    let size = i64::try_from(only_number(digits, FIELD)?).map_err(|_| MalformedFile(FIELD))?;
    Ok(if is_below { -size } else { size })
}

/// Text without the newline.
pub fn text(bytes: &[u8]) -> Result<&[u8], MalformedFile> {
    let text = bytes.strip_suffix(b"\n").ok_or(MalformedFile("text with its end"))?.trim_ascii();
    if text.is_empty() { Err(MalformedFile("text")) } else { Ok(text) }
}

/// A decimal number, possibly with an exponent: the scale of a counter.
pub fn scale(bytes: &[u8]) -> Result<f64, MalformedFile> {
    let text = std::str::from_utf8(text(bytes)?).map_err(|_| MalformedFile("a factor"))?;
    let factor: f64 = text.parse().map_err(|_| MalformedFile("a factor"))?;
    if factor.is_finite() && factor > 0.0 { Ok(factor) } else { Err(MalformedFile("a factor")) }
}

/// The state of an InfiniBand port: the name after the number in `4: ACTIVE`.
pub fn port_state(bytes: &[u8]) -> Result<&[u8], MalformedFile> {
    let mut rest = FieldCursor::new(bytes);
    rest.digits("state")?;
    rest.must_pass(b':', "state")?;
    text(rest.rest())
}

/// The speed of an InfiniBand port in bits a second: `100 Gb/sec (4X EDR)`, `2.5 Gb/sec (1X SDR)`.
pub fn port_rate(bytes: &[u8]) -> Result<u64, MalformedFile> {
    const FIELD: &str = "rate";
    let text = text(bytes)?;
    let mut rest = FieldCursor::new(text);
    let whole = rest.digits(FIELD)?;
    let tenths = if rest.passes(b'.') { rest.digits(FIELD)? } else { 0 };
    let bits =
        whole.checked_mul(1_000_000_000).filter(|_| tenths < 10).ok_or(MalformedFile(FIELD))?;
    if !rest.rest().starts_with(b" Gb/sec") {
        return Err(MalformedFile(FIELD));
    }
    bits.checked_add(tenths * 100_000_000).ok_or(MalformedFile(FIELD))
}

/// The size of a cache in bytes: `32K`, `16384K`.
pub fn cache_size(bytes: &[u8]) -> Result<u64, MalformedFile> {
    const FIELD: &str = "cache size";
    let mut rest = FieldCursor::new(bytes);
    let kibibytes = rest.digits(FIELD)?;
    if rest.rest() != b"K\n" {
        return Err(MalformedFile(FIELD));
    }
    kibibytes.checked_mul(1024).ok_or(MalformedFile(FIELD))
}

/// The selected one of several values: `madvise` of `always [madvise] never`.
pub fn selected(bytes: &[u8]) -> Result<&[u8], MalformedFile> {
    let inside = |word: &'_ &[u8]| word.starts_with(b"[") && word.ends_with(b"]");
    let selected = text(bytes)?.split(|&byte| byte == b' ').find(inside);
    selected.and_then(|value| value.get(1..value.len() - 1)).ok_or(MalformedFile("selected value"))
}

/// Whole numbers separated by spaces: NUMA distances, `10 21`.
pub fn numbers(bytes: &[u8]) -> Result<Vec<u64>, MalformedFile> {
    let mut rest = FieldCursor::new(bytes);
    let mut numbers = Vec::new();
    while let Some(number) = rest.number_if_any("a whole number")? {
        numbers.push(number);
    }
    Ok(numbers)
}

/// The value of a line `KEY=value`, as in a device's `uevent`, or with `KEY:` in a driver's own
/// files and in `/proc/<pid>/status`.
pub fn line_value<'a>(bytes: &'a [u8], key: &str) -> Option<&'a str> {
    let mut lines = FieldCursor::new(bytes);
    while let Ok(Some(line)) = lines.line() {
        if let Some(value) = line.strip_prefix(key.as_bytes()) {
            let value = std::str::from_utf8(value).ok()?.trim();
            return (!value.is_empty()).then_some(value);
        }
    }
    None
}

/// The generation of PCIe behind the speed of a link: `16.0 GT/s PCIe`, or `8 GT/s` before Linux
/// 5.10. A link that is down is `Unknown`, here `None`.
pub fn link_generation(bytes: &[u8]) -> Result<Option<u64>, MalformedFile> {
    const FIELD: &str = "speed of a link";
    let speed = text(bytes)?.split(|byte| *byte == b' ').next().unwrap_or_default();
    if speed == b"Unknown" {
        return Ok(None);
    }
    let known: [(&[u8], u64); 11] = [
        (b"2.5", 1),
        (b"5.0", 2),
        (b"5", 2),
        (b"8.0", 3),
        (b"8", 3),
        (b"16.0", 4),
        (b"16", 4),
        (b"32.0", 5),
        (b"32", 5),
        (b"64.0", 6),
        (b"64", 6),
    ];
    let found = known.iter().find(|(known, _)| *known == speed);
    found.map(|(_, generation)| Some(*generation)).ok_or(MalformedFile(FIELD))
}

/// Errors of a GPU block, uncorrected ones first: `ue: 0`, `ce: 3`, a line each. During a reset,
/// the file contains `Query currently inaccessible`.
pub fn error_counts(bytes: &[u8]) -> Result<Option<(u64, u64)>, MalformedFile> {
    if bytes.strip_suffix(b"\n") == Some(b"Query currently inaccessible") {
        return Ok(None);
    }
    let mut lines = FieldCursor::new(bytes);
    let mut count = |key: &[u8], field| {
        let line = lines.line()?.ok_or(MalformedFile(field))?;
        only_number(line.strip_prefix(key).ok_or(MalformedFile(field))?, field)
    };
    Ok(Some((count(b"ue:", "ue")?, count(b"ce:", "ce")?)))
}

/// The number of a perf event: `event=0x02`.
pub fn event(bytes: &[u8]) -> Result<u64, MalformedFile> {
    let digits = text(bytes)?.strip_prefix(b"event=0x").ok_or(MalformedFile("event"))?;
    let digits = std::str::from_utf8(digits).map_err(|_| MalformedFile("event"))?;
    u64::from_str_radix(digits, 16).map_err(|_| MalformedFile("event"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::parser_tests;
    use super::*;

    #[test]
    fn number_is_followed_by_a_newline_only() {
        assert_eq!(number(b"262143328850\n"), Ok(262_143_328_850));
        for wrong in [&b""[..], b"\n", b"12", b"-3\n", b"<unknown>\n", b"1 2\n"] {
            assert!(number(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn port_state_and_rate_are_read() {
        assert_eq!(port_state(b"4: ACTIVE\n"), Ok(&b"ACTIVE"[..]));
        assert_eq!(port_state(b"1: DOWN\n"), Ok(&b"DOWN"[..]));
        assert!(port_state(b"ACTIVE\n").is_err() && port_state(b"4:\n").is_err());
        assert_eq!(port_rate(b"200 Gb/sec (4X HDR)\n"), Ok(200_000_000_000));
        assert_eq!(port_rate(b"2.5 Gb/sec (1X SDR)\n"), Ok(2_500_000_000));
        assert_eq!(port_rate(b"40 Gb/sec (4X QDR)\n"), Ok(40_000_000_000));
        let wrong = [&b"fast\n"[..], b"10 Mb/sec\n", b"2.55 Gb/sec\n", b"99999999999999 Gb/sec\n"];
        assert!(wrong.iter().all(|wrong| port_rate(wrong).is_err()));
    }

    #[test]
    fn perf_events_and_scales_are_read() {
        assert_eq!(event(b"event=0x02\n"), Ok(2));
        assert_eq!(scale(b"2.3283064365386962890625e-10\n"), Ok(2.0_f64.powi(-32)));
        assert!(event(b"config=1\n").is_err() && scale(b"nan\n").is_err());
        assert!(scale(b"-1\n").is_err() && text(b"\n").is_err());
    }

    #[test]
    fn signed_number_may_be_negative() {
        assert_eq!((signed(b"45000\n"), signed(b"-2000\n")), (Ok(45_000), Ok(-2000)));
        assert!(signed(b"--1\n").is_err() && signed(b"-\n").is_err());
    }

    #[test]
    fn link_speed_gives_the_pcie_generation() {
        let speeds = [&b"2.5 GT/s PCIe\n"[..], b"16.0 GT/s PCIe\n", b"8 GT/s\n"];
        assert_eq!(speeds.map(link_generation), [1, 4, 3].map(|known| Ok(Some(known))));
        assert_eq!(link_generation(b"Unknown\n"), Ok(None), "it is down");
        assert_eq!(link_generation(b"Unknown speed\n"), Ok(None), "as earlier kernels say it");
        assert!(link_generation(b"fast\n").is_err());
    }

    #[test]
    fn corrected_and_uncorrected_errors_are_read() {
        assert_eq!(error_counts(b"ue: 1\nce: 23\n"), Ok(Some((1, 23))));
        assert_eq!(error_counts(b"Query currently inaccessible\n"), Ok(None));
        assert!(error_counts(b"ce: 23\nue: 1\n").is_err() && error_counts(b"ue: 1\n").is_err());
    }

    #[test]
    fn cache_sizes_selections_and_distances_are_read() {
        assert_eq!((cache_size(b"32K\n"), cache_size(b"512M\n").is_err()), (Ok(32768), true));
        assert_eq!(selected(b"always [madvise] never\n"), Ok(&b"madvise"[..]));
        assert!(selected(b"always madvise never\n").is_err() && selected(b"[\n").is_err());
        assert_eq!((signed(b"-1\n"), signed(b"25000\n")), (Ok(-1), Ok(25_000)));
        assert_eq!(numbers(b"10 21 31\n"), Ok(vec![10, 21, 31]));
        assert_eq!(line_value(b"simd_count 440\nsimd_per_cu 4\n", "simd_per_cu "), Some("4"));
        let uevent = b"DRIVER=mlx5_core\nPCI_ID=15B3:1017\nEMPTY=\n";
        assert_eq!(line_value(uevent, "PCI_ID="), Some("15B3:1017"));
        assert_eq!((line_value(uevent, "EMPTY="), line_value(uevent, "PCI_SLOT=")), (None, None));
        assert_eq!(line_value(b"Model: \t\t NVIDIA A100\n", "Model:"), Some("NVIDIA A100"));
        assert_eq!(line_value(b"DRIVER=mlx5", "DRIVER="), None, "a truncated line is ignored");
    }

    parser_tests! {
        cut: fn truncated_value_is_no_value() {
            cache_size, b"16384K\n" => refused;
            selected, b"always [madvise] never\n" => refused;
            numbers, b"10 21\n" => refused;
            signed, b"-2000\n" => refused;
            link_generation, b"16.0 GT/s PCIe\n" => refused;
            error_counts, b"ue: 1\nce: 23\n" => refused;
            number, b"262143328850\n" => refused;
            port_state, b"4: ACTIVE\n" => refused;
            port_rate, b"100 Gb/sec (4X EDR)\n" => refused;
            event, b"event=0x02\n" => refused;
            scale, b"2.3e-10\n" => refused;
        }

        mangled: fn arbitrary_bytes_never_panic() {
            number, text, scale, event, port_state, port_rate, cache_size, selected, signed,
            numbers, |bytes| line_value(bytes, "2.5"), link_generation, error_counts;
            b"2.5 Gb/sec (1X SDR)\n"
        }
    }
}
