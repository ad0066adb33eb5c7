//! Durations, sizes and shares as people write and read them.
//!
//! Read from command lines, configuration files and keyword arguments; written
//! into reports. Stored values never pass through here: recordings hold base
//! units.
//!
//! What surprises: `K`, `M`, `G` and `T` alone are powers of 1024, as for du(1),
//! systemd and SLURM, while `KB` and `MB` are powers of 1000. Durations are read
//! by hand, since jiff knows no days without a calendar and no bare seconds.

use std::time::Duration;

/// A duration, size or share that could not be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadQuantity {
    /// Not a duration.
    #[error("\"{0}\" is not a duration; write it like 250ms, 1.5s, 2m or 1h30m")]
    Duration(String),
    /// Not a size.
    #[error("\"{0}\" is not a size; write it like 1024, 64K, 500MB or 1.5GiB")]
    Size(String),
    /// Not a share.
    #[error("\"{0}\" is not a share; write it like 0.5% or 0.005")]
    Ratio(String),
    /// Understood, but more than can be counted.
    #[error("\"{0}\" is too large")]
    TooLarge(String),
}

/// From the longest to the shortest, the order in which they may be combined.
const DURATION_UNITS: [(&[&str], u128); 7] = [
    (&["d", "day", "days"], 86_400_000_000_000),
    (&["h", "hr", "hour", "hours"], 3_600_000_000_000),
    (&["m", "min", "minute", "minutes"], 60_000_000_000),
    (&["s", "sec", "second", "seconds"], 1_000_000_000),
    (&["ms"], 1_000_000),
    // The micro sign and the Greek letter look alike; keyboards have either.
    (&["us", "\u{b5}s", "\u{3bc}s"], 1_000),
    (&["ns"], 1),
];

/// Reads a duration such as `250ms`, `1.5s`, `1h 30m`, `1d` or `90` (seconds).
///
/// Units go from long to short, each at most once. `M` is refused: for some
/// programs it is a month.
pub fn parse_duration(text: &str) -> Result<Duration, BadQuantity> {
    let bad = || BadQuantity::Duration(text.to_owned());
    let too_large = || BadQuantity::TooLarge(text.to_owned());
    let mut nanoseconds: u128 = 0;
    let mut allowed = &DURATION_UNITS[..];
    let mut rest = text.trim();
    let mut first = true;
    while first || !rest.is_empty() {
        let (number, after) = Decimal::split_from(rest).ok_or_else(bad)?;
        let after = after.trim_start();
        let length =
            after.find(|c: char| c.is_ascii_digit() || c.is_whitespace()).unwrap_or(after.len());
        let (unit, after) = after.split_at(length);
        let unit = if first && unit.is_empty() && after.is_empty() { "s" } else { unit };
        let place = allowed.iter().position(|(names, _)| names.contains(&unit)).ok_or_else(bad)?;
        nanoseconds = number
            .times(allowed[place].1)
            .and_then(|part| nanoseconds.checked_add(part))
            .ok_or_else(too_large)?;
        allowed = &allowed[place + 1..];
        rest = after.trim_start();
        first = false;
    }
    let seconds = u64::try_from(nanoseconds / 1_000_000_000).map_err(|_| too_large())?;
    Ok(Duration::new(seconds, (nanoseconds % 1_000_000_000) as u32))
}

/// Reads a size in bytes such as `1024`, `2GiB`, `500MB`, `64K` or `1.5 GiB`.
///
/// `KiB`, `Ki` and `K` are 1024 bytes, `KB` is 1000, in capitals or not.
pub fn parse_size(text: &str) -> Result<u64, BadQuantity> {
    let bad = || BadQuantity::Size(text.to_owned());
    let (number, unit) = Decimal::split_from(text.trim()).ok_or_else(bad)?;
    let unit = unit.trim_start().to_ascii_lowercase();
    let factor = if matches!(unit.as_str(), "" | "b" | "byte" | "bytes") {
        // Half a byte is a unit forgotten.
        if number.fraction != 0 {
            return Err(bad());
        }
        1
    } else {
        let (prefix, suffix) = unit.split_at_checked(1).ok_or_else(bad)?;
        let power = "kmgtpe".find(prefix).ok_or_else(bad)? as u32 + 1;
        match suffix {
            "" | "i" | "ib" => 1024u128.pow(power),
            "b" => 1000u128.pow(power),
            _ => return Err(bad()),
        }
    };
    let bytes = number.times(factor).and_then(|bytes| u64::try_from(bytes).ok());
    bytes.ok_or_else(|| BadQuantity::TooLarge(text.to_owned()))
}

/// Reads a share such as `0.5%` or, the same, `0.005`.
pub fn parse_ratio(text: &str) -> Result<f64, BadQuantity> {
    let bad = || BadQuantity::Ratio(text.to_owned());
    let (number, exponent) = match text.trim().strip_suffix('%') {
        Some(number) => (number.trim_end(), "e-2"),
        None => (text.trim(), ""),
    };
    if !matches!(Decimal::split_from(number), Some((_, ""))) {
        return Err(bad());
    }
    // Not divided by 100, which would make 0.7% a hair less than 0.007.
    let ratio: f64 = format!("{number}{exponent}").parse().map_err(|_| bad())?;
    if ratio.is_finite() { Ok(ratio) } else { Err(BadQuantity::TooLarge(text.to_owned())) }
}

/// A number as written, kept exact: a size of 2^53 bytes and more does not fit an f64.
struct Decimal {
    whole: u128,
    /// In units of 10^-18, which is exact enough for any unit used here.
    fraction: u128,
}

impl Decimal {
    const SCALE: u128 = 10u128.pow(18);

    /// The number at the start of `text` and what follows it. No sign, no exponent.
    fn split_from(text: &str) -> Option<(Decimal, &str)> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, rest) = text.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return None;
        }
        let digit = |byte: u8| u128::from(byte - b'0');
        let whole = whole
            .bytes()
            .fold(0u128, |sum, byte| sum.saturating_mul(10).saturating_add(digit(byte)));
        let padded = fraction.bytes().chain(std::iter::repeat(b'0')).take(18);
        let fraction = padded.fold(0, |sum, byte| sum * 10 + digit(byte));
        Some((Decimal { whole, fraction }, rest))
    }

    /// Rounded to the nearest whole; `None` if it does not fit.
    fn times(&self, factor: u128) -> Option<u128> {
        let part = self.fraction.checked_mul(factor)?.checked_add(Self::SCALE / 2)? / Self::SCALE;
        self.whole.checked_mul(factor)?.checked_add(part)
    }
}

/// How sizes are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Units {
    /// Powers of 1024: KiB, MiB, GiB.
    #[default]
    Binary,
    /// Powers of 1000: kB, MB, GB.
    Decimal,
    /// Every byte counted out.
    Bytes,
}

/// What stands for a value that is no number.
const NOT_A_NUMBER: &str = "n/a";

/// Writes a size with three digits: `512 B`, `64.0 MiB`, `1.02 GiB`.
pub fn bytes(value: f64, units: Units) -> String {
    let (base, names) = match units {
        Units::Binary => (1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"][..]),
        Units::Decimal => (1000.0, &["B", "kB", "MB", "GB", "TB", "PB", "EB"][..]),
        Units::Bytes => (f64::INFINITY, &["B"][..]),
    };
    signed(value, |value| {
        let (mut scaled, mut power) = (value, 0);
        loop {
            let (shown, decimals) =
                if power == 0 { (value.round(), 0) } else { rounded(scaled, 2) };
            // Compared after rounding, so that 1023.9 KiB becomes 1.00 MiB, not 1024 KiB.
            if shown < base || power + 1 == names.len() {
                return format!("{shown:.decimals$} {}", names[power]);
            }
            scaled /= base;
            power += 1;
        }
    })
}

/// Writes a duration given in seconds: `850 µs`, `3.1 ms`, `12.35 s`, `4 min 05 s`, `2 h 03 min`.
pub fn seconds(value: f64) -> String {
    signed(value, |value| {
        if value == 0.0 {
            return "0 s".to_owned();
        }
        for (name, per_second) in [("ns", 1e9), ("\u{b5}s", 1e6), ("ms", 1e3)] {
            let (shown, decimals) = rounded(value * per_second, 1);
            if shown < 1000.0 {
                return format!("{shown:.decimals$} {name}");
            }
        }
        if (value * 100.0).round() < 6000.0 {
            return format!("{:.2} s", (value * 100.0).round() / 100.0);
        }
        let [whole_seconds, minutes, hours] =
            [1.0, 60.0, 3600.0].map(|s| (value / s).round() as u64);
        if whole_seconds < 3600 {
            format!("{} min {:02} s", whole_seconds / 60, whole_seconds % 60)
        } else if minutes < 24 * 60 {
            format!("{} h {:02} min", minutes / 60, minutes % 60)
        } else {
            format!("{} d {:02} h", hours / 24, hours % 24)
        }
    })
}

/// Writes a share in percent: `2 %`, `0.4 %`, `< 0.1 %`.
pub fn ratio(value: f64) -> String {
    let percent = value * 100.0;
    if percent != 0.0 && percent.abs() < 0.1 {
        return if percent > 0.0 { "< 0.1 %" } else { "> -0.1 %" }.to_owned();
    }
    let number = count(percent);
    if number == NOT_A_NUMBER { number } else { number + " %" }
}

/// Writes a number with its thousands apart: `12,345`; below ten with one decimal if it has any.
pub fn count(value: f64) -> String {
    signed(value, |value| {
        let (shown, decimals) = rounded(value, 1);
        if shown.fract() != 0.0 {
            return format!("{shown:.decimals$}");
        }
        let digits = format!("{shown:.0}");
        let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
        for (place, digit) in digits.chars().enumerate() {
            if place > 0 && (digits.len() - place).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        grouped
    })
}

/// Puts the sign back after `write` has written the absolute value.
fn signed(value: f64, write: impl Fn(f64) -> String) -> String {
    if !value.is_finite() {
        return NOT_A_NUMBER.to_owned();
    }
    let text = write(value.abs());
    // A small negative value may round to 0, which has no sign.
    if value < 0.0 && text.contains(|c| matches!(c, '1'..='9')) { format!("-{text}") } else { text }
}

/// Rounded to `most` decimals below 10, to one less below 100, and so on, with their number.
fn rounded(value: f64, most: i32) -> (f64, usize) {
    for decimals in (1..=most).rev() {
        let scale = 10f64.powi(decimals);
        let shown = (value * scale).round() / scale;
        if shown < 10f64.powi(most + 1 - decimals) {
            return (shown, decimals as usize);
        }
    }
    (value.round(), 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_read_as_written() {
        for (text, nanoseconds) in [
            ("250ms", 250_000_000),
            ("2m", 120_000_000_000),
            ("1h 30m", 5_400_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1.5s", 1_500_000_000),
            (" 90 ", 90_000_000_000),
            (".5", 500_000_000),
            ("10us", 10_000),
            ("10 \u{3bc}s", 10_000),
            ("1d", 86_400_000_000_000),
            ("1 d 04 h", 100_800_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_nanos(nanoseconds)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        let refused = [
            "", " ", "-1s", "+1s", "1e3", "s", ".", "1..5s", "1h 30", "30m 1h", "1m 1m", "5M",
            "1 2s", "1s,", "\u{661}s", "nan", "inf",
        ];
        for text in refused {
            let error = BadQuantity::Duration(text.to_owned());
            assert_eq!(parse_duration(text), Err(error), "{text}");
        }
        let longest = format!("{}s", u64::MAX);
        assert_eq!(parse_duration(&longest), Ok(Duration::from_secs(u64::MAX)));
        for text in ["18446744073709551616", "99999999999999999999999999999999999999999999d"] {
            assert_eq!(parse_duration(text), Err(BadQuantity::TooLarge(text.to_owned())));
        }
    }

    #[test]
    fn the_message_shows_what_was_written_and_what_to_write() {
        let message = parse_duration("2 parsecs").unwrap_err().to_string();
        let expected = "\"2 parsecs\" is not a duration; write it like 250ms, 1.5s, 2m or 1h30m";
        assert_eq!(message, expected);
    }

    #[test]
    fn a_letter_alone_is_binary_and_kb_is_decimal() {
        for (text, expected) in [
            ("1024", 1024),
            ("12 B", 12),
            ("2GiB", 2 << 30),
            ("500MB", 500_000_000),
            ("64k", 65536),
            ("64 kb", 64000),
            ("1Ki", 1024),
            ("1.5gib", 3 << 29),
            ("0.3 KB", 300),
            ("18446744073709551615", u64::MAX),
            ("9007199254740993", 9_007_199_254_740_993),
            ("15.999EiB", 18_445_591_152_204_944_769),
        ] {
            assert_eq!(parse_size(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in
            ["", "GiB", "-1", "1.5", "1.5B", "1 G B", "1XB", "1\u{b5}B", "1KiBs", "1e3", "1,000"]
        {
            assert_eq!(parse_size(text), Err(BadQuantity::Size(text.to_owned())), "{text}");
        }
        for text in ["18446744073709551616", "16EiB"] {
            assert_eq!(parse_size(text), Err(BadQuantity::TooLarge(text.to_owned())));
        }
    }

    #[test]
    fn percent_and_plain_shares_are_the_same_to_the_last_bit() {
        for (text, expected) in [
            ("0.5%", 0.005),
            ("0.005", 0.005),
            ("0.7%", 0.007),
            ("150 %", 1.5),
            ("0", 0.0),
            (".5", 0.5),
        ] {
            assert_eq!(parse_ratio(text), Ok(expected), "{text}");
        }
        for text in ["", "%", "-1%", "nan", "inf", "1e-3", "5%%", "half", "+1"] {
            assert_eq!(parse_ratio(text), Err(BadQuantity::Ratio(text.to_owned())), "{text}");
        }
        let huge = "9".repeat(400);
        assert_eq!(parse_ratio(&huge), Err(BadQuantity::TooLarge(huge)));
    }

    #[test]
    fn sizes_have_three_digits_and_roll_over_after_rounding() {
        for (value, expected) in [
            (0.0, "0 B"),
            (512.0, "512 B"),
            (1023.4, "1023 B"),
            (1023.6, "1.00 KiB"),
            (1024.0 * 9.996, "10.0 KiB"),
            (1024.0 * 99.96, "100 KiB"),
            (1024.0 * 1023.6, "1.00 MiB"),
            (67_108_864.0, "64.0 MiB"),
            (1.02 * 1_073_741_824.0, "1.02 GiB"),
            (-2048.0, "-2.00 KiB"),
            (-0.2, "0 B"),
            (f64::NAN, "n/a"),
        ] {
            assert_eq!(bytes(value, Units::Binary), expected, "{value}");
        }
        assert_eq!(bytes(1_090_000_000.0, Units::Decimal), "1.09 GB");
        assert_eq!(bytes(999_600.0, Units::Decimal), "1.00 MB");
        assert_eq!(bytes(1_073_741_824.0, Units::Bytes), "1073741824 B");
        assert_eq!(bytes(2f64.powi(71), Units::Binary), "2048 EiB");
    }

    #[test]
    fn durations_are_written_for_people() {
        for (value, expected) in [
            (0.0, "0 s"),
            (4e-7, "400 ns"),
            (0.000_85, "850 \u{b5}s"),
            (0.003_1, "3.1 ms"),
            (0.009_96, "10 ms"),
            (0.999_7, "1.00 s"),
            (12.349, "12.35 s"),
            (59.994, "59.99 s"),
            (59.996, "1 min 00 s"),
            (245.0, "4 min 05 s"),
            (3599.6, "1 h 00 min"),
            (7380.0, "2 h 03 min"),
            (86_399.0, "1 d 00 h"),
            (100_800.0, "1 d 04 h"),
            (-1.5, "-1.50 s"),
            (f64::INFINITY, "n/a"),
        ] {
            assert_eq!(seconds(value), expected, "{value}");
        }
    }

    #[test]
    fn shares_and_counts_show_no_more_than_they_know() {
        for (value, expected) in [
            (0.0, "0 %"),
            (0.02, "2 %"),
            (0.004, "0.4 %"),
            (0.0009, "< 0.1 %"),
            (-0.0009, "> -0.1 %"),
            (0.0996, "10 %"),
            (0.125, "13 %"),
            (12.34, "1,234 %"),
            (f64::NAN, "n/a"),
        ] {
            assert_eq!(ratio(value), expected, "{value}");
        }
        let counts =
            [(0.0, "0"), (2.5, "2.5"), (999.0, "999"), (12_345.4, "12,345"), (-1e6, "-1,000,000")];
        for (value, expected) in counts {
            assert_eq!(count(value), expected);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_can_be_read_back(value in 0u64..(1 << 62), span in 1e-9f64..1e9) {
            let close = |read: f64, wrote: f64, share: f64| (read - wrote).abs() <= wrote * share;
            for units in [Units::Binary, Units::Decimal] {
                let read = parse_size(&bytes(value as f64, units)).unwrap();
                prop_assert!(close(read as f64, value as f64, 0.005_001));
            }
            prop_assert_eq!(parse_size(&value.to_string()), Ok(value));
            let read = parse_duration(&seconds(span)).unwrap().as_secs_f64();
            prop_assert!(close(read, span, 0.050_001), "{} {}", span, seconds(span));
        }

        #[test]
        fn arbitrary_text_never_panics(text in "\\PC{0,30}|[0-9.]{0,40} ?[dhmskKiB%]{0,3}") {
            let _ = (parse_duration(&text), parse_size(&text), parse_ratio(&text));
        }
    }
}
