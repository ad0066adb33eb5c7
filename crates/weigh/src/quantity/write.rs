//! Formats quantities for summaries and reports.

/// How sizes are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Units {
    /// Powers of 1024: KiB, MiB, GiB.
    #[default]
    Binary,
    /// Powers of 1000: kB, MB, GB.
    Decimal,
    /// Plain bytes.
    Bytes,
}

/// Shown for NaN and infinity.
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

/// Writes a quantity of any other unit with three digits: `85.0 mW`, `215 W`, `2.40 GHz`.
pub fn scaled(value: f64, unit: &str) -> String {
    const PREFIXES: [(&str, f64); 6] =
        [("m", 1e-3), ("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)];
    signed(value, |value| {
        if value == 0.0 {
            return format!("0 {unit}");
        }
        let written = PREFIXES.iter().map(|(prefix, size)| (prefix, rounded(value / size, 2)));
        // Compared after rounding, so that 999.9 W becomes 1.00 kW.
        let fits = |(_, (shown, _)): &(&&str, (f64, usize))| *shown < 1000.0;
        let (prefix, (shown, decimals)) =
            written.clone().find(fits).or(written.clone().next_back()).unwrap_or((&"", (value, 0)));
        format!("{shown:.decimals$} {prefix}{unit}")
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

/// Writes a ratio in percent: `2 %`, `0.4 %`, `< 0.1 %`.
pub fn ratio(value: f64) -> String {
    let percent = value * 100.0;
    if percent != 0.0 && percent.abs() < 0.1 {
        return if percent > 0.0 { "< 0.1 %" } else { "> -0.1 %" }.to_owned();
    }
    let number = count(percent);
    if number == NOT_A_NUMBER { number } else { number + " %" }
}

/// Writes a number with thousands separators: `12,345`; below ten with one decimal if it has any.
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
