//! A file that only ever holds complete pieces: lines or batches.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

use crate::record::integrity::Seal;
use crate::record::{Error, files};

/// A file of complete pieces, with its checksum.
pub(super) struct AppendFile {
    pub(super) path: PathBuf,
    pub(super) file: File,
    /// Where the last complete piece ends.
    good: u64,
    /// Up to where it is on the disk.
    synced: u64,
    /// The checksum of the complete pieces.
    crc: crc32fast::Hasher,
}

impl AppendFile {
    /// A new file.
    pub(super) fn create(path: PathBuf) -> Result<AppendFile, Error> {
        let file = files::create_file(&path)?;
        Ok(AppendFile::of(path, file))
    }

    /// A file that is empty.
    pub(super) fn of(path: PathBuf, file: File) -> AppendFile {
        AppendFile { path, file, good: 0, synced: 0, crc: crc32fast::Hasher::new() }
    }

    /// What it holds now.
    pub(super) fn seal(&self) -> Seal {
        Seal { bytes: self.good, crc32: self.crc.clone().finalize() }
    }

    /// Appends a piece, or leaves the file as it was.
    pub(super) fn append(&mut self, piece: &[u8]) -> Result<(), Error> {
        let written = self.file.write_all(piece);
        if let Err(source) = written {
            // Truncating a torn piece needs no free space, and the next one begins where it should.
            let _ = self.file.set_len(self.good);
            let _ = self.file.seek(std::io::SeekFrom::Start(self.good));
            return Err(Error::file(&self.path, source));
        }
        self.good += piece.len() as u64;
        self.crc.update(piece);
        Ok(())
    }

    /// Takes the place of another file, once it is on the disk.
    pub(super) fn replace(self, path: &Path) -> Result<AppendFile, Error> {
        self.file.sync_data().map_err(|source| Error::file(&self.path, source))?;
        std::fs::rename(&self.path, path).map_err(|source| Error::file(path, source))?;
        Ok(AppendFile { path: path.to_owned(), ..self })
    }

    /// Starts writing what is not on the disk yet.
    pub(super) fn begin_sync(&self) {
        if self.synced < self.good {
            files::begin_sync(&self.file);
        }
    }

    /// Waits until it is on the disk.
    pub(super) fn sync(&mut self) {
        // A file system that cannot is no reason to end a run.
        if self.synced < self.good && self.file.sync_data().is_ok() {
            self.synced = self.good;
        }
    }

    #[cfg(test)]
    pub(super) fn is_synced(&self) -> bool {
        self.synced == self.good
    }
}
