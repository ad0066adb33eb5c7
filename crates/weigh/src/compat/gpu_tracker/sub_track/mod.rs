//! `gpu-tracker sub-track`: what parts of a program used.
//!
//! Its files are read here (CSV and SQLite, from whomever they come), and recordings of
//! weigh beside them: the phases of a recording are its code blocks, and its ticks the
//! moments at which something was measured.

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

pub use analyze::analyze;
pub use combine::combine;
pub use compare::{Comparison, Sessions};
pub use results::{CodeBlockResults, SubTrackingResults};

use super::Error;

/// Whether a path is a recording of weigh.
pub fn is_recording(path: &Path) -> bool {
    path.join("run.json").is_file()
}

/// Reads a tracking file and a sub-tracking file (or recordings), and says what each code
/// block used.
pub fn analyze_files(tracking: &Path, sub_tracking: &Path) -> Result<SubTrackingResults, Error> {
    Ok(analyze(&tracked::read(tracking)?, &blocks::read(sub_tracking)?))
}
