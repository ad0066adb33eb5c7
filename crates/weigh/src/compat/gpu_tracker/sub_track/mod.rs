//! `gpu-tracker sub-track`: what parts of a program used.
//!
//! It reads gpu-tracker's files (CSV and SQLite, also untrusted ones) and recordings of weigh: the
//! phases of a recording are its code blocks, and its ticks the timepoints.

mod analyze;
pub mod blocks;
mod combine;
mod compare;
#[cfg(feature = "sqlite")]
mod database;
#[cfg(not(feature = "sqlite"))]
#[path = "no_database.rs"]
mod database;
mod results;
pub mod statistics;
mod table;
#[cfg(test)]
mod tests;
mod text_block;
pub mod tracked;

use std::path::Path;

pub use analyze::{analyze, overall, rows_within};
pub use combine::combine;
pub use compare::{Comparison, Sessions};
pub use results::{CodeBlockResults, SubTrackingResults, by_measure};

use super::Error;

/// Whether a path is a recording of weigh.
pub fn is_recording(path: &Path) -> bool {
    path.join("run.json").is_file()
}

/// Reads a tracking file and a sub-tracking file (or recordings), and analyzes each code block.
pub fn analyze_files(tracking: &Path, sub_tracking: &Path) -> Result<SubTrackingResults, Error> {
    Ok(analyze(&tracked::read(tracking)?, &blocks::read(sub_tracking)?))
}
