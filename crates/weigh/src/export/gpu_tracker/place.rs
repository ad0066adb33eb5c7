//! Files that are there whole or not at all.

use std::io::Write;
use std::path::Path;

use super::Error;
use crate::record::files::partial_name;

/// Refuses a file that exists, unless it may be replaced.
pub fn check_free(path: &Path, force: bool) -> Result<(), Error> {
    if !force && path.exists() { Err(Error::Exists { path: path.to_owned() }) } else { Ok(()) }
}

/// Opens the file that will have this name when it is whole.
pub fn create(path: &Path) -> Result<std::fs::File, Error> {
    std::fs::File::create(partial_name(path)).map_err(Error::file(path))
}

/// Gives a file its name.
pub fn finish(path: &Path, force: bool) -> Result<(), Error> {
    let partial = partial_name(path);
    let placed = check_free(path, force)
        .and_then(|()| std::fs::rename(&partial, path).map_err(Error::file(path)));
    if placed.is_err() {
        forget(path);
    }
    placed
}

/// Removes a file that did not become whole.
pub fn forget(path: &Path) {
    // Nothing more can be done about a file that cannot be removed either.
    let _ = std::fs::remove_file(partial_name(path));
}

/// Writes a file.
pub fn write(path: &Path, content: &[u8], force: bool) -> Result<(), Error> {
    let written = create(path)?.write_all(content).map_err(Error::file(path));
    match written {
        Ok(()) => finish(path, force),
        Err(error) => {
            forget(path);
            Err(error)
        }
    }
}
