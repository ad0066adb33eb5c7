//! Rules that the figures of a run, of its parts and of a phase have in common.

use super::{SHORT, least_cores, missing, possible};
use crate::catalog::{FigureId, FigureScope};
use crate::summary::accumulate::Accumulator;
use crate::summary::alive::GaugePeaks;
use crate::summary::curve::Peak;
use crate::summary::figure::{Figure, Figures, Method};

type PeakOf = fn(&GaugePeaks) -> Peak;

/// The highest samples of gauges, and their sources.
const GAUGE_PEAKS: [(FigureId, PeakOf, &str); 7] = [
    (FigureId::MemoryRssPeak, |gauge_peaks| gauge_peaks.rss, "/proc/PID/stat rss"),
    (FigureId::MemoryPssPeak, |gauge_peaks| gauge_peaks.pss, "/proc/PID/smaps_rollup"),
    (FigureId::MemoryUssPeak, |gauge_peaks| gauge_peaks.uss, "/proc/PID/smaps_rollup"),
    (
        FigureId::MemoryWithoutCachePeak,
        |gauge_peaks| gauge_peaks.without_cache,
        "/proc/PID/smaps_rollup Pss_Anon + Pss_Shmem",
    ),
    (FigureId::SwapPeak, |gauge_peaks| gauge_peaks.swap, "/proc/PID/status VmSwap"),
    (FigureId::ThreadsPeak, |gauge_peaks| gauge_peaks.threads, "/proc/PID/stat num_threads"),
    (FigureId::FilesOpenPeak, |gauge_peaks| gauge_peaks.files, "/proc/PID/fd"),
];

const NO_PARTS_OF_PSS: &str =
    "what of the memory is page cache is known since Linux 5.3, and was not recorded before";

/// Adds the highest samples of the gauges that are declared for this scope; `otherwise` says why
/// there is none.
pub(in crate::summary) fn add_gauge_peaks(
    figures: &mut Figures,
    scope: FigureScope,
    run: &Accumulator,
    gauge_peaks: &GaugePeaks,
    otherwise: &str,
) {
    for (id, of, source) in GAUGE_PEAKS.into_iter().filter(|(id, ..)| id.is_in(scope)) {
        // A part may be one process.
        let summed = matches!(scope, FigureScope::Run | FigureScope::Phase);
        let source = format!("{source}{}", if summed { ", summed" } else { "" });
        // It is read with the PSS.
        let is_not_told = id == FigureId::MemoryWithoutCachePeak && gauge_peaks.pss.value.is_some();
        let otherwise = if is_not_told { NO_PARTS_OF_PSS } else { otherwise };
        figures.insert(id, gauge_peak(run, of(gauge_peaks), &source, otherwise));
    }
}

/// The highest sample of a gauge, or why there is none.
pub(super) fn gauge_peak(run: &Accumulator, peak: Peak, source: &str, otherwise: &str) -> Figure {
    match peak.value {
        Some(value) => Figure::sampled(value, source).at(peak.at).because(SHORT),
        None => Figure::unknown(source, missing(run, otherwise)),
    }
}

/// Cores used on average over so many seconds.
pub(in crate::summary) fn mean_cores(
    cpu: &Figure,
    seconds: f64,
    source: &str,
    no_duration: &str,
) -> Figure {
    let Some(value) = cpu.value.filter(|_| seconds > 0.0) else {
        let why = cpu.reason.as_deref().filter(|_| cpu.value.is_none());
        return Figure::unknown(source, why.unwrap_or(no_duration));
    };
    Figure {
        value: Some(value / seconds),
        lower: cpu.lower.map(|bound| bound / seconds),
        upper: cpu.upper.map(|bound| bound / seconds),
        source: source.to_owned(),
        ..cpu.clone()
    }
}

/// The most cores used between two samples.
pub(in crate::summary) fn peak_cores(
    run: &Accumulator,
    peak: Peak,
    mean: &Figure,
    source: &str,
    too_short: &str,
) -> Figure {
    match (peak.value, mean.value) {
        (Some(value), mean_value) if mean_value.is_none_or(|mean| value >= mean) => {
            let value = possible(run, value);
            let lower = least_cores(run, value, mean.lower);
            Figure::between(value, Method::Sampled, lower, None, source).at(peak.at).because(SHORT)
        }
        // A peak below the mean only means that no sample fell into the busy part.
        (_, Some(value)) => Figure {
            is_from_final_counters: mean.is_from_final_counters,
            ..Figure::sampled(value, &mean.source).because(SHORT)
        },
        (_, None) => Figure::unknown(source, too_short),
    }
}

/// A count of what was reaped: exact, unless children were auto-reaped. `no_child_was_auto_reaped` is whether
/// the task clock shows that there were none; where it is not known, the method and the reason are
/// these.
pub(in crate::summary) fn reaped_count(
    value: f64,
    source: &str,
    no_child_was_auto_reaped: Option<bool>,
    method: Method,
    why: Option<&str>,
) -> Figure {
    let missing = "auto-reaped children, if there were any, are not included";
    match no_child_was_auto_reaped {
        Some(true) => Figure::exact(value, source),
        Some(false) => Figure::sampled(value, source).because(missing),
        None => Figure::between(value, method, value, None, source).because(why.unwrap_or(missing)),
    }
    .of_final_counters()
}
