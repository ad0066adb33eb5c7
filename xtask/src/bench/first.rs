//! How soon a command is sampled.

use std::process::Command;

use anyhow::{Context, Result};

use super::Bench;
use super::table::{Line, median, time};
use super::weighed::Ended;
use crate::command;

const AT_MOST: f64 = 10e-3;

/// From the start of the run (just before exec) to the first row of a process.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Line>> {
    let repeats = if bench.quick { 5 } else { 21 };
    let firsts: Vec<f64> = (0..repeats)
        .map(|_| {
            let directory = bench.fresh("first");
            let mut weigh = Command::new(&bench.weigh);
            weigh
                .args(["run", "--quiet", "--output"])
                .arg(&directory)
                .args(["--", "sleep", "0.02"]);
            command::output(&mut weigh)?;
            let first =
                Ended::open(&directory)?.first_row.context("no process in the recording")?;
            Ok(first.as_secs_f64())
        })
        .collect::<Result<_>>()?;
    let (first, last) =
        (median(firsts.iter().copied()), firsts.iter().copied().fold(0.0, f64::max));
    let line = Line::new("first sample of a command", time(first))
        .beside(format!("slowest of {repeats}: {}", time(last)), "–");
    Ok(vec![line.goal(format!("≤ {}", time(AT_MOST)), first <= AT_MOST)])
}
