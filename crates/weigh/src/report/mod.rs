//! A summary for people: text for a terminal, and documents with charts.

pub mod document;
#[cfg(feature = "html")]
pub mod html;
pub mod phases;
pub mod text;

pub use document::Document;
