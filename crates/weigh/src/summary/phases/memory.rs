//! What is known of the memory of one phase: the evidence for its peak and its mean.

use super::figures::why_nothing;
use super::window::PhaseWindow;
use crate::summary::accumulate::Accumulator;
use crate::summary::curve::Peak;
use crate::summary::evidence::{MemoryBounds, MemoryEvidence, MemoryMeans, MemoryOwner};
use crate::summary::figure::Figure;
use crate::summary::figures::{memory, reaped};

/// The size with which its command was reaped, and whether that is the command's: `ru_maxrss`
/// survives exec, and shows nothing that is below the size before it.
pub(super) fn reaped_size(window: &PhaseWindow) -> Option<(f64, bool)> {
    // The code until exec itself takes a few pages more.
    const A_FEW_PAGES: u64 = 256 << 10;
    let size = window.usage?.largest_rss_bytes;
    let before = window.account.map_or(0, |counters| counters.rss_before_exec_bytes + A_FEW_PAGES);
    Some((size as f64, size > before))
}

/// Peak memory.
pub(super) fn peak(run: &Accumulator, window: &PhaseWindow) -> Figure {
    let mut figure = evidence(run, window).peak();
    // A sample just after the end counts for the end.
    let end = end(run, window);
    let times = [&mut figure.at_seconds, &mut figure.before_seconds];
    times.into_iter().flatten().for_each(|at| *at = at.min(end));
    figure
}

/// Memory over time, on the same basis as its peak.
pub(super) fn mean(run: &Accumulator, window: &PhaseWindow) -> Figure {
    evidence(run, window).mean(&MemoryMeans {
        shared_once: window.peaks.memory.until(end(run, window)),
        why_nothing: why_nothing(run, window),
        ..MemoryMeans::default()
    })
}

/// When it ended, or the last that is known of the run.
fn end(run: &Accumulator, window: &PhaseWindow) -> f64 {
    window.end.unwrap_or(run.last)
}

fn evidence<'a>(run: &'a Accumulator, window: &PhaseWindow) -> MemoryEvidence<'a> {
    let peaks = &window.peaks;
    let reaped_size = reaped_size(window);
    let maxrss = reaped_size.map(|(size, _)| size);
    let mut own_maxrss = Peak::default();
    if let Some((size, true)) = reaped_size {
        own_maxrss.add_between(size, peaks.sampled_at, end(run, window));
    }
    let high_water_sum = peaks.upper_bounds.most(reaped(run).largest_rss_bytes as f64);
    MemoryEvidence {
        owner: MemoryOwner::Phase { has_maxrss: maxrss.is_some() },
        is_one_process: match window.command {
            Some(_) => peaks.members <= 1,
            None => run.tree.total <= 1,
        },
        largest_process: peaks.largest_process,
        maxrss: [own_maxrss, Peak::default()],
        unproven_maxrss: maxrss,
        pss_sum: peaks.gauge_peaks.pss,
        rss_sum: peaks.gauge_peaks.rss,
        bounds: MemoryBounds {
            command: window.command.and(maxrss).map(|size| (peaks.members, size)),
            ..memory::bounds(run, high_water_sum)
        },
        cgroup: None,
        why_nothing: why_nothing(run, window),
    }
}
