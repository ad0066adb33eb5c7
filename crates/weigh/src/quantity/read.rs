//! Parses quantities from command lines and settings.

use std::time::Duration;

/// A duration, size or ratio that could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadQuantity {
    /// Not a duration.
    #[error("\"{0}\" is not a duration; write it like 250ms, 1.5s, 2m or 1h30m")]
    Duration(String),
    /// Not a size.
    #[error("\"{0}\" is not a size; write it like 1024, 64K, 500MB or 1.5GiB")]
    Size(String),
    /// Not a ratio.
    #[error("\"{0}\" is not a share; write it like 0.5% or 0.005")]
    Ratio(String),
    /// Valid, but out of range.
    #[error("\"{0}\" is too large")]
    TooLarge(String),
}

/// From longest to shortest: the order in which they may be combined.
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
/// Units go from long to short, each at most once. `M` is refused: some programs read it as a
/// month.
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
        // A fraction of a byte means that a unit was forgotten.
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

/// Reads a ratio such as `0.5%` or, the same, `0.005`.
pub fn parse_ratio(text: &str) -> Result<f64, BadQuantity> {
    let bad = || BadQuantity::Ratio(text.to_owned());
    let (number, exponent) = match text.trim().strip_suffix('%') {
        Some(number) => (number.trim_end(), "e-2"),
        None => (text.trim(), ""),
    };
    if !matches!(Decimal::split_from(number), Some((_, ""))) {
        return Err(bad());
    }
    // Not divided by 100: 0.7 / 100 is not the same float as 0.007.
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
