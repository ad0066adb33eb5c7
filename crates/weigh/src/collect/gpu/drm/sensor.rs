//! One file of a GPU that is read at each poll, cached, and fails alone.
//!
//! What surprised us: amdgpu returns EPERM while it resets a GPU, and EBUSY while one wakes up.
//! Neither is a fault, and neither lasts.

use std::ffi::CString;

use crate::host::{CachedPath, Descriptors, Dir};
use crate::parse::{MalformedFile, attribute};

/// What reading a sensor needs.
pub(super) struct SensorContext<'a> {
    pub(super) sys: &'a Dir,
    pub(super) buffer: &'a mut Vec<u8>,
    /// What failed, in words for the user.
    pub(super) problems: &'a mut Vec<String>,
}

/// A value, and the file it is in.
#[derive(Debug, Default)]
pub(super) struct Sensor {
    /// Files that may have it, the best last. None when the GPU does not have it.
    files: Vec<CachedPath>,
    /// Whether the last of them was read: another would not be the same value.
    is_found: bool,
}

impl Sensor {
    /// The value in the first of these files that has one.
    pub(super) fn first(sys: &Dir, paths: &[String], allowance: &Descriptors) -> Sensor {
        let paths = paths.iter().rev().filter_map(|path| CString::new(path.as_str()).ok());
        let existing = paths.filter(|path| sys.has(path));
        let files = existing.map(|path| CachedPath::new(path, allowance)).collect();
        Sensor { files, is_found: false }
    }

    /// The current value, if it can be read.
    pub(super) fn read<T>(
        &mut self,
        context: &mut SensorContext,
        parse: impl Fn(&[u8]) -> Result<T, MalformedFile>,
    ) -> Option<T> {
        while let Some(file) = self.files.last_mut() {
            let failed = match file.read(context.sys, context.buffer) {
                Ok(bytes) => {
                    self.is_found = true;
                    let report = |source| {
                        let path = context.sys.path(file.path());
                        context.problems.push(format!("{}: {source}", path.display()));
                    };
                    return parse(bytes).map_err(report).ok();
                }
                Err(error) => error,
            };
            match failed.errno() {
                Some(libc::EPERM | libc::EBUSY | libc::EAGAIN | libc::ENODATA) => return None,
                // The GPU does not have it, or was removed, which is detected elsewhere.
                Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ENOENT | libc::ENODEV) => {}
                Some(libc::EACCES) => context.problems.push(failed.to_string()),
                _ => {
                    context.problems.push(failed.to_string());
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

    /// An integer.
    pub(super) fn number(&mut self, context: &mut SensorContext) -> Option<u64> {
        self.read(context, attribute::number)
    }

    /// A value in millionths, as hwmon has power and energy.
    pub(super) fn millionths(&mut self, context: &mut SensorContext) -> Option<f64> {
        self.number(context).map(|millionths| millionths as f64 / 1e6)
    }

    /// A temperature, in degrees Celsius.
    pub(super) fn degrees(&mut self, context: &mut SensorContext) -> Option<f64> {
        self.read(context, attribute::signed).map(|thousandths| thousandths as f64 / 1e3)
    }

    /// A ratio that is given in percent.
    pub(super) fn share(&mut self, context: &mut SensorContext) -> Option<f64> {
        let percent = self.number(context)?;
        // Firmware that is not initialized yet gives any value.
        (percent <= 100).then(|| percent as f64 / 100.0)
    }
}
