//! The Python package: built as `pip install .` builds it, and tested with what people use.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;

/// Installs the package of this checkout into an environment, from the same build as the tests.
fn install(python: &Path) -> Result<Command> {
    let tools = python.parent().context("an interpreter in no directory")?.to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([tools].into_iter().chain(std::env::split_paths(&path)))?;
    let mut pip = command::at_root(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    // What the build needs is in the environment already.
    pip.args(["--no-build-isolation", "--force-reinstall", "."]);
    // A release build takes ten minutes, and the tests are of the same code.
    pip.env("WEIGH_WHEEL_PROFILE", "dev").env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    // maturin calls itself by its name.
    pip.env("PATH", path);
    Ok(pip)
}

/// Installs it, runs its tests, and checks its types and that the stubs are those of the module.
pub(crate) fn test(python: &Path) -> Result<()> {
    command::run(&mut install(python)?)?;
    let module = |arguments: &[&str]| {
        let mut command = command::at_root(python);
        command.args(arguments);
        command
    };
    command::run(&mut module(&["-m", "pytest", "-q", "-p", "no:cacheprovider"]))?;
    command::run(&mut module(&["-m", "mypy", "--strict", "python/weigh"]))?;
    command::run(&mut module(&["-m", "mypy.stubtest", "weigh._native"]))
}
