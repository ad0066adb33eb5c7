//! Memory of the machine.
//!
//! Source: `/proc/meminfo`, readable by every user. "Used" is what is not available: the page cache
//! is reclaimable and does not count as used.

use super::{Collector, Context, Fault, Provider, malformed, openable};
use crate::catalog::SourceId;
use crate::catalog::metrics::NodeMemory;
use crate::host::CachedFile;
use crate::model::{Entity, Tick};
use crate::parse::meminfo;

pub(super) const PROVIDER: Provider = Provider {
    id: SourceId::Memory,
    probe: |host| openable(&host.proc, c"meminfo"),
    collector: Some(|_| {
        Box::new(MemoryCollector { meminfo: CachedFile::always(), buffer: Vec::new() })
    }),
    descriptors: 1,
};

struct MemoryCollector {
    meminfo: CachedFile,
    buffer: Vec<u8>,
}

impl Collector for MemoryCollector {
    fn sample(&mut self, context: &Context<'_>, tick: &mut Tick) -> Result<(), Fault> {
        let host = context.host;
        let bytes = self.meminfo.read(&host.proc, || c"meminfo", &mut self.buffer)?;
        let memory = meminfo::parse(bytes).map_err(malformed(&host.proc, c"meminfo"))?;
        let row = NodeMemory {
            total: Some(memory.total),
            free: Some(memory.free),
            available: memory.available,
            cached: memory.cached,
            buffers: memory.buffers,
            shared: memory.shared,
            swap_total: memory.swap_total,
            swap_free: memory.swap_free,
            hugetlb: memory.hugetlb,
        };
        tick.put(Entity::Single, &row);
        Ok(())
    }
}
