//! weigh beside the loop that its predecessors run, per process and sample.
//!
//! gpu_tracker, the oasislmf ResourceMonitor and perfmon all list the descendants
//! with psutil and ask each for `cpu_percent` and `memory_full_info`. psutil comes
//! from PyPI into a virtual environment under target/, or the lines are left out.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::Bench;
use super::table::{Line, median, time};
use super::tick::named;
use super::weighed::{Shape, Weighed};
use crate::command::{self, target};

const LOOP: &str = "
import sys, time, psutil
root, rounds = psutil.Process(int(sys.argv[1])), int(sys.argv[2])
seen = {}
def look():
    for process in [root] + root.children(recursive=True):
        process = seen.setdefault(process.pid, process)
        process.cpu_percent()
        process.memory_full_info()
look()
before = time.process_time()
for _ in range(rounds):
    time.sleep(0.1)
    look()
print((time.process_time() - before) / rounds)
";

/// How many times cheaper weigh should be.
const AT_LEAST: f64 = 25.0;

/// CPU of a look at 100 processes, weigh beside the loop.
pub fn measure(bench: &Bench) -> Result<Vec<Line>> {
    let python = match python_with_psutil() {
        Ok(python) => python,
        Err(why) => {
            eprintln!("peers: left out, no psutil to be had: {why:#}");
            return Ok(vec![Line::new("psutil's loop", "left out: no psutil to be had")]);
        }
    };
    let mut lines = Vec::new();
    for shape in [Shape { count: 100, running: 0 }, Shape { count: 100, running: 100 }] {
        let pairs: Vec<(f64, f64)> =
            (0..bench.repeats()).map(|_| one(bench, &python, shape)).collect::<Result<_>>()?;
        let each = f64::from(shape.count);
        let weigh = median(pairs.iter().map(|pair| pair.0 / each));
        let psutil = median(pairs.iter().map(|pair| pair.1 / each));
        let times = median(pairs.iter().map(|pair| pair.1 / pair.0));
        let line = Line::new(format!("process-sample, {}", named(shape)), time(weigh))
            .beside(format!("psutil's loop {}", time(psutil)), format!("1 / {times:.0}"));
        // The predecessors were measured on idle processes, and so is the goal.
        let goal = || format!("≤ 1 / {AT_LEAST}");
        lines.push(if shape.running == 0 { line.goal(goal(), times >= AT_LEAST) } else { line });
    }
    Ok(lines)
}

fn one(bench: &Bench, python: &PathBuf, shape: Shape) -> Result<(f64, f64)> {
    // About 2 and 4 seconds: long enough for weigh to write more than once.
    let rounds = if bench.quick { 15 } else { 30 };
    let weighed = Weighed::start(bench, shape, "100ms")?;
    let root = weighed.pids.first().context("no process to look at")?.to_string();
    let from = weighed.now() + Duration::from_millis(150);
    let mut script = Command::new(python);
    let (out, _) = command::output(script.args(["-c", LOOP, &root, &rounds.to_string()]))?;
    let until = weighed.now();
    let psutil = out.trim().parse().with_context(|| format!("the loop said {out:?}"))?;
    Ok((weighed.end()?.cpu_per_tick(from, until)?.1, psutil))
}

fn python_with_psutil() -> Result<PathBuf> {
    let environment = target().join("bench-python");
    let python = environment.join("bin/python");
    let has_psutil = || command::output(Command::new(&python).args(["-c", "import psutil"]));
    if has_psutil().is_err() {
        command::output(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        let mut pip = Command::new(&python);
        command::output(pip.args(["-m", "pip", "install", "--quiet", "psutil==7.*"]))?;
        has_psutil()?;
    }
    Ok(python)
}
