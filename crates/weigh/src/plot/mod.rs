//! Pictures of a run: one chart model, drawn once, for files, pages and paper.

pub mod chart;
pub mod svg;

pub use chart::{Chart, Form, Scale, Series};
