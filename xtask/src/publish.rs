//! Published packages: each has the metadata that a registry requires, and can be packed.

use std::process::Command;

use anyhow::{Result, bail};
use serde_json::Value;

use crate::command::cargo;

/// The metadata that a registry requires, and that packages are found by. There is no
/// `repository`: this one has no public address yet.
const WANTED: [&str; 6] =
    ["description", "license", "readme", "rust_version", "keywords", "categories"];

/// Fails with what a package of ours lacks, by `cargo metadata`.
pub(crate) fn check(packages: &[Value]) -> Result<()> {
    // `publish = false` is a list of no registries.
    let ours = packages.iter().filter(|package| package["source"].is_null());
    let published = ours.filter(|package| package["publish"].is_null());
    let lacks = published.flat_map(|package| {
        let is_missing = |field: &str| {
            let list = package[field].as_array();
            package[field].is_null() || list.is_some_and(|list| list.is_empty())
        };
        let missing = WANTED.into_iter().filter(move |field| is_missing(field));
        missing.map(|field| format!("{}: no {field}", package["name"]))
    });
    let lacks: Vec<String> = lacks.collect();
    if !lacks.is_empty() {
        bail!("cannot be published:\n  {}", lacks.join("\n  "));
    }
    Ok(())
}

/// Packs every package that is to be published; one may need another that no registry has yet.
///
/// Not `cargo publish --dry-run`, which asks the registry and so needs a network. Not verified:
/// that builds everything once more with the settings of a user (six minutes of CPU time); before
/// a release it is worth it, without `--no-verify`.
pub(crate) fn step() -> Command {
    let mut cargo = cargo();
    cargo.args(["package", "--workspace", "--exclude", "xtask", "--locked", "--offline"]);
    // Tests are often run before a commit.
    cargo.args(["--no-verify", "--allow-dirty", "--quiet"]);
    cargo
}
