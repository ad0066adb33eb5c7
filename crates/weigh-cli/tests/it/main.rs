//! `weigh` as users run it: the real binary, on known loads.
//!
//! The loads are those of `examples/burner`. What a machine or a user cannot
//! provide (mounts need root, tmux may be missing) is skipped with a message on stderr.
//! Tests that burn CPU time or depend on the time of a tick are in `tests/alone`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends by panicking")]
#![allow(clippy::disallowed_methods, reason = "the bans on the machine's doors are the library's")]
#![allow(dead_code, reason = "what both test programs share is not all used by each")]

#[path = "../support/cards.rs"]
mod cards;
#[path = "../support/node.rs"]
mod node;
#[path = "../support/python.rs"]
mod python;
#[path = "../support/recorded.rs"]
mod recorded;
#[path = "../support/weighed.rs"]
mod weighed;

mod bad_input;
mod cli;
mod counters;
mod doctor;
mod exports;
mod figures;
mod gpu;
mod gpu_errors;
mod gpu_files;
mod gpu_reports;
mod gpu_tracker;
mod gpu_tracker_golden;
mod gpu_users;
mod hang_up;
mod hardware;
mod hostile;
mod inbox;
mod inherited;
mod job;
mod killed;
mod nvml;
mod odd_names;
mod old_recordings;
mod page;
mod perfmon;
mod pytyche;
mod recording;
mod reports;
mod runs;
mod sandbox;
mod signals;
mod streams;
mod terminal;
