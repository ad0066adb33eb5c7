//! Swap traffic and out-of-memory kills.
//!
//! Source: `/proc/vmstat`, readable by every user, of the whole machine.

use super::{Collector, Context, Fault, Provider, malformed, openable};
use crate::catalog::SourceId;
use crate::catalog::metrics::NodePaging;
use crate::host::CachedFile;
use crate::model::{Entity, Tick};
use crate::parse::vmstat;

pub(super) const PROVIDER: Provider = Provider {
    id: SourceId::Paging,
    probe: |host| openable(&host.proc, c"vmstat"),
    collector: Some(|_| {
        Box::new(PagingCollector { vmstat: CachedFile::always(), buffer: Vec::new() })
    }),
    descriptors: 1,
};

struct PagingCollector {
    vmstat: CachedFile,
    buffer: Vec<u8>,
}

impl Collector for PagingCollector {
    fn sample(&mut self, context: &Context<'_>, tick: &mut Tick) -> Result<(), Fault> {
        let host = context.host;
        let bytes = self.vmstat.read(&host.proc, || c"vmstat", &mut self.buffer)?;
        let vmstat = vmstat::parse(bytes).map_err(malformed(&host.proc, c"vmstat"))?;
        let bytes = |pages: Option<u64>| pages.and_then(|pages| pages.checked_mul(host.page_size));
        let row = NodePaging {
            swapped_in: bytes(vmstat.swapped_in),
            swapped_out: bytes(vmstat.swapped_out),
            oom_kills: vmstat.oom_kills,
        };
        tick.put(Entity::Single, &row);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Row, Scope};
    use crate::host::Host;
    use crate::host::fake::FakeHost;

    fn sampled(host: &Host) -> Result<NodePaging, Fault> {
        let mut tick = Tick::new(&[NodePaging::METRICS]);
        let mut paging = PagingCollector { vmstat: CachedFile::always(), buffer: Vec::new() };
        paging.sample(&Context::of(host), &mut tick)?;
        Ok(tick.table(Scope::Node).unwrap().get(0))
    }

    #[test]
    fn pages_become_bytes_and_missing_counters_are_null() {
        let fake = FakeHost::new().proc("vmstat", "pswpin 3\npswpout 5\n");
        let row = sampled(&fake.host()).unwrap();
        assert_eq!((row.swapped_in, row.swapped_out), (Some(3 * 4096), Some(5 * 4096)));
        assert_eq!(row.oom_kills, None);
    }

    #[test]
    fn malformed_file_is_skipped_and_missing_file_retires() {
        let garbage = FakeHost::new().proc("vmstat", "pswpin many\n");
        assert!(matches!(sampled(&garbage.host()), Err(Fault::Skip(_))));
        assert!(matches!(sampled(&FakeHost::new().host()), Err(Fault::Retire(_))));
    }
}
