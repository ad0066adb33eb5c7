//! What counting events costs the command: inherited counters make every fork and every context
//! switch longer.
//!
//! Each round runs the load without counters, with the default set and with software events, one
//! after the other, and only times of one round are compared. Where the machine has no PMU the
//! default set is empty, which is said.

use std::process::Command;

use anyhow::{Context, Result};

use super::Bench;
use super::table::{Line, median};

/// The loads, and how often each repeats.
const LOADS: [(&str, &str, u32); 2] =
    [("context switches", "switches", 100_000), ("a fork storm", "forks", 3_000)];

/// What is counted: without counters first.
const COUNTED: [(&str, &[&str]); 3] = [
    ("nothing", &["--skip", "perf"]),
    ("the default set", &[]),
    ("software events", &["--perf", "SOFTWARE"]),
];

const AT_MOST: f64 = 0.01;

/// How much longer the loads take.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Line>> {
    let rounds = if bench.quick { 3 } else { 25 };
    let has_pmu = has_pmu(bench)?;
    let mut lines = Vec::new();
    for (what, load, count) in LOADS {
        let mut times: [Vec<f64>; COUNTED.len()] = Default::default();
        for _ in 0..rounds {
            for (times, (_, options)) in times.iter_mut().zip(COUNTED) {
                times.push(seconds(bench, options, load, count)?);
            }
        }
        let [without, others @ ..] = &times;
        for (times, (counted, _)) in others.iter().zip(&COUNTED[1..]) {
            let ratio = median(times.iter().zip(without).map(|(with, without)| with / without));
            let each = |times: &[f64]| 1e6 * median(times.iter().copied()) / f64::from(count);
            let is_default = *counted == COUNTED[1].0;
            let pmu = if is_default && !has_pmu { " (no PMU: none)" } else { "" };
            let line = Line::new(
                format!("{what} with {counted}{pmu}"),
                format!("{:.2} µs each", each(times)),
            )
            .beside(format!("{:.2} µs without", each(without)), format!("{ratio:.3} ×"));
            lines.push(match is_default && load == "switches" {
                true => line.goal(format!("< {} %", 100.0 * AT_MOST), ratio - 1.0 < AT_MOST),
                false => line,
            });
        }
    }
    Ok(lines)
}

/// The seconds that the load itself says it took.
fn seconds(bench: &Bench, options: &[&str], load: &str, count: u32) -> Result<f64> {
    let mut command = Command::new(&bench.weigh);
    command.args(["run", "--quiet", "--no-record"]).args(options).arg("--");
    command.arg(&bench.xtask).args(["load", load, &count.to_string()]);
    let output = command.output()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    printed.trim().parse().with_context(|| format!("the load printed {printed:?}"))
}

fn has_pmu(bench: &Bench) -> Result<bool> {
    let output = Command::new(&bench.weigh).args(["doctor", "--format", "json"]).output()?;
    let examined: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let collectors = examined["collectors"].as_array().context("collectors")?;
    Ok(collectors.iter().any(|one| one["name"] == "perf" && one["state"] == "ready"))
}
