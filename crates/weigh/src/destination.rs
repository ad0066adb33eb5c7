//! Files that have their name only when they are whole.
//!
//! A file is written under a hidden temporary name in the same directory, brought to
//! the disk and renamed. Whatever ends weigh before that leaves no file of the final
//! name, and none that was there is harmed.

#![allow(clippy::disallowed_methods, reason = "these are the user's files, not the machine")]

use std::fs::{File, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It already exists.
    #[error("{} already exists", path.display())]
    Exists {
        /// Which one.
        path: PathBuf,
    },
    /// It could not be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl Error {
    fn file(path: &Path, source: std::io::Error) -> Error {
        Error::Write { path: path.to_owned(), source }
    }
}

/// Writes a whole file, which is then there whole or not at all.
pub fn write(path: &Path, contents: &[u8], force: bool) -> Result<PathBuf, Error> {
    let destination = OutputFile::create(path, force)?;
    let written = destination.file().and_then(|mut file| file.write_all(contents));
    written.map_err(|source| Error::file(path, source))?;
    destination.keep()
}

/// A file that is being written.
pub struct OutputFile {
    path: PathBuf,
    partial: NamedTempFile,
    force: bool,
}

impl OutputFile {
    /// Refuses a file that already exists, unless it may be replaced.
    pub fn check(path: &Path, force: bool) -> Result<(), Error> {
        if !force && path.symlink_metadata().is_ok() {
            return Err(Error::Exists { path: path.to_owned() });
        }
        Ok(())
    }

    /// Begins a file; directories above it are made.
    pub fn create(path: &Path, force: bool) -> Result<OutputFile, Error> {
        let directory = match path.parent() {
            Some(directory) if !directory.as_os_str().is_empty() => directory,
            _ => Path::new("."),
        };
        let failed = |source: std::io::Error| Error::file(path, source);
        std::fs::create_dir_all(directory).map_err(|source| {
            let in_the_way = directory.symlink_metadata().is_ok() && !directory.is_dir();
            let kind = std::io::ErrorKind::NotADirectory;
            Error::file(directory, if in_the_way { kind.into() } else { source })
        })?;
        // Exports are made to be passed on: as readable as the user's other files.
        let partial = tempfile::Builder::new()
            .prefix(".weigh-")
            .suffix(".partial")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory)
            .map_err(failed)?;
        Ok(OutputFile { path: path.to_owned(), partial, force })
    }

    /// The file, to be written to.
    pub fn file(&self) -> std::io::Result<File> {
        self.partial.as_file().try_clone()
    }

    /// Its name while it is written.
    pub fn partial_path(&self) -> &Path {
        self.partial.path()
    }

    /// Where it is, and where what it needs meanwhile may be.
    pub fn directory(&self) -> &Path {
        self.partial.path().parent().unwrap_or(Path::new("."))
    }

    /// Its final name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name, now that it is whole.
    pub fn keep(self) -> Result<PathBuf, Error> {
        self.partial.as_file().sync_all().map_err(|source| Error::file(&self.path, source))?;
        let kept = if self.force {
            self.partial.persist(&self.path).map_err(|error| error.error)
        } else {
            // Somebody may have made one meanwhile.
            self.partial.persist_noclobber(&self.path).map_err(|error| error.error)
        };
        match kept {
            Ok(_) => Ok(self.path),
            Err(there) if there.kind() == std::io::ErrorKind::AlreadyExists => {
                Err(Error::Exists { path: self.path })
            }
            Err(source) => Err(Error::file(&self.path, source)),
        }
    }
}

/// A text that is written a line at a time, and has its name when it is whole.
pub struct Lines {
    destination: OutputFile,
    out: BufWriter<File>,
    ending: &'static str,
}

impl Lines {
    /// Begins a text whose lines end in this way.
    pub fn create(destination: OutputFile, ending: &'static str) -> Result<Lines, Error> {
        let file = destination.file().map_err(|source| Error::file(&destination.path, source))?;
        Ok(Lines { destination, out: BufWriter::new(file), ending })
    }

    /// Writes a line.
    pub fn line(&mut self, line: &str) -> Result<(), Error> {
        let written = write!(self.out, "{line}{}", self.ending);
        written.map_err(|source| Error::file(&self.destination.path, source))
    }

    /// Gives it its name, now that it is whole.
    pub fn finish(mut self) -> Result<PathBuf, Error> {
        let path = &self.destination.path;
        self.out.flush().map_err(|source| Error::file(path, source))?;
        self.destination.keep()
    }
}
