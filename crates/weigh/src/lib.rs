//! Measure what a run used, and say how sure the number is.
//!
//! The path of a number, and the modules it passes:
//!
//! ```text
//! host ─bytes→ parse ─structs→ collect ─rows→ model::Tick ─→ record ─→ summary ─→ report
//! ```
//!
//! [`run`] ties them together for one command. Everything here is true without
//! a terminal: arguments, colours and exit codes live in the `weigh` binary.

#![cfg_attr(
    test,
    allow(
        clippy::needless_update,
        reason = "a row of a test names the metrics it needs, whether its group has more or not"
    )
)]

pub mod catalog;
#[cfg(feature = "measure")]
pub mod collect;
pub mod compat;
pub mod destination;
pub mod export;
#[cfg(feature = "measure")]
pub mod host;
pub mod listing;
pub mod merge;
pub mod model;
#[cfg(feature = "measure")]
pub mod parse;
pub mod plot;
pub mod quantity;
pub mod record;
pub mod report;
#[cfg(feature = "measure")]
pub mod run;
pub mod summary;
#[cfg(test)]
pub(crate) mod testing;
pub mod text;

pub use catalog::FigureId;
pub use model::settings::Settings;
pub use record::Recording;
#[cfg(feature = "measure")]
pub use run::{Error as RunError, Outcome, Phase, PhaseId, Session};
pub use summary::{Figure, Figures, Summary};
