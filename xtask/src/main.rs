//! What is done with this repository besides building it: `cargo xtask TASK`.
//!
//! Tasks are programs and not shell scripts, so that they use the library's own
//! catalogue and reader and run the same way here and in CI.
#![allow(
    clippy::disallowed_methods,
    reason = "the bans keep the library's readings behind `weigh::host`; a task has no such door"
)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a task prints what it does")]

mod aarch64;
mod bench;
mod capture;
mod command;
mod debian;
mod dependencies;
mod generate;
mod interpreters;
mod libraries;
mod load;
mod node;
mod package;
mod packages;
mod probe;
mod publish;
mod python;
mod scrub;
mod setup;
mod site;
mod skipped;
mod soak;
mod test;
mod wheel;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tasks of the weigh repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Install what the tests need (packages as root, the rest below target/)
    Setup(setup::Options),
    /// Format, spelling, clippy, tests, docs, generated pages: everything that CI checks
    Test(test::Options),
    /// Write the pages of docs/reference that are made from the code
    Generate {
        /// Compare instead of writing, and fail when a page is out of date
        #[arg(long)]
        check: bool,
    },
    /// Build the documentation as a site in target/site, and check its links
    Docs,
    /// Measure what weigh costs, beside the bare reads, and write BENCHMARKS.md
    Bench(bench::Options),
    /// Build the wheels of the Python package, and check tags, libraries, size and import time
    Wheel(wheel::Options),
    /// Kill, fill up and change recordings at random, and check what weigh reports of them
    Soak(soak::Options),
    /// Record the files that collectors read, twice, as fixtures/hosts/NAME/{t0,t1}.host
    CaptureHost(capture::Options),
    /// (for bench) A load of many processes or of a fixed amount of work
    #[command(hide = true, subcommand)]
    Load(load::Load),
    /// (for bench) The bare reads: the pids to read are on stdin
    #[command(hide = true)]
    Probe(probe::Options),
    /// (for bench) Ticks over a machine that is made of files
    #[command(hide = true)]
    Node(bench::node::Options),
}

fn main() -> ExitCode {
    let done = match Args::parse().task {
        Task::Setup(options) => setup::install(&options),
        Task::Test(options) => test::run(&options),
        Task::Generate { check } => generate::run(check),
        Task::Docs => site::run(),
        Task::Bench(options) => bench::run(&options),
        Task::Wheel(options) => wheel::run(&options),
        Task::Soak(options) => soak::run(&options),
        Task::CaptureHost(options) => capture::run(&options),
        Task::Load(load) => load.run(),
        Task::Probe(options) => probe::run(&options),
        Task::Node(options) => bench::node::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Not `{error:?}`: with RUST_BACKTRACE set, a backtrace would hide the hint.
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
