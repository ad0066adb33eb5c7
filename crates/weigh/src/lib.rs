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

#![cfg_attr(
    test,
    allow(
        clippy::needless_update,
        reason = "a row of a test names the metrics it needs, whether its group has more or not"
    )
)]

pub mod catalog;
pub mod collect;
pub mod compat;
pub mod destination;
pub mod export;
pub mod host;
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
#[cfg(test)]
pub(crate) mod testing;
pub mod words;
