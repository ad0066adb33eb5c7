//! CPU time of the whole run, counted by perf.
//!
//! Source: an inherited perf task clock, opened before exec, or on every thread of processes that
//! run already. It counts every process of the run, also those that start and exit between two
//! ticks. Needs `kernel.perf_event_paranoid` of 2 or less, or CAP_PERFMON.

use std::time::Duration;

use super::existing_threads::ExistingThreads;
use super::{Collector, Context, Fault, Probe, Provider};
use crate::catalog::SourceId;
use crate::catalog::metrics::RunCpu;
use crate::host::Host;
use crate::host::perf::{self, TaskClock};
use crate::model::{Entity, Tick};

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
pub(super) fn refused(host: &Host, error: &std::io::Error) -> Probe {
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
    attached: ExistingThreads,
}

/// The most threads that are counted: each takes a descriptor, and a read at every tick.
const MOST_THREADS: usize = 1000;

impl RunClock {
    /// For a command, from its exec on, and all it starts.
    pub fn on_exec(pid: u32) -> Result<RunClock, String> {
        let clock = TaskClock::on_exec(pid).map_err(|error| format!("perf_event_open: {error}"))?;
        Ok(RunClock { clocks: vec![clock], attached: ExistingThreads::default() })
    }

    /// Counts a running process from now on, and all it starts; parents first.
    pub fn count(&mut self, host: &Host, pid: u32) -> Result<(), String> {
        let open = &mut |tid| TaskClock::from_now(tid);
        self.clocks.extend(self.attached.count(host, pid, MOST_THREADS, open)?);
        Ok(())
    }

    /// How many attached processes are counted.
    pub fn processes(&self) -> usize {
        self.attached.processes()
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
