//! Packages for tests of pages: a browser driver and HTML validators, from npm.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::command::{self, at_root, root, target};

/// The variable with the path of the packages, for the tests.
pub(crate) const VARIABLE: &str = "WEIGH_TEST_NODE";

/// The packages and their versions.
const PACKAGES: &str = "crates/weigh-cli/tests/node/package.json";

/// What the directory has; written last, so one that was not finished is filled again.
const LIST: &str = "has.json";

/// A directory that has the packages; made once for each list of them.
pub(crate) fn with_packages() -> Result<PathBuf> {
    if let Ok(directory) = found() {
        return Ok(directory);
    }
    let (directory, wanted) = (directory(), wanted()?);
    println!("node: filling {}", directory.display());
    std::fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
    std::fs::write(directory.join("package.json"), &wanted).context("package.json")?;
    let mut npm = at_root("npm");
    // The browser is the system's: no package may bring its own.
    npm.current_dir(&directory).args(["install", "--no-audit", "--no-fund", "--silent"]);
    command::run(npm.args(["--no-package-lock", "--ignore-scripts"]))?;
    let list = directory.join(LIST);
    std::fs::write(&list, wanted).with_context(|| list.display().to_string())?;
    Ok(directory)
}

/// That directory, if it has been filled with this list of packages.
pub(crate) fn found() -> Result<PathBuf> {
    let (directory, wanted) = (directory(), wanted()?);
    let has = std::fs::read_to_string(directory.join(LIST));
    ensure!(has.is_ok_and(|has| has == wanted), "no npm packages; run cargo xtask setup");
    Ok(directory)
}

fn directory() -> PathBuf {
    target().join("test-node")
}

fn wanted() -> Result<String> {
    std::fs::read_to_string(root().join(PACKAGES)).context(PACKAGES)
}
