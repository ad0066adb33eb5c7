//! Removing recordings: only what weigh has written, and nothing that is still being written.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde::Deserialize;

use super::modified;
use crate::record::{Error, files};

/// What weigh writes into a recording: its files, and the default directories of later ones.
const FILES: [&str; 7] = [
    "run.json",
    "run.json.partial",
    "events.jsonl",
    "integrity.json",
    "summary.json",
    "summary.json.partial",
    "inbox",
];
const DIRECTORIES: [&str; 3] = ["export", "plots", "report"];

/// How long a recording without a summary may be at rest before it counts as abandoned: for file
/// systems that have no locks, and for the moment between the end of a recording and its summary.
const AT_REST: Duration = Duration::from_secs(60);

/// Why a recording is not removed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum KeptReason {
    /// It is a link, or not a recording.
    #[error("it is not the directory of a recording")]
    NotARecording,
    /// A writer has it open, or had it a moment ago.
    #[error("it is still being written")]
    BeingWritten,
    /// It has files that weigh did not write.
    #[error("it has a file that is not weigh's: {0}")]
    OtherFile(String),
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(String),
}

/// How many bytes a recording takes, if it may be removed; `now` is the time since 1970.
pub fn removable_bytes(directory: &Path, now: Duration) -> Result<u64, KeptReason> {
    let is_directory = directory.symlink_metadata().is_ok_and(|found| found.is_dir());
    if !is_directory || !files::is_recording(directory) {
        return Err(KeptReason::NotARecording);
    }
    if files::is_locked(directory) {
        return Err(KeptReason::BeingWritten);
    }
    let unreadable = |error: &dyn ToString| KeptReason::Unreadable(error.to_string());
    let contents = Contents::of(directory).map_err(|error| unreadable(&error))?;
    if let Some(other) = contents.other {
        return Err(KeptReason::OtherFile(other));
    }
    let is_over = directory.join("summary.json").exists();
    let changed = contents.files.iter().filter_map(|path| modified(path)).max();
    let changed = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    if !is_over && changed + AT_REST > now {
        return Err(KeptReason::BeingWritten);
    }
    let length = |path: &PathBuf| path.symlink_metadata().map_or(0, |found| found.len());
    Ok(contents.files.iter().map(length).sum())
}

/// Removes a recording that [`removable_bytes`] found to be one.
pub fn remove(directory: &Path) -> Result<(), Error> {
    let failed = |path: &Path, source| Error::File { path: path.to_owned(), source };
    let Contents { mut files, directories, .. } = Contents::of(directory)?;
    // Those that make it a recording are the last: a removal that is cut off can be repeated.
    files.sort_by_key(|path| path.ends_with("run.json") || path.ends_with("events.jsonl"));
    for file in &files {
        std::fs::remove_file(file).map_err(|source| failed(file, source))?;
    }
    for inside in directories.iter().rev() {
        std::fs::remove_dir(inside).map_err(|source| failed(inside, source))?;
    }
    std::fs::remove_dir(directory).map_err(|source| failed(directory, source))
}

/// What is in the directory of a recording.
#[derive(Default)]
struct Contents {
    /// Everything that is not a directory.
    files: Vec<PathBuf>,
    /// From the outside in.
    directories: Vec<PathBuf>,
    /// The first entry that weigh did not write.
    other: Option<String>,
}

impl Contents {
    fn of(directory: &Path) -> Result<Contents, Error> {
        let host = host_directory(directory)?;
        let mut contents = Contents::default();
        for (path, is_directory) in entries(directory)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if !is_directory && FILES.contains(&name.as_str()) {
                contents.files.push(path);
            } else if is_directory && DIRECTORIES.contains(&name.as_str()) {
                contents.add_all(path)?;
            } else if is_directory && name == host {
                contents.add_streams(path, &name)?;
            } else {
                contents.other = Some(name);
            }
        }
        Ok(contents)
    }

    /// Adds a directory and everything in it.
    fn add_all(&mut self, directory: PathBuf) -> Result<(), Error> {
        let inside = entries(&directory)?;
        self.directories.push(directory);
        for (path, is_directory) in inside {
            match is_directory {
                true => self.add_all(path)?,
                false => self.files.push(path),
            }
        }
        Ok(())
    }

    /// Adds the directory of a host, which has streams only.
    fn add_streams(&mut self, directory: PathBuf, host: &str) -> Result<(), Error> {
        let inside = entries(&directory)?;
        self.directories.push(directory);
        for (path, is_directory) in inside {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_stream = name.ends_with(".arrows") || name.ends_with(".arrows.partial");
            if is_directory || !is_stream {
                self.other = Some(format!("{host}/{name}"));
            }
            self.files.push(path);
        }
        Ok(())
    }
}

/// The entries of a directory in the order of their names, and whether each is a directory. A link
/// is a file: what it points to is not followed.
fn entries(directory: &Path) -> Result<Vec<(PathBuf, bool)>, Error> {
    let failed = |source| Error::File { path: directory.to_owned(), source };
    let listed = std::fs::read_dir(directory).map_err(failed)?;
    let mut found = BTreeSet::new();
    for entry in listed {
        let entry = entry.map_err(failed)?;
        found.insert((entry.path(), entry.file_type().map_err(failed)?.is_dir()));
    }
    Ok(found.into_iter().collect())
}

/// The name of the directory with the streams.
fn host_directory(directory: &Path) -> Result<String, Error> {
    /// The parts of `run.json` that are needed here.
    #[derive(Deserialize)]
    struct HostHead {
        host: HostName,
    }
    #[derive(Deserialize)]
    struct HostName {
        name: String,
    }
    let path = directory.join("run.json");
    let bytes = files::read_regular(&path)?;
    let head: HostHead = serde_json::from_slice(&bytes)
        .map_err(|error| Error::Malformed { path, why: error.to_string() })?;
    Ok(crate::record::host_directory(&head.host.name))
}
