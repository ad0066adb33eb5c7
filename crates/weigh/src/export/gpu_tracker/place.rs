//! Files that are there whole or not at all, with refusals in the words of gpu-tracker.

use std::io::Write;
use std::path::Path;

use super::super::{self as export, destination::Destination};
use super::Error;

impl From<export::Error> for Error {
    fn from(error: export::Error) -> Error {
        match error {
            export::Error::Exists { path } => Error::Exists { path },
            export::Error::Recording(error) => Error::Recording(error),
            other => Error::Write(other.to_string()),
        }
    }
}

/// Writes a file.
pub fn write(path: &Path, content: &[u8], force: bool) -> Result<(), Error> {
    let destination = Destination::create(path, force)?;
    let written = destination.file().and_then(|mut file| file.write_all(content));
    written.map_err(Error::file(path))?;
    destination.keep()?;
    Ok(())
}
