//! One process that is alive, and sums over several at one moment.

use super::curve::Peak;
use crate::model::live::LiveProcess;

/// What was last read of a process that is alive.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TrackedProcess {
    /// Its values, carried forward.
    pub(super) last: LiveProcess,
    /// When its high-water mark of memory was last read, in seconds since the run began.
    pub(super) high_water_read: Option<f64>,
}

/// Whether a high-water mark equals the sample, within the error of two files that are read one
/// after the other.
pub(super) fn is_near(mark: u64, sampled: u64) -> bool {
    mark <= sampled.saturating_add(sampled / 64)
}

impl TrackedProcess {
    /// Its own CPU time.
    pub(super) fn own_cpu(&self) -> Option<f64> {
        self.last.own_cpu()
    }

    /// The same in nanoseconds, where the kernel has it: clock ticks are truncated.
    pub(super) fn own_cpu_finer(&self) -> Option<f64> {
        self.own_cpu().map(|ticks| self.last.cpu.run_time.map_or(ticks, |ran| ran.max(ticks)))
    }

    /// I/O with that of its reaped children: bytes read and written, read and write calls, bytes
    /// from and to storage.
    pub(super) fn all_io(&self) -> Option<[f64; 6]> {
        let io = &self.last.io;
        let all = [
            io.read?,
            io.written?,
            io.read_calls?,
            io.write_calls?,
            io.storage_read?,
            io.storage_written?,
        ];
        Some(all.map(|count| count as f64))
    }

    /// With its reaped children.
    pub(super) fn cpu(&self) -> Option<f64> {
        Some(self.own_cpu()? + self.last.children_cpu()?)
    }

    /// The upper bound of this process so far, without huge pages: those have no high-water mark.
    pub(super) fn upper_bound(&self) -> Option<u64> {
        let hugetlb = self.last.memory.hugetlb.unwrap_or(0);
        self.last.memory.peak.max(self.last.memory.rss.map(|rss| rss.saturating_sub(hugetlb)))
    }

    /// The largest known size of this process so far.
    pub(super) fn largest(&self) -> Option<u64> {
        self.last.memory.peak.max(self.last.memory.rss)
    }

    /// Whether its peak so far is its current size.
    pub(super) fn is_at_its_peak(&self) -> bool {
        let now = self.last.memory.rss.unwrap_or(0);
        self.last.memory.peak.is_none_or(|peak| is_near(peak, now))
    }

    /// Its resident memory.
    pub(super) fn resident(&self) -> Option<u64> {
        self.last.memory.rss
    }

    /// Its proportional share of memory, if it was ever sampled.
    ///
    /// The sample may be old; a share is never above the current resident memory.
    fn share(&self) -> Option<u64> {
        self.last.memory.pss.map(|pss| self.last.memory.rss.map_or(pss, |rss| pss.min(rss)))
    }
}

/// Peaks of one part of the tree.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PeakLevels {
    /// Resident memory, shared pages counted in full.
    pub rss: Peak,
    /// Proportional memory.
    pub pss: Peak,
    /// Private memory.
    pub uss: Peak,
    /// Swapped memory.
    pub swap: Peak,
    /// Huge pages, shared ones counted in full.
    pub hugetlb: Peak,
    /// Threads.
    pub threads: Peak,
    /// Open files.
    pub files: Peak,
}

/// Sums over one part of the tree at one tick; `None` where no process had a value.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TreeSums {
    pub(super) rss: Option<f64>,
    pub(super) pss: Option<f64>,
    share: Option<f64>,
    /// Resident memory of the largest process.
    largest: Option<f64>,
    /// CPU time with that of their reaped children.
    pub cpu: Option<f64>,
    uss: Option<f64>,
    swap: Option<f64>,
    hugetlb: Option<f64>,
    threads: Option<f64>,
    files: Option<f64>,
}

/// Adds a value to a sum, if there is one.
pub(super) fn add(sum: &mut Option<f64>, value: Option<u64>) {
    if let Some(value) = value {
        *sum = Some(sum.unwrap_or(0.0) + value as f64);
    }
}

impl TreeSums {
    /// Adds a process to the sums.
    pub(super) fn add(&mut self, process: &TrackedProcess) {
        add(&mut self.rss, process.last.memory.rss);
        add(&mut self.share, process.share());
        if let Some(rss) = process.last.memory.rss {
            self.largest = Some(self.largest.unwrap_or(0.0).max(rss as f64));
        }
        if let Some(cpu) = process.cpu() {
            self.cpu = Some(self.cpu.unwrap_or(0.0) + cpu);
        }
        add(&mut self.pss, process.last.memory.pss);
        add(&mut self.uss, process.last.memory.uss);
        add(&mut self.swap, process.last.memory.swap);
        add(&mut self.hugetlb, process.last.memory.hugetlb);
        add(&mut self.threads, process.last.state.threads);
        add(&mut self.files, process.last.state.files_open);
    }

    /// Resident memory with each shared page counted once, as far as it is known: the sum of the
    /// proportional shares, and at least the largest process. The peak of a run has the same basis.
    pub(super) fn shared_counted_once(&self) -> Option<f64> {
        self.largest.map(|largest| largest.max(self.share.unwrap_or(0.0)))
    }

    /// Peaks of a part of the run: earlier samples do not count.
    pub(super) fn raise_part_peaks(mut self, levels: &mut PeakLevels, at: f64) {
        self.pss = self.share;
        self.into(levels, at);
    }

    /// Peaks of a part of the tree.
    pub(super) fn into(self, levels: &mut PeakLevels, at: f64) {
        // A running process has memory: zero is what a zombie has.
        let of_living = |sum: Option<f64>| sum.filter(|_| self.rss != Some(0.0));
        for (sum, peak) in [
            (of_living(self.rss), &mut levels.rss),
            (of_living(self.pss), &mut levels.pss),
            (of_living(self.uss), &mut levels.uss),
            (self.swap, &mut levels.swap),
            (self.hugetlb, &mut levels.hugetlb),
            (self.threads, &mut levels.threads),
            (self.files, &mut levels.files),
        ] {
            if let Some(sum) = sum {
                peak.add(sum, at);
            }
        }
    }
}
