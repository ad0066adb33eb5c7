//! What weigh itself uses, and whether it kept its time.
//!
//! Source: getrusage(2) and `/proc/self/status`, always there.

use super::{Collector, Fault, Probe, Source, group};
use crate::catalog::metrics;
use crate::host::wait::Usage;
use crate::host::{Host, own};
use crate::parse::status;
use crate::sample::{Entity, Tick};

metrics! {
    /// What the monitor used so far.
    pub struct OwnCost in Own / "cost", "What weigh used" {
        /// CPU time in user mode.
        user: Counter f64 Seconds, "User time", from "getrusage ru_utime";
        /// CPU time in the kernel.
        system: Counter f64 Seconds, "System time", from "getrusage ru_stime";
        /// CPU time of the thread that samples; the rest is that of the recording.
        sampling: Counter f64 Seconds, "Sampling", from "clock_gettime CLOCK_THREAD_CPUTIME_ID";
        /// The most memory it had at once.
        memory_peak: Gauge u64 Bytes, "Peak memory", from "/proc/self/status VmHWM";
    }
}

metrics! {
    /// Whether ticks came when they were due.
    pub struct OwnTicks in Own / "ticks", "Ticks of weigh" {
        /// Ticks that came.
        taken: Counter u64 One, "Ticks", from "weigh";
        /// Ticks that were due and did not come, because the one before took too long.
        missed: Counter u64 One, "Missed ticks", from "weigh";
    }
}

pub(super) const SOURCE: Source = Source {
    name: "own",
    about: "what weigh itself uses",
    groups: &[group::<OwnCost>(), group::<OwnTicks>()],
    probe: |_| Probe::Ready,
    collector: Some(|_| Box::new(Own { buffer: Vec::new(), peak: None })),
    on_request: false,
    everywhere: true,
    descriptors: 0,
};

struct Own {
    buffer: Vec<u8>,
    /// The peak as last read, and how much CPU time we had used then.
    peak: Option<(u64, f64)>,
}

impl Collector for Own {
    fn sample(&mut self, host: &Host, tick: &mut Tick) -> Result<(), Fault> {
        let Usage { user_seconds: user, system_seconds: system, .. } = own::usage();
        // The status file costs more than the rest of a small tick: a look whenever we
        // have worked for another 50 ms finds what there is to find.
        if self.peak.is_none_or(|(_, then)| user + system > then + 0.05) {
            let bytes = host.proc.read(c"self/status", &mut self.buffer)?;
            let peak = status::parse(bytes).ok().and_then(|status| status.resident_peak);
            self.peak = peak.map(|peak| (peak, user + system));
        }
        let row = OwnCost {
            user: Some(user),
            system: Some(system),
            sampling: Some(own::sampling_seconds()),
            memory_peak: self.peak.map(|(peak, _)| peak),
        };
        tick.put(Entity::Single, &row);
        Ok(())
    }
}
