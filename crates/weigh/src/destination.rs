//! Output files that get their final name only when they are complete.
//!
//! A file is written under a hidden temporary name in the same directory, fsynced and renamed. If
//! weigh is killed before that, no file has the final name and an existing one is unchanged.

#![allow(clippy::disallowed_methods, reason = "these are the user's files, not the machine")]

use std::fs::{File, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Why a file could not be written.
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

/// Writes a file atomically: complete, or not at all.
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

    /// Creates a file, and missing parent directories.
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
        // Exports are meant to be shared: the umask decides, as for the user's other files.
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

    /// Its temporary name while it is written.
    pub fn partial_path(&self) -> &Path {
        self.partial.path()
    }

    /// Its directory, also for temporary files of the writer.
    pub fn directory(&self) -> &Path {
        self.partial.path().parent().unwrap_or(Path::new("."))
    }

    /// Its final name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Renames the complete file to its final name.
    pub fn keep(self) -> Result<PathBuf, Error> {
        self.partial.as_file().sync_all().map_err(|source| Error::file(&self.path, source))?;
        let kept = if self.force {
            self.partial.persist(&self.path).map_err(|error| error.error)
        } else {
            // Another process may have created it meanwhile.
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

/// A text file written line by line, renamed when complete.
pub struct Lines {
    destination: OutputFile,
    out: BufWriter<File>,
    ending: &'static str,
}

impl Lines {
    /// Starts a text file with this line ending.
    pub fn create(destination: OutputFile, ending: &'static str) -> Result<Lines, Error> {
        let file = destination.file().map_err(|source| Error::file(&destination.path, source))?;
        Ok(Lines { destination, out: BufWriter::new(file), ending })
    }

    /// Writes a line.
    pub fn line(&mut self, line: &str) -> Result<(), Error> {
        let written = write!(self.out, "{line}{}", self.ending);
        written.map_err(|source| Error::file(&self.destination.path, source))
    }

    /// Renames the complete file to its final name.
    pub fn finish(mut self) -> Result<PathBuf, Error> {
        let path = &self.destination.path;
        self.out.flush().map_err(|source| Error::file(path, source))?;
        self.destination.keep()
    }
}
