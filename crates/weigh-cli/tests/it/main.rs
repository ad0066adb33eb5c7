//! `weigh` as its users meet it: the real binary, on loads whose truth is known.
//!
//! The loads are those of `examples/burner`. What a machine or a user cannot
//! provide (mounts need root, tmux may be missing) is skipped with a line on stderr.

// A test ends by panicking, and the bans on the machine's doors are the library's.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)]

mod attach;
mod bad_input;
mod cards;
mod cli;
mod connections;
mod control_groups;
mod doctor;
mod exports;
mod figures;
mod following;
mod gpu;
mod gpu_files;
mod gpu_partly;
mod gpu_reports;
mod gpu_tracker;
mod gpu_tracker_golden;
mod gpu_trouble;
mod gpu_users;
mod groups;
mod hardware;
mod harm;
mod hostile;
mod inherited;
mod killed;
mod machine;
mod merge;
mod node;
mod nvml;
mod oasis;
mod odd_names;
mod own_groups;
mod packets;
mod page;
mod perfmon;
mod phases;
mod python;
mod pytyche;
mod recording;
mod reports;
mod signals;
mod streams;
mod terminal;
mod truth;
mod watch;
mod weighed;
// Last by its name: a whole kernel takes the CPUs from tests of what is short.
mod within_uml;
