//! Measure what a run used, and say how sure the number is.
//!
//! # Measuring
//!
//! A [`Session`] measures this program, a command or running processes, in a thread of its own:
//!
//! ```
//! use weigh::{FigureId, Session, Settings, model::settings::Destination};
//!
//! fn main() -> Result<(), weigh::RunError> {
//!     let settings = Settings { destination: Destination::Nowhere, ..Settings::default() };
//!     let own = Session::current(&settings)?;
//!     let child = Session::spawn(&["sleep".into(), "0.1".into()], &settings)?;
//!     child.wait(None);
//!     own.mark("the child has exited");
//!     for session in [child, own] {
//!         let summary = session.stop()?.summary;
//!         let cpu = summary.figures.get(FigureId::CpuTime).and_then(|cpu| cpu.value);
//!         println!("{}: {cpu:?} seconds of CPU time", summary.run.name);
//! #       assert!(cpu.is_some_and(|seconds| seconds > 0.0));
//!     }
//!     Ok(())
//! }
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
//! programs and for the Python package. The program `weigh` calls [`run::run`] and [`run::attach`]
//! instead, which take over the process. The modules that measure (`collect`, `host`, `parse`) are
//! private. Everything is true without a terminal: arguments, colours and exit codes live in the
//! program.

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
