//! Pictures of a run: one chart model, drawn once, for files, pages and paper.
//!
//! ```text
//! Tick ─Gatherer→ (programs | catalogued | entities) ─Thinned→ Chart ─svg→ SVG ─png→ PNG
//! ```

mod axis;
mod catalogued;
pub mod chart;
mod crowd;
mod entities;
mod gather;
mod heat;
mod programs;
mod sums;
pub mod svg;
mod thin;
mod timeline;
mod window;

pub use chart::{Chart, Form, Scale, Series};
pub use gather::{Gallery, Gatherer};
