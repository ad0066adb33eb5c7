//! Units as gpu-tracker names them: decimal, for memory too.

/// The units of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RamUnit {
    /// Bytes.
    Bytes,
    /// 1000 bytes.
    Kilobytes,
    /// A million bytes.
    Megabytes,
    /// A billion bytes.
    #[default]
    Gigabytes,
    /// A trillion bytes.
    Terabytes,
}

/// The units of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Minutes.
    Minutes,
    /// Hours.
    #[default]
    Hours,
    /// Days.
    Days,
}

/// A unit that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{given}\" is not a valid {of} unit. Valid values are {allowed}")]
pub struct BadUnit {
    given: String,
    of: &'static str,
    allowed: String,
}

impl RamUnit {
    const ALL: [RamUnit; 5] = [
        RamUnit::Bytes,
        RamUnit::Kilobytes,
        RamUnit::Megabytes,
        RamUnit::Gigabytes,
        RamUnit::Terabytes,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            RamUnit::Bytes => "bytes",
            RamUnit::Kilobytes => "kilobytes",
            RamUnit::Megabytes => "megabytes",
            RamUnit::Gigabytes => "gigabytes",
            RamUnit::Terabytes => "terabytes",
        }
    }

    /// Bytes in this unit: multiplied, as gpu-tracker does, so that the last digit agrees.
    pub fn of_bytes(self, bytes: f64) -> f64 {
        bytes
            * match self {
                RamUnit::Bytes => 1.0,
                RamUnit::Kilobytes => 1e-3,
                RamUnit::Megabytes => 1e-6,
                RamUnit::Gigabytes => 1e-9,
                RamUnit::Terabytes => 1e-12,
            }
    }

    /// The unit of RAM of this name.
    pub fn parse(name: &str) -> Result<RamUnit, BadUnit> {
        named(name, "RAM", &RamUnit::ALL, RamUnit::name)
    }

    /// The unit of GPU RAM of this name.
    pub fn parse_gpu(name: &str) -> Result<RamUnit, BadUnit> {
        named(name, "GPU RAM", &RamUnit::ALL, RamUnit::name)
    }
}

impl TimeUnit {
    const ALL: [TimeUnit; 4] =
        [TimeUnit::Seconds, TimeUnit::Minutes, TimeUnit::Hours, TimeUnit::Days];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            TimeUnit::Seconds => "seconds",
            TimeUnit::Minutes => "minutes",
            TimeUnit::Hours => "hours",
            TimeUnit::Days => "days",
        }
    }

    /// Seconds in this unit.
    pub fn of_seconds(self, seconds: f64) -> f64 {
        seconds
            * match self {
                TimeUnit::Seconds => 1.0,
                TimeUnit::Minutes => 1.0 / 60.0,
                TimeUnit::Hours => 1.0 / 3600.0,
                TimeUnit::Days => 1.0 / 86400.0,
            }
    }

    /// The unit of this name.
    pub fn parse(name: &str) -> Result<TimeUnit, BadUnit> {
        named(name, "time", &TimeUnit::ALL, TimeUnit::name)
    }
}

fn named<U: Copy>(
    given: &str,
    of: &'static str,
    all: &[U],
    name: fn(U) -> &'static str,
) -> Result<U, BadUnit> {
    all.iter().copied().find(|unit| name(*unit) == given).ok_or_else(|| {
        let mut names: Vec<_> = all.iter().map(|unit| name(*unit)).collect();
        names.sort_unstable();
        BadUnit { given: given.to_owned(), of, allowed: names.join(", ") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_unit_is_refused_in_gpu_trackers_wording() {
        assert_eq!(
            RamUnit::parse("GB").unwrap_err().to_string(),
            "\"GB\" is not a valid RAM unit. Valid values are bytes, gigabytes, kilobytes, \
             megabytes, terabytes"
        );
        assert!(RamUnit::parse_gpu("x").unwrap_err().to_string().contains("a valid GPU RAM unit"));
        assert_eq!(
            TimeUnit::parse("weeks").unwrap_err().to_string(),
            "\"weeks\" is not a valid time unit. Valid values are days, hours, minutes, seconds"
        );
    }

    #[test]
    fn units_are_decimal_and_agree_with_gpu_tracker_to_the_last_digit() {
        assert_eq!(RamUnit::default().of_bytes(25_274_793_984.0), 25.274793984000002);
        assert_eq!(RamUnit::parse("kilobytes").unwrap().of_bytes(1024.0), 1.024);
        assert_eq!(TimeUnit::parse("minutes").unwrap().of_seconds(90.0), 1.5);
        assert_eq!(TimeUnit::default().of_seconds(7200.0), 2.0);
    }
}
