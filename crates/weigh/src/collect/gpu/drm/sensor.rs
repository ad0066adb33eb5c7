//! One file of a card that is read at each look, kept open, and fails alone.
//!
//! What surprised us: amdgpu says "operation not permitted" (EPERM) while it resets a card, and
//! "busy" while one wakes up. Neither is a fault, and neither lasts.

use std::ffi::CString;

use crate::host::{CachedPath, Descriptors, Dir};
use crate::parse::{MalformedFile, attribute};

/// What a look at a card needs.
pub(super) struct Look<'a> {
    pub(super) sys: &'a Dir,
    pub(super) buffer: &'a mut Vec<u8>,
    /// What went wrong, for people.
    pub(super) trouble: &'a mut Vec<String>,
}

/// A value, and the file it is in.
#[derive(Debug, Default)]
pub(super) struct Sensor {
    /// Files that may have it, the best last. Nothing when its card does not have it.
    files: Vec<CachedPath>,
    /// Whether the last of them is the one: from then on, no other would be the same value.
    is_found: bool,
}

impl Sensor {
    /// The value in the first of these files that has one.
    pub(super) fn first(sys: &Dir, paths: &[String], allowance: &Descriptors) -> Sensor {
        let paths = paths.iter().rev().filter_map(|path| CString::new(path.as_str()).ok());
        let there = paths.filter(|path| sys.has(path));
        let files = there.map(|path| CachedPath::new(path, allowance)).collect();
        Sensor { files, is_found: false }
    }

    /// The value as it is now, if it can be had.
    pub(super) fn read<T>(
        &mut self,
        look: &mut Look,
        parse: impl Fn(&[u8]) -> Result<T, MalformedFile>,
    ) -> Option<T> {
        while let Some(file) = self.files.last_mut() {
            let failed = match file.read(look.sys, look.buffer) {
                Ok(bytes) => {
                    self.is_found = true;
                    let told = |source| {
                        let path = look.sys.path(file.path());
                        look.trouble.push(format!("{}: {source}", path.display()));
                    };
                    return parse(bytes).map_err(told).ok();
                }
                Err(error) => error,
            };
            match failed.errno() {
                Some(libc::EPERM | libc::EBUSY | libc::EAGAIN | libc::ENODATA) => return None,
                // Its card does not have it, or is gone, which is noticed elsewhere.
                Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ENOENT | libc::ENODEV) => {}
                Some(libc::EACCES) => look.trouble.push(failed.to_string()),
                _ => {
                    look.trouble.push(failed.to_string());
                    return None;
                }
            }
            self.files.pop();
            if self.is_found {
                self.files.clear();
            }
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
