//! SQLite files, in a weigh that was built without SQLite.

use std::path::Path;

use super::super::Error;
use super::blocks::Position;
use super::tracked::Tracked;

fn refuse<T>(path: &Path) -> Result<T, Error> {
    let why = "this weigh was built without SQLite".to_owned();
    Err(Error::Sqlite { path: path.to_owned(), why })
}

/// Refuses a tracking file.
pub(super) fn tracked(path: &Path) -> Result<Tracked, Error> {
    refuse(path)
}

/// Refuses a sub-tracking file.
pub(super) fn positions(path: &Path) -> Result<Vec<Position>, Error> {
    refuse(path)
}

/// Refuses to write one.
pub(super) fn write(path: &Path, _positions: &[Position]) -> Result<(), Error> {
    refuse(path)
}
