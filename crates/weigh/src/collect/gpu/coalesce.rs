//! Polls that no tick took, coalesced into one.
//!
//! The worker polls every second, and ticks may be rarer. A process that was there at one poll and
//! not at the next would be lost, and its utilization of the last second would stand for the whole
//! time. So a poll takes in the one before it: shares are means over time, and memory is that of
//! the poll with the most in use. All of it is of one poll, because the sum of the peaks of
//! processes is more than was ever in use at once.

use std::collections::HashMap;
use std::time::Duration;

use super::poll::{GpuProcessRow, Poll, PolledPid};
use crate::catalog::metrics::GpuProcessUsage;
use crate::model::Name;

/// The time that the shares of a process cover.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ProcessCoverage {
    /// Seconds that its shares are of.
    covered_s: f64,
    /// Seconds after those, for which no share was reported yet.
    pending_s: f64,
    /// Whether it was there at the last poll.
    pub(super) is_present: bool,
}

impl Default for ProcessCoverage {
    fn default() -> ProcessCoverage {
        ProcessCoverage { covered_s: 0.0, pending_s: 0.0, is_present: true }
    }
}

impl ProcessCoverage {
    fn of(share: &GpuProcessUsage, seconds: f64) -> ProcessCoverage {
        let (covered_s, pending_s) =
            if share.utilization.is_some() { (seconds, 0.0) } else { (0.0, seconds) };
        ProcessCoverage { covered_s, pending_s, is_present: true }
    }

    /// This and the poll after it: a share is of all the time since the last one.
    fn then(self, next: ProcessCoverage) -> ProcessCoverage {
        let has_share = next.covered_s > 0.0;
        let both = self.covered_s + self.pending_s + next.covered_s;
        ProcessCoverage {
            covered_s: if has_share { both } else { self.covered_s },
            pending_s: if has_share { 0.0 } else { self.pending_s + next.pending_s },
            is_present: next.is_present,
        }
    }
}

impl Poll {
    /// Sets what coalescing needs; `elapsed` is the time since the poll before.
    pub(super) fn cover(&mut self, elapsed: Duration) {
        let seconds = elapsed.as_secs_f64();
        for row in &mut self.processes {
            row.coverage = ProcessCoverage::of(&row.share, seconds);
        }
        let by_devices = self.devices.iter().filter_map(|device| device.memory.used);
        let by_processes = self.processes.iter().filter_map(|row| row.share.memory);
        // A GPU that uses the machine's memory reports only what processes have.
        self.memory_in_use =
            by_devices.reduce(u64::saturating_add).or(by_processes.reduce(u64::saturating_add));
    }

    /// Takes in the poll before it, which no tick took.
    pub(super) fn coalesce(&mut self, earlier: Poll) {
        self.new_devices.splice(0..0, earlier.new_devices);
        self.problems.splice(0..0, earlier.problems);
        let earlier_had_more = earlier.memory_in_use > self.memory_in_use;
        if earlier_had_more {
            for device in &mut self.devices {
                let before = earlier.devices.iter().find(|before| before.name == device.name);
                device.memory = before.map_or(device.memory, |before| before.memory);
            }
        }
        self.memory_in_use = self.memory_in_use.max(earlier.memory_in_use);
        let mut rows_before: HashMap<_, _> =
            earlier.processes.into_iter().map(|row| (key(&row), row)).collect();
        for row in &mut self.processes {
            let now = row.share;
            let (before, covered) = match rows_before.remove(&key(row)) {
                Some(before) => (before.share, before.coverage),
                None => {
                    let absent = ProcessCoverage { is_present: false, ..Default::default() };
                    (without_memory(&now), absent)
                }
            };
            let seconds = covered.pending_s + row.coverage.covered_s;
            row.share = mean(&before, covered.covered_s, &now, seconds);
            row.share.memory = if earlier_had_more { before.memory } else { now.memory };
            row.share.memory_peak = peak_memory(&[before, now]);
            row.coverage = covered.then(row.coverage);
        }
        let devices = &self.devices;
        // Of a lost device there are no rows, and so none of its processes.
        let exited = rows_before
            .into_values()
            .filter(|row| devices.iter().any(|device| device.name == row.gpu));
        let exited = exited.map(|mut row| {
            row.share.memory_peak = peak_memory(&[row.share]);
            if !earlier_had_more {
                row.share.memory = without_memory(&row.share).memory;
            }
            row.coverage.is_present = false;
            row
        });
        self.processes.extend(exited);
    }
}

/// The same process in two polls: a pid of the driver's is one process while it is listed.
fn key(row: &GpuProcessRow) -> (Name, u32, Option<u64>) {
    match row.pid {
        PolledPid::Driver(pid, _) => (row.gpu, pid, None),
        PolledPid::Resolved(id) => (row.gpu, id.pid, Some(id.started)),
    }
}

/// The share of a process that is not on the device. Memory is 0 where the driver reports it.
fn without_memory(share: &GpuProcessUsage) -> GpuProcessUsage {
    GpuProcessUsage { memory: share.memory.map(|_| 0), ..GpuProcessUsage::default() }
}

fn peak_memory(shares: &[GpuProcessUsage]) -> Option<u64> {
    shares.iter().flat_map(|share| [share.memory, share.memory_peak]).flatten().max()
}

/// The mean of a share over so many seconds, and of the next over so many.
fn mean(
    before: &GpuProcessUsage,
    seconds_before: f64,
    now: &GpuProcessUsage,
    seconds: f64,
) -> GpuProcessUsage {
    let of = |field: fn(&GpuProcessUsage) -> Option<f64>| match (field(before), field(now)) {
        (Some(before), Some(now)) if seconds_before + seconds > 0.0 => {
            Some((before * seconds_before + now * seconds) / (seconds_before + seconds))
        }
        (before, now) => now.or(before),
    };
    GpuProcessUsage {
        memory: now.memory,
        memory_peak: now.memory_peak,
        utilization: of(|share| share.utilization),
        memory_utilization: of(|share| share.memory_utilization),
        encoder: of(|share| share.encoder),
        decoder: of(|share| share.decoder),
        video: of(|share| share.video),
        copy: of(|share| share.copy),
        occupancy: of(|share| share.occupancy),
    }
}

#[cfg(test)]
mod tests {
    use super::super::poll::DeviceRows;
    use super::*;
    use crate::catalog::metrics::GpuMemory;

    /// A poll a second after the one before: memory and utilization of each pid.
    fn poll(used: Option<u64>, processes: &[(u32, Option<u64>, Option<f64>)]) -> Poll {
        let gpu = Name::new(b"nvidia0");
        let memory = GpuMemory { used, ..GpuMemory::default() };
        let processes = processes.iter().map(|&(pid, memory, utilization)| {
            let share = GpuProcessUsage { memory, utilization, ..GpuProcessUsage::default() };
            GpuProcessRow::new(gpu, PolledPid::Driver(pid, None), share)
        });
        let devices = vec![DeviceRows { memory, ..DeviceRows::empty(gpu) }];
        let mut poll = Poll { devices, processes: processes.collect(), ..Poll::default() };
        poll.cover(Duration::from_secs(1));
        poll
    }

    fn coalesced(polls: impl IntoIterator<Item = Poll>) -> Poll {
        let one = polls.into_iter().reduce(|before, mut now| {
            now.coalesce(before);
            now
        });
        one.unwrap()
    }

    /// Memory, peak memory, utilization, and whether it is there at the last poll.
    fn of(poll: &Poll, pid: u32) -> (Option<u64>, Option<u64>, Option<f64>, bool) {
        let is_it =
            |row: &&GpuProcessRow| matches!(row.pid, PolledPid::Driver(number, _) if number == pid);
        let GpuProcessRow { share, coverage, .. } = poll.processes.iter().find(is_it).unwrap();
        (share.memory, share.memory_peak, share.utilization, coverage.is_present)
    }

    #[test]
    fn coalesced_utilization_is_the_mean_of_all_polls() {
        let shares = [Some(1.0), Some(1.0), Some(1.0), Some(0.8), Some(0.0)];
        let polls = shares.map(|share| poll(None, &[(7, Some(1), share)]));
        assert_eq!(of(&coalesced(polls), 7).2, Some(3.8 / 5.0));
        // A share is of all the time since the last one.
        let shares = [Some(1.0), None, None, Some(0.5), None];
        let merged = coalesced(shares.map(|share| poll(None, &[(7, Some(1), share)])));
        assert_eq!(of(&merged, 7).2, Some((1.0 + 3.0 * 0.5) / 4.0));
        let next = coalesced([merged, poll(None, &[(7, Some(1), Some(0.0))])]);
        assert_eq!(of(&next, 7).2, Some(2.5 / 6.0));
    }

    #[test]
    fn coalesced_memory_is_of_the_poll_with_most_and_no_process_is_lost() {
        let merged = coalesced([
            poll(Some(5), &[(7, Some(4), None)]),
            poll(Some(41), &[(7, Some(10), None), (8, Some(30), Some(0.5))]),
            poll(Some(13), &[(7, Some(12), None), (9, Some(1), None)]),
        ]);
        assert_eq!(merged.devices[0].memory.used, Some(41));
        assert_eq!(of(&merged, 7), (Some(10), Some(12), None, true));
        assert_eq!(of(&merged, 8), (Some(30), Some(30), Some(0.5), false));
        assert_eq!(of(&merged, 9), (Some(0), Some(1), None, true));
        // Two processes one after the other never have more than one of them.
        let polls =
            [poll(Some(30), &[(7, Some(30), None)]), poll(Some(31), &[(8, Some(31), None)])];
        let merged = coalesced(polls);
        assert_eq!((of(&merged, 7).0, of(&merged, 8).0), (Some(0), Some(31)));
        let unknown = coalesced([poll(None, &[(7, None, None)]), poll(None, &[(8, None, None)])]);
        assert_eq!((of(&unknown, 7).0, of(&unknown, 8).0), (None, None), "unknown is not 0");
    }

    #[test]
    fn processes_of_a_lost_device_are_dropped() {
        let mut lost = poll(None, &[]);
        lost.devices.clear();
        assert_eq!(coalesced([poll(Some(1), &[(7, Some(1), None)]), lost]).processes, []);
    }
}
