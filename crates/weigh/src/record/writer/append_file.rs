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
    /// What the kernel says to every write, for tests.
    #[cfg(test)]
    pub(super) refuses: Option<i32>,
}

impl AppendFile {
    /// A new file.
    pub(super) fn create(path: PathBuf) -> Result<AppendFile, Error> {
        let file = files::create_file(&path)?;
        Ok(AppendFile::of(path, file))
    }

    /// A file that is empty.
    pub(super) fn of(path: PathBuf, file: File) -> AppendFile {
        AppendFile {
            path,
            file,
            good: 0,
            synced: 0,
            crc: crc32fast::Hasher::new(),
            #[cfg(test)]
            refuses: None,
        }
    }

    /// What it holds now.
    pub(super) fn seal(&self) -> Seal {
        Seal { bytes: self.good, crc32: self.crc.clone().finalize() }
    }

    /// Appends a piece, or leaves the file as it was.
    pub(super) fn append(&mut self, piece: &[u8]) -> Result<(), Error> {
        let mut written = self.write(piece);
        if written.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::ESTALE)) {
            // The server has forgotten the open file, after it was restarted; its name it knows.
            written = self.open_again().and_then(|()| self.write(piece));
        }
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

    fn write(&mut self, piece: &[u8]) -> std::io::Result<()> {
        #[cfg(test)]
        if let Some(code) = self.refuses {
            return Err(std::io::Error::from_raw_os_error(code));
        }
        self.file.write_all(piece)
    }

    /// Opens the file by its name, and goes on where its last complete piece ends. One that is
    /// shorter has lost what was said to be written, and is left alone.
    pub(super) fn open_again(&mut self) -> std::io::Result<()> {
        let mut file = File::options().write(true).open(&self.path)?;
        if file.metadata()?.len() < self.good {
            return Err(std::io::Error::from_raw_os_error(libc::ESTALE));
        }
        file.set_len(self.good)?;
        file.seek(std::io::SeekFrom::Start(self.good))?;
        self.file = file;
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
