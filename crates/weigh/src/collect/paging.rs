//! What went through swap, and whom the kernel killed for want of memory.
//!
//! Source: `/proc/vmstat`, readable by everybody, of the whole machine.

use super::{Collector, Fault, Source, group, malformed, readable};
use crate::catalog::metrics;
use crate::host::{Host, Kept};
use crate::parse::vmstat;
use crate::sample::{Entity, Tick};

metrics! {
    /// What the memory of the machine went through since boot.
    pub struct NodePaging in Node / "paging", "Swapping" {
        /// Bytes fetched from swap.
        swapped_in: Counter u64 Bytes, "Swapped in", from "/proc/vmstat pswpin × page size";
        /// Bytes put into swap.
        swapped_out: Counter u64 Bytes, "Swapped out", from "/proc/vmstat pswpout × page size";
        /// Processes that the kernel killed because memory ran out.
        oom_kills: Counter u64 One, "OOM kills", from "/proc/vmstat oom_kill";
    }
}

pub(super) const SOURCE: Source = Source {
    name: "paging",
    about: "swap traffic, processes ended by the OOM killer",
    groups: &[group::<NodePaging>()],
    probe: |host| readable(&host.proc, c"vmstat"),
    collector: Some(|_| Box::new(Paging { vmstat: Kept::always(), buffer: Vec::new() })),
    on_request: false,
    everywhere: false,
    descriptors: 1,
};

struct Paging {
    vmstat: Kept,
    buffer: Vec<u8>,
}

impl Collector for Paging {
    fn sample(&mut self, host: &Host, tick: &mut Tick) -> Result<(), Fault> {
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
    use crate::host::fake::FakeHost;

    fn look(host: &Host) -> Result<NodePaging, Fault> {
        let mut tick = Tick::new(&[NodePaging::METRICS]);
        let mut paging = Paging { vmstat: Kept::always(), buffer: Vec::new() };
        paging.sample(host, &mut tick)?;
        Ok(tick.table(Scope::Node).unwrap().get(0))
    }

    #[test]
    fn pages_become_bytes_and_what_a_kernel_does_not_count_is_missing() {
        let fake = FakeHost::new().proc("vmstat", "pswpin 3\npswpout 5\n");
        let row = look(&fake.host()).unwrap();
        assert_eq!((row.swapped_in, row.swapped_out), (Some(3 * 4096), Some(5 * 4096)));
        assert_eq!(row.oom_kills, None);
    }

    #[test]
    fn garbage_is_a_fault_and_a_file_that_is_gone_retires() {
        let garbage = FakeHost::new().proc("vmstat", "pswpin many\n");
        assert!(matches!(look(&garbage.host()), Err(Fault::Skip(_))));
        assert!(matches!(look(&FakeHost::new().host()), Err(Fault::Retire(_))));
    }
}
