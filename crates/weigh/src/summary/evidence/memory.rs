//! Which evidence of memory is believed: one decision for a run, an attached run, a phase and the
//! command of a phase.
//!
//! What is known of the processes comes first. *Known* is the largest of: the largest sum of PSS at
//! one tick, the largest single process (VmHWM, or RSS where that is more), and `ru_maxrss` of
//! reaped processes where it is their program's. In this order:
//!
//! | evidence | value | method | lower bound | upper bound |
//! |---|---|---|---|---|
//! | `ru_maxrss` that may be from before exec, of a run of one process | null | | none | `ru_maxrss` |
//! | the same of the command of a phase | `ru_maxrss` | sampled | 0 | as below |
//! | nothing | null | | | |
//! | a run of several processes, none with a PSS | the largest sum of RSS, at least *known* | estimated | *known* | none |
//! | *known*, one process, and the upper bound is the same | *known* | exact | *known* | *known* |
//! | *known* | *known* | sampled | *known* | as below |
//!
//! Then a cgroup, unless its processes are known to have had more: they may have left it.
//!
//! | evidence | value | method | lower bound | upper bound |
//! |---|---|---|---|---|
//! | `memory.peak` that rose during the run, read after the end | it | exact | the same | the same, at least *known* |
//! | the same, last read before the end | it | sampled | the same | none |
//! | the largest `memory.current` of an existing cgroup | it | sampled | the same | `memory.peak` from before weigh attached, at least *known*; none if it was last read before the end |
//!
//! Upper bound: the largest sum of the high-water marks of processes that may have been alive
//! together, and all huge pages, which have no such mark. For the command of a phase also the
//! number of its processes times the largest of them. There is none, and the figure says why, where
//! a process may have been missed or huge pages cannot be bounded.
//!
//! The mean has the same basis: `memory.current` of an existing cgroup; the sum of RSS of several
//! processes without a PSS (estimated); else the sum of PSS, at least the largest process. Its lower
//! bound is 0 and its upper bound that of the peak of the processes.
//!
//! Where exits are lost from the recording, the lower bound is the largest process alone
//! (`summary::lossy`): a sum may be of processes that were never alive together.

use crate::summary::curve::Peak;
use crate::summary::figure::{Figure, Method};
use crate::summary::figures::{NO_END, SHORT};

const PEAK: &str = "cgroup memory.peak (v1: memory.max_usage_in_bytes), page cache included";
const CURRENT: &str = "cgroup memory.current (v1: memory.usage_in_bytes), page cache included";

/// The basis of the mean, which is that of the peak: resident memory, each shared page once.
const SHARED_COUNTED_ONCE: &str =
    "resident memory over time: the sum in smaps_rollup, or the largest process if that is more";

const MISSED: &str =
    "processes that started and exited between two ticks may have added to the peak";
const SHARED_MORE_THAN_ONCE: &str = "shared pages are counted for each process that maps them";
const BEFORE_EXEC: &str =
    "too short to sample: ru_maxrss may be the size of the process before exec";
const HUGE_PAGES: &str = "huge pages may have been used between two ticks: the kernel keeps no \
                          high-water mark of them, and how many there are is not known";
const BEFORE_ATTACH: &str =
    "spikes between two samples may be missed: VmHWM may be from before the attach";

/// Resident memory with each shared page counted once, as far as that is known: the sum of PSS, and
/// at least the largest process. A PSS may have been read while others mapped the same pages.
pub(in crate::summary) fn pss_or_largest_rss<T: PartialOrd>(
    pss_sum: Option<T>,
    largest_process: T,
) -> T {
    pss_sum.filter(|sum| *sum > largest_process).unwrap_or(largest_process)
}

/// Whose memory it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::summary) enum MemoryOwner {
    /// A command that weigh has started, with its descendants.
    Run,
    /// Processes that weigh has attached to.
    AttachedRun,
    /// A phase: the whole run while it lasts, or its command.
    Phase {
        /// Whether the command was reaped.
        has_maxrss: bool,
    },
}

/// What bounds the memory from above.
#[derive(Debug, Clone, Copy)]
pub(in crate::summary) struct MemoryBounds {
    /// The largest sum of high-water marks of processes that may have been alive together.
    pub(in crate::summary) high_water_sum: Option<f64>,
    /// The number of processes of a phase's command, and its `ru_maxrss`.
    pub(in crate::summary) command: Option<(u64, f64)>,
    /// Huge pages: all of the machine, or 0 where none were used; `None` where that is not known.
    pub(in crate::summary) huge_pages: Option<f64>,
    /// Whether each process was sampled and reaped, as far as its size matters.
    pub(in crate::summary) is_complete: bool,
    /// Whether the end of the run is recorded.
    pub(in crate::summary) has_end: bool,
}

impl MemoryBounds {
    /// The upper bound; no single process had more than `known`.
    fn most(&self, known: f64) -> Option<f64> {
        if !self.is_complete {
            return None;
        }
        // No reaped process was larger, and there were not more of them.
        let command =
            self.command.map(|(processes, size)| processes.max(1) as f64 * size.max(known));
        let bounds = [self.high_water_sum, command].into_iter().flatten();
        Some(bounds.reduce(f64::min)? + self.huge_pages?)
    }

    fn why_none(&self, owner: MemoryOwner) -> &'static str {
        match owner {
            MemoryOwner::Phase { .. } => MISSED,
            _ if !self.has_end => NO_END,
            MemoryOwner::AttachedRun => BEFORE_ATTACH,
            MemoryOwner::Run if self.huge_pages.is_none() => HUGE_PAGES,
            MemoryOwner::Run => MISSED,
        }
    }
}

/// What the kernel counted for a cgroup that has all of the processes, page cache included.
#[derive(Debug, Clone, Copy)]
pub(in crate::summary) enum CgroupMemory<'a> {
    /// `memory.peak`, which rose during the run.
    Peak {
        peak: Peak,
        /// Why it may not have been read after the end.
        not_final: Option<&'a str>,
    },
    /// The largest sample of `memory.current`, where `memory.peak` did not rise.
    Current {
        peak: Peak,
        /// `memory.peak`, from before weigh attached.
        mark_before: Option<f64>,
        /// Why it may not have been read after the end.
        not_final: Option<&'a str>,
    },
}

impl CgroupMemory<'_> {
    /// The figure of the cgroup, where its processes are known to have had so much together.
    fn figure(&self, known: f64) -> Option<Figure> {
        match *self {
            CgroupMemory::Peak { peak, not_final } => {
                let value = peak.value?;
                let figure = match not_final {
                    None => {
                        Figure::between(value, Method::Exact, value, Some(value.max(known)), PEAK)
                    }
                    Some(why) => Figure::sampled(value, PEAK).because(why),
                };
                Some(figure.at(peak.at))
            }
            CgroupMemory::Current { peak, mark_before, not_final } => {
                let value = peak.value?;
                let upper = mark_before.filter(|_| not_final.is_none());
                let upper = upper.map(|mark| mark.max(value).max(known));
                let figure = Figure::between(value, Method::Sampled, value, upper, CURRENT);
                let figure = figure.at(peak.at);
                Some(match upper {
                    Some(_) => figure,
                    None => figure.because(not_final.unwrap_or(SHORT)),
                })
            }
        }
    }
}

/// Memory over time.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::summary) struct MemoryMeans<'a> {
    /// `memory.current` of an existing cgroup.
    pub(in crate::summary) cgroup: Option<f64>,
    /// Resident memory, each shared page counted once.
    pub(in crate::summary) shared_once: Option<f64>,
    /// The same with shared pages counted for each process that maps them.
    pub(in crate::summary) rss_sum: Option<f64>,
    /// Why there is none of them, where that is so.
    pub(in crate::summary) why_nothing: &'a str,
}

/// What is known of the memory of a run or a phase.
#[derive(Debug, Clone, Copy)]
pub(in crate::summary) struct MemoryEvidence<'a> {
    pub(in crate::summary) owner: MemoryOwner,
    /// Whether it was one process, as far as that is known.
    pub(in crate::summary) is_one_process: bool,
    /// The largest single process, as sampled: by VmHWM, or by RSS where that is more.
    pub(in crate::summary) largest_process: Peak,
    /// `ru_maxrss` of reaped processes that is their program's.
    pub(in crate::summary) maxrss: [Peak; 2],
    /// `ru_maxrss` of the command, which may be from before exec.
    pub(in crate::summary) unproven_maxrss: Option<f64>,
    /// The largest sum of PSS at one tick.
    pub(in crate::summary) pss_sum: Peak,
    /// The largest sum of RSS at one tick, shared pages counted for each process.
    pub(in crate::summary) rss_sum: Peak,
    pub(in crate::summary) bounds: MemoryBounds,
    pub(in crate::summary) cgroup: Option<CgroupMemory<'a>>,
    /// Why nothing is known, where that is so.
    pub(in crate::summary) why_nothing: &'a str,
}

impl MemoryEvidence<'_> {
    /// The peak.
    pub(in crate::summary) fn peak(&self) -> Figure {
        /// Page cache that another process had read before is not charged to a cgroup: pages of the
        /// program itself, mostly.
        const UNCHARGED: f64 = (4u64 << 20) as f64;
        let processes = self.peak_of_processes();
        let known = processes.lower.unwrap_or(0.0);
        match self.cgroup.and_then(|cgroup| cgroup.figure(known)) {
            Some(cgroup) => {
                let charged = cgroup.value.unwrap_or(0.0);
                let is_more = known > charged + UNCHARGED.max(charged * 0.02);
                if is_more { processes } else { cgroup }
            }
            None => processes,
        }
    }

    /// The largest that one process or a sum of PSS is known to have been.
    fn known(&self) -> Peak {
        let mut known = self.largest_process;
        // A sum has a time, a high-water mark has not: of equal ones that with a time is taken.
        known.max_with(self.pss_sum);
        self.maxrss.into_iter().for_each(|peak| known.max_with(peak));
        known
    }

    fn peak_of_processes(&self) -> Figure {
        let (source, peak) = (self.source(), self.known());
        let Some(known) = peak.value else { return self.unproven(source) };
        // Shares of another user's processes cannot be read: the sum of their sizes is above the
        // true value, and the largest of them is far below it.
        if let (true, Some(sum)) = (self.has_no_pss(), self.rss_sum.value) {
            let source = "/proc/PID/stat rss, summed";
            let figure = Figure::between(sum.max(known), Method::Estimated, known, None, source);
            return figure.at(self.rss_sum.at).because(SHARED_MORE_THAN_ONCE);
        }
        self.bounded(known, known, source).when(&peak)
    }

    /// A value, its lower bound, and the upper bound or why there is none.
    fn bounded(&self, value: f64, known: f64, source: &str) -> Figure {
        let upper = self.bounds.most(known).map(|upper| upper.max(value));
        let is_exact = self.is_one_process && upper == Some(known);
        let method = if is_exact { Method::Exact } else { Method::Sampled };
        let figure = Figure::between(value, method, known, upper, source);
        match upper {
            Some(_) => figure,
            None => figure.because(self.bounds.why_none(self.owner)),
        }
    }

    /// Nothing was sampled: what `wait4` reports of the command may be from before exec.
    fn unproven(&self, source: &str) -> Figure {
        match (self.owner, self.unproven_maxrss) {
            (MemoryOwner::Phase { .. }, Some(size)) => {
                self.bounded(size, 0.0, source).when(&Peak::default())
            }
            (_, Some(size)) if self.is_one_process => {
                Figure { upper: Some(size), ..Figure::unknown(source, BEFORE_EXEC) }
            }
            _ => Figure::unknown(source, self.why_nothing),
        }
    }

    fn source(&self) -> &'static str {
        match (self.owner, self.is_one_process) {
            (MemoryOwner::AttachedRun, _) => "smaps_rollup, VmHWM since weigh attached",
            (MemoryOwner::Run, true) => "VmHWM, ru_maxrss",
            (MemoryOwner::Run, false) => "smaps_rollup, VmHWM, ru_maxrss",
            (MemoryOwner::Phase { has_maxrss: true }, _) => {
                "smaps_rollup, VmHWM, ru_maxrss of its command"
            }
            (MemoryOwner::Phase { has_maxrss: false }, _) => "smaps_rollup, VmHWM",
        }
    }

    fn is_phase(&self) -> bool {
        matches!(self.owner, MemoryOwner::Phase { .. })
    }

    /// Whether no PSS of several processes could be read, so that their RSS is summed instead.
    fn has_no_pss(&self) -> bool {
        self.pss_sum.value.is_none() && !self.is_one_process && !self.is_phase()
    }

    /// The mean over time, on the basis of the peak.
    pub(in crate::summary) fn mean(&self, means: &MemoryMeans<'_>) -> Figure {
        if let Some(mean) = means.cgroup {
            return Figure::between(mean, Method::Sampled, 0.0, None, CURRENT).because(SHORT);
        }
        if let (true, Some(mean)) = (self.has_no_pss(), means.rss_sum) {
            let source = "/proc/PID/stat rss, summed, over time";
            let figure = Figure::between(mean, Method::Estimated, 0.0, None, source);
            return figure.because(SHARED_MORE_THAN_ONCE);
        }
        let source = match self.is_one_process && !self.is_phase() {
            true => "resident memory over time: /proc/PID/stat rss",
            false => SHARED_COUNTED_ONCE,
        };
        let Some(mean) = means.shared_once else {
            return Figure::unknown(source, means.why_nothing);
        };
        let upper = self.peak_of_processes().upper.map(|upper| upper.max(mean));
        Figure::between(mean, Method::Sampled, 0.0, upper, source).because(SHORT)
    }
}

#[cfg(test)]
mod tests;
