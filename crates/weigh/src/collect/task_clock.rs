//! CPU time of the whole run, counted by the kernel as it passes.
//!
//! Source: an inherited perf task clock, opened before exec. It counts every
//! process of the run, also those that live and die between two ticks. Needs
//! `kernel.perf_event_paranoid` of 2 or less, or CAP_PERFMON.

use super::{Collector, Fault, Probe, Source, group};
use crate::catalog::metrics;
use crate::host::Host;
use crate::host::perf::{self, TaskClock};
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
    everywhere: true,
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

/// The task clock of a run, read once a tick.
pub struct RunClock(pub TaskClock);

impl Collector for RunClock {
    fn sample(&mut self, _host: &Host, tick: &mut Tick) -> Result<(), Fault> {
        let time = self.0.read().map_err(|error| Fault::Retire(format!("perf: {error}")))?;
        tick.put(Entity::Single, &RunCpu { time: Some(time.as_secs_f64()) });
        Ok(())
    }
}
