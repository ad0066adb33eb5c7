//! The processes on one GPU, by the driver's pids, and what they have of it.
//!
//! What surprised us: the driver reports samples only of processes that did something. A listed
//! process without a sample was idle, but only once a sample period of the driver is over; until
//! then nothing is known of any. And a sample is the mean since the time it is requested from, so
//! that time advances while the GPU is idle, too.
//!
//! Samples have the time of day, or none that makes sense (Syllo/nvtop, issue 110). When the clock
//! is set back, none is newer than the last. So while the GPU is busy and no process is, nothing is
//! reported; after a while of that all samples are requested: if they advance, they are new ones.

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::super::poll::{GpuProcessRow, PolledPid};
use super::sample_integrator::{CLOCK_STEP_AFTER, MAX_PERIOD};
use crate::catalog::metrics::GpuProcessUsage;
use crate::host::nvml::{NvmlProcess, ProcessSample};
use crate::model::Name;

/// Above this, some process keeps the GPU busy. Less is not reported of a process.
const BUSY: f64 = 0.05;

/// The processes of one GPU; the list is made anew at each poll.
#[derive(Debug, Default)]
pub(super) struct NvidiaProcesses {
    each: Vec<ProcessSums>,
    /// The time of the newest sample, on the driver's clock; nothing before the first poll.
    newest: Option<u64>,
    /// When the utilization of all processes was last known.
    known_at: Duration,
    /// Since when the GPU is busy and no process is.
    unattributed_since: Option<Duration>,
    /// Whether all samples are requested at this poll.
    resyncs: bool,
    /// The newest of all samples when they were last requested.
    resync_mark: Option<u64>,
}

/// The GPU itself at a poll.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DeviceLoad {
    /// When the driver last sampled it, if that is new at this poll.
    pub(super) newest: Option<u64>,
    pub(super) utilization: Option<f64>,
}

/// One process, and its samples of this poll.
#[derive(Debug, Default)]
struct ProcessSums {
    pid: u32,
    share: GpuProcessUsage,
    sums: [u64; 4],
    count: u32,
    /// Whether one of its samples is invalid.
    has_invalid: bool,
}

impl NvidiaProcesses {
    /// Begins a poll.
    pub(super) fn clear(&mut self) {
        self.each.clear();
    }

    /// Adds compute or graphics processes. One that is both is listed twice, with all its memory
    /// each time.
    pub(super) fn add(&mut self, listed: impl Iterator<Item = NvmlProcess>) {
        for NvmlProcess { pid, memory } in listed {
            match self.each.iter_mut().find(|process| process.pid == pid) {
                Some(process) => process.share.memory = process.share.memory.max(memory),
                None => {
                    let share = GpuProcessUsage { memory, ..GpuProcessUsage::default() };
                    self.each.push(ProcessSums { pid, share, ..ProcessSums::default() });
                }
            }
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.each.len() as u64
    }

    /// The time after which samples are requested at this poll.
    pub(super) fn after(&mut self, at: Duration) -> u64 {
        let since = self.unattributed_since;
        self.resyncs = since.is_some_and(|since| at.saturating_sub(since) >= CLOCK_STEP_AFTER);
        if self.resyncs { 0 } else { self.newest.unwrap_or(0) }
    }

    /// Sets the utilization of each process: the mean of its samples of this poll.
    ///
    /// Drivers also give samples of pid 0, of processes that exited, above 100 %, without a time,
    /// and old ones again.
    pub(super) fn push_samples(
        &mut self,
        at: Duration,
        load: DeviceLoad,
        samples: impl Iterator<Item = ProcessSample>,
    ) {
        let samples = samples.filter(|sample| sample.pid != 0);
        if self.resyncs {
            self.resync_after_clock_step(samples);
            return;
        }
        // What the driver has buffered at the first poll was before it.
        let (is_first, after) = (self.newest.is_none(), self.newest.unwrap_or(0));
        let elapsed = at.saturating_sub(self.known_at);
        let mut is_period_over =
            load.newest > Some(after) || elapsed >= Duration::from_micros(MAX_PERIOD);
        let mut newest = load.newest.unwrap_or(0).max(after);
        let mut is_unattributed = load.utilization > Some(BUSY);
        for sample in samples.filter(|sample| sample.at > after) {
            let is_invalid = sample.is_invalid();
            is_unattributed &= is_invalid;
            let Some(process) = self.each.iter_mut().find(|process| process.pid == sample.pid)
            else {
                continue;
            };
            if !is_invalid {
                newest = newest.max(sample.at);
                is_period_over = true;
            }
            process.push(&sample, is_invalid);
        }
        self.newest = Some(newest);
        is_unattributed &= !self.each.is_empty();
        self.unattributed_since = is_unattributed.then(|| self.unattributed_since.unwrap_or(at));
        is_period_over &= !is_unattributed;
        if is_first || is_period_over {
            self.known_at = at;
        }
        if is_period_over && !is_first {
            self.each.iter_mut().for_each(ProcessSums::set_share);
        }
    }

    /// Compares all samples that the driver has with those of the last time. Old ones stay as they
    /// are; those of a clock that was set back advance, and from there on are new.
    fn resync_after_clock_step(&mut self, samples: impl Iterator<Item = ProcessSample>) {
        let is_listed = |pid: u32| self.each.iter().any(|process| process.pid == pid);
        let old = samples.filter(|sample| Some(sample.at) <= self.newest && !sample.is_invalid());
        let newest = old.filter(|sample| is_listed(sample.pid)).map(|sample| sample.at).max();
        match self.resync_mark.take() {
            Some(mark) if newest > Some(mark) => {
                (self.newest, self.unattributed_since) = (Some(mark), None);
            }
            _ => self.resync_mark = newest,
        }
    }

    /// Sets the peak memory of each process.
    pub(super) fn set_peaks(&mut self, mut peak: impl FnMut(u32) -> Option<u64>) {
        for process in &mut self.each {
            process.share.memory_peak = peak(process.pid);
        }
    }

    /// A row for each process.
    pub(super) fn rows(&self, gpu: Name) -> impl Iterator<Item = GpuProcessRow> {
        let row = move |process: &ProcessSums| {
            GpuProcessRow::new(gpu, PolledPid::Driver(process.pid, None), process.share)
        };
        self.each.iter().map(row)
    }
}

impl ProcessSample {
    fn is_invalid(&self) -> bool {
        self.shares.iter().any(|share| *share > 100)
    }
}

impl ProcessSums {
    fn push(&mut self, sample: &ProcessSample, is_invalid: bool) {
        if is_invalid {
            self.has_invalid = true;
            return;
        }
        self.count += 1;
        for (sum, share) in self.sums.iter_mut().zip(sample.shares) {
            *sum += u64::from(share);
        }
    }

    /// Sets its utilization; a process without samples was idle.
    fn set_share(&mut self) {
        if self.count == 0 && self.has_invalid {
            return;
        }
        let mean = |sum: u64| Some(sum as f64 / f64::from(self.count.max(1)) / 100.0);
        let [sm, memory, encoder, decoder] = self.sums.map(mean);
        self.share.utilization = sm;
        self.share.memory_utilization = memory;
        self.share.encoder = encoder;
        self.share.decoder = decoder;
    }
}
