//! What the Python package costs the program that it measures, beside gpu-tracker and no tracker.
//!
//! gpu-tracker is installed from PyPI into a virtual environment under target/, or the lines are
//! left out. `python/benchmarks/tracker.py` has the load.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use super::Bench;
use super::table::{Line, Verdict, median};
use crate::command;
use crate::command::root;
use crate::{package, python};

const SCRIPT: &str = "python/benchmarks/tracker.py";

/// At most so much slower, as a ratio.
const SLOWER: f64 = 0.005;

/// At most so many bytes more.
const LARGER: f64 = 15.0 * 1024.0 * 1024.0;

/// The times of one loop.
type Times = BTreeMap<String, f64>;

/// Slowdown of a loop, and memory, of both trackers.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Line>> {
    let environment = python::with("bench-package-python", "gpu-tracker==5.0.1");
    let environment = match environment {
        Ok(environment) => environment,
        Err(why) => {
            eprintln!("python: left out, gpu-tracker cannot be installed: {why:#}");
            return Ok(vec![Line::new("tracker in Python", "left out: no gpu-tracker to be had")]);
        }
    };
    install(&environment)?;
    let run = |arguments: &[&str]| -> Result<String> {
        let mut script = command::at_root(&environment);
        script.arg(root().join(SCRIPT)).args(arguments).current_dir(bench.scratch.path());
        Ok(command::output(&mut script)?.0)
    };
    let (rounds, seconds) = if bench.quick { ("3", "0.5") } else { ("60", "1") };
    let printed = run(&["slowdown", rounds, seconds])?;
    let times: BTreeMap<String, Vec<Times>> = serde_json::from_str(&printed).context(printed)?;
    let mut lines = Vec::new();
    let kinds =
        [("wall", "real time"), ("thread", "its CPU time"), ("all", "CPU time, tracker included")];
    for (kind, what) in kinds {
        let ours = Slowdown::of(&times, "weigh", kind)?;
        let theirs = Slowdown::of(&times, "gpu_tracker", kind)?;
        let what = format!("slowdown of a Python loop at 10 Hz, {what}, {rounds} rounds");
        let line =
            Line::new(what, ours.shown()).beside(format!("gpu-tracker {}", theirs.shown()), "–");
        lines.push(line.judged("< 0.5 %", ours.verdict()));
    }
    let mut added = Vec::new();
    for tracker in ["weigh", "gpu_tracker"] {
        let one = || -> Result<f64> {
            let printed = run(&["memory", tracker])?;
            let found: Times = serde_json::from_str(&printed).context(printed)?;
            found.get("added").copied().context("added")
        };
        let all: Vec<f64> = (0..bench.repeats()).map(|_| one()).collect::<Result<_>>()?;
        added.push(median(all));
    }
    let mebibytes = |bytes: f64| format!("{:.1} MiB", bytes / f64::from(1 << 20));
    let ratio = format!("1 / {:.1}", added[1] / added[0]);
    lines.push(
        Line::new("memory that a tracker in Python adds", mebibytes(added[0]))
            .beside(format!("gpu-tracker {}", mebibytes(added[1])), ratio)
            .goal("≤ 15 MiB", added[0] <= LARGER),
    );
    Ok(lines)
}

/// Builds the package as people install it, into this environment.
fn install(environment: &Path) -> Result<()> {
    let tools = python::with_package_tools()?;
    let prefix = environment.parent().and_then(Path::parent).context("an environment")?;
    let prefix = prefix.to_string_lossy().into_owned();
    // Built by the interpreter that has maturin; the wheel is for all versions.
    command::run(&mut package::build(
        &tools,
        &["install", "--force-reinstall", "--prefix", &prefix, "."],
    )?)
}

/// A slowdown beside no tracker, with its error.
struct Slowdown {
    ratio: f64,
    error: f64,
}

impl Slowdown {
    fn of(times: &BTreeMap<String, Vec<Times>>, tracker: &str, kind: &str) -> Result<Slowdown> {
        let of = |name: &str| -> Result<Vec<f64>> {
            let rounds = times.get(name).with_context(|| format!("no times of {name}"))?;
            rounds.iter().map(|one| one.get(kind).copied().context("a time")).collect()
        };
        let pairs = of(tracker)?.into_iter().zip(of("none")?);
        let ratios: Vec<f64> = pairs.map(|(with, without)| with / without - 1.0).collect();
        let ratio = median(ratios.iter().copied());
        // Of a median: 1.4826 × the median deviation is a standard deviation, 1.2533 of which over
        // the root of the number is its error; twice that, for 95 %.
        let deviation = 1.4826 * median(ratios.iter().map(|one| (one - ratio).abs()));
        let error = 2.0 * 1.2533 * deviation / (ratios.len() as f64).sqrt();
        Ok(Slowdown { ratio, error })
    }

    fn shown(&self) -> String {
        format!("{:+.2} % ± {:.2} %", self.ratio * 100.0, self.error * 100.0)
    }

    fn verdict(&self) -> Verdict {
        if self.ratio + self.error < SLOWER {
            Verdict::Reached
        } else if self.ratio - self.error >= SLOWER {
            Verdict::Missed
        } else {
            Verdict::Undecided
        }
    }
}
