//! What is left of the figures when the recording is incomplete.
//!
//! Missing rows can only hide something, so what was sampled stays a lower bound; it is no longer
//! an upper bound, or exact. Where exits are not recorded, processes were summed with those after
//! them, and where bytes were corrupted, anything may have happened: there are no bounds at all.
//! The counters at the end of a run are one line, from the kernel: as long as that is intact,
//! figures from it alone stay exact.

#[cfg(test)]
mod tests;

use super::accumulate::Accumulator;
use super::figure::{Figure, Figures, Method};
use super::phases::PhaseStatistics;
use super::{NO_END, Summary};
use crate::catalog::{Combine, FigureId, FigureUnit, Scope};
use crate::record::Losses;

/// Removes from a summary all that the recording does not prove.
pub(super) fn weaken(run: &Accumulator, summary: &mut Summary) {
    let why = match run.losses.sentences().next() {
        Some(first) => format!("the recording is incomplete: {first}"),
        // A killed weigh writes no end, and totals are those of the last tick.
        None if run.end.is_none() => NO_END.to_owned(),
        None => return,
    };
    let rules = Rules {
        final_counters_are_complete: final_counters_are_complete(run),
        has_bounds: !run.losses.are_changes() && !run.losses.concern_events(),
        concerns_processes: run.processes_may_be_missing(),
        is_lossy: !run.losses.is_empty(),
        why,
    };
    let parts = &mut summary.parts;
    let of_run = [&mut summary.figures, &mut parts.main.figures, &mut parts.descendants.figures];
    let of_all = [&mut parts.combined.figures, &mut parts.system.figures];
    let of_phases = summary.phases.iter_mut().map(|phase| &mut phase.figures);
    of_run.into_iter().chain(of_all).chain(of_phases).for_each(|figures| rules.apply(figures));
    summary.phase_statistics.iter_mut().for_each(PhaseStatistics::are_not_exact);
    for tool in &mut summary.tools {
        tool.cpu_time_method =
            tool.cpu_time_method.map(|whole| process_cpu_method(whole, &run.losses));
    }
    if run.losses.concern_events() && !run.losses.are_changes() {
        // One process by itself was never summed with another.
        for figures in [&mut summary.figures, &mut summary.parts.combined.figures] {
            if let Some(peak) = figures.get_mut(FigureId::MemoryPeak).filter(|f| f.value.is_some())
            {
                peak.lower = run.tree.largest_process.value;
            }
        }
    }
}

/// The method of the CPU time of processes, when the recording lacks these.
pub(crate) fn process_cpu_method(whole: Method, losses: &Losses) -> Method {
    if losses.concern_events() || losses.are_changes() {
        // It may be of other processes, too: of later ones, or of none.
        Method::Estimated
    } else if losses.concern_processes() && whole == Method::Exact {
        Method::Sampled
    } else {
        whole
    }
}

/// Whether the counters at the end alone determine the figure.
fn final_counters_are_complete(run: &Accumulator) -> bool {
    // Processes that outlived the command are in it as last sampled, and the machine's counters
    // give the part of a clock that was stolen.
    let is_alone = run.end.as_ref().is_some_and(|end| end.still_running.is_empty());
    run.final_counters().is_some()
        && is_alone
        && !run.losses.concern_events()
        && !run.losses.concern_rows(Scope::Node)
}

struct Rules {
    final_counters_are_complete: bool,
    /// Whether what was sampled is correct.
    has_bounds: bool,
    concerns_processes: bool,
    /// Whether more than the end is missing.
    is_lossy: bool,
    why: String,
}

impl Rules {
    fn apply(&self, figures: &mut Figures) {
        for (id, figure) in figures.iter_mut() {
            if !(self.final_counters_are_complete && figure.is_from_final_counters) {
                self.weaken(id, figure);
            }
        }
    }

    fn weaken(&self, id: FigureId, figure: &mut Figure) {
        const OF_PROCESSES: [&str; 7] = ["cpu", "memory", "swap", "threads", "files", "io", "page"];
        figure.upper = None;
        if figure.value.is_none() {
            figure.lower = None;
            // That it was not sampled has a reason.
            if self.concerns_processes && OF_PROCESSES.contains(&id.family()) {
                figure.reason = Some(self.why.clone());
            }
            return;
        }
        if self.is_lossy {
            figure.reason = Some(self.why.clone());
        } else {
            figure.reason.get_or_insert_with(|| self.why.clone());
        }
        let goes_both_ways = id.combine() == Combine::Mean || id.unit() == FigureUnit::Ratio;
        if figure.method == Some(Method::Exact) {
            figure.method = Some(Method::Sampled);
        }
        if !self.has_bounds {
            figure.method = Some(Method::Estimated);
            figure.lower = None;
        } else if goes_both_ways && figure.lower == figure.value {
            figure.lower = None;
        }
    }
}
