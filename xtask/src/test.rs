//! `cargo xtask test`: what the README tells people to type and CI runs.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::command::{self, cargo};
use crate::{generate, libraries, node, packages, python};

/// Installs what is missing, then runs every check, stopping at the first that fails.
pub fn run() -> Result<()> {
    packages::install()?;
    let python = python::with_readers();
    if let Err(why) = &python {
        println!("python: not to be had, so tests that read files back are skipped: {why:#}");
    }
    let node = node::with_packages();
    if let Err(why) = &node {
        println!("node: not to be had, so tests that look at pages are skipped: {why:#}");
    }
    let libraries = libraries::ALL.map(|library| (library.variable, library.fetched()));
    for (variable, library) in &libraries {
        if let Err(why) = library {
            println!("{variable}: not to be had, so the test of that library is skipped: {why:#}");
        }
    }
    let mut took = Vec::new();
    for (name, mut step) in steps() {
        if let Ok(python) = &python {
            step.env(python::VARIABLE, python);
        }
        if let Ok(node) = &node {
            step.env(node::VARIABLE, node);
        }
        for (variable, library) in &libraries {
            step.envs(library.as_ref().ok().map(|library| (variable, library)));
        }
        println!("\n== {name}: {}", command::shown(&step));
        let begin = Instant::now();
        command::run(&mut step).with_context(|| format!("cargo xtask test: {name}"))?;
        took.push((name, begin.elapsed()));
    }
    println!("\n== generated pages: cargo xtask generate --check");
    let begin = Instant::now();
    generate::run(true).context("cargo xtask test: generated pages")?;
    took.push(("generated pages", begin.elapsed()));
    println!("\nall passed");
    for (name, time) in &took {
        println!("  {name:<16} {}", seconds(*time));
    }
    println!("  {:<16} {}", "together", seconds(took.iter().map(|(_, time)| *time).sum()));
    Ok(())
}

fn steps() -> [(&'static str, Command); 4] {
    let step = |arguments: &[&str]| {
        let mut command = cargo();
        command.args(arguments);
        command
    };
    let mut docs = step(&["doc", "--no-deps", "-p", "weigh"]);
    docs.env("RUSTDOCFLAGS", "-D warnings");
    // It is built once here and runs everything: recordings of a million rows are read much
    // faster, and that takes longer to build than people at work want to wait each time.
    let mut tests = step(&["test", "--workspace"]);
    tests.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    [
        ("format", step(&["fmt", "--all", "--check"])),
        ("clippy", step(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])),
        ("tests", tests),
        ("docs", docs),
    ]
}

fn seconds(time: Duration) -> String {
    format!("{:7.1} s", time.as_secs_f64())
}
