//! Ticks of an axis: positions and labels.

use super::chart::Scale;
use crate::catalog::Unit;
use crate::quantity::Units;

/// A tick on an axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AxisTick {
    /// The value.
    pub value: f64,
    /// How it is written.
    pub label: String,
}

/// Ticks from zero to a round value that is not below `highest`: the last one ends the axis.
pub(super) fn values(scale: Scale, highest: f64, about: usize) -> Vec<AxisTick> {
    let highest = if highest.is_finite() && highest > 0.0 { highest } else { smallest(scale) };
    let (factor, unit) = prefix(scale, highest);
    let mut step = round_step(highest / factor / about as f64);
    // Counts have no fractions.
    if scale.unit == Unit::One && !scale.per_second {
        step = step.max(1.0);
    }
    let count = (highest / factor / step - 1e-9).ceil().max(1.0) as usize;
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    let tick = |place: usize| {
        let value = place as f64 * step;
        let label = if place == 0 { "0".to_owned() } else { format!("{value:.decimals$}{unit}") };
        AxisTick { value: value * factor, label }
    };
    (0..=count).map(tick).collect()
}

/// The height of an axis on which everything is zero.
fn smallest(scale: Scale) -> f64 {
    if matches!(scale.unit, Unit::Bytes | Unit::BytesPerSecond) { 1024.0 } else { 1.0 }
}

/// What a value is divided by, and the unit it then has.
fn prefix(scale: Scale, highest: f64) -> (f64, String) {
    let (base, sizes): (f64, &[&str]) = match scale.units {
        Units::Binary => (1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"]),
        Units::Decimal => (1000.0, &["B", "kB", "MB", "GB", "TB", "PB"]),
        Units::Bytes => (1024.0, &["B"]),
    };
    const COUNTS: [&str; 4] = ["", "k", "M", "G"];
    let largest = |base: f64, most: usize| ((highest.ln() / base.ln()) as usize).min(most - 1);
    let per_second = if scale.per_second { "/s" } else { "" };
    let si = |unit: &str| {
        let power = largest(1000.0, COUNTS.len());
        (1000f64.powi(power as i32), format!(" {}{unit}", COUNTS[power]))
    };
    match scale.unit {
        Unit::Bytes | Unit::BytesPerSecond => {
            let power = largest(base, sizes.len());
            (base.powi(power as i32), format!(" {}{per_second}", sizes[power]))
        }
        Unit::Seconds if scale.per_second => (1.0, String::new()),
        Unit::SecondsInState if scale.per_second => (0.01, " %".to_owned()),
        Unit::Seconds | Unit::SecondsInState if highest >= 7200.0 => (3600.0, " h".to_owned()),
        Unit::Seconds | Unit::SecondsInState if highest >= 120.0 => (60.0, " min".to_owned()),
        Unit::Seconds | Unit::SecondsInState if highest >= 1.0 => (1.0, " s".to_owned()),
        Unit::Seconds | Unit::SecondsInState => (1e-3, " ms".to_owned()),
        Unit::Joules if !scale.per_second => si("J"),
        Unit::Joules | Unit::Watts => si("W"),
        Unit::Hertz => si("Hz"),
        Unit::Celsius => (1.0, " °C".to_owned()),
        Unit::Ratio => (0.01, " %".to_owned()),
        Unit::One => {
            let power = if highest < 10_000.0 { 0 } else { largest(1000.0, COUNTS.len()) };
            (1000f64.powi(power as i32), format!("{}{per_second}", COUNTS[power]))
        }
    }
}

/// 1, 2 or 5 times a power of ten, not below `least`.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
    steps.into_iter().find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(10.0 * power)
}

/// Round steps of time.
const TIMES: [f64; 17] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0,
    10_800.0, 21_600.0, 43_200.0,
];
const DAY: f64 = 86_400.0;

/// Ticks of time from zero up to `end` on an axis of so many pixels, as many as fit with their
/// labels; `axis.js` chooses the same ones.
pub(crate) fn times(end: f64, width: f64) -> Vec<AxisTick> {
    let most = ((width / 95.0) as usize).max(4);
    let fits = |ticks: &Vec<AxisTick>| {
        let widest = ticks.iter().map(|tick| tick.label.chars().count()).max().unwrap_or(0);
        let apart = ticks.get(1).map_or(f64::INFINITY, |second| second.value / end * width);
        widest as f64 * 6.5 + 14.0 <= apart
    };
    let tried = (1..=most).rev().map(|about| about_times(end, about));
    tried.into_iter().find(fits).unwrap_or_else(|| about_times(end, 1))
}

/// Ticks of time, about so many.
fn about_times(end: f64, about: usize) -> Vec<AxisTick> {
    if end.is_nan() || end <= 0.0 {
        return vec![AxisTick { value: 0.0, label: "0".to_owned() }];
    }
    let least = end / about as f64;
    let step = if least < 1.0 {
        round_step(least)
    } else if let Some(step) = TIMES.into_iter().find(|step| *step >= least) {
        step
    } else {
        round_step(least / DAY) * DAY
    };
    let count = (end / step + 1e-9) as usize;
    (0..=count).map(|place| time(place as f64 * step, step)).collect()
}

fn time(value: f64, step: f64) -> AxisTick {
    let label = if value == 0.0 {
        "0".to_owned()
    } else if step < 0.1 && value < 1.0 {
        let decimals = (-(step * 1e3).log10().floor()).max(0.0) as usize;
        format!("{:.decimals$} ms", value * 1e3)
    } else if step < 1.0 {
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        format!("{value:.decimals$} s")
    } else {
        parts(value.round() as u64)
    };
    AxisTick { value, label }
}

/// Whole seconds in the units that are not zero: `1 h 30 min`.
fn parts(seconds: u64) -> String {
    let parts = [
        (seconds / 86_400, "d"),
        (seconds / 3600 % 24, "h"),
        (seconds / 60 % 60, "min"),
        (seconds % 60, "s"),
    ];
    let shown = parts.iter().filter(|(count, _)| *count > 0);
    shown.map(|(count, unit)| format!("{count} {unit}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[AxisTick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn axis_ends_at_a_round_value_above_all_data() {
        let bytes = values(Scale::level(Unit::Bytes), 3.2 * 1024.0 * 1024.0 * 1024.0, 5);
        assert_eq!(labels(&bytes), ["0", "1 GiB", "2 GiB", "3 GiB", "4 GiB"]);
        let cores = values(Scale::rate(Unit::Seconds), 1.9, 5);
        assert_eq!(labels(&cores), ["0", "0.5", "1.0", "1.5", "2.0"]);
        let traffic = values(Scale::rate(Unit::Bytes), 900.0, 5);
        assert_eq!(labels(&traffic), ["0", "200 B/s", "400 B/s", "600 B/s", "800 B/s", "1000 B/s"]);
        let decimal = Scale { units: Units::Decimal, ..Scale::level(Unit::Bytes) };
        assert_eq!(labels(&values(decimal, 2.1e6, 3)), ["0", "1 MB", "2 MB", "3 MB"]);
        let plain = Scale { units: Units::Bytes, ..Scale::level(Unit::Bytes) };
        assert_eq!(labels(&values(plain, 3e6, 3)).last(), Some(&"3000000 B"));
        assert_eq!(labels(&values(Scale::level(Unit::One), 2.0, 5)), ["0", "1", "2"]);
        assert_eq!(labels(&values(Scale::level(Unit::One), 0.0, 5)), ["0", "1"]);
        assert_eq!(labels(&values(Scale::rate(Unit::One), 30_000.0, 3)).last(), Some(&"30k/s"));
        let busy = values(Scale::rate(Unit::SecondsInState), 0.93, 2);
        assert_eq!(labels(&busy), ["0", "50 %", "100 %"]);
        assert_eq!(labels(&values(Scale::rate(Unit::Joules), 380.0, 3)).last(), Some(&"400 W"));
        assert_eq!(labels(&values(Scale::level(Unit::Hertz), 2.4e9, 3)).last(), Some(&"3 GHz"));
        for highest in [f64::NAN, f64::INFINITY, -1.0, 1e-300, 1e300] {
            let ticks = values(Scale::level(Unit::Bytes), highest, 5);
            assert!((2..20).contains(&ticks.len()), "{highest}: {}", ticks.len());
        }
    }

    #[test]
    fn time_ticks_are_round_times() {
        assert_eq!(
            labels(&times(3.0, 600.0)),
            ["0", "0.5 s", "1.0 s", "1.5 s", "2.0 s", "2.5 s", "3.0 s"]
        );
        assert_eq!(labels(&times(0.02, 400.0)), ["0", "5 ms", "10 ms", "15 ms", "20 ms"]);
        assert_eq!(labels(&times(200.0, 400.0)), ["0", "1 min", "2 min", "3 min"]);
        assert_eq!(labels(&times(10.0 * DAY, 500.0)), ["0", "2 d", "4 d", "6 d", "8 d", "10 d"]);
        assert_eq!(times(0.0, 500.0).len(), 1);
    }

    #[test]
    fn time_ticks_leave_space_for_their_labels() {
        assert_eq!(labels(&times(5400.0, 350.0)), ["0", "30 min", "1 h", "1 h 30 min"]);
        assert_eq!(labels(&times(5400.0, 200.0)), ["0", "1 h"]);
        assert_eq!(labels(&times(4.6, 290.0)), ["0", "2 s", "4 s"]);
    }
}
