//! Reads a recording: `cargo run --example read -- weigh-runs/DIRECTORY`.

#![allow(clippy::print_stdout, reason = "an example shows its result")]
#![allow(clippy::disallowed_methods, reason = "the bans are the library's")]

use std::path::PathBuf;

use weigh::{Recording, summary};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory: PathBuf = std::env::args_os().nth(1).ok_or("which recording?")?.into();
    let recording = Recording::open(&directory)?;
    let summary = summary::of(&recording)?;
    println!("{} took {} s", summary.run.name, summary.run.duration_seconds);
    for finding in &summary.findings {
        println!("{}: {}", finding.code, finding.sentence);
    }
    Ok(())
}
