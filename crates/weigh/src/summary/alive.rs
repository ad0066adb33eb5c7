//! Sums over several processes at one moment, and their peaks.

use super::curve::Peak;
use super::evidence::pss_or_largest_rss;
use crate::model::live::ProcessValues;

/// Peaks of one part of the tree.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct GaugePeaks {
    /// Resident memory, shared pages counted in full.
    pub rss: Peak,
    /// Proportional memory.
    pub pss: Peak,
    /// Private memory.
    pub uss: Peak,
    /// Proportional memory without page cache.
    pub without_cache: Peak,
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
    /// The same, of each process at most its resident memory now: its PSS may be older.
    pss_capped: Option<f64>,
    /// Resident memory of the largest process.
    largest_process: Option<f64>,
    /// CPU time with that of their reaped children.
    pub cpu: Option<f64>,
    uss: Option<f64>,
    without_cache: Option<f64>,
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
    pub(super) fn add(&mut self, process: &ProcessValues) {
        add(&mut self.rss, process.memory.rss);
        add(&mut self.pss_capped, process.pss_capped());
        if let Some(rss) = process.memory.rss {
            self.largest_process = Some(self.largest_process.unwrap_or(0.0).max(rss as f64));
        }
        if let Some(cpu) = process.cpu_with_children() {
            self.cpu = Some(self.cpu.unwrap_or(0.0) + cpu);
        }
        // A zombie has no memory: what it had before its exit is only carried forward.
        if process.memory.rss != Some(0) {
            add(&mut self.pss, process.memory.pss);
            add(&mut self.uss, process.memory.uss);
            add(&mut self.without_cache, process.without_cache_capped());
            add(&mut self.swap, process.memory.swap);
            add(&mut self.hugetlb, process.memory.hugetlb);
        }
        add(&mut self.threads, process.state.threads);
        add(&mut self.files, process.state.files_open);
    }

    /// Resident memory with each shared page counted once, as far as that is known. The peak of a
    /// run has the same basis.
    pub(super) fn pss_or_largest_rss(&self) -> Option<f64> {
        self.largest_process.map(|largest| pss_or_largest_rss(self.pss_capped, largest))
    }

    /// Raises the peaks of a phase. A carried-forward PSS is capped by the current RSS, because it may
    /// be from before the phase.
    pub(super) fn raise_peaks_of_parts(mut self, gauge_peaks: &mut GaugePeaks, at: f64) {
        self.pss = self.pss_capped;
        self.raise_gauge_peaks(gauge_peaks, at);
    }

    /// Raises the peaks of a part of the tree.
    pub(super) fn raise_gauge_peaks(self, gauge_peaks: &mut GaugePeaks, at: f64) {
        // A running process has memory: zero is what a zombie has.
        let of_living = |sum: Option<f64>| sum.filter(|_| self.rss != Some(0.0));
        for (sum, peak) in [
            (of_living(self.rss), &mut gauge_peaks.rss),
            (of_living(self.pss), &mut gauge_peaks.pss),
            (of_living(self.uss), &mut gauge_peaks.uss),
            (of_living(self.without_cache), &mut gauge_peaks.without_cache),
            (self.swap, &mut gauge_peaks.swap),
            (self.hugetlb, &mut gauge_peaks.hugetlb),
            (self.threads, &mut gauge_peaks.threads),
            (self.files, &mut gauge_peaks.files),
        ] {
            if let Some(sum) = sum {
                peak.add(sum, at);
            }
        }
    }
}
