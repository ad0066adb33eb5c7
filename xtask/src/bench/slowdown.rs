//! How much longer a load on all cores takes when it is weighed ten times a second.
//!
//! The load times its own work, so the start of either program is not in it. Runs
//! with and without weigh alternate, in turns of order, and each pair gives one
//! ratio. Where other programs want the cores, too, time says little; so CPU is
//! compared as well: what the load used, and what weigh used beside it.

use std::process::Command;

use anyhow::{Context, Result};

use super::Bench;
use super::table::{Line, Verdict, median};
use super::weighed::Ended;
use crate::command;

/// Seconds that the work of one run takes, about.
const WORK: f64 = 0.8;
const AT_MOST: f64 = 0.005;

/// Seconds of time and of CPU that a run took.
#[derive(Debug, Clone, Copy)]
struct Took {
    time: f64,
    cpu: f64,
}

/// The median slowdown of many pairs, and its error.
pub fn measure(bench: &Bench) -> Result<Vec<Line>> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let pairs = if bench.quick { 3 } else { 24 };
    let trial = 50_000_000;
    let took = work(Command::new(&bench.xtask), trial, threads)?;
    let rounds = (trial as f64 * WORK * threads as f64 / took.cpu) as u64;
    let plain = || work(Command::new(&bench.xtask), rounds, threads);
    let mut both = Vec::new();
    for pair in 0..pairs {
        both.push(if pair % 2 == 0 {
            let without = plain()?;
            (without, weighed(bench, rounds, threads)?)
        } else {
            let with = weighed(bench, rounds, threads)?;
            (plain()?, with)
        });
    }
    let load = format!("slowdown of a load on {threads} cores at 10 Hz");
    let time = both.iter().map(|(without, with)| with.time / without.time - 1.0).collect();
    let cpu = both.iter().map(|(without, with)| with.cpu / without.cpu - 1.0).collect();
    Ok(vec![
        line(format!("{load}, {pairs} pairs"), "the load alone", time),
        line(format!("{load}, in CPU, weigh's included"), "the load alone", cpu),
    ])
}

fn line(what: String, beside: &str, slowdowns: Vec<f64>) -> Line {
    let slowdown = median(slowdowns.iter().copied());
    // Twice the error of a median, from the median distance to it (normal noise: 1.48 and 1.25).
    let distance = median(slowdowns.iter().map(|one| (one - slowdown).abs()));
    let error = 2.0 * 1.48 * 1.25 * distance / (slowdowns.len() as f64).sqrt();
    // Nothing runs faster for being watched: a large gain is noise as much as a large loss.
    let verdict = if slowdown.abs() + error < AT_MOST {
        Verdict::Reached
    } else if slowdown - error > AT_MOST {
        Verdict::Missed
    } else {
        Verdict::Undecided
    };
    let shown = format!("{:+.2} % ± {:.2} %", 100.0 * slowdown, 100.0 * error);
    Line::new(what, shown)
        .beside(beside, format!("{:.4} ×", 1.0 + slowdown))
        .judged(format!("< {} %", 100.0 * AT_MOST), verdict)
}

/// The work under weigh; its CPU between the first tick and the last is added.
fn weighed(bench: &Bench, rounds: u64, threads: usize) -> Result<Took> {
    let directory = bench.fresh("work");
    let mut weigh = Command::new(&bench.weigh);
    weigh.args(["run", "--quiet", "--interval", "100ms", "--output"]).arg(&directory);
    weigh.arg("--").arg(&bench.xtask);
    let took = work(weigh, rounds, threads)?;
    Ok(Took { cpu: took.cpu + Ended::open(&directory)?.cpu_while_ticking()?, ..took })
}

/// What the load says its work took.
fn work(mut before: Command, rounds: u64, threads: usize) -> Result<Took> {
    before.args(["load", "work", &rounds.to_string(), &threads.to_string()]);
    let (out, _) = command::output(&mut before)?;
    let numbers = out.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>();
    match numbers.as_deref() {
        Ok(&[time, cpu]) => Ok(Took { time, cpu }),
        _ => Err(anyhow::anyhow!("the load said {out:?}")).context("time and CPU of the load"),
    }
}
