//! The run as a whole at one tick, from its live processes.
//!
//! A gauge that is not known of one process has no sum: it would look like less.

use super::evidence::pss_or_largest_rss;
use crate::catalog::metrics::{
    AddressSpace, RunTotalCpu, RunTotalGpu, RunTotalIo, RunTotalMemory, RunTotalProcesses,
};
use crate::model::live::{LiveProcess, ProcessValues};

/// What the run has and has used at one tick.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct RunTotals {
    pub(crate) cpu: RunTotalCpu,
    pub(crate) memory: RunTotalMemory,
    pub(crate) processes: RunTotalProcesses,
    pub(crate) io: RunTotalIo,
    pub(crate) gpu: RunTotalGpu,
}

/// A sum of gauges, as long as all of them are known.
#[derive(Debug, Clone, Copy)]
struct KnownSum(Option<u64>);

impl KnownSum {
    fn add(&mut self, value: Option<u64>) {
        self.0 = self.0.zip(value).map(|(sum, value)| sum.saturating_add(value));
    }
}

impl RunTotals {
    /// Of these live processes, with the CPU time and I/O of the run so far, and the memory and
    /// utilization of its GPUs.
    pub(super) fn of<'a>(
        live: impl Iterator<Item = &'a LiveProcess>,
        cpu: Option<f64>,
        io: Option<[f64; 6]>,
        (gpu_memory, gpus_busy): (Option<f64>, Option<f64>),
    ) -> RunTotals {
        let zero = KnownSum(Some(0));
        let (mut rss, mut pss, mut uss, mut high_water, mut swap) = (zero, zero, zero, zero, zero);
        let (mut threads, mut files, mut alive, mut largest) = (zero, zero, 0, 0);
        for LiveProcess { values, .. } in live {
            // A zombie is no process any more.
            if values.has_exited() {
                continue;
            }
            alive += 1;
            threads.add(values.state.threads);
            files.add(values.state.files_open);
            // Its memory is that of another process, and is counted there.
            if values.memory.address_space == Some(AddressSpace::Shared) {
                continue;
            }
            let memory = &values.memory;
            rss.add(memory.rss);
            pss.add(values.pss_capped());
            uss.add(private(values));
            high_water.add(values.peak_rss_without_hugetlb());
            swap.add(memory.swap);
            largest = largest.max(memory.rss.unwrap_or(0));
        }
        let used = rss.0.map(|_| pss_or_largest_rss(pss.0, largest));
        // Without shares, a sum of resident memory is all that is known of several processes.
        let used = used.filter(|_| pss.0.is_some() || alive <= 1);
        let [read, written, read_calls, write_calls, storage_read, storage_written] =
            io.map_or([None; 6], |counts| counts.map(|count| Some(count as u64)));
        RunTotals {
            cpu: RunTotalCpu { cpu },
            memory: RunTotalMemory {
                used,
                rss: rss.0,
                pss: pss.0,
                uss: uss.0,
                high_water: high_water.0,
                swap: swap.0,
            },
            processes: RunTotalProcesses {
                alive: Some(alive),
                threads: threads.0,
                files_open: files.0,
            },
            io: RunTotalIo {
                read,
                written,
                read_calls,
                write_calls,
                storage_read,
                storage_written,
            },
            gpu: RunTotalGpu { memory: gpu_memory.map(|bytes| bytes as u64), busy: gpus_busy },
        }
    }
}

/// Private memory as it was last read, which is never above the resident memory now.
fn private(values: &ProcessValues) -> Option<u64> {
    values.memory.uss.map(|uss| values.memory.rss.map_or(uss, |rss| uss.min(rss)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::SourceId;
    use crate::record::Moment;
    use crate::summary::Accumulator;
    use crate::testing::{CHILD, FakeRun, MAIN, MIB, cpu, memory, threads, usage};

    /// The totals at each complete tick.
    fn totals(run: &FakeRun) -> Vec<RunTotals> {
        let (mut accumulator, mut totals) = (Accumulator::new(&run.manifest), Vec::new());
        run.replay(|frame| {
            accumulator.frame(frame);
            if matches!(frame.moment, Moment::Tick(tick) if tick.is_complete()) {
                totals.push(accumulator.totals(frame.live));
            }
        });
        totals
    }

    #[test]
    fn process_without_a_row_counts_with_its_last_values() {
        let mut run = FakeRun::new();
        run.starts(0.0, MAIN, "work").starts_under(0.0, CHILD, MAIN.pid, "child");
        run.sample(1.0, |tick| {
            cpu(tick, MAIN, 1.0, 0.0);
            memory(tick, MAIN, 100 * MIB, 100 * MIB, Some(80 * MIB));
            threads(tick, MAIN, 2);
            memory(tick, CHILD, 50 * MIB, 60 * MIB, Some(30 * MIB));
            threads(tick, CHILD, 1);
        });
        run.sample(2.0, |tick| cpu(tick, MAIN, 2.0, 0.0));
        let [_, last] = totals(&run)[..] else { panic!() };
        assert_eq!(
            last.processes,
            RunTotalProcesses { alive: Some(2), threads: Some(3), files_open: None }
        );
        let bytes = |mib: u64| Some(mib * MIB);
        let memory = last.memory;
        assert_eq!((memory.rss, memory.pss, memory.used), (bytes(150), bytes(110), bytes(110)));
        assert_eq!((memory.uss, memory.high_water), (bytes(110), bytes(160)));
        assert_eq!(last.cpu.cpu, Some(2.0));
    }

    #[test]
    fn without_the_process_collector_sums_are_unknown_and_not_zero() {
        let mut run = FakeRun::new();
        run.manifest.collectors.retain(|name| name != SourceId::Process.name());
        run.sample(1.0, |_| {});
        assert_eq!(totals(&run), [RunTotals::default()]);
    }

    #[test]
    fn sum_without_the_share_of_one_process_is_unknown_and_an_exited_process_has_no_part() {
        let mut run = FakeRun::new();
        run.starts(0.0, MAIN, "work").starts_under(0.0, CHILD, MAIN.pid, "child");
        run.sample(1.0, |tick| {
            memory(tick, MAIN, 100 * MIB, 100 * MIB, Some(80 * MIB));
            memory(tick, CHILD, 50 * MIB, 50 * MIB, None);
        });
        run.reaped(1.5, CHILD, usage(0.5, 50 * MIB));
        run.sample(2.0, |_| {});
        let [both, alone] = totals(&run)[..] else { panic!() };
        assert_eq!((both.memory.pss, both.memory.used), (None, None));
        assert_eq!(both.memory.rss, Some(150 * MIB));
        assert_eq!((alone.memory.pss, alone.memory.rss), (Some(80 * MIB), Some(100 * MIB)));
        assert_eq!(alone.processes.alive, Some(1));
    }
}
