//! Measure what a run used, and say how sure the number is.
//!
//! # Measuring
//!
//! A [`Session`] measures this program, a command or running processes, in a thread of its own:
//!
//! ```no_run
//! use weigh::{FigureId, Session, Settings};
//!
//! let session = Session::spawn(&["make".into(), "-j8".into()], &Settings::default())?;
//! session.wait(None);
//! let outcome = session.stop()?;
//! let memory = outcome.summary.figures.get(FigureId::MemoryPeak);
//! println!("{memory:?}, recorded in {:?}", outcome.recording);
//! # Ok::<(), weigh::RunError>(())
//! ```
//!
//! Every [`Figure`] has a value, a method (exact, sampled or estimated), bounds and a source. What is
//! not known is `None`, with a reason.
//!
//! # Reading
//!
//! ```no_run
//! let recording = weigh::Recording::open("weigh-runs/2026-11-15T22-58-53.550Z-make".as_ref())?;
//! for finding in weigh::summary::of(&recording)?.findings {
//!     println!("{}", finding.sentence);
//! }
//! # Ok::<(), weigh::record::Error>(())
//! ```
//!
//! # How it is built
//!
//! The path of a number, and the modules it passes:
//!
//! ```text
//! host ─bytes→ parse ─structs→ collect ─rows→ model::Tick ─→ record ─→ summary ─→ report
//! ```
//!
//! [`Session`], [`Settings`], [`Recording`], [`Summary`] and what they return are the interface for
//! programs; the program `weigh` and the Python package use nothing else. The modules that measure
//! (`collect`, `host`, `parse`) are private. Everything is true without a terminal: arguments,
//! colours and exit codes live in the program.

#![cfg_attr(
    test,
    allow(
        clippy::needless_update,
        reason = "a row of a test names the metrics it needs, whether its group has more or not"
    )
)]

pub mod catalog;
pub mod compat;
pub mod counters;
pub mod destination;
#[cfg(feature = "measure")]
pub mod doctor;
pub mod export;
#[cfg(feature = "measure")]
pub mod job;
pub mod listing;
pub mod merge;
pub mod model;
pub mod plot;
#[cfg(feature = "measure")]
pub mod program;
pub mod quantity;
pub mod record;
pub mod report;
#[cfg(feature = "measure")]
pub mod run;
pub mod summary;
#[cfg(test)]
pub(crate) mod testing;
pub mod text;

// What measures is not reachable, except for the benchmarks and fuzz targets of this repository.
#[cfg(all(feature = "measure", not(feature = "internals")))]
#[allow(unreachable_pub, reason = "reachable with the feature `internals`")]
mod collect;
#[cfg(all(feature = "measure", not(feature = "internals")))]
#[allow(unreachable_pub, reason = "reachable with the feature `internals`")]
mod host;
#[cfg(all(feature = "measure", not(feature = "internals")))]
#[allow(unreachable_pub, reason = "reachable with the feature `internals`")]
mod parse;

#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod collect;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod host;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod parse;

pub use catalog::FigureId;
pub use model::settings::Settings;
pub use record::Recording;
#[cfg(feature = "measure")]
pub use run::{Error as RunError, OpenPhase, Outcome, PhaseId, Session};
pub use summary::{Figure, Figures, Summary};
