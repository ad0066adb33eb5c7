//! CPU time of the whole run, counted by perf.
//!
//! Source: an inherited perf task clock, opened before exec, or on every thread of processes that
//! run already. It counts every process of the run, also those that start and exit between two
//! ticks. Needs `kernel.perf_event_paranoid` of 2 or less, or CAP_PERFMON.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::{Collector, Context, Fault, Probe, Provider};
use crate::catalog::SourceId;
use crate::catalog::metrics::RunCpu;
use crate::host::perf::{self, TaskClock};
use crate::host::{Host, ProcPath};
use crate::model::{Entity, Tick};
use crate::parse;

pub(super) const PROVIDER: Provider =
    Provider { id: SourceId::TaskClock, probe, collector: None, descriptors: 1 };

fn probe(host: &Host) -> Probe {
    // Opening one on ourselves is the only reliable check; it never runs.
    match TaskClock::on_exec(std::process::id()) {
        Ok(_) => Probe::Ready,
        Err(error) => refused(host, &error),
    }
}

/// Why task clocks are refused, and what would enable them.
fn refused(host: &Host, error: &std::io::Error) -> Probe {
    match (error.raw_os_error(), perf::paranoid(&host.proc)) {
        (Some(libc::EACCES | libc::EPERM), Ok(level)) if level > 2 => Probe::Denied {
            why: format!("kernel.perf_event_paranoid is {level}, 2 or less is needed"),
            hint: "sudo sysctl kernel.perf_event_paranoid=2".to_owned(),
        },
        (Some(libc::EACCES | libc::EPERM), _) => Probe::Denied {
            why: format!("perf_event_open: {error}"),
            hint: "allow perf_event_open in the container's seccomp profile, or add CAP_PERFMON"
                .to_owned(),
        },
        _ => Probe::Absent { why: format!("perf_event_open: {error}") },
    }
}

/// The task clocks of a run, read once a tick: one for a command, or one for each existing thread
/// of attached processes.
#[derive(Default)]
pub struct RunClock {
    clocks: Vec<TaskClock>,
    /// Processes that are counted, and the last pid allocated before they were: a child with a
    /// later pid inherits the clock.
    counted: HashMap<u32, u32>,
}

/// The most threads that are counted: each takes a descriptor, and a read at every tick.
const MOST_THREADS: usize = 1000;

/// How often attaching clocks is tried for a process that keeps starting others.
const TRIES: usize = 200;

/// The last pid that was allocated to a process or a thread.
fn last_pid(host: &Host, buffer: &mut Vec<u8>) -> Option<u32> {
    let bytes = host.proc.read(c"loadavg", buffer).ok()?;
    parse::loadavg::parse(bytes).ok().map(|loadavg| loadavg.last_pid)
}

impl RunClock {
    /// For a command, from its exec on, and all it starts.
    pub fn on_exec(pid: u32) -> Result<RunClock, String> {
        let clock = TaskClock::on_exec(pid).map_err(|error| format!("perf_event_open: {error}"))?;
        Ok(RunClock { clocks: vec![clock], counted: HashMap::new() })
    }

    /// Counts a running process from now on, and all it starts; parents first.
    pub fn count(&mut self, host: &Host, pid: u32) -> Result<(), String> {
        if self.counted.contains_key(&pid) {
            return Ok(());
        }
        let mut buffer = Vec::new();
        let stat = host.proc.read(ProcPath::new(pid, "stat").as_c_str(), &mut buffer).ok();
        let Some(stat) = stat.and_then(|bytes| parse::stat::parse(bytes).ok()) else {
            return Ok(());
        };
        if self.counted.get(&stat.parent).is_some_and(|last| pid > *last) {
            // Its children inherit the clock, too.
            self.counted.insert(pid, 0);
            return Ok(());
        }
        // Children started while the clocks were being attached may have one or none: then they are
        // attached again.
        for _ in 0..TRIES {
            let before = last_pid(host, &mut buffer);
            let clocks = self.of_threads(host, pid)?;
            if before.is_some() && before == last_pid(host, &mut buffer) {
                self.counted.insert(pid, before.unwrap_or(0));
                self.clocks.extend(clocks);
                return Ok(());
            }
        }
        Err("processes are started here faster than task clocks can be attached".to_owned())
    }

    /// How many attached processes are counted.
    pub fn processes(&self) -> usize {
        self.counted.len()
    }

    /// Attaches a clock to every thread of a process.
    fn of_threads(&self, host: &Host, pid: u32) -> Result<Vec<TaskClock>, String> {
        let (mut clocks, mut known, mut found) = (Vec::new(), HashSet::new(), Vec::new());
        loop {
            found.clear();
            // A process that exited has no threads.
            let _ = host.proc.each_name(ProcPath::new(pid, "task").as_c_str(), |name| {
                found.extend(name.to_str().ok().and_then(|name| name.parse::<u32>().ok()));
            });
            found.retain(|tid| known.insert(*tid));
            // A thread started by a counted one inherits its clock.
            if found.is_empty() {
                return Ok(clocks);
            }
            for tid in &found {
                if self.clocks.len() + clocks.len() == MOST_THREADS {
                    return Err(format!("more than {MOST_THREADS} threads run already"));
                }
                match TaskClock::from_now(*tid) {
                    Ok(clock) => clocks.push(clock),
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(error) => return Err(format!("perf_event_open: {error}")),
                }
            }
        }
    }

    /// CPU time of all counted processes, exited ones included.
    pub fn read(&mut self) -> std::io::Result<Duration> {
        self.clocks.iter_mut().map(TaskClock::read).sum()
    }
}

impl Collector for RunClock {
    fn sample(&mut self, _context: &Context<'_>, tick: &mut Tick) -> Result<(), Fault> {
        let time = self.read().map_err(|error| Fault::Retire(format!("perf: {error}")))?;
        tick.put(Entity::Single, &RunCpu { time: Some(time.as_secs_f64()) });
        Ok(())
    }
}
