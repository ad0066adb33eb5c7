//! Python for tests and benchmarks: a virtual environment under target/, made once.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::{self, root, target};
use crate::packages;

/// The variable that tells the tests where the interpreter with the readers is.
pub const VARIABLE: &str = "WEIGH_TEST_PYTHON";

/// What the tests read exported files with.
const READERS: &str = "crates/weigh-cli/tests/python/requirements.txt";

/// What they need a file of, and not what it needs.
const ALONE: &str = "crates/weigh-cli/tests/python/alone.txt";

/// The interpreter of an environment that has what the tests need.
pub fn with_readers() -> Result<PathBuf> {
    let read = |file: &str| std::fs::read_to_string(root().join(file)).context(file.to_owned());
    let wanted = read(READERS)? + &read(ALONE)?;
    let [readers, alone] =
        [READERS, ALONE].map(|file| root().join(file).to_string_lossy().into_owned());
    environment("test-python", &wanted, &[&["-r", &readers], &["--no-deps", "-r", &alone]])
}

/// The interpreter of an environment with these packages.
pub fn with(name: &str, package: &str) -> Result<PathBuf> {
    environment(name, package, &[&[package]])
}

fn environment(name: &str, wanted: &str, installs: &[&[&str]]) -> Result<PathBuf> {
    let directory = target().join(name);
    let (python, has) = (directory.join("bin/python"), directory.join("has.txt"));
    // Written last, so an environment that was not finished is made again.
    if std::fs::read_to_string(&has).is_ok_and(|has| has == wanted) && python.exists() {
        return Ok(python);
    }
    println!("python: making {}", directory.display());
    create(&directory)?;
    for install in installs {
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        command::run(pip.args(*install))?;
    }
    std::fs::write(&has, wanted).with_context(|| has.display().to_string())?;
    Ok(python)
}

fn create(directory: &Path) -> Result<()> {
    let venv = || command::output(Command::new("python3").args(["-m", "venv"]).arg(directory));
    if venv().is_err() {
        // Debian keeps it in a package of its own.
        packages::install_now(&["python3", "python3-venv"])?;
        venv()?;
    }
    Ok(())
}
