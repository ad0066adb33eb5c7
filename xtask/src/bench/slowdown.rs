//! How much longer a load on all cores takes when it is sampled ten times a second.
//!
//! One load runs under weigh and does the same work again and again; in every other
//! turn weigh is stopped by SIGSTOP. So the two turns of a pair differ only in the
//! ticks: same process, same memory, less than a second apart, in alternating order.
//! Where other programs use the cores, too, time is not reliable; so CPU time is
//! compared as well: that of the load plus that of weigh.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use super::Bench;
use super::table::{Line, Verdict, median};

/// Seconds that the work of one turn takes, about.
const WORK: f64 = 0.8;
const AT_MOST: f64 = 0.005;
/// Ticks are dense when a run begins; the promise is about the rest of it.
const SETTLED: Duration = Duration::from_secs(2);

/// Seconds of time and of CPU that a turn took.
#[derive(Debug, Clone, Copy)]
struct Took {
    time: f64,
    cpu: f64,
}

/// The median slowdown of many pairs, and its error.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Line>> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let pairs = if bench.quick { 5 } else { 100 };
    let mut load = Weighed::start(bench, threads)?;
    let trial = 50_000_000;
    let rounds = (trial as f64 * WORK * threads as f64 / load.work(trial)?.cpu) as u64;
    std::thread::sleep(SETTLED);
    let mut both = Vec::new();
    for pair in 0..pairs {
        both.push(if pair % 2 == 0 {
            let without = load.unsampled(rounds)?;
            (without, load.work(rounds)?)
        } else {
            let with = load.work(rounds)?;
            (load.unsampled(rounds)?, with)
        });
    }
    let what = format!("slowdown of a load on {threads} cores at 10 Hz");
    let time = both.iter().map(|(without, with)| with.time / without.time - 1.0).collect();
    let cpu = both.iter().map(|(without, with)| with.cpu / without.cpu - 1.0).collect();
    Ok(vec![
        line(format!("{what}, {pairs} pairs"), time),
        line(format!("{what}, in CPU, weigh's included"), cpu),
    ])
}

fn line(what: String, slowdowns: Vec<f64>) -> Line {
    let slowdown = median(slowdowns.iter().copied());
    // Twice the error of a median, from the median distance to it (normal noise: 1.48 and 1.25).
    let distance = median(slowdowns.iter().map(|one| (one - slowdown).abs()));
    let error = 2.0 * 1.48 * 1.25 * distance / (slowdowns.len() as f64).sqrt();
    // Nothing runs faster when measured: a large gain is noise as much as a large loss.
    let verdict = if slowdown.abs() + error < AT_MOST {
        Verdict::Reached
    } else if slowdown - error > AT_MOST {
        Verdict::Missed
    } else {
        Verdict::Undecided
    };
    let shown = format!("{:+.2} % ± {:.2} %", 100.0 * slowdown, 100.0 * error);
    Line::new(what, shown)
        .beside("weigh stopped", format!("{:.4} ×", 1.0 + slowdown))
        .judged(format!("< {} %", 100.0 * AT_MOST), verdict)
}

/// A load under weigh that works on request.
struct Weighed {
    weigh: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Weighed {
    fn start(bench: &Bench, threads: usize) -> Result<Weighed> {
        let directory: PathBuf = bench.fresh("work");
        let mut command = Command::new(&bench.weigh);
        command.args(["run", "--quiet", "--interval", "100ms", "--output"]).arg(&directory);
        command.arg("--").arg(&bench.xtask).args(["load", "work", &threads.to_string()]);
        let mut weigh = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let orders = weigh.stdin.take();
        let answers = BufReader::new(weigh.stdout.take().context("stdout of the load")?);
        Ok(Weighed { weigh, orders, answers })
    }

    /// One turn; weigh's own CPU is added.
    fn work(&mut self, rounds: u64) -> Result<Took> {
        let before = self.own_cpu()?;
        let orders = self.orders.as_mut().context("stdin of the load")?;
        writeln!(orders, "{rounds}")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        let numbers = answer.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>();
        let Ok(&[time, cpu]) = numbers.as_deref() else {
            anyhow::bail!("the load printed {answer:?} instead of its time and CPU");
        };
        Ok(Took { time, cpu: cpu + self.own_cpu()? - before })
    }

    /// One turn while weigh does not sample.
    fn unsampled(&mut self, rounds: u64) -> Result<Took> {
        self.signal(libc::SIGSTOP);
        let took = self.work(rounds);
        self.signal(libc::SIGCONT);
        took
    }

    /// CPU seconds of all threads of weigh so far.
    fn own_cpu(&self) -> Result<f64> {
        let mut nanoseconds = 0.0;
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.weigh.id()))? {
            let times = std::fs::read_to_string(thread?.path().join("schedstat"))?;
            let ran = times.split_whitespace().next().context("schedstat")?;
            nanoseconds += ran.parse::<f64>()?;
        }
        Ok(nanoseconds / 1e9)
    }

    fn signal(&self, signal: i32) {
        // SAFETY: kill takes numbers; the child has not been waited for.
        unsafe { libc::kill(self.weigh.id() as i32, signal) };
    }
}

impl Drop for Weighed {
    /// The load ends at the end of its input, and weigh with it.
    fn drop(&mut self) {
        self.signal(libc::SIGCONT);
        self.orders = None;
        let _ = self.weigh.wait();
    }
}
