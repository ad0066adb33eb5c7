//! A summary for people: text for a terminal, and documents with charts.

pub mod document;
pub mod phases;
pub mod text;

pub use document::Document;
