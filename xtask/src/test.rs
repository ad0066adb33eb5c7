//! `cargo xtask test`: what developers and CI run.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::command::{self, cargo, root};
use crate::setup::Setup;
use crate::skipped::Skipped;
use crate::{aarch64, dependencies, generate, package, packages, publish, python, site};

/// How much is tested.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The daily loop: what needs no set-up and burns no CPU time, with an unoptimised build
    #[arg(long)]
    fast: bool,
    /// Only this: unit tests and readers built for aarch64 and emulated (after setup --aarch64)
    #[arg(long, conflicts_with = "fast")]
    aarch64: bool,
    /// Only this: a job on a real OAR of two nodes, whose packages are installed first
    #[arg(long, conflicts_with_all = ["fast", "aarch64"])]
    oar: bool,
}

/// Makes a test that cannot run here fail, where everything was installed.
const STRICT: &str = "WEIGH_TEST_STRICT";

/// The step that runs the tests.
const TESTS: &str = "tests";

/// Runs every check, stopping at the first that fails.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.aarch64 {
        return aarch64::test();
    }
    if options.oar {
        packages::install_oar()?;
        let filter = ["--", "--ignored", "oar::"];
        let words = ["test", "--locked", "-p", "weigh-cli", "--test", "alone"];
        return command::run(step(&[&words[..], &filter].concat()).env(STRICT, "1"));
    }
    let setup = Setup::found();
    setup.print_missing();
    let skipped = Skipped::none_yet()?;
    let steps = if options.fast { fast_steps() } else { all_steps()? };
    let mut took = Vec::new();
    println!("\n== dependencies");
    let packages = dependencies::packages()?;
    dependencies::check(&packages)?;
    publish::check(&packages)?;
    for (name, mut step) in steps {
        if name == TESTS {
            skipped.pass_to(step.envs(setup.variables()));
            step.envs(Some((STRICT, "1")).filter(|_| setup.is_complete()));
        }
        println!("\n== {name}: {}", command::shown(&step));
        let begin = Instant::now();
        command::run(&mut step).with_context(|| format!("cargo xtask test: {name}"))?;
        took.push((name, begin.elapsed()));
    }
    if !options.fast {
        println!("\n== generated pages: cargo xtask generate --check");
        let begin = Instant::now();
        generate::run(true).context("cargo xtask test: generated pages")?;
        took.push(("generated pages", begin.elapsed()));
        match python::package_tools_found() {
            Ok(python) => {
                println!("\n== python package: pip install . && pytest && mypy");
                let begin = Instant::now();
                package::test(&python).context("cargo xtask test: python package")?;
                took.push(("python package", begin.elapsed()));
            }
            Err(why) => println!("\nthe Python package is not tested: {why:#}"),
        }
        match python::site_builder_found() {
            Ok(python) => {
                println!("\n== links: cargo xtask docs");
                let begin = Instant::now();
                site::build(&python).context("cargo xtask test: links")?;
                took.push(("links", begin.elapsed()));
            }
            Err(why) => println!("\nlinks of the documentation are not checked: {why:#}"),
        }
    }
    println!("\nall passed, {}", skipped.summary()?);
    for (name, time) in &took {
        println!("  {name:<16} {}", seconds(*time));
    }
    println!("  {:<16} {}", "together", seconds(took.iter().map(|(_, time)| *time).sum()));
    Ok(())
}

type Steps = Vec<(&'static str, Command)>;

fn step(arguments: &[&str]) -> Command {
    let mut command = cargo();
    command.args(arguments);
    command
}

/// What CI checks.
fn all_steps() -> Result<Steps> {
    let mut docs = step(&["doc", "--locked", "--no-deps", "-p", "weigh"]);
    docs.env("RUSTDOCFLAGS", "-D warnings");
    let tests = step(&["test", "--locked", "--workspace", "--no-fail-fast"]);
    let clippy = ["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"];
    let mut steps = vec![("format", step(&["fmt", "--all", "--check"]))];
    steps.extend(spelling());
    steps.push(("clippy", step(&clippy)));
    for feature in features()? {
        let bare = ["clippy", "--locked", "-p", "weigh", "--no-default-features"];
        let with = ["--features", &feature, "--", "-D", "warnings"];
        steps.push(("features", step(&[&bare[..], &with].concat())));
    }
    steps.extend([("packages", publish::step()), (TESTS, tests), ("docs", docs)]);
    Ok(steps)
}

/// Each kind of file that can be left out of the library, and none of them.
fn features() -> Result<Vec<String>> {
    let path = root().join("crates/weigh/Cargo.toml");
    let shown = || path.display().to_string();
    let manifest: toml::Table = std::fs::read_to_string(&path).with_context(shown)?.parse()?;
    let default = manifest.get("features").and_then(|features| features.get("default")?.as_array());
    let default = default.with_context(shown)?.iter().filter_map(|feature| feature.as_str());
    Ok(std::iter::once("").chain(default).map(str::to_owned).collect())
}

/// What is worth waiting for after each change.
fn fast_steps() -> Steps {
    let tests = step(&["test", "--locked", "-p", "weigh", "-p", "weigh-cli", "--lib", "--bins"]);
    vec![("format", step(&["fmt", "--all", "--check"])), (TESTS, tests)]
}

/// typos, from the environment that the set-up has made.
fn spelling() -> Option<(&'static str, Command)> {
    let python = python::found().ok()?;
    let typos = python.parent().map(|bin| bin.join("typos")).filter(|typos| typos.exists())?;
    Some(("spelling", command::at_root(typos)))
}

fn seconds(time: Duration) -> String {
    format!("{:7.1} s", time.as_secs_f64())
}
