//! Reads the files of a machine, and stores the reason for each value that is missing.

use std::collections::BTreeMap;
use std::ffi::CString;

use crate::host::{Dir, Error};
use crate::parse::{MalformedFile, attribute};

/// The directory of a CPU, without its number.
pub(super) const CPU: &str = "sys/devices/system/cpu/cpu";

/// The files of a machine, and what could not be read.
pub(super) struct HardwareReader<'a> {
    root: &'a Dir,
    buffer: Vec<u8>,
    /// Why a value is missing, by its key.
    pub(super) missing: BTreeMap<String, String>,
}

impl<'a> HardwareReader<'a> {
    pub(super) fn at(root: &'a Dir) -> HardwareReader<'a> {
        HardwareReader { root, buffer: Vec::new(), missing: BTreeMap::new() }
    }

    /// The machine's files.
    pub(super) fn root(&self) -> &'a Dir {
        self.root
    }

    /// The value in a file, or why there is none. Reasons name the file by its path on the machine,
    /// wherever that is mounted here.
    pub(super) fn read<T>(
        &mut self,
        path: &str,
        parse: impl FnOnce(&[u8]) -> Result<T, MalformedFile>,
    ) -> Result<T, String> {
        let file = CString::new(path).map_err(|_| format!("/{path}: no file has such a name"))?;
        let bytes = self.root.read(&file, &mut self.buffer).map_err(|error| match error {
            error if error.is_gone() => format!("there is no /{path}"),
            Error::Read { source, .. } => format!("/{path}: {source}"),
            Error::Parse { source, .. } => format!("/{path}: {source}"),
        })?;
        parse(bytes).map_err(|malformed| format!("/{path}: {malformed}"))
    }

    /// The value in a file; no reason is stored when there is none.
    pub(super) fn optional<T>(
        &mut self,
        path: &str,
        parse: impl FnOnce(&[u8]) -> Result<T, MalformedFile>,
    ) -> Option<T> {
        self.read(path, parse).ok()
    }

    /// The value in a file; the reason is stored under a key when there is none.
    pub(super) fn required<T>(
        &mut self,
        key: &str,
        path: &str,
        parse: impl FnOnce(&[u8]) -> Result<T, MalformedFile>,
    ) -> Option<T> {
        let answer = self.read(path, parse);
        self.or_missing(key, answer)
    }

    /// The value; a reason is stored under a key.
    pub(super) fn or_missing<T>(&mut self, key: &str, answer: Result<T, String>) -> Option<T> {
        answer.map_err(|why| self.missing.insert(key.to_owned(), why)).ok()
    }

    /// Whether a file of this name exists.
    pub(super) fn has(&self, path: &str) -> bool {
        CString::new(path).is_ok_and(|path| self.root.has(&path))
    }

    /// The names in a directory that are UTF-8, in natural order: card10 after card2.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        let names = CString::new(path).ok().and_then(|path| self.root.names(&path).ok());
        let text = |name: CString| name.into_string().ok();
        let mut names: Vec<String> = names.into_iter().flatten().filter_map(text).collect();
        let before_number =
            |name: &str| name.trim_end_matches(|letter: char| letter.is_ascii_digit()).to_owned();
        names.sort_by_cached_key(|name| (before_number(name), name.len(), name.clone()));
        names
    }
}

/// A line of text.
pub(super) fn text(bytes: &[u8]) -> Result<String, MalformedFile> {
    let text = std::str::from_utf8(attribute::text(bytes)?).map_err(|_| MalformedFile("text"))?;
    Ok(text.to_owned())
}

/// Kilohertz, as `cpufreq` has them, in hertz.
pub(super) fn kilohertz(bytes: &[u8]) -> Result<u64, MalformedFile> {
    attribute::number(bytes)?.checked_mul(1000).ok_or(MalformedFile("kilohertz"))
}
