//! What weigh itself uses.
//!
//! Source: getrusage(2) and `/proc/self/status`, always available.

use super::{Collector, Context, Fault, Probe, Provider};
use crate::catalog::SourceId;
use crate::catalog::metrics::OwnCost;
use crate::host::own;
use crate::model::{Entity, Tick, Usage};
use crate::parse::status;

pub(super) const PROVIDER: Provider = Provider {
    id: SourceId::Own,
    probe: |_| Probe::Ready,
    collector: Some(|_| Box::new(OwnCostCollector { buffer: Vec::new(), peak: None })),
    descriptors: 0,
};

struct OwnCostCollector {
    buffer: Vec<u8>,
    /// The peak as last read, and our CPU time then.
    peak: Option<(u64, f64)>,
}

impl Collector for OwnCostCollector {
    fn sample(&mut self, context: &Context<'_>, tick: &mut Tick) -> Result<(), Fault> {
        let host = context.host;
        let Usage { user_seconds: user, system_seconds: system, .. } = own::usage();
        // The status file costs more than the rest of a small tick: it is read again after another
        // 50 ms of our CPU time. In a session the memory is the other program's.
        if !own::is_threads() && self.peak.is_none_or(|(_, then)| user + system > then + 0.05) {
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
