//! Charts of a run: one chart model, drawn once, for files, HTML pages and PDF.
//!
//! ```text
//! Tick ─ChartBuilder→ (programs | catalogued | entities) ─Curve→ Chart ─svg→ SVG ─png→ PNG
//! ```

mod arrange;
pub(crate) mod axis;
mod catalogued;
pub mod chart;
mod chart_builder;
mod choose;
mod curve;
mod entities;
mod entity_labels;
mod extremes;
#[cfg(any(feature = "pdf", feature = "png"))]
pub mod fonts;
mod heatmap;
mod limits;
pub mod nodes;
#[cfg(feature = "png")]
mod png;
mod processes;
mod programs;
mod readings;
pub(crate) mod steps;
mod sums;
pub mod svg;
#[cfg(test)]
mod tests;
mod thin;
pub(crate) mod timeline;
pub(crate) mod window;

pub use chart::{Chart, ChartForm, ChartSeries, Scale};
pub use chart_builder::{ChartBuilder, RunCharts};
pub use choose::{Error, charts, names};
pub(crate) use limits::{CPU, MEMORY};
#[cfg(feature = "png")]
pub use png::{Error as PngError, png};
