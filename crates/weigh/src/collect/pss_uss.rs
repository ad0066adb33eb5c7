//! PSS and USS of a tree of processes.
//!
//! Source: `/proc/PID/smaps_rollup`, readable by the process's owner. Reading it slows the target
//! down (see [`Budget`]), so all processes are read in one pass: mapping or unmapping a page changes
//! the PSS of every process that shares it, and a sum of values from different passes would be
//! wrong.
//!
//! When a process exits during a pass, its part of the shared pages moves to processes that may
//! already have been read. Processes without memory at the end of the pass are therefore left out,
//! and the sum is a lower bound.
//!
//! Shared huge pages are not divided by the kernel: each process that has any gets an equal part of
//! them. The sum is then exact where all share the same ones, and never too large.
//!
//! A pass is made when something changed and the budget allows it, and beyond the budget when the
//! tree may have reached a new peak, or a phase has ended.

use std::time::Duration;

use super::budget::Budget;
use super::process::{ProcessReader, ReadContext};
use crate::catalog::metrics::ProcessMemory;
use crate::host::{self, Host, ProcPath};
use crate::model::{Entity, ProcessId, Tick};
use crate::parse::smaps::{self, Rollup};
use crate::parse::stat;

/// Growth that makes a new peak worth a pass: a twentieth, and at least this.
const LEAST_GROWTH: u64 = 1 << 20;

/// When to read PSS and USS, and the results of the last pass.
pub struct PssUssReader {
    budget: Budget,
    /// The resident sum at the last pass.
    last: Option<u64>,
    /// The largest sum of PSS so far.
    peak: u64,
    changed: bool,
    wanted: bool,
    /// What the pass has read.
    read: Vec<(ProcessId, Rollup)>,
}

impl PssUssReader {
    /// Passes within this share of one core.
    pub fn with_budget(share: f64) -> PssUssReader {
        PssUssReader {
            budget: Budget::with_core_share(share),
            last: None,
            peak: 0,
            changed: true,
            wanted: false,
            read: Vec::new(),
        }
    }

    /// A process started, exited, grew or shrank: the shares have changed.
    pub fn note_change(&mut self) {
        self.changed = true;
    }

    /// Requests a pass at the next tick, beyond the budget.
    pub fn request(&mut self) {
        self.wanted = true;
    }

    /// Whether a pass is due for a tree with this resident sum.
    fn is_due(&self, now: Duration, resident: u64) -> bool {
        if !self.changed {
            return false;
        }
        if self.budget.allows(now) {
            return true;
        }
        // A sum of PSS is never above the resident sum, so only this can be a new peak.
        let grown = self.last.is_none_or(|last| resident > last + (last / 20).max(LEAST_GROWTH));
        let urgent = self.wanted || (grown && resident > self.peak);
        urgent && self.budget.allows_urgent(now)
    }

    /// Makes a pass over the tree if one is due.
    ///
    /// Returns the first permission error.
    pub fn pass(
        &mut self,
        host: &Host,
        processes: &[ProcessReader],
        context: &mut ReadContext,
        tick: &mut Tick,
    ) -> Option<host::Error> {
        let resident = processes.iter().map(|process| process.resident).sum();
        if processes.is_empty() || !self.is_due(tick.at, resident) {
            return None;
        }
        let before = host::clock::thread_cpu();
        let mut refused = None;
        self.read.clear();
        // One address space is one set of pages, however many processes use it.
        for process in processes.iter().filter(|process| !process.shares_memory()) {
            let path = ProcPath::new(process.id.pid, "smaps_rollup");
            match host.proc.read(path.as_c_str(), &mut context.buffer) {
                Ok(bytes) => {
                    // Empty for a zombie, which has no memory.
                    let Ok(rollup) = smaps::parse(bytes) else { continue };
                    self.read.push((process.id, rollup));
                }
                Err(error) if error.is_denied() => refused = refused.or(Some(error)),
                Err(_) => {}
            }
        }
        let mut sum = 0;
        let sharers = self.read.iter().filter(|(_, rollup)| rollup.shared_hugetlb > 0).count();
        for (id, rollup) in &self.read {
            if has_memory(host, *id, &mut context.buffer) {
                let (pss, uss, without_cache) = with_huge_pages(rollup, sharers as u64);
                sum += pss;
                let (pss, uss) = (Some(pss), Some(uss));
                let row = ProcessMemory { pss, uss, without_cache, ..ProcessMemory::default() };
                tick.put(Entity::Process(*id), &row);
            }
        }
        let cost = host::clock::thread_cpu().saturating_sub(before);
        self.budget.spend(tick.at + cost, cost);
        self.peak = self.peak.max(sum);
        self.last = Some(resident);
        self.changed = false;
        self.wanted = false;
        refused
    }
}

/// PSS, USS and what of the PSS is no page cache, with huge pages, where `sharers` processes have
/// shared ones.
fn with_huge_pages(rollup: &Rollup, sharers: u64) -> (u64, u64, Option<u64>) {
    let part = rollup.shared_hugetlb.checked_div(sharers).unwrap_or(0);
    let uss = rollup.private.saturating_add(rollup.private_hugetlb);
    let with_part = |pss: u64| pss.saturating_add(rollup.private_hugetlb).saturating_add(part);
    let without_cache = rollup.pss_anonymous.zip(rollup.pss_shared_memory);
    let without_cache = without_cache.map(|(anonymous, shared)| anonymous.saturating_add(shared));
    (with_part(rollup.pss), uss, without_cache.map(with_part))
}

/// Whether a process still has memory; a zombie has none.
fn has_memory(host: &Host, id: ProcessId, buffer: &mut Vec<u8>) -> bool {
    let path = ProcPath::new(id.pid, "stat");
    let Ok(bytes) = host.proc.read(path.as_c_str(), buffer) else { return false };
    stat::parse(bytes).is_ok_and(|stat| stat.resident_pages > 0 && stat.started == id.started)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Row;
    use crate::host::fake::FakeHost;

    const MS: Duration = Duration::from_millis(1);
    const MIB: u64 = 1 << 20;

    /// After a pass at one second that cost 20 ms and saw 100 MiB.
    fn after_a_pass() -> PssUssReader {
        let mut pss_uss = PssUssReader::with_budget(0.005);
        pss_uss.budget.spend(1000 * MS, 20 * MS);
        pss_uss.last = Some(100 * MIB);
        pss_uss.peak = 100 * MIB;
        pss_uss.changed = false;
        pss_uss
    }

    #[test]
    fn unchanged_tree_is_not_read_again() {
        assert!(!after_a_pass().is_due(Duration::from_secs(1000), 100 * MIB));
    }

    #[test]
    fn small_changes_wait_for_the_budget() {
        let mut pss_uss = after_a_pass();
        pss_uss.note_change();
        assert!(!pss_uss.is_due(3000 * MS, 101 * MIB));
        assert!(pss_uss.is_due(4001 * MS, 101 * MIB));
    }

    #[test]
    fn new_peak_does_not_wait_for_the_budget() {
        let mut pss_uss = after_a_pass();
        pss_uss.note_change();
        assert!(pss_uss.is_due(1300 * MS, 106 * MIB));
        assert!(!pss_uss.is_due(1100 * MS, 106 * MIB), "but leaves the target time to run");
    }

    #[test]
    fn process_that_exits_during_a_pass_is_left_out() {
        let rollup = "0-0 ---p 00000000 00:00 0 [rollup]\nRss: 8 kB\nPss: 4 kB\n\
                      Shared_Clean: 8 kB\nShared_Dirty: 0 kB\n\
                      Private_Clean: 0 kB\nPrivate_Dirty: 0 kB\n";
        let stat = |pid: u32, pages: u32| {
            let zeros = "0 ".repeat(17);
            format!("{pid} (x) S 1 {zeros}{pid} 0 {pages} 0\n")
        };
        let mut fake = FakeHost::new();
        // The second has exited when all were read, the third pid is reused.
        for (pid, pages, now) in [(7, 2, 7), (8, 0, 8), (9, 2, 10)] {
            fake = fake
                .proc(&format!("{pid}/smaps_rollup"), rollup)
                .proc(&format!("{pid}/stat"), &stat(now, pages));
        }
        let host = fake.host();
        let mut context = ReadContext::new(&host, 10);
        let ids = [7, 8, 9].map(|pid| ProcessId { pid, started: u64::from(pid) });
        let tree = ids.map(|id| ProcessReader::new(id, 1, b"", &context));
        let mut tick = Tick::new(&[ProcessMemory::METRICS]);
        PssUssReader::with_budget(1.0).pass(&host, &tree, &mut context, &mut tick);
        assert_eq!(tick.tables()[0].entities(), [Entity::Process(ids[0])]);
    }

    #[test]
    fn shared_huge_pages_are_counted_once_and_private_ones_in_full() {
        let small = Rollup {
            rss: MIB,
            pss: MIB,
            pss_anonymous: Some(MIB / 2),
            pss_shared_memory: Some(MIB / 4),
            private: MIB,
            private_hugetlb: 0,
            shared_hugetlb: 0,
            shared: 0,
            swap: None,
            swap_pss: None,
        };
        let private = Rollup { private_hugetlb: 200 * MIB, ..small };
        let less = Some(200 * MIB + MIB / 4 * 3);
        assert_eq!(with_huge_pages(&private, 0), (201 * MIB, 201 * MIB, less));
        let shared = Rollup { shared_hugetlb: 200 * MIB, ..small };
        let less = Some(100 * MIB + MIB / 4 * 3);
        assert_eq!(with_huge_pages(&shared, 2), (101 * MIB, MIB, less));
        let old = Rollup { pss_anonymous: None, ..small };
        assert_eq!(with_huge_pages(&old, 0), (MIB, MIB, None), "an older kernel does not say");
    }

    #[test]
    fn growth_below_the_known_peak_is_not_urgent() {
        let mut pss_uss = after_a_pass();
        pss_uss.peak = 500 * MIB;
        pss_uss.note_change();
        assert!(!pss_uss.is_due(1300 * MS, 300 * MIB));
    }
}
