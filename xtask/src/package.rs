//! The Python package: built as `pip install .` builds it, and tested with what people use.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{command, python};

/// Installs the package of this checkout into an environment, from the same build as the tests.
fn install(python: &Path) -> Result<Command> {
    let mut pip = build(python, &["install", "--force-reinstall", "."])?;
    // A release build takes ten minutes, and the tests are of the same code.
    pip.env("WEIGH_WHEEL_PROFILE", "dev");
    Ok(pip)
}

/// A command of pip that builds the package with what an environment has.
pub(crate) fn build(python: &Path, arguments: &[&str]) -> Result<Command> {
    let tools = python.parent().context("an interpreter in no directory")?.to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([tools].into_iter().chain(std::env::split_paths(&path)))?;
    let mut pip = command::at_root(python);
    pip.args(["-m", "pip"]).args(arguments);
    pip.args(["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]);
    // maturin calls itself by its name.
    pip.env("PATH", path);
    Ok(pip)
}

/// Installs it, runs its tests, and checks its types and that the stubs are those of the module.
pub(crate) fn test(python: &Path) -> Result<()> {
    command::run(&mut install(python)?)?;
    command::run(&mut pytest(python, &[]))?;
    check_types(python)
}

/// The tests of the package that is installed in an environment.
pub(crate) fn pytest(python: &Path, options: &[&str]) -> Command {
    let mut pytest = command::at_root(python);
    pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).args(options);
    pytest.envs(python::suite_found().map(|directory| (python::SOURCES_VARIABLE, directory)));
    pytest
}

/// Types of the package, and its stubs beside the module.
pub(crate) fn check_types(python: &Path) -> Result<()> {
    for arguments in
        [&["mypy", "--strict", "python/weigh"][..], &["mypy.stubtest", "weigh._native"]]
    {
        command::run(command::at_root(python).arg("-m").args(arguments))?;
    }
    Ok(())
}
