//! Tests that cannot run on this machine report it directly to stderr, because the harness hides
//! the output of tests that pass.
//!
//! What is missing is found by trying: a system call that is refused, a program that does not
//! start. The same two functions as in the tests of the program (`weigh-cli/tests/support`).

#![expect(clippy::disallowed_methods, reason = "a list of `cargo xtask test`, not the machine's")]

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;

/// A test cannot run because something that can be installed is missing. With `WEIGH_TEST_STRICT`,
/// that is a failure.
#[track_caller]
pub(crate) fn skipped(why: impl Display) {
    assert!(std::env::var_os("WEIGH_TEST_STRICT").is_none(), "skipped: {why}");
    impossible(why);
}

/// A test cannot run on this machine, whatever is installed: its CPU, kernel or emulator lacks
/// something.
pub(crate) fn impossible(why: impl Display) {
    // The harness names the thread after the test.
    let test = std::thread::current().name().unwrap_or("?").to_owned();
    let line = format!("skipped: {test}: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(list) = std::env::var_os("WEIGH_TEST_SKIPPED") {
        let mut list = OpenOptions::new().append(true).create(true).open(list).unwrap();
        list.write_all(line.as_bytes()).unwrap();
    }
}
