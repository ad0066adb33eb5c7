//! Readers of exports: Python with pandas, pyarrow, DuckDB and others.
//!
//! `cargo xtask test` makes an environment for them and passes its path.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::weighed::{output, plain, skipped};

/// A script beside the tests, run by a Python with these readers; `None`, and a message, where
/// there is none.
pub(crate) fn script(name: &str, directory: &Path) -> Option<Command> {
    let Some(python) = std::env::var_os("WEIGH_TEST_PYTHON") else {
        skipped("no Python with readers of the files; run cargo xtask setup");
        return None;
    };
    let mut command = plain(PathBuf::from(python), directory);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python").join(name));
    Some(command)
}

/// Runs a script, which must succeed.
pub(crate) fn succeeds(command: &mut Command) -> String {
    let output = output(command);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).unwrap()
}
