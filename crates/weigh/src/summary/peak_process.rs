//! The process that had the most memory at the peak of a run.

use serde::{Deserialize, Serialize};

use super::accumulate::Accumulator;
use super::figure::Figure;
use crate::model::live::LiveProcess;

/// The process with the most memory at the peak of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PeakProcess {
    /// Its pid.
    pub pid: u32,
    /// Its program, or the script that an interpreter runs.
    pub name: String,
    /// Its memory.
    pub bytes: u64,
    /// When it had that, in seconds since the run began.
    pub at_seconds: f64,
    /// Whether that was at the peak; else it was at the highest sample: the peak is a high-water
    /// mark of which only the size is known, or includes the page cache.
    pub is_at_peak: bool,
}

impl PeakProcess {
    /// This process has so much at this time: a higher peak than that before.
    pub(super) fn raise(
        before: &mut Option<PeakProcess>,
        process: &LiveProcess,
        bytes: u64,
        at: f64,
    ) {
        let known = before.get_or_insert_default();
        (known.pid, known.bytes, known.at_seconds) = (process.id.pid, bytes, at);
        process.program.clone_into(&mut known.name);
    }
}

/// Who had the most of this peak, as far as that is known.
pub(super) fn of(run: &Accumulator, peak: &Figure) -> Option<PeakProcess> {
    let (tree, value) = (&run.tree, peak.value?);
    if !run.losses.is_empty() {
        return None;
    }
    let (sum, of_sum) = match tree.combined.pss.value {
        Some(_) => (tree.combined.pss, &tree.pss_holder),
        None => (tree.combined.rss, &tree.rss_holder),
    };
    let is_sum = sum.value == Some(value);
    // `ru_maxrss` has a size, and no process: it may be of a child that was reaped before.
    let is_largest = tree.largest_process.value == Some(value);
    let is_at_peak = is_sum || is_largest;
    let holder = if is_largest && !is_sum { &tree.largest_holder } else { of_sum };
    Some(PeakProcess { is_at_peak, ..holder.clone()? })
}

#[cfg(test)]
mod tests {
    use super::super::Summary;
    use crate::testing::{CHILD, FakeRun, MAIN, MIB, memory, usage};

    /// A run of two processes; at 2 s the child has 300 MiB and the command 100.
    fn run() -> FakeRun {
        let mut run = FakeRun::new();
        run.starts(0.0, MAIN, "make").starts_under(0.0, CHILD, MAIN.pid, "cc1");
        for (at, child) in [(1.0, 50), (2.0, 300), (3.0, 20)] {
            run.sample(at, |tick| {
                memory(tick, MAIN, 100 * MIB, 100 * MIB, Some(100 * MIB));
                memory(tick, CHILD, child * MIB, child * MIB, Some(child * MIB));
            });
        }
        run
    }

    fn shown(summary: &Summary) -> Option<(u32, &str, u64, f64, bool)> {
        let one = summary.memory_peak_process.as_ref()?;
        Some((one.pid, one.name.as_str(), one.bytes / MIB, one.at_seconds, one.is_at_peak))
    }

    #[test]
    fn process_with_the_most_memory_at_the_peak_is_named() {
        let mut run = run();
        run.exits(3.0, CHILD).reaped(4.0, MAIN, usage(1.0, 0)).ends(4.0, |_| {});
        assert_eq!(shown(&run.summary()), Some((11, "cc1", 300, 2.0, true)));
    }

    #[test]
    fn high_water_mark_of_a_reaped_process_names_the_process_of_the_highest_sample() {
        let mut run = run();
        // A compiler that no sample saw: `make` has reaped it.
        run.exits(3.0, CHILD).reaped(4.0, MAIN, usage(1.0, 900 * MIB)).ends(4.0, |_| {});
        assert_eq!(shown(&run.summary()), Some((11, "cc1", 300, 2.0, false)));
    }

    #[test]
    fn spike_between_two_samples_is_of_the_process_whose_mark_it_is() {
        let mut run = run();
        run.sample(3.5, |tick| {
            memory(tick, CHILD, 20 * MIB, 700 * MIB, Some(20 * MIB));
        });
        run.exits(4.0, CHILD).reaped(4.0, MAIN, usage(1.0, 700 * MIB)).ends(4.0, |_| {});
        assert_eq!(shown(&run.summary()), Some((11, "cc1", 700, 3.5, true)));
    }

    #[test]
    fn without_shares_it_is_the_largest_resident_process() {
        let mut run = FakeRun::new();
        run.starts(0.0, MAIN, "make").starts_under(0.0, CHILD, MAIN.pid, "cc1");
        run.sample(1.0, |tick| {
            memory(tick, MAIN, 10 * MIB, 10 * MIB, None);
            memory(tick, CHILD, 30 * MIB, 30 * MIB, None);
        });
        run.exits(2.0, CHILD).reaped(2.0, MAIN, usage(1.0, 0)).ends(2.0, |_| {});
        assert_eq!(shown(&run.summary()), Some((11, "cc1", 30, 1.0, true)));
    }
}
