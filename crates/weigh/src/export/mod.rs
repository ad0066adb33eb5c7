//! Tables for other tools.
//!
//! A table is a sequence of Arrow batches ([`tables`]): a stream of the recording as
//! it is, or a small table made from its events. On its way it may be cut to a
//! window of time, turned into rates and put on a grid; then a [`Sink`] writes it,
//! a batch at a time, so that memory does not grow with the recording. A file has
//! its final name only when it is whole ([`destination`]).
#![allow(clippy::disallowed_methods, reason = "exported files are the user's, not the machine's")]

pub mod column;
mod formats;
pub mod gpu_tracker;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

/// Why a file could not be written, before it is known which.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Something that tables are written into: one table after the other, a batch at a time.
pub trait Sink {
    /// Begins a table; the rows up to the next one are its own.
    fn begin(&mut self, table: &str, schema: &SchemaRef) -> Result<(), Cause>;
    /// Writes rows of the table that was begun last.
    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Cause>;
    /// Writes what is left. The file is whole when it returns.
    fn finish(self: Box<Self>) -> Result<(), Cause>;
}
