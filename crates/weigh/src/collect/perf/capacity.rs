//! What the processor can count for a task, found by asking the kernel.
//!
//! The kernel refuses a group that can never be counted at once. So the number of programmable
//! counters is how often one event fits into a group: that is right for every processor, with
//! hyper-threading and in virtual machines. Nothing is counted by it.

use std::io;

use super::packing::Capacity;
use crate::host::Host;
use crate::host::perf::events::{CountedTask, EventCode, EventCounter};

/// More counters than any core has.
const MOST: usize = 32;

/// The counters of a core that a task may use; an error where instructions cannot be counted.
pub(super) fn of(host: &Host) -> io::Result<Capacity> {
    let trial = |code: EventCode, leader: Option<&EventCounter>| {
        host.perf.count_event(code, CountedTask::Trial, leader, false)
    };
    let fixed = [EventCode::INSTRUCTIONS, EventCode::CYCLES];
    // Not every virtual machine counts branches; instructions may have a counter of their own.
    trial(EventCode::INSTRUCTIONS, None)?;
    let (code, leader) = match trial(EventCode::BRANCHES, None) {
        Ok(leader) => (EventCode::BRANCHES, leader),
        Err(_) => (EventCode::INSTRUCTIONS, trial(EventCode::INSTRUCTIONS, None)?),
    };
    let mut group = vec![leader];
    while group.len() < MOST {
        match trial(code, group.first()) {
            Ok(counter) => group.push(counter),
            Err(_) => break,
        }
    }
    let programmable = group.len();
    let mut has_fixed = code == EventCode::BRANCHES;
    for code in fixed {
        match trial(code, group.first()) {
            Ok(counter) => group.push(counter),
            Err(_) => has_fixed = false,
        }
    }
    let taken = usize::from(has_nmi_watchdog(host));
    Ok(Capacity { programmable: programmable.saturating_sub(taken), has_fixed })
}

/// Whether the kernel's own watchdog uses a counter of every CPU. It may be the fixed one of cycles,
/// which then take a programmable one.
pub(super) fn has_nmi_watchdog(host: &Host) -> bool {
    let mut buffer = Vec::new();
    let read = host.proc.read(c"sys/kernel/nmi_watchdog", &mut buffer);
    // Architectures whose watchdog uses no counter do not have the file, or have 0 in it.
    read.is_ok_and(|bytes| bytes.starts_with(b"1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;
    use crate::host::perf::Perf;
    use crate::host::perf::simulated::SimulatedPmu;

    const ALL: [(EventCode, u64); 3] =
        [(EventCode::CYCLES, 1), (EventCode::INSTRUCTIONS, 1), (EventCode::BRANCHES, 1)];

    fn capacity(pmu: SimulatedPmu, watchdog: &str) -> io::Result<Capacity> {
        let fake = FakeHost::new().proc("sys/kernel/nmi_watchdog", watchdog);
        let host = Host { perf: Perf::Simulated(pmu.clone()), ..fake.host() };
        let capacity = of(&host);
        assert_eq!(pmu.open_events(), 0, "nothing stays open");
        capacity
    }

    #[test]
    fn programmable_counters_are_found_by_asking_for_one_more() {
        for counters in [2, 4, 6, 8] {
            let pmu = SimulatedPmu::new(counters, &ALL);
            let found = capacity(pmu, "0\n").unwrap();
            assert_eq!(found, Capacity { programmable: counters, has_fixed: false });
            let pmu = SimulatedPmu::new(counters, &ALL)
                .fixed(&[EventCode::CYCLES, EventCode::INSTRUCTIONS]);
            let found = capacity(pmu, "0\n").unwrap();
            assert_eq!(found, Capacity { programmable: counters, has_fixed: true });
        }
    }

    #[test]
    fn the_nmi_watchdog_leaves_one_counter_less() {
        let pmu = SimulatedPmu::new(4, &ALL);
        assert_eq!(capacity(pmu, "1\n").unwrap().programmable, 3);
    }

    #[test]
    fn pmu_with_cycles_and_instructions_alone_has_a_capacity_too() {
        let pmu = SimulatedPmu::new(6, &ALL[..2]);
        let found = capacity(pmu, "0\n").unwrap();
        assert_eq!(found, Capacity { programmable: 6, has_fixed: false });
    }

    #[test]
    fn machine_without_pmu_has_none() {
        let none = capacity(SimulatedPmu::new(4, &[]), "0\n").unwrap_err();
        assert_eq!(none.raw_os_error(), Some(libc::ENOENT));
        let denied = capacity(SimulatedPmu::new(4, &ALL).refusing(libc::EACCES), "0\n");
        assert_eq!(denied.unwrap_err().raw_os_error(), Some(libc::EACCES));
    }
}
