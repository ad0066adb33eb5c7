//! The files and formats of the four tools that weigh replaces: gpu_tracker, the ResourceMonitor of
//! oasislmf, pytyche's run_monitor and SKA SDP perfmon.
//!
//! One folder for each tool: the files it would have written, its pictures, and the readers of its
//! files. Shared: floats and JSON as Python prints them ([`python`]), pictures under the tools' file
//! names ([`picture`]), rows an interval apart (`row_spacing`).
#![allow(clippy::disallowed_methods, reason = "these files are the user's, not the machine's")]

pub mod gpu_tracker;
pub mod oasis;
pub mod perfmon;
pub mod picture;
pub mod python;
pub mod pytyche;
mod row_spacing;
