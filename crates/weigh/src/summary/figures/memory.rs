//! What is known of the memory of a run: the evidence for its peak and its mean.

use super::super::accumulate::Accumulator;
use super::super::curve::Peak;
use super::super::evidence::{MemoryBounds, MemoryEvidence, MemoryMeans, MemoryOwner};
use super::super::figure::Figure;
use super::{NO_PROCESS_SAMPLED, cgroup, is_attached, missing, not_sampled, reaped};

/// Peak memory.
pub(super) fn peak(run: &Accumulator) -> Figure {
    evidence(run).peak()
}

/// Memory over time, on the same basis as its peak.
pub(super) fn mean(run: &Accumulator) -> Figure {
    let (tree, duration) = (&run.tree, run.duration());
    evidence(run).mean(&MemoryMeans {
        cgroup: cgroup::memory_mean(run),
        shared_once: tree.mean.until(duration),
        rss_sum: tree.mean_rss.until(duration),
        why_nothing: missing(run, not_sampled(run)),
    })
}

fn evidence(run: &Accumulator) -> MemoryEvidence<'_> {
    let tree = &run.tree;
    let owner = if is_attached(run) { MemoryOwner::AttachedRun } else { MemoryOwner::Run };
    MemoryEvidence {
        owner,
        is_one_process: tree.total <= 1,
        largest_process: tree.largest_process,
        maxrss: [command_maxrss(run), others_maxrss(run)].map(Option::unwrap_or_default),
        unproven_maxrss: tree.main_maxrss.value,
        pss_sum: tree.combined.pss,
        rss_sum: tree.combined.rss,
        bounds: bounds(run, tree.upper_bound(reaped(run).largest_rss_bytes as f64)),
        cgroup: cgroup::memory(run),
        why_nothing: missing(run, NO_PROCESS_SAMPLED),
    }
}

/// What bounds the memory from above, with the sum of the high-water marks.
pub(in crate::summary) fn bounds(run: &Accumulator, high_water_sum: Option<f64>) -> MemoryBounds {
    MemoryBounds {
        high_water_sum,
        command: None,
        huge_pages: huge_pages(run),
        // Processes that were never sampled, or were auto-reaped, may have had any size.
        is_complete: run.final_counters().is_some()
            && !run.may_miss_processes()
            && run.children_were_auto_reaped() != Some(true),
        has_end: run.end.is_some(),
    }
}

/// The upper bound of memory in huge pages of any process; `None` when that is not known.
///
/// The kernel keeps no high-water mark of them. The machine's number of huge pages bounds them.
fn huge_pages(run: &Accumulator) -> Option<f64> {
    let was_used = run.tree.combined.hugetlb.value > Some(0.0);
    match run.node.hugetlb.value {
        Some(pool) => Some(pool),
        None => (!was_used).then_some(0.0),
    }
}

/// The size with which the command's process was reaped, if that is the command's.
fn command_maxrss(run: &Accumulator) -> Option<Peak> {
    let peak = run.tree.main_maxrss;
    run.final_counters()?.proven_maxrss(peak.value? as u64).map(|_| peak)
}

/// The largest size with which another process was reaped, if it is not that of a `weigh mark` or
/// `weigh phase` that it has reaped.
fn others_maxrss(run: &Accumulator) -> Option<Peak> {
    let peak = run.tree.others_maxrss;
    if !run.had_helpers {
        return Some(peak);
    }
    run.final_counters()?.proven_maxrss(peak.value? as u64).map(|_| peak)
}
