//! What the tests look at pages with: a browser's driver and judges of HTML, from npm.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::command::{self, at_root, root, target};

/// The variable that tells the tests where the packages are.
pub const VARIABLE: &str = "WEIGH_TEST_NODE";

/// The packages and their versions.
const PACKAGES: &str = "crates/weigh-cli/tests/node/package.json";

/// A directory that has the packages; made once for each list of them.
pub fn with_packages() -> Result<PathBuf> {
    let wanted = std::fs::read_to_string(root().join(PACKAGES)).context(PACKAGES)?;
    let directory = target().join("test-node");
    let has = directory.join("has.json");
    // Written last, so a directory that was not finished is filled again.
    if std::fs::read_to_string(&has).is_ok_and(|has| has == wanted) {
        return Ok(directory);
    }
    println!("node: filling {}", directory.display());
    std::fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
    std::fs::write(directory.join("package.json"), &wanted).context("package.json")?;
    let mut npm = at_root("npm");
    // The browser is the system's: no package may bring its own.
    npm.current_dir(&directory).args(["install", "--no-audit", "--no-fund", "--silent"]);
    command::run(npm.args(["--no-package-lock", "--ignore-scripts"]))?;
    std::fs::write(&has, wanted).with_context(|| has.display().to_string())?;
    Ok(directory)
}
