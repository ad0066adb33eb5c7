//! A load under `weigh run`, and the figures of its recording.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use weigh::catalog::Scope;
use weigh::catalog::all_groups;
use weigh::catalog::metrics::{OwnCost, OwnTicks};
use weigh::record::{Moment, Recording};

use super::Bench;
use crate::probe::Found;

/// A load: a number of processes, of which some run between two ticks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Processes.
    pub count: u32,
    /// How many of them wake up 20 times a second.
    pub running: u32,
}

/// A run of weigh that is under way.
pub(super) struct Weighed {
    child: Child,
    directory: PathBuf,
    begin: Instant,
    /// The processes of the load.
    pub pids: Vec<u32>,
}

/// Longer than any measurement: loads are killed, they do not end.
const LONGEST: u64 = 120;

impl Weighed {
    /// Starts weigh, to record some processes into a directory.
    pub(super) fn of(command: &mut Command, directory: &Path, pids: Vec<u32>) -> Result<Weighed> {
        let begin = Instant::now();
        let child = command.stdin(Stdio::null()).spawn().context("cannot start weigh")?;
        Ok(Weighed { child, directory: directory.to_owned(), begin, pids })
    }

    /// Starts weigh on a load and waits until all of its processes have started.
    pub(super) fn start(bench: &Bench, shape: Shape, interval: &str) -> Result<Weighed> {
        Weighed::start_by(Command::new(&bench.weigh), bench, shape, interval)
    }

    /// The same, with environment variables for weigh.
    pub(super) fn start_by(
        mut command: Command,
        bench: &Bench,
        shape: Shape,
        interval: &str,
    ) -> Result<Weighed> {
        let directory = bench.fresh("run");
        command.args(["run", "--quiet", "--interval", interval, "--output"]).arg(&directory);
        command.arg("--").arg(&bench.xtask).args(["load", "processes"]);
        command.args([shape.count.to_string(), shape.running.to_string(), LONGEST.to_string()]);
        let mut weighed = Weighed::of(&mut command, &directory, Vec::new())?;
        while weighed.pids.len() < shape.count as usize {
            if weighed.begin.elapsed() > Duration::from_secs(30) {
                bail!("{} of {} processes after 30 s", weighed.pids.len(), shape.count);
            }
            std::thread::sleep(Duration::from_millis(50));
            weighed.pids = descendants(weighed.child.id());
        }
        // The first sample of a new process, and the passes over memory that growth causes.
        std::thread::sleep(Duration::from_millis(1000));
        Ok(weighed)
    }

    /// The time since weigh was started, which its recording counts from, too.
    pub(super) fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Runs the bare reads on the same processes for a while.
    pub(super) fn probe(
        &self,
        bench: &Bench,
        interval: Duration,
        window: Duration,
    ) -> Result<Found> {
        let mut command = Command::new(&bench.xtask);
        command.args(["probe", "--interval", &interval.as_millis().to_string()]);
        command.args(["--ticks", &(window.as_millis() / interval.as_millis()).to_string()]);
        let probe = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut probe = probe.context("cannot start the bare reads")?;
        let pids: Vec<String> = self.pids.iter().map(u32::to_string).collect();
        probe.stdin.take().context("stdin")?.write_all(pids.join(" ").as_bytes())?;
        let out = String::from_utf8(probe.wait_with_output()?.stdout)?;
        Found::parse(&out).with_context(|| format!("the bare reads printed {out:?}"))
    }

    /// Ends the load, and so the run.
    pub(super) fn end(self) -> Result<Ended> {
        Ended::open(&self.end_recording()?)
    }

    /// The same, and returns the recording.
    pub(super) fn end_recording(mut self) -> Result<PathBuf> {
        // SAFETY: kill takes numbers; the child has not been waited for.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
        self.child.wait().context("weigh")?;
        Ok(self.directory.clone())
    }
}

impl Drop for Weighed {
    /// A measurement that failed leaves no load behind.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // SAFETY: kill takes numbers; the child has not been waited for.
            unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
            let _ = self.child.wait();
        }
    }
}

/// weigh's own row at one tick.
#[derive(Debug, Clone, Copy)]
struct OwnSample {
    at: Duration,
    cpu: f64,
    sampling: f64,
    ticks: u64,
    missed: u64,
}

/// A run that has ended, and its recording.
pub(super) struct Ended {
    directory: PathBuf,
    own_samples: Vec<OwnSample>,
    /// Rows of processes.
    pub process_rows: u64,
    /// When the first process was sampled, since the run began.
    pub first_row: Option<Duration>,
    /// The monitor in the summary.
    pub monitor: serde_json::Value,
}

impl Ended {
    /// Reads a recording.
    pub(super) fn open(directory: &Path) -> Result<Ended> {
        let shown = || directory.display().to_string();
        let summary = std::fs::read(directory.join("summary.json")).with_context(shown)?;
        let summary: serde_json::Value = serde_json::from_slice(&summary).with_context(shown)?;
        let mut ended = Ended {
            directory: directory.to_owned(),
            own_samples: Vec::new(),
            process_rows: 0,
            first_row: None,
            monitor: summary["monitor"].clone(),
        };
        let groups = all_groups();
        Recording::open(directory).with_context(shown)?.replay(&groups, |frame| {
            let Moment::Tick(tick) = frame.moment else { return };
            if let Some(table) = tick.table(Scope::Process).filter(|table| !table.is_empty()) {
                ended.process_rows += table.len() as u64;
                ended.first_row.get_or_insert(tick.at);
            }
            let Some(own) = tick.table(Scope::Own).filter(|table| !table.is_empty()) else {
                return;
            };
            let (cost, ticks) = (own.get::<OwnCost>(0), own.get::<OwnTicks>(0));
            if let (Some(user), Some(system), Some(taken)) = (cost.user, cost.system, ticks.taken) {
                let missed = ticks.missed.unwrap_or(0);
                let sampling = cost.sampling.unwrap_or(0.0);
                let (at, cpu) = (tick.at, user + system);
                ended.own_samples.push(OwnSample { at, cpu, sampling, ticks: taken, missed });
            }
        })?;
        Ok(ended)
    }

    /// CPU seconds of weigh for a tick between two moments, of the thread that samples and of
    /// all; start-up and end are not in it.
    pub(super) fn cpu_per_tick(&self, from: Duration, until: Duration) -> Result<(f64, f64)> {
        let (first, last) = self.between(from, until)?;
        let ticks = (last.ticks - first.ticks) as f64;
        Ok(((last.sampling - first.sampling) / ticks, (last.cpu - first.cpu) / ticks))
    }

    /// The share of ticks between two moments that were on time.
    pub(super) fn on_time(&self, from: Duration, until: Duration) -> Result<f64> {
        let (first, last) = self.between(from, until)?;
        let (taken, missed) = (last.ticks - first.ticks, last.missed - first.missed);
        Ok(taken as f64 / (taken + missed) as f64)
    }

    fn between(&self, from: Duration, until: Duration) -> Result<(OwnSample, OwnSample)> {
        let mut inside =
            self.own_samples.iter().filter(|sample| sample.at >= from && sample.at <= until);
        match (inside.next(), inside.next_back()) {
            (Some(first), Some(last)) => Ok((*first, *last)),
            _ => bail!("fewer than two ticks between {from:?} and {until:?}"),
        }
    }

    /// Bytes of the file of process rows, and of the schema at its start.
    pub(super) fn process_bytes(&self) -> Result<(u64, u64)> {
        let recording = Recording::open(&self.directory)?;
        let host = &recording.manifest().host.name;
        let path = self.directory.join(host).join("process.arrows");
        let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
        // A frame begins with a mark and the length of its header; a schema has no body.
        let length = bytes.get(4..8).and_then(|length| <[u8; 4]>::try_from(length).ok());
        let schema = 8 + u64::from(u32::from_le_bytes(length.context("an empty stream")?));
        Ok((bytes.len() as u64, schema))
    }

    /// A number that the summary has about the monitor.
    pub(super) fn monitor(&self, key: &str) -> Result<u64> {
        self.monitor[key].as_u64().with_context(|| format!("monitor.{key} in the summary"))
    }
}

/// Every process under this one, itself left out.
pub(crate) fn descendants(of: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, weigh::parse::stat::parse(&stat).ok()?.parent))
        })
        .collect();
    let mut found = vec![of];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}
