//! The recording: a directory that survives SIGKILL, a full disk and a lost node.
//!
//! ```text
//! run.json               written first: what runs, where, how it is measured
//! events.jsonl           process starts and exits, phases, marks, faults; a line at a time
//! <host>/<scope>.arrows  one Arrow IPC stream for each scope, a batch at a time
//! integrity.json         what could not be written, and at the end a checksum of each file
//! summary.json           written at the end; can always be made again
//! inbox                  a named pipe while the run lasts: `weigh phase`, `weigh mark`
//! ```
//!
//! One writer for each file; a reader takes every complete line and batch and
//! ignores a torn tail.
#![allow(clippy::disallowed_methods, reason = "a recording is the user's files, not the machine")]

mod baseline;
mod baselined;
mod batches;
pub mod clock;
pub mod events;
pub mod files;
mod frame;
pub mod inbox;
mod integrity;
pub mod job_directory;
mod losses;
pub mod manifest;
mod reader;
mod replay;
mod run_end;
pub mod secrets;
mod stream;
mod target;
#[cfg(test)]
mod tests;
mod writer;

use std::path::{Path, PathBuf};

pub(crate) use baseline::AttachBaseline;
pub use baselined::BaselinedBatches;
pub use batches::Batches;
#[cfg(feature = "xlsx")]
pub(crate) use batches::caught;
pub use events::{Entry, Event};
pub use frame::{Frame, Frames};
pub use integrity::MemberLoss;
pub use losses::Losses;
pub use manifest::Manifest;
pub use reader::Recording;
pub(crate) use reader::host_directory;
pub use replay::{Moment, Replay};
#[cfg(test)]
pub(crate) use run_end::{AttachEnd, CommandEnd};
pub use run_end::{FinalCounters, Reaping, RunEnd, StopReason};
pub(crate) use stream::batch;
pub use target::{Member, Target};
pub use writer::{FLUSH_EVERY, Writer};

/// The version of the recording's format.
pub const FORMAT: u32 = 1;

/// A recording that could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be used.
    #[error("{}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{}: not a recording's file: {why}", path.display())]
    Malformed {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The directory is not empty.
    #[error("{} is not empty", path.display())]
    Occupied {
        /// Which one.
        path: PathBuf,
    },
    /// A newer weigh wrote it.
    #[error("{}: format {found}, and this weigh reads up to {FORMAT}", path.display())]
    Newer {
        /// Which one.
        path: PathBuf,
        /// The format it has.
        found: u32,
    },
}

impl Error {
    /// What the kernel said, if it was the kernel.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Error::File { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }

    fn file(path: &Path, source: std::io::Error) -> Error {
        Error::File { path: path.to_owned(), source }
    }

    fn malformed(path: &Path, why: impl ToString) -> Error {
        Error::Malformed { path: path.to_owned(), why: why.to_string() }
    }

    /// Whether the disk was full.
    pub fn is_full(&self) -> bool {
        let full = |source: &std::io::Error| {
            matches!(source.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG))
        };
        matches!(self, Error::File { source, .. } if full(source))
    }
}
