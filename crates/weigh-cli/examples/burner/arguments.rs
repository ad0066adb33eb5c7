//! The arguments of the command line, taken one by one.
//!
//! Flags are taken first and by name, so that a NAME or PATH may be any bytes.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::time::Duration;

use crate::Failure;

const DURATION_UNITS: [(&str, f64); 4] = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0)];
const SIZE_UNITS: [(&str, u64); 5] =
    [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("B", 1), ("", 1)];

/// What is left of the command line.
pub(crate) struct Arguments(VecDeque<OsString>);

impl Arguments {
    /// All arguments after the program's name.
    pub(crate) fn new(arguments: Vec<OsString>) -> Self {
        Self(arguments.into())
    }

    /// The next argument; `what` is its name in the usage.
    pub(crate) fn argument(&mut self, what: &str) -> Result<OsString, Failure> {
        self.0.pop_front().ok_or_else(|| Failure::Usage(format!("{what} is missing")))
    }

    /// Whether the flag was given, in any place.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let position = self.0.iter().position(|argument| argument == name);
        position.and_then(|position| self.0.remove(position)).is_some()
    }

    /// The value after `name`, in any place, read by `take`.
    pub(crate) fn option<T>(
        &mut self,
        name: &str,
        take: fn(&mut Self, &str) -> Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        let Some(position) = self.0.iter().position(|argument| argument == name) else {
            return Ok(None);
        };
        self.0.remove(position);
        let mut value = Self(self.0.remove(position).into_iter().collect());
        take(&mut value, &format!("the value of {name}")).map(Some)
    }

    /// A duration with its unit.
    pub(crate) fn duration(&mut self, what: &str) -> Result<Duration, Failure> {
        self.read(what, "a duration like 20ms or 3s", duration)
    }

    /// A number of bytes.
    pub(crate) fn size(&mut self, what: &str) -> Result<usize, Failure> {
        self.read(what, "a size like 64KiB or 400MiB", size)
    }

    /// A number of things, at least one.
    pub(crate) fn count(&mut self, what: &str) -> Result<usize, Failure> {
        self.read(what, "a number from 1", |argument| {
            argument.parse().ok().filter(|&count| count > 0)
        })
    }

    /// A number that fits into an exit code.
    pub(crate) fn byte(&mut self, what: &str) -> Result<u8, Failure> {
        self.read(what, "a number from 0 to 255", |argument| argument.parse().ok())
    }

    /// Fails if an argument is left.
    pub(crate) fn end(&self) -> Result<(), Failure> {
        match self.0.front() {
            None => Ok(()),
            Some(argument) => {
                Err(Failure::Usage(format!("one argument too many: `{}`", argument.display())))
            }
        }
    }

    fn read<T>(
        &mut self,
        what: &str,
        wanted: &str,
        parse: fn(&str) -> Option<T>,
    ) -> Result<T, Failure> {
        let argument = self.argument(what)?;
        OsStr::to_str(&argument).and_then(parse).ok_or_else(|| {
            Failure::Usage(format!("{what} should be {wanted}, not `{}`", argument.display()))
        })
    }
}

fn duration(argument: &str) -> Option<Duration> {
    let (number, unit) = split_at_unit(argument)?;
    let (_, seconds) = DURATION_UNITS.iter().find(|(name, _)| *name == unit)?;
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()
}

fn size(argument: &str) -> Option<usize> {
    let (number, unit) = split_at_unit(argument)?;
    let (_, bytes) = SIZE_UNITS.iter().find(|(name, _)| *name == unit)?;
    let size = number.parse::<u64>().ok()?.checked_mul(*bytes)?;
    usize::try_from(size).ok().filter(|&size| size > 0)
}

/// Splits `1.5s` into `1.5` and `s`; none if it does not begin with a digit.
fn split_at_unit(argument: &str) -> Option<(&str, &str)> {
    let end = argument.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, unit) = argument.split_at(end.unwrap_or(argument.len()));
    number.starts_with(|letter: char| letter.is_ascii_digit()).then_some((number, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(duration("20ms"), Some(Duration::from_millis(20)));
        assert_eq!(duration("1.5s"), Some(Duration::from_millis(1500)));
        for wrong in ["", "3", "s", "-1s", "1h", "1.2.3s", "1s "] {
            assert_eq!(duration(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn sizes_are_whole_and_not_zero() {
        assert_eq!(size("400MiB"), Some(400 << 20));
        assert_eq!(size("4096"), Some(4096));
        for wrong in ["", "0", "1MB", "1.5MiB", "-1", "99999999999GiB"] {
            assert_eq!(size(wrong), None, "{wrong:?}");
        }
    }
}
