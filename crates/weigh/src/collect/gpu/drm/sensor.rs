//! One file of a card that is read at each look, kept open, and fails alone.
//!
//! What surprised us: amdgpu says "operation not permitted" (EPERM) while it resets a card, and
//! "busy" while one wakes up. Neither is a fault, and neither lasts.

use std::ffi::CString;

use crate::host::{Descriptors, Dir, KeptAt};
use crate::parse::{Malformed, attribute};

/// What a look at a card needs.
pub(super) struct Look<'a> {
    pub(super) sys: &'a Dir,
    pub(super) buffer: &'a mut Vec<u8>,
    /// What went wrong, for people.
    pub(super) trouble: &'a mut Vec<String>,
}

/// A file with one value, or none.
#[derive(Debug, Default)]
pub(super) struct Sensor {
    file: Option<KeptAt>,
}

impl Sensor {
    /// The first of these files that is there.
    pub(super) fn first(sys: &Dir, paths: &[String], allowance: &Descriptors) -> Sensor {
        let paths = paths.iter().filter_map(|path| CString::new(path.as_str()).ok());
        let found = paths.into_iter().find(|path| sys.has(path));
        Sensor { file: found.map(|path| KeptAt::new(path, allowance)) }
    }

    /// The value as it is now, if it can be had.
    pub(super) fn read<T>(
        &mut self,
        look: &mut Look,
        parse: impl FnOnce(&[u8]) -> Result<T, Malformed>,
    ) -> Option<T> {
        let file = self.file.as_mut()?;
        let failed = match file.read(look.sys, look.buffer) {
            Ok(bytes) => match parse(bytes) {
                Ok(value) => return Some(value),
                Err(source) => {
                    let path = look.sys.path(file.path());
                    look.trouble.push(format!("{}: {source}", path.display()));
                    return None;
                }
            },
            Err(error) => error,
        };
        match failed.errno() {
            // Its card does not have it, or is gone, which is noticed elsewhere.
            _ if failed.is_gone() => self.file = None,
            Some(libc::EOPNOTSUPP | libc::EINVAL) => self.file = None,
            Some(libc::EPERM | libc::EBUSY | libc::EAGAIN | libc::ENODATA) => {}
            Some(libc::EACCES) => {
                look.trouble.push(failed.to_string());
                self.file = None;
            }
            _ => look.trouble.push(failed.to_string()),
        }
        None
    }

    /// A whole number.
    pub(super) fn number(&mut self, look: &mut Look) -> Option<u64> {
        self.read(look, attribute::number)
    }

    /// Millionths of something, as hwmon has power and energy.
    pub(super) fn millionths(&mut self, look: &mut Look) -> Option<f64> {
        self.number(look).map(|millionths| millionths as f64 / 1e6)
    }

    /// A temperature, in degrees.
    pub(super) fn degrees(&mut self, look: &mut Look) -> Option<f64> {
        self.read(look, attribute::signed).map(|thousandths| thousandths as f64 / 1e3)
    }

    /// A share that is told in percents.
    pub(super) fn share(&mut self, look: &mut Look) -> Option<f64> {
        let percent = self.number(look)?;
        // Firmware that is not there yet says anything.
        (percent <= 100).then(|| percent as f64 / 100.0)
    }
}
