//! Watching one tool on a machine with thousands of other processes, compared to the bare listing
//! of `/proc`: with a scan for new processes, and with events of the process connector.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::table::{Line, median, time};
use super::weighed::Weighed;
use super::{Bench, descendants};
use crate::probe::Found;

/// Other processes.
const OTHERS: usize = 5000;

/// What a tick may cost beside the bare listing.
const AT_MOST: f64 = 1.5;

/// CPU of a tick, by the source of new processes.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Line>> {
    let _others = Others::start(bench)?;
    let mut pairs = [Vec::new(), Vec::new()];
    for _ in 0..bench.repeats() {
        for (has_connector, pairs) in [false, true].into_iter().zip(&mut pairs) {
            pairs.push(one(bench, has_connector)?);
        }
    }
    let names = ["new processes by scanning", "new processes by the connector"];
    let lines = names.into_iter().zip(&pairs).map(|(name, pairs)| {
        let weigh = median(pairs.iter().map(|pair| pair.0));
        let floor = median(pairs.iter().map(|pair| pair.1.cpu));
        let ratio = median(pairs.iter().map(|pair| pair.0 / pair.1.cpu));
        let listed = 100.0 * median(pairs.iter().map(|pair| pair.1.listed));
        let what = format!("tick, 1 tool among {OTHERS} processes, {name}");
        let line = Line::new(what, time(weigh)).beside(
            format!("bare reads {}, /proc listed in {listed:.0} %", time(floor)),
            format!("{ratio:.2} ×"),
        );
        line.goal(format!("≤ {AT_MOST} ×"), ratio <= AT_MOST)
    });
    Ok(lines.collect())
}

/// CPU seconds of a tick of weigh and of the bare reads, at the same time, while processes fork
/// all the time.
fn one(bench: &Bench, has_connector: bool) -> Result<(f64, Found)> {
    let window = Duration::from_secs(if bench.quick { 2 } else { 5 });
    let mut tool = Command::new("sleep").arg0("gulmc").arg("120").spawn()?;
    let directory = bench.fresh("watch");
    // In a separate network namespace there is no process connector.
    let mut command = Command::new(if has_connector { "env" } else { "unshare" });
    if !has_connector {
        command.arg("--net");
    }
    command.arg(&bench.weigh).args(["watch", "gulmc", "--quiet", "--interval", "100ms"]);
    let weighed = Weighed::of(command.arg("--output").arg(&directory), &directory, vec![tool.id()]);
    let measured = weighed.and_then(|weighed| {
        std::thread::sleep(Duration::from_millis(1500));
        let from = weighed.now() + Duration::from_millis(150);
        let is_over = AtomicBool::new(false);
        let floor = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let _ = Command::new("true").status();
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
            let floor = weighed.probe(bench, Duration::from_millis(100), window);
            is_over.store(true, Ordering::Relaxed);
            floor
        })?;
        let until = weighed.now();
        Ok((weighed.end()?.cpu_per_tick(from, until)?.0, floor))
    });
    let _ = tool.kill();
    let _ = tool.wait();
    measured
}

/// The other processes.
struct Others(Child);

impl Others {
    fn start(bench: &Bench) -> Result<Others> {
        let count = OTHERS.to_string();
        let child = Command::new(&bench.xtask)
            .args(["load", "processes", &count, "0", "3600"])
            .stdin(Stdio::null())
            .spawn()
            .context("cannot start the other processes")?;
        let others = Others(child);
        for _ in 0..600 {
            if descendants(others.0.id()).len() >= OTHERS - 1 {
                return Ok(others);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        bail!("fewer than {OTHERS} processes after a minute")
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        // SAFETY: kill takes numbers; the child has not been waited for.
        unsafe { libc::kill(self.0.id() as i32, libc::SIGTERM) };
        let _ = self.0.wait();
    }
}
