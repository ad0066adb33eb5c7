//! Where a result goes: a file or an open descriptor, checked before the command runs, so that
//! errors are found early.
//!
//! It stays open: a pipe or `/dev/stdout` must be the same as when weigh started. A descriptor is
//! duplicated, so that what is written follows what the command has written there.

use std::fs::File;
use std::io::Write;
use std::os::fd::FromRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::inherited;

/// Where a result will be written to.
pub(crate) struct ResultFile {
    /// What it is called in messages.
    name: String,
    file: File,
    /// Its path, when it is ours to replace and to remove.
    path: Option<PathBuf>,
    existed: bool,
}

impl ResultFile {
    /// Opens a file without truncating it, or returns why that failed.
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
        let name = path.display().to_string();
        match opened {
            Ok(file) => Ok(ResultFile { name, file, path: Some(path.to_owned()), existed }),
            Err(error) => Err(format!("{name}: {error}")),
        }
    }

    /// Takes a descriptor that weigh has inherited, or returns why it cannot be written to.
    pub(crate) fn descriptor(number: i32) -> Result<ResultFile, String> {
        let name = match number {
            libc::STDOUT_FILENO => "stdout".to_owned(),
            libc::STDERR_FILENO => "stderr".to_owned(),
            _ => format!("descriptor {number}"),
        };
        let place = usize::try_from(number).ok();
        // Rust's runtime opens /dev/null in the place of a closed stream.
        let was_closed = place.and_then(|place| inherited::saved().closed.get(place).copied());
        // SAFETY: F_GETFL only reads; for a closed descriptor it returns an error.
        let flags = unsafe { libc::fcntl(number, libc::F_GETFL) };
        if was_closed == Some(true) || flags < 0 {
            return Err(format!("{name} is not open"));
        }
        if flags & libc::O_ACCMODE == libc::O_RDONLY {
            return Err(format!("{name} is open for reading only"));
        }
        // SAFETY: the descriptor is open; the duplicate closes on exec.
        let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
        if copy < 0 {
            return Err(format!("{name}: {}", std::io::Error::last_os_error()));
        }
        // SAFETY: it is new, and nothing else owns it.
        let file = unsafe { File::from_raw_fd(copy) };
        Ok(ResultFile { name, file, path: None, existed: true })
    }

    /// The run was refused: removes the file if it did not exist before.
    pub(crate) fn discard(self) {
        if let Some(path) = self.path.filter(|_| !self.existed) {
            // An empty file that cannot be removed is harmless.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Writes the result: in the place of a file's old contents, or after what a descriptor has
    /// got already.
    pub(crate) fn write(mut self, result: &[u8]) -> Result<(), String> {
        if self.path.is_some() {
            // Pipes and devices cannot be truncated, and need not be.
            let _ = self.file.set_len(0);
        }
        let written = self.file.write_all(result);
        written.map_err(|error| {
            let why = format!("no result in {}: {error}", self.name);
            // A partial or empty file would be taken for a result.
            self.discard();
            why
        })
    }
}
