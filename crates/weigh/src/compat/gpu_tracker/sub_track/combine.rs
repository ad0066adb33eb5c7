//! The sub-tracking files of several processes as one.

use std::path::{Path, PathBuf};

use super::super::Error;
use super::super::tracking::{TrackingFormat, format_of};
use super::blocks::{self, COLUMNS, Position};
use super::{is_recording, table};
use crate::compat::python::repr;
use crate::destination;

/// Writes the rows of these files, in their order, into a new one.
///
/// One directory stands for everything in it. Recordings may be among them: their phases
/// become rows of the command's process.
pub fn combine(paths: &[PathBuf], to: &Path) -> Result<(), Error> {
    let kind = format_of(to)?;
    if to.exists() {
        let name = to.display();
        return Err(Error::Invalid(format!(
            "Cannot create sub-tracking file {name}. File already exists."
        )));
    }
    let paths = match paths {
        [directory] if directory.is_dir() && !is_recording(directory) => listed(directory)?,
        _ => paths.to_vec(),
    };
    if paths.is_empty() {
        return Err(Error::Invalid("There is no sub-tracking file to combine.".to_owned()));
    }
    let extension = kind.extension();
    for path in paths.iter().filter(|path| !is_recording(path)) {
        if !path.as_os_str().as_encoded_bytes().ends_with(extension.as_bytes()) {
            return Err(Error::Invalid(format!(
                "File {} does not end with the same extension as {}. Must end in \"{extension}\".",
                path.display(),
                to.display()
            )));
        }
    }
    let mut all = Vec::new();
    for path in &paths {
        all.extend(blocks::positions(path)?);
    }
    match kind {
        TrackingFormat::Csv => destination::write(to, csv(&all).as_bytes(), false).map(drop)?,
        TrackingFormat::Sqlite => super::database::write(to, &all)?,
    }
    Ok(())
}

fn listed(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = Error::file(directory);
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(&failed)? {
        paths.push(entry.map_err(&failed)?.path());
    }
    paths.sort_unstable();
    Ok(paths)
}

fn csv(positions: &[Position]) -> String {
    let mut csv = COLUMNS.join(",") + "\n";
    for Position { process_id, name, stop, timestamp } in positions {
        let process = process_id.to_string();
        let stop = if *stop { "1" } else { "0" };
        csv.push_str(&table::join([process.as_str(), name, stop, &repr(*timestamp)]));
        csv.push('\n');
    }
    csv
}
