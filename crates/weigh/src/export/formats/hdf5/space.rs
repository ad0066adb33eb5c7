//! Space allocation in the file: everything is appended.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

/// The undefined address.
pub(super) const NOWHERE: u64 = u64::MAX;

/// A file that grows at its end.
pub(super) struct Space {
    file: File,
    end: u64,
}

impl Space {
    /// All of this file.
    pub(super) fn new(file: File) -> Space {
        Space { file, end: 0 }
    }

    /// Where the file ends now.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Reserves so many bytes to be written later; returns their address.
    pub(super) fn reserve(&mut self, size: usize) -> u64 {
        let address = self.end;
        self.end += size as u64;
        address
    }

    /// Writes into reserved space.
    pub(super) fn write_at(&mut self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(address))?;
        self.file.write_all(bytes)
    }

    /// Appends; returns the address.
    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let address = self.reserve(bytes.len());
        self.write_at(address, bytes)?;
        Ok(address)
    }
}
