//! weigh compared to the loop of gpu_tracker, oasislmf and perfmon, and to the cheapest other
//! recorders, per process and sample.
//!
//! gpu_tracker, the oasislmf ResourceMonitor and perfmon all list the descendants
//! with psutil and read `cpu_percent` and `memory_full_info` of each. psutil is installed
//! from PyPI into a virtual environment under target/, or the lines are left out.
//! `top` and `pidstat` are those of the system, or are left out.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::Bench;
use super::table::{Line, median, time};
use super::tick::named;
use super::weighed::{Shape, Weighed};
use crate::{command, python};

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

/// How many times cheaper than the psutil loop weigh should be.
const AT_LEAST: f64 = 25.0;

/// How many times cheaper than any other recorder.
const THAN_RECORDERS: f64 = 5.0;

/// Other recorders, and their arguments for a number of samples, one a second.
type Recorder = (&'static str, &'static [&'static str]);
const RECORDERS: [Recorder; 2] =
    [("top", &["-b", "-d", "1", "-n"]), ("pidstat", &["-u", "-r", "-p", "ALL", "1"])];

/// CPU of a sample of processes, weigh compared to the others.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Line>> {
    let mut lines = beside_psutil(bench)?;
    for recorder in RECORDERS {
        lines.push(beside_recorder(bench, recorder)?);
    }
    Ok(lines)
}

/// A line for one of them, at 1,000 idle processes, sampled once a second.
fn beside_recorder(bench: &Bench, (name, arguments): Recorder) -> Result<Line> {
    let shape = Shape { count: 1000, running: 0 };
    let what = format!("process-sample, {}, recorded", named(shape));
    let samples = if bench.quick { 2 } else { 4 };
    let mut pairs = Vec::new();
    for _ in 0..bench.repeats() {
        let weighed = Weighed::start(bench, shape, "1s")?;
        let from = weighed.now() + Duration::from_millis(500);
        // Its start is not counted, as that of weigh is not.
        let Some(once) = cpu_of(name, arguments, 1)? else {
            return Ok(Line::new(what, format!("left out: no {name} to be had")));
        };
        let often = cpu_of(name, arguments, 1 + samples)?.unwrap_or_default();
        let until = weighed.now();
        // It samples every process of the machine; weigh those of the run.
        let sampled = all_processes() as f64;
        let weigh = weighed.end()?.cpu_per_tick(from, until)?.1 / f64::from(shape.count);
        pairs.push((weigh, (often - once) / f64::from(samples) / sampled));
    }
    let weigh = median(pairs.iter().map(|pair| pair.0));
    let other = median(pairs.iter().map(|pair| pair.1));
    let times = median(pairs.iter().map(|pair| pair.1 / pair.0));
    Ok(Line::new(what, time(weigh))
        .beside(
            format!("{name} {} {}", arguments.join(" "), time(other)),
            format!("1 / {times:.1}"),
        )
        .goal(format!("≤ 1 / {THAN_RECORDERS}"), times >= THAN_RECORDERS))
}

/// CPU seconds of a program for this many samples, if it is installed.
fn cpu_of(name: &str, arguments: &[&str], samples: u32) -> Result<Option<f64>> {
    let before = children_cpu();
    let mut command = Command::new(name);
    command.args(arguments).arg(samples.to_string()).env("TERM", "dumb");
    match command.stdin(Stdio::null()).stdout(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(Some(children_cpu() - before)),
        Ok(status) => bail!("{name}: {status}"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context(name.to_owned()),
    }
}

/// CPU seconds of the children that were waited for.
fn children_cpu() -> f64 {
    // SAFETY: a rusage is numbers only, for which zeros are values.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills the place it is given.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// How many processes the machine has.
fn all_processes() -> usize {
    let is_pid = |name: &std::ffi::OsStr| name.to_str().is_some_and(|n| n.parse::<u32>().is_ok());
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter(|entry| is_pid(&entry.file_name())).count()
}

/// CPU of a sample of 100 processes, weigh compared to the psutil loop.
fn beside_psutil(bench: &Bench) -> Result<Vec<Line>> {
    let python = match python::with("bench-python", "psutil==7.*") {
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
        // The loop was measured on idle processes, and so is the goal.
        let goal = || format!("≤ 1 / {AT_LEAST}");
        lines.push(if shape.running == 0 { line.goal(goal(), times >= AT_LEAST) } else { line });
    }
    Ok(lines)
}

fn one(bench: &Bench, python: &PathBuf, shape: Shape) -> Result<(f64, f64)> {
    // About 2 and 4 seconds: long enough for weigh to write more than once.
    let rounds = if bench.quick { 15 } else { 30 };
    let weighed = Weighed::start(bench, shape, "100ms")?;
    let root = weighed.pids.first().context("no process to sample")?.to_string();
    let from = weighed.now() + Duration::from_millis(150);
    let mut script = Command::new(python);
    let (out, _) = command::output(script.args(["-c", LOOP, &root, &rounds.to_string()]))?;
    let until = weighed.now();
    let psutil = out.trim().parse().with_context(|| format!("the loop printed {out:?}"))?;
    Ok((weighed.end()?.cpu_per_tick(from, until)?.1, psutil))
}
