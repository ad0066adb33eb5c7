//! The peak and the mean of memory, with upper bounds.

use super::super::accumulate::Accumulator;
use super::super::curve::Peak;
use super::super::figure::{Figure, Method};
use super::{NO_END, NOT_SEEN, SHORT, is_attached, missing, not_sampled, reaped};

const UNSEEN: &str =
    "processes may have started and exited between two ticks, and their sizes add up";

/// The basis of the mean, which is that of the peak: resident memory, each shared page once.
pub(in crate::summary) const SHARED_COUNTED_ONCE: &str =
    "resident memory over time: the sum in smaps_rollup, or the largest process if that is more";

const SHARED_MORE_THAN_ONCE: &str = "shared pages are counted for each process that maps them";

const ENDED: &str = "too short to sample: ru_maxrss may be the size of the process before exec";

const HUGE_PAGES: &str = "huge pages may have been used between two ticks: the kernel keeps no \
                          high-water mark of them, and how many there are is not known";

/// The upper bound of memory in huge pages of any process; `None` when that is not known.
///
/// The kernel keeps no high-water mark of them. The machine's number of huge pages bounds them.
pub(in crate::summary) fn huge_pages_bound(run: &Accumulator) -> Option<f64> {
    let was_used = run.tree.combined.hugetlb.value > Some(0.0);
    match run.node.hugetlb.value {
        Some(pool) => Some(pool),
        None => (!was_used).then_some(0.0),
    }
}

/// Peak memory of the tree.
///
/// Lower bound: the largest sum of proportional shares, and the largest single process. Upper
/// bound: the largest sizes that processes alive together ever had.
pub(super) fn peak(run: &Accumulator) -> Figure {
    let tree = &run.tree;
    let mut lower = tree.largest;
    let exits = [command_exit(run), others_exit(run)].into_iter().flatten();
    exits.chain([tree.combined.pss]).for_each(|peak| lower.max_with(peak));
    let alone = tree.total <= 1;
    let source = match (is_attached(run), alone) {
        (true, _) => "smaps_rollup, VmHWM since weigh attached",
        (false, true) => "VmHWM, ru_maxrss",
        (false, false) => "smaps_rollup, VmHWM, ru_maxrss",
    };
    let Some(known) = lower.value else {
        // What `wait4` reports may be from before exec: an upper bound.
        let upper = tree.main_maxrss.value.filter(|_| alone);
        let reason = if upper.is_some() { ENDED } else { missing(run, NOT_SEEN) };
        return Figure { upper, ..Figure::unknown(source, reason) };
    };
    // Shares of another user's processes cannot be read: the sum of their sizes is above the true
    // value, and the largest of them is far below it.
    if let (true, Some(sum)) = (is_sum_of_resident(run), tree.combined.rss.value) {
        let source = "/proc/PID/stat rss, summed";
        let figure = Figure::between(sum.max(known), Method::Estimated, known, None, source);
        return figure.at(tree.combined.rss.at).because(SHARED_MORE_THAN_ONCE);
    }
    let upper = upper_bound(run).map(|upper| upper.max(known));
    let method = match upper {
        Some(upper) if alone && upper == known => Method::Exact,
        _ => Method::Sampled,
    };
    let figure = Figure::between(known, method, known, upper, source).when(&lower);
    match upper {
        Some(_) => figure,
        None => figure.because(why_no_upper_bound(run)),
    }
}

/// Whether the shares of several processes cannot be read, and their sizes are summed instead.
fn is_sum_of_resident(run: &Accumulator) -> bool {
    run.tree.combined.pss.value.is_none() && run.tree.total > 1
}

/// The size with which the command's process was reaped, if that is the command's.
fn command_exit(run: &Accumulator) -> Option<Peak> {
    let peak = run.tree.main_maxrss;
    run.account()?.after_exec(peak.value? as u64).map(|_| peak)
}

/// The largest size with which another process was reaped, if it is not that of a `weigh mark` or
/// `weigh phase` that it has reaped.
fn others_exit(run: &Accumulator) -> Option<Peak> {
    let peak = run.tree.others_maxrss;
    if !run.had_helpers {
        return Some(peak);
    }
    run.account()?.after_exec(peak.value? as u64).map(|_| peak)
}

fn why_no_upper_bound(run: &Accumulator) -> &'static str {
    const FOLLOWED: &str = "spikes between two samples may be missed: VmHWM may be from \
                            before the attach";
    match (run.end.is_none(), is_attached(run)) {
        (false, false) if huge_pages_bound(run).is_none() => HUGE_PAGES,
        (true, _) => NO_END,
        (false, true) => FOLLOWED,
        (false, false) => UNSEEN,
    }
}

/// The upper bound of the peak, when that is known.
fn upper_bound(run: &Accumulator) -> Option<f64> {
    // Processes that were never sampled, or were auto-reaped, may have had any size.
    if run.account().is_none() || run.some_unseen() || run.lost_children() == Some(true) {
        return None;
    }
    Some(run.tree.upper_bound(reaped(run).largest_rss_bytes as f64)? + huge_pages_bound(run)?)
}

/// Memory over time, on the same basis as its peak.
pub(super) fn mean(run: &Accumulator) -> Figure {
    let (tree, duration) = (&run.tree, run.duration());
    if let (true, Some(mean)) = (is_sum_of_resident(run), tree.mean_rss.until(duration)) {
        let source = "/proc/PID/stat rss, summed, over time";
        let figure = Figure::between(mean, Method::Estimated, 0.0, None, source);
        return figure.because(SHARED_MORE_THAN_ONCE);
    }
    let source = match tree.total <= 1 {
        true => "resident memory over time: /proc/PID/stat rss",
        false => SHARED_COUNTED_ONCE,
    };
    match tree.mean.until(duration) {
        Some(mean) => {
            Figure::between(mean, Method::Sampled, 0.0, upper_bound(run), source).because(SHORT)
        }
        None => Figure::unknown(source, missing(run, not_sampled(run))),
    }
}
