//! A file for a result, opened before the command runs for a week.
//!
//! It is kept open: a pipe or `/dev/stdout` must be what it was when weigh began.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file that a result will be written into.
pub(crate) struct ResultFile {
    path: PathBuf,
    file: File,
    was_there: bool,
}

impl ResultFile {
    /// Opens it, and leaves what is in it; says why when that cannot be.
    #[expect(clippy::disallowed_methods, reason = "a file the user asked for")]
    pub(crate) fn open(path: &Path) -> Result<ResultFile, String> {
        let was_there = path.exists();
        let opened = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            // A pipe that nobody reads is refused instead of waited for.
            .custom_flags(libc::O_NONBLOCK)
            .open(path);
        match opened {
            Ok(file) => Ok(ResultFile { path: path.to_owned(), file, was_there }),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    /// The run was refused: leaves everything as it was.
    pub(crate) fn forget(self) {
        if !self.was_there {
            // If it cannot be removed it stays behind empty, which harms nobody.
            let _ = std::fs::remove_file(self.path);
        }
    }

    /// Writes the result; what was there is gone.
    pub(crate) fn write(mut self, result: &[u8]) -> Result<(), String> {
        // Pipes and devices cannot be cut, and need not be.
        let _ = self.file.set_len(0);
        let written = self.file.write_all(result);
        written.map_err(|error| {
            let why = format!("no result in {}: {error}", self.path.display());
            // Half of one, or an empty one, would be taken for a result.
            self.forget();
            why
        })
    }
}
