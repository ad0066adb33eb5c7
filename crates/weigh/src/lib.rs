//! Measure what a run used, and say how sure the number is.
//!
//! The path of a number, and the modules it passes:
//!
//! ```text
//! host ─bytes→ parse ─structs→ collect ─rows→ sample::Tick ─→ record ─→ summary ─→ report
//! ```
//!
//! [`run`] ties them together for one command. Everything here is true without
//! a terminal: arguments, colours and exit codes live in the `weigh` binary.

pub mod catalog;
pub mod collect;
pub mod destination;
pub mod export;
pub mod host;
pub mod import;
pub mod merge;
pub mod parse;
pub mod plot;
pub mod quantity;
pub mod record;
pub mod report;
pub mod run;
pub mod sample;
pub mod settings;
pub mod summary;
pub mod words;
