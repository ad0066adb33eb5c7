//! `cargo xtask bench`: what weigh costs.
//!
//! The machine is shared and its speed changes from minute to minute, so every
//! cost is compared to something measured at the same time on the same processes,
//! and each line is a median. Nothing here is asserted by a test.

mod counters;
mod export;
mod first;
mod gpu;
mod longer;
mod machine;
pub(crate) mod node;
mod peers;
mod python;
mod rate;
mod report;
mod rest;
mod slowdown;
mod start;
mod table;
mod tick;
mod watch;
mod weighed;

pub(crate) use weighed::descendants;

use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::command::{self, cargo, target};
use table::Line;

/// What to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Shorter and once each: to check that it works, the numbers are not reliable
    #[arg(long)]
    quick: bool,
    /// Only this: tick, node, gpu, watch, peers, slowdown, rate, counters, memory, start, first, rest, export, report or python
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
}

/// What every measurement needs.
pub(crate) struct Bench {
    /// The program that is measured.
    weigh: PathBuf,
    /// This program as a release build: loads and bare reads must not be slower than necessary.
    xtask: PathBuf,
    /// The directory of recordings; on the disk of the builds, as a user's would be.
    scratch: tempfile::TempDir,
    quick: bool,
}

type Measurement = fn(&Bench) -> Result<Vec<Line>>;

const MEASUREMENTS: [(&str, Measurement); 15] = [
    ("tick", tick::measure),
    ("watch", watch::measure),
    ("node", node::measure),
    ("gpu", gpu::measure),
    ("peers", peers::measure),
    ("slowdown", slowdown::measure),
    ("rate", rate::measure),
    ("counters", counters::measure),
    ("memory", tick::memory),
    ("start", start::measure),
    ("first", first::measure),
    ("rest", rest::measure),
    ("export", export::measure),
    ("report", report::measure),
    ("python", python::measure),
];

impl Bench {
    /// How often each measurement is made.
    fn repeats(&self) -> usize {
        if self.quick { 1 } else { 3 }
    }

    /// A directory that does not exist yet.
    fn fresh(&self, name: &str) -> PathBuf {
        (0..)
            .map(|count| self.scratch.path().join(format!("{name}-{count}")))
            .find(|path| !path.exists())
            .unwrap_or_default()
    }
}

/// What a run of weigh took.
struct Timed {
    seconds: f64,
    /// The most it needed, in MiB.
    memory: f64,
}

/// Runs weigh with these arguments to its end.
fn timed(bench: &Bench, arguments: &[PathBuf]) -> Result<Timed> {
    let begin = Instant::now();
    let child = Command::new(&bench.weigh).args(arguments).stdout(Stdio::null()).spawn()?;
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: the child is ours and waited for only here; both places are ours.
    unsafe { libc::wait4(child.id() as i32, &raw mut status, 0, usage.as_mut_ptr()) };
    let seconds = begin.elapsed().as_secs_f64();
    if !ExitStatus::from_raw(status).success() {
        bail!("weigh {} failed", arguments[0].display());
    }
    // SAFETY: all zeros is a valid rusage, and the kernel filled it.
    let kilobytes = unsafe { usage.assume_init() }.ru_maxrss;
    Ok(Timed { seconds, memory: kilobytes as f64 / 1024.0 })
}

/// Builds, measures, prints; writes BENCHMARKS.md, unless it was quick.
pub(crate) fn run(options: &Options) -> Result<()> {
    let wanted = |name: &str| options.only.as_deref().is_none_or(|only| only == name);
    if !MEASUREMENTS.iter().any(|(name, _)| wanted(name)) {
        let names: Vec<&str> = MEASUREMENTS.iter().map(|(name, _)| *name).collect();
        bail!("no such measurement; known are {}", names.join(", "));
    }
    command::run(cargo().args([
        "build",
        "--quiet",
        "--release",
        "-p",
        "weigh-cli",
        "--bins",
        "--examples",
    ]))?;
    command::run(cargo().args(["build", "--quiet", "--release", "-p", "xtask"]))?;
    let release = target().join("release");
    let bench = Bench {
        weigh: release.join("weigh"),
        xtask: release.join("xtask"),
        scratch: tempfile::Builder::new()
            .prefix("bench-")
            .tempdir_in(target())
            .context("a directory for recordings under target/")?,
        quick: options.quick,
    };
    let (begin, load) = (Instant::now(), machine::Load::begin()?);
    let mut lines = Vec::new();
    for (name, measure) in MEASUREMENTS.into_iter().filter(|(name, _)| wanted(name)) {
        eprintln!("measuring: {name}");
        lines.extend(measure(&bench).with_context(|| format!("measuring {name}"))?);
    }
    let report = format!("{}\n\n{}", machine::described(&load)?, table::markdown(&lines));
    println!("\n{report}");
    println!("took {:.0} s", begin.elapsed().as_secs_f64());
    match &options.only {
        _ if options.quick => Ok(()),
        Some(name) => table::write_part(name, &report),
        None => table::write(&report),
    }
}
