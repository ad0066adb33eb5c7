//! CPU time of the whole run, counted by the kernel as it passes.
//!
//! Source: an inherited perf task clock, opened before exec, or on every thread of processes
//! that run already. It counts every process of the run, also those that live and die between two ticks. Needs
//! `kernel.perf_event_paranoid` of 2 or less, or CAP_PERFMON.

use std::collections::HashSet;
use std::time::Duration;

use super::{Collector, Fault, Probe, Source, group};
use crate::catalog::metrics;
use crate::host::perf::{self, TaskClock};
use crate::host::{Host, ProcPath};
use crate::sample::{Entity, Tick};

metrics! {
    /// What the run as a whole has used.
    pub struct RunCpu in Run / "cpu", "CPU of the run as the kernel counts it" {
        /// CPU time of every process of the run, dead or alive.
        time: Counter f64 Seconds, "CPU time", from "perf task-clock, inherited";
    }
}

pub(super) const SOURCE: Source = Source {
    name: "task-clock",
    about: "exact CPU time of the run, also of children nobody waits for",
    groups: &[group::<RunCpu>()],
    probe,
    collector: None,
    on_request: false,
};

fn probe(host: &Host) -> Probe {
    // Opening one on ourselves is the only question whose answer is sure; it never runs.
    match TaskClock::on_exec(std::process::id()) {
        Ok(_) => Probe::Ready,
        Err(error) => refused(host, &error),
    }
}

/// Why the kernel does not count, and what would make it.
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

/// The task clocks of a run, read once a tick: one for a command, one for each thread that
/// was there already of processes that are followed.
pub struct RunClock(Vec<TaskClock>);

/// More threads than this are not counted one by one: each takes a descriptor, and a read at
/// every tick.
const MOST_THREADS: usize = 1000;

impl RunClock {
    /// Of a command and all it starts.
    pub fn of_command(clock: TaskClock) -> RunClock {
        RunClock(vec![clock])
    }

    /// Of processes that run already and all they start from now on.
    pub fn of_running(host: &Host, pids: &[u32]) -> Result<RunClock, String> {
        let (mut clocks, mut counted) = (Vec::new(), HashSet::new());
        let mut found = Vec::new();
        loop {
            found.clear();
            for pid in pids {
                // One that is gone has no threads.
                let _ = host.proc.names(ProcPath::new(*pid, "task").as_c_str(), |name| {
                    found.extend(name.to_str().ok().and_then(|name| name.parse::<u32>().ok()));
                });
            }
            found.retain(|tid| counted.insert(*tid));
            // Whoever was started by a thread that is counted is counted with it.
            if found.is_empty() {
                return Ok(RunClock(clocks));
            }
            if counted.len() > MOST_THREADS {
                return Err(format!("more than {MOST_THREADS} threads run already"));
            }
            for tid in &found {
                match TaskClock::from_now(*tid) {
                    Ok(clock) => clocks.push(clock),
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(error) => return Err(format!("perf_event_open: {error}")),
                }
            }
        }
    }

    /// CPU time of everybody who is counted, dead or alive.
    pub fn read(&mut self) -> std::io::Result<Duration> {
        self.0.iter_mut().map(TaskClock::read).sum()
    }
}

impl Collector for RunClock {
    fn sample(&mut self, _host: &Host, tick: &mut Tick) -> Result<(), Fault> {
        let time = self.read().map_err(|error| Fault::Retire(format!("perf: {error}")))?;
        tick.put(Entity::Single, &RunCpu { time: Some(time.as_secs_f64()) });
        Ok(())
    }
}
