//! The peak and the mean of memory of one phase, with upper bounds.

use super::figures::why_nothing;
use super::window::PhaseWindow;
use crate::summary::accumulate::Accumulator;
use crate::summary::curve::Peak;
use crate::summary::figure::{Figure, Method};
use crate::summary::figures::memory::{SHARED_COUNTED_ONCE, huge_pages_bound};
use crate::summary::figures::{SHORT, reaped};

const UNSEEN: &str =
    "processes may have started and exited between two ticks, and their sizes add up";

/// The size with which its command was reaped, and whether that is the command's: `ru_maxrss`
/// survives exec, and shows nothing that is below the size before it.
pub(super) fn reaped_size(window: &PhaseWindow) -> Option<(f64, bool)> {
    // The code until exec itself takes a few pages more.
    const A_FEW_PAGES: u64 = 256 << 10;
    let size = window.usage?.largest_rss_bytes;
    let before = window.account.map_or(0, |account| account.rss_before_exec_bytes + A_FEW_PAGES);
    Some((size as f64, size > before))
}

/// Peak memory: at least the largest sum of shares, and the largest process.
pub(super) fn peak(run: &Accumulator, window: &PhaseWindow) -> Figure {
    let extent = &window.extent;
    let mut lower = extent.largest;
    lower.max_with(extent.levels.pss);
    let reaped_size = reaped_size(window);
    let end = window.end.unwrap_or(run.last);
    if let Some((size, true)) = reaped_size {
        lower.add_between(size, extent.sampled_at, end);
    }
    let source = match reaped_size {
        Some(_) => "smaps_rollup, VmHWM, ru_maxrss of its command",
        None => "smaps_rollup, VmHWM",
    };
    let Some(value) = lower.value.or(reaped_size.map(|(size, _)| size)) else {
        return Figure::unknown(source, why_nothing(run, window));
    };
    let known = lower.value.unwrap_or(0.0);
    let alone = match window.command {
        Some(_) => extent.members <= 1,
        None => run.tree.total <= 1,
    };
    let upper = upper_bound(run, window, reaped_size.map(|(size, _)| size), known)
        .map(|upper| upper.max(value));
    let method = if alone && upper == Some(known) { Method::Exact } else { Method::Sampled };
    let figure = Figure::between(value, method, known, upper, source)
        .when(&Peak { at: lower.at.min(end), ..lower });
    if upper.is_none() { figure.because(UNSEEN) } else { figure }
}

/// The upper bound of the memory of the phase, when that is known.
fn upper_bound(
    run: &Accumulator,
    window: &PhaseWindow,
    reaped_size: Option<f64>,
    known: f64,
) -> Option<f64> {
    if run.account().is_none() || run.some_unseen() || run.lost_children() == Some(true) {
        return None;
    }
    let huge_pages = huge_pages_bound(run)?;
    let whole = window.extent.upper_bounds.most(reaped(run).largest_rss_bytes as f64);
    let small_pages = match (window.command, reaped_size) {
        // No reaped process was larger, and there were not more of them.
        (Some(_), Some(size)) => {
            let own = window.extent.members.max(1) as f64 * size.max(known);
            Some(whole.map_or(own, |whole| whole.min(own)))
        }
        _ => whole,
    };
    small_pages.map(|small_pages| small_pages + huge_pages)
}

/// Memory over time, on the same basis as its peak.
pub(super) fn mean(run: &Accumulator, window: &PhaseWindow) -> Figure {
    let source = SHARED_COUNTED_ONCE;
    match window.extent.memory.until(window.end.unwrap_or(run.last)) {
        Some(mean) => {
            let upper = peak(run, window).upper.map(|upper| upper.max(mean));
            Figure::between(mean, Method::Sampled, 0.0, upper, source).because(SHORT)
        }
        None => Figure::unknown(source, why_nothing(run, window)),
    }
}
