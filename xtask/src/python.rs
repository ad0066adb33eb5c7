//! Python for tests, benchmarks and the site: virtual environments under target/, made once.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::{self, root, target};
use crate::packages;

/// The variable with the path of the interpreter with the readers, for the tests.
pub(crate) const VARIABLE: &str = "WEIGH_TEST_PYTHON";

/// What the tests read exported files with.
const READERS: &str = "crates/weigh-cli/tests/python/requirements.txt";

/// What an environment has; written last, so one that was not finished is made again.
const LIST: &str = "has.txt";

/// Packages installed without their dependencies.
const ALONE: &str = "crates/weigh-cli/tests/python/alone.txt";

/// The directory of the environment for the tests, below target/.
const ENVIRONMENT: &str = "test-python";

/// What builds the documentation as a site.
const SITE: &str = "crates/weigh-cli/tests/python/site.txt";

/// The directory of its environment: apart, because readers and mkdocs need not agree on versions.
const SITE_ENVIRONMENT: &str = "site-python";

/// What builds and tests the Python package.
const PACKAGE: &str = "python/tests/requirements.txt";

/// Tools whose interfaces the package has, for its tests: installed without their dependencies.
const PACKAGE_ALONE: &str = "python/tests/alone.txt";

/// The tool whose own tests run against the package, and where its source package is, below target/.
const SUITE: &str = "gpu-tracker==5.0.1";
const SOURCES: &str = "test-sources";

/// The variable with that directory, for the tests of the package.
pub(crate) const SOURCES_VARIABLE: &str = "WEIGH_TEST_SOURCES";

/// The directory of its environment: the package is installed there.
const PACKAGE_ENVIRONMENT: &str = "package-python";

/// The interpreter of an environment that has what the tests need; made where it is missing.
pub(crate) fn with_readers() -> Result<PathBuf> {
    let [readers, alone] =
        [READERS, ALONE].map(|file| root().join(file).to_string_lossy().into_owned());
    environment(ENVIRONMENT, &wanted()?, &[&["-r", &readers], &["--no-deps", "-r", &alone]])
}

/// The interpreter of that environment, if it has been made.
pub(crate) fn found() -> Result<PathBuf> {
    finished(&target().join(ENVIRONMENT), &wanted()?)
        .with_context(|| "no Python environment; run cargo xtask setup")
}

fn wanted() -> Result<String> {
    Ok(read(READERS)? + &read(ALONE)?)
}

fn read(file: &str) -> Result<String> {
    std::fs::read_to_string(root().join(file)).context(file.to_owned())
}

/// The interpreter of an environment that has what builds the site; made where it is missing.
pub(crate) fn with_site_builder() -> Result<PathBuf> {
    let file = root().join(SITE).to_string_lossy().into_owned();
    environment(SITE_ENVIRONMENT, &read(SITE)?, &[&["-r", &file]])
}

/// The interpreter of that environment, if it has been made.
pub(crate) fn site_builder_found() -> Result<PathBuf> {
    finished(&target().join(SITE_ENVIRONMENT), &read(SITE)?)
        .with_context(|| "no environment with mkdocs; run cargo xtask setup")
}

/// The interpreter of an environment that has what builds and tests the Python package; made where
/// it is missing.
pub(crate) fn with_package_tools() -> Result<PathBuf> {
    let [all, alone] =
        [PACKAGE, PACKAGE_ALONE].map(|file| root().join(file).to_string_lossy().into_owned());
    let installs: &[&[&str]] = &[&["-r", &all], &["--no-deps", "-r", &alone]];
    environment(PACKAGE_ENVIRONMENT, &package_list()?, installs)
}

/// The interpreter of that environment, if it has been made.
pub(crate) fn package_tools_found() -> Result<PathBuf> {
    finished(&target().join(PACKAGE_ENVIRONMENT), &package_list()?)
        .with_context(|| "no environment with maturin; run cargo xtask setup")
}

fn package_list() -> Result<String> {
    Ok(read(PACKAGE)? + &read(PACKAGE_ALONE)?)
}

/// The directory with the sources of the tool whose tests run against the package; fetched where
/// they are missing.
pub(crate) fn with_suite(python: &Path) -> Result<PathBuf> {
    if let Some(directory) = suite_found() {
        return Ok(directory);
    }
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    // Not ":all:", which would build what the build itself needs, too.
    let name = SUITE.split("==").next().unwrap_or(SUITE);
    pip.args(["--no-binary", name, "--dest"]).arg(target().join(SOURCES));
    command::run(pip.arg(SUITE))?;
    suite_found().with_context(|| format!("pip downloaded no sources of {SUITE}"))
}

/// That directory, if they have been fetched.
pub(crate) fn suite_found() -> Option<PathBuf> {
    let directory = target().join(SOURCES);
    let (name, version) = SUITE.split_once("==")?;
    let archive = format!("{}-{version}.tar.gz", name.replace('-', "_"));
    directory.join(archive).exists().then_some(directory)
}

/// The interpreter of an environment with these packages.
pub(crate) fn with(name: &str, package: &str) -> Result<PathBuf> {
    environment(name, package, &[&[package]])
}

/// The interpreter of an environment of this interpreter, with the packages of a file.
pub(crate) fn with_file_of(interpreter: &Path, name: &str, file: &str) -> Result<PathBuf> {
    let list = root().join(file).to_string_lossy().into_owned();
    let create = |directory: &Path| {
        let mut venv = Command::new(interpreter);
        command::run(venv.args(["-m", "venv"]).arg(directory))
    };
    environment_by(create, name, &read(file)?, &[&["-r", &list]])
}

fn environment(name: &str, wanted: &str, installs: &[&[&str]]) -> Result<PathBuf> {
    environment_by(create, name, wanted, installs)
}

fn environment_by(
    create: impl FnOnce(&Path) -> Result<()>,
    name: &str,
    wanted: &str,
    installs: &[&[&str]],
) -> Result<PathBuf> {
    let directory = target().join(name);
    if let Some(python) = finished(&directory, wanted) {
        return Ok(python);
    }
    let python = directory.join("bin/python");
    println!("python: making {}", directory.display());
    create(&directory)?;
    for install in installs {
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        command::run(pip.args(*install))?;
    }
    let list = directory.join(LIST);
    std::fs::write(&list, wanted).with_context(|| list.display().to_string())?;
    Ok(python)
}

/// The interpreter of an environment that was finished with just this list of packages.
fn finished(directory: &Path, wanted: &str) -> Option<PathBuf> {
    let has = std::fs::read_to_string(directory.join(LIST)).ok()?;
    Some(directory.join("bin/python")).filter(|python| has == wanted && python.exists())
}

fn create(directory: &Path) -> Result<()> {
    let venv = || command::output(Command::new("python3").args(["-m", "venv"]).arg(directory));
    if venv().is_err() {
        // Debian has it in a separate package.
        packages::install_now(&["python3", "python3-venv"])?;
        venv()?;
    }
    Ok(())
}
