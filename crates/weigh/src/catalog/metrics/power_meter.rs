//! Power meters of the machine.

use crate::catalog::{Row, Source, SourceId, metrics};

metrics! {
    /// Power or energy of one power meter.
    pub struct MeterPower in Energy / "meter", "Power meters" {
        /// Current power, or the mean over the meter's own short interval.
        power: Gauge f64 Watts, "Power", from "/sys/class/hwmon/*/power*_{input,average}";
        /// Energy since the meter started.
        used: Counter f64 Joules, "Power from energy", from "/sys/class/hwmon/*/energy*_input";
    }
}

/// What `--collect` and `--skip` call this source.
pub const SOURCE: Source = Source {
    id: SourceId::PowerMeter,
    name: "power-meter",
    about: "power meters of the machine (hwmon, ACPI)",
    groups: &[MeterPower::METRICS],
    on_request: false,
    everywhere: false,
};
