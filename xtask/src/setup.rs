//! `cargo xtask setup`: installs what the tests need, and says where each part is.
//!
//! Packages are the system's (as root, on Debian and Ubuntu); everything else goes below target/.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;

use crate::{aarch64, libraries, node, packages, python};

/// What is set up.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only what test --aarch64 needs: a cross compiler and qemu
    #[arg(long)]
    aarch64: bool,
}

/// A part of the set-up that tests find through a variable.
struct Part {
    /// The variable with its path, for the tests.
    variable: &'static str,
    /// What is skipped without it.
    without_it: &'static str,
    path: Result<PathBuf>,
}

/// What the tests need beside the system's packages.
pub(crate) struct Setup {
    parts: Vec<Part>,
    missing_packages: Vec<&'static str>,
}

/// Installs what is missing. Where something cannot be had, the tests that need it are skipped.
pub(crate) fn install(options: &Options) -> Result<()> {
    if options.aarch64 {
        return aarch64::set_up();
    }
    packages::install()?;
    let setup =
        Setup::of(python::with_readers(), node::with_packages(), libraries::Library::fetched);
    setup.print_missing();
    match python::with_package_tools() {
        Err(why) => println!("the Python package is not tested: {why:#}"),
        Ok(python) => {
            if let Err(why) = python::with_suite(&python) {
                println!("the tests of gpu-tracker are skipped: {why:#}");
            }
        }
    }
    if let Err(why) = python::with_site_builder() {
        println!("links of the documentation are not checked: {why:#}");
    }
    if setup.is_complete() {
        println!("set up: everything that the tests need is there");
    }
    Ok(())
}

impl Setup {
    /// What an earlier `cargo xtask setup` has installed.
    pub(crate) fn found() -> Setup {
        Setup::of(python::found(), node::found(), libraries::Library::found)
    }

    fn of(
        python: Result<PathBuf>,
        node: Result<PathBuf>,
        library: impl Fn(&libraries::Library) -> Result<PathBuf>,
    ) -> Setup {
        let part = |variable, without_it, path| Part { variable, without_it, path };
        let mut parts = vec![
            part(python::VARIABLE, "tests that read exported files back", python),
            part(node::VARIABLE, "tests that open pages in a browser", node),
        ];
        parts.extend(libraries::ALL.iter().map(|one| {
            part(one.variable, "the test with the genuine library of a GPU's maker", library(one))
        }));
        Setup { parts, missing_packages: packages::missing() }
    }

    /// Whether every test can run, so that a skipped one is a failure.
    pub(crate) fn is_complete(&self) -> bool {
        packages::is_root()
            && self.missing_packages.is_empty()
            && self.parts.iter().all(|part| part.path.is_ok())
    }

    /// Says what is not there.
    pub(crate) fn print_missing(&self) {
        if !self.missing_packages.is_empty() {
            println!("not installed: {}", self.missing_packages.join(" "));
        }
        if !packages::is_root() {
            println!("not root: tests that mount or need other users' processes are skipped");
        }
        for part in &self.parts {
            if let Err(why) = &part.path {
                println!("{}: {} are skipped: {why:#}", part.variable, part.without_it);
            }
        }
    }

    /// The variables through which the tests find what is there.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, OsString)> {
        self.parts.iter().filter_map(|part| {
            let path = part.path.as_ref().ok()?;
            Some((part.variable, path.clone().into_os_string()))
        })
    }
}
