//! Reports of a run: text for a terminal, and documents with charts.

mod columns;
pub mod counters;
pub mod document;
pub mod github;
pub mod gpus;
pub mod hardware;
#[cfg(feature = "html")]
pub mod html;
pub mod job;
pub mod job_array;
pub mod markdown;
#[cfg(feature = "pdf")]
pub mod pdf;
mod peak_memory;
pub mod phases;
pub mod process_table;
mod read;
mod style;
#[cfg(test)]
mod tests;
pub mod text;
mod tools;

pub use document::Document;
pub use github::github;
#[cfg(feature = "html")]
pub use html::html;
pub use markdown::markdown;
#[cfg(feature = "pdf")]
pub use pdf::{PdfExtent, pdf};
pub use process_table::ProcessTable;
pub use read::read;

/// A command line quoted for a shell.
fn typed<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let quoter = shlex::Quoter::new().allow_nul(true);
    let words = words.map(|word| quoter.quote(word).unwrap_or(word.into()));
    words.collect::<Vec<_>>().join(" ")
}
