//! Why files of pytyche and nvidia-smi could not be read.

use std::path::PathBuf;

/// An import that failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing to read.
    #[error("{}: there is none of {}", directory.display(), names.join(", "))]
    Nothing {
        /// Where it was looked for.
        directory: PathBuf,
        /// What was looked for.
        names: Vec<&'static str>,
    },
    /// Files are there, and nothing in them can be read.
    #[error("{}: no row can be read; {why}", directory.display())]
    NoRow {
        /// Where they are.
        directory: PathBuf,
        /// What is wrong with the first of them.
        why: String,
    },
    /// Something was named that is no directory.
    #[error("{} is not a directory", path.display())]
    NotADirectory {
        /// What.
        path: PathBuf,
    },
    /// Something is there that is no file.
    #[error("{} is {is}, not a regular file", path.display())]
    NotAFile {
        /// What.
        path: PathBuf,
        /// What it is instead.
        is: &'static str,
    },
    /// Something is there and cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// What.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}
