//! A file for a result, opened before the command runs, so that errors are found early.
//!
//! It stays open: a pipe or `/dev/stdout` must be the same as when weigh started.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file that a result will be written into.
pub(crate) struct ResultFile {
    path: PathBuf,
    file: File,
    existed: bool,
}

impl ResultFile {
    /// Opens it without truncating, or returns why that failed.
    #[expect(clippy::disallowed_methods, reason = "a file the user asked for")]
    pub(crate) fn open(path: &Path) -> Result<ResultFile, String> {
        let existed = path.exists();
        let opened = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            // A pipe without a reader is refused; open would block.
            .custom_flags(libc::O_NONBLOCK)
            .open(path);
        match opened {
            Ok(file) => Ok(ResultFile { path: path.to_owned(), file, existed }),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    /// The run was refused: removes the file if it did not exist before.
    pub(crate) fn discard(self) {
        if !self.existed {
            // An empty file that cannot be removed is harmless.
            let _ = std::fs::remove_file(self.path);
        }
    }

    /// Writes the result, in the place of the old contents.
    pub(crate) fn write(mut self, result: &[u8]) -> Result<(), String> {
        // Pipes and devices cannot be truncated, and need not be.
        let _ = self.file.set_len(0);
        let written = self.file.write_all(result);
        written.map_err(|error| {
            let why = format!("no result in {}: {error}", self.path.display());
            // A partial or empty file would be taken for a result.
            self.discard();
            why
        })
    }
}
