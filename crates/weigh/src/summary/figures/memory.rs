//! The peak and the mean of memory, with what they are certainly not above.

use super::super::accumulate::Accumulator;
use super::super::curve::Peak;
use super::super::figure::{Figure, Method};
use super::{NO_END, NOT_SEEN, SHORT, is_followed, missing, reaped};

const UNSEEN: &str = "processes may have come and gone between two ticks, and their sizes add up";

const ENDED: &str = "it ended before its memory was looked at; what is known of its end is also \
                     what it was before it became the command";

/// The most memory the tree had at once.
///
/// Not below: the largest sum of proportional shares, nor the largest single
/// process. Not above: the largest sizes that processes alive together ever had.
pub(super) fn peak(run: &Accumulator) -> Figure {
    let tree = &run.tree;
    let mut lower = tree.largest;
    for peak in [tree.combined.pss, command_exit(run).unwrap_or_default()] {
        if let Some(value) = peak.value {
            lower.see(value, peak.at);
        }
    }
    let alone = tree.total <= 1;
    let source = match (is_followed(run), alone) {
        (true, _) => "smaps_rollup, VmHWM since weigh came",
        (false, true) => "VmHWM, ru_maxrss",
        (false, false) => "smaps_rollup, VmHWM, ru_maxrss",
    };
    let Some(known) = lower.value else {
        // What wait4 says may be from before exec: at most that.
        let upper = tree.main_exit.value.filter(|_| alone);
        let reason = if upper.is_some() { ENDED } else { missing(run, NOT_SEEN) };
        return Figure { upper, ..Figure::unknown(source, reason) };
    };
    // Shares of somebody else's processes cannot be read: their sizes add up to something above
    // the truth, and the largest of them is far below it.
    if let (None, Some(sum), false) = (tree.combined.pss.value, tree.combined.rss.value, alone) {
        let source = "/proc/PID/stat rss, summed";
        let figure = Figure::between(sum.max(known), Method::Estimated, known, None, source);
        return figure.at(tree.combined.rss.at).because("shared pages count for each who has them");
    }
    let upper = ceiling(run).map(|upper| upper.max(known));
    let method = match upper {
        Some(upper) if alone && upper == known => Method::Exact,
        _ => Method::Sampled,
    };
    let figure = Figure::between(known, method, known, upper, source).at(lower.at);
    match upper {
        Some(_) => figure,
        None => figure.because(why_no_ceiling(run)),
    }
}

/// The size with which the command's process was reaped, if that is the command's.
fn command_exit(run: &Accumulator) -> Option<Peak> {
    let peak = run.tree.main_exit;
    run.account.as_ref()?.after_exec(peak.value? as u64).map(|_| peak)
}

fn why_no_ceiling(run: &Accumulator) -> &'static str {
    const FOLLOWED: &str = "what was more between two looks may not have been seen: the kernel's \
                            own mark may be from before weigh came";
    match (run.end.is_none(), is_followed(run)) {
        (true, _) => NO_END,
        (false, true) => FOLLOWED,
        (false, false) => UNSEEN,
    }
}

/// What the peak is certainly not above, when that is known.
fn ceiling(run: &Accumulator) -> Option<f64> {
    // Those who came and went unseen, or whom nobody waited for, may have had any size.
    if run.account.is_none() || run.some_unseen() || run.lost_children() == Some(true) {
        return None;
    }
    run.tree.ceiling(reaped(run).largest_rss_bytes as f64)
}

pub(super) fn mean(run: &Accumulator) -> Figure {
    let source = "/proc/PID/smaps_rollup, or stat, over time";
    match run.tree.mean.until(run.duration()) {
        Some(mean) => {
            Figure::between(mean, Method::Sampled, 0.0, ceiling(run), source).because(SHORT)
        }
        None => Figure::unknown(source, missing(run, NOT_SEEN)),
    }
}
