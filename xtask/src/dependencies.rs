//! Dependencies of weigh: every licence is one that deny.toml allows, and none is unused.
//!
//! `cargo deny check` does more (advisories need a network) and reads the same list; the workflow
//! of the repository runs it. This needs nothing installed and takes a second.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::command::{self, cargo, root};

/// Every package that is built, ours and others', as `cargo metadata` has them.
pub(crate) fn packages() -> Result<Vec<Value>> {
    let mut metadata = cargo();
    metadata.args(["metadata", "--locked", "--format-version", "1"]);
    let (metadata, _) = command::output(&mut metadata)?;
    let mut metadata: Value = serde_json::from_str(&metadata).context("cargo metadata")?;
    match metadata["packages"].take() {
        Value::Array(packages) => Ok(packages),
        _ => bail!("cargo metadata: no packages"),
    }
}

/// Fails with what is not allowed, or not used.
pub(crate) fn check(packages: &[Value]) -> Result<()> {
    let mut wrong = licences(packages)?;
    for package in packages.iter().filter(|package| package["source"].is_null()) {
        wrong.extend(unused(package)?);
    }
    if wrong.is_empty() {
        println!("{} packages, all of allowed licences, none unused", packages.len());
        return Ok(());
    }
    bail!("dependencies:\n  {}", wrong.join("\n  "))
}

/// Packages of a licence that deny.toml does not have.
fn licences(packages: &[Value]) -> Result<Vec<String>> {
    let deny = std::fs::read_to_string(root().join("deny.toml")).context("deny.toml")?;
    let deny: toml::Table = deny.parse().context("deny.toml")?;
    let allowed = deny.get("licenses").and_then(|table| table.get("allow")?.as_array());
    let allowed = allowed.context("deny.toml: no licenses.allow")?;
    let allowed: Vec<&str> = allowed.iter().filter_map(|licence| licence.as_str()).collect();
    let is_allowed = |licence: &str| {
        let lax = spdx::ParseMode::LAX;
        let parsed = spdx::Expression::parse_mode(licence, lax);
        parsed.is_ok_and(|parsed| {
            parsed.evaluate(|requirement| allowed.contains(&requirement.to_string().as_str()))
        })
    };
    let refused = |package: &Value| {
        let licence = package["license"].as_str().unwrap_or("none");
        // A package without a source is ours.
        let fine = package["source"].is_null() || is_allowed(licence);
        (!fine).then(|| format!("{}: licence {licence} is not allowed", package["name"]))
    };
    Ok(packages.iter().filter_map(refused).collect())
}

/// Dependencies of one of our packages whose name is in none of its sources.
fn unused(package: &Value) -> Result<Vec<String>> {
    let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
    let directory = manifest.parent().context("a manifest without a directory")?;
    let mut sources = String::new();
    read_sources(directory, &mut sources)?;
    let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names = dependencies
        .iter()
        .filter_map(|dependency| dependency["rename"].as_str().or(dependency["name"].as_str()));
    let is_unused = |name: &&str| !sources.contains(&name.replace('-', "_"));
    let shown = |name: &str| format!("{}: no source uses {name}", manifest.display());
    Ok(names.filter(is_unused).map(shown).collect())
}

fn read_sources(directory: &Path, sources: &mut String) -> Result<()> {
    let entries = std::fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            read_sources(&path, sources)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path);
            sources.push_str(&text.with_context(|| path.display().to_string())?);
        }
    }
    Ok(())
}
