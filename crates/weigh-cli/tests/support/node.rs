//! Tests of pages: Chromium, driven from Node, and HTML validators.
//!
//! `cargo xtask test` fetches the packages and passes their path.

use std::path::Path;
use std::process::Command;

use crate::weighed::{is_installed, plain, skipped};

/// A script beside the tests, run by a Node with these packages; `None`, and a message, where
/// there is none.
pub(crate) fn script(name: &str, directory: &Path) -> Option<Command> {
    let Some(packages) = std::env::var_os("WEIGH_TEST_NODE") else {
        skipped("no packages to test pages with; run cargo xtask setup");
        return None;
    };
    if !is_installed("node") || !is_installed("chromium") {
        return None;
    }
    let mut command = plain("node", directory);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node").join(name));
    command.env("WEIGH_TEST_NODE", packages);
    Some(command)
}
