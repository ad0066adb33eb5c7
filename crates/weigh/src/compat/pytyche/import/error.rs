//! Why files of pytyche and nvidia-smi could not be read.

use std::path::PathBuf;

/// An import that failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing to read.
    #[error("{}: none of {} exists", directory.display(), names.join(", "))]
    Nothing {
        /// The directory.
        directory: PathBuf,
        /// The expected files.
        names: Vec<&'static str>,
    },
    /// Files exist, and nothing in them can be read.
    #[error("{}: no row can be read; {why}", directory.display())]
    NoRow {
        /// Where they are.
        directory: PathBuf,
        /// What is wrong with the first of them.
        why: String,
    },
    /// The path is not a directory.
    #[error("{} is not a directory", path.display())]
    NotADirectory {
        /// What.
        path: PathBuf,
    },
    /// The path is not a regular file.
    #[error("{} is {is}, not a regular file", path.display())]
    NotAFile {
        /// What.
        path: PathBuf,
        /// What it is instead.
        is: &'static str,
    },
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// What.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}
