//! The same figures for the main process, the others, all of them, and the machine.

use super::super::accumulate::Accumulator;
use super::super::alive::GaugePeaks;
use super::super::device_counter_deltas::DeviceCounterDeltas;
use super::super::figure::{Figure, Figures, Method};
use super::super::{Part, Parts};
use super::{
    NO_END, NO_PROCESS_SAMPLED, SHORT, add_gauge_peaks, attached_run, gpus, is_attached, missing,
    not_sampled, of_run, possible, within_the_run,
};
use crate::catalog::metrics::energy::STAND_STILL;
use crate::catalog::{FigureId, FigureScope, SourceId};

/// A clock tick of `/proc/PID/stat`: CPU times are truncated to it.
const CLOCK_TICK: f64 = 0.01;

/// The same figures for the main process, the others, all of them, and the machine.
pub(crate) fn of_parts(run: &Accumulator) -> Parts {
    let all = of_run(run);
    let named = |id| all.get(id).cloned().unwrap_or_default();
    let main = main_cpu(run);
    let (main, others) = match (is_attached(run), &main.value) {
        // What was not sampled may be of either.
        (true, Some(sampled)) => {
            attached_run::main_and_others(run, *sampled, &named(FigureId::CpuTime))
        }
        // What exceeds its samples is also its own.
        (false, Some(_)) if run.tree.total == 1 && !run.may_miss_processes() => {
            (named(FigureId::CpuTime), Figure::exact(0.0, "there was one process"))
        }
        _ => {
            let others = descendants_cpu(&main, &all);
            (main, others)
        }
    };
    let mains = run.manifest.mains().len() as u64;
    let no_main =
        if mains == 0 { "programs were monitored by name: there is no main process" } else { "" };
    let no_others = if run.tree.total <= mains { "no descendant was sampled" } else { "" };
    let mut parts = Parts {
        main: part(run, &run.tree.main_peaks, main, no_main),
        descendants: part(run, &run.tree.descendants, others, no_others),
        combined: part(run, &run.tree.combined, named(FigureId::CpuTime), ""),
        system: system(run, &named(FigureId::CpuTime)),
    };
    for id in [FigureId::CpuCoresMean, FigureId::CpuCoresPeak, FigureId::MemoryPeak] {
        parts.combined.figures.insert(id, named(id));
    }
    let each = [&mut parts.main, &mut parts.descendants, &mut parts.combined];
    for (place, part) in each.into_iter().enumerate() {
        part.figures.insert(FigureId::GpuMemoryPeak, gpus::memory(run, place));
    }
    if let Some(peak) = run.main_cores.peak.value {
        let peak = possible(run, peak);
        let figure = Figure::sampled(peak, "/proc/PID/stat").at(run.main_cores.peak.at);
        parts.main.figures.insert(FigureId::CpuCoresPeak, figure.because(SHORT));
    }
    for part in [&mut parts.main, &mut parts.descendants, &mut parts.system] {
        within_the_run(run, &mut part.figures);
    }
    parts
}

fn main_cpu(run: &Accumulator) -> Figure {
    let source = "/proc/PID/stat";
    match run.tree.main_cpu() {
        Some(value) if run.final_counters().is_some() => {
            // User and system are each truncated to a clock tick, of each main process.
            let upper = value + 2.0 * CLOCK_TICK * run.manifest.mains().len() as f64;
            Figure::between(value, Method::Exact, value, Some(upper), source)
        }
        Some(value) => {
            let why = if run.end.is_some() { SHORT } else { NO_END };
            Figure::sampled(value, source).because(why)
        }
        None => Figure::unknown(source, missing(run, NO_PROCESS_SAMPLED)),
    }
}

fn descendants_cpu(main: &Figure, all: &Figures) -> Figure {
    let source = "all less the main process";
    let Some((all, value)) = all.get(FigureId::CpuTime).zip(main.value) else {
        return Figure::unknown(source, main.reason.as_deref().unwrap_or(NO_PROCESS_SAMPLED));
    };
    let less = |bound: Option<f64>, by: Option<f64>| Some((bound? - by?).max(0.0));
    Figure {
        value: less(all.value, Some(value)),
        method: all.method,
        lower: less(all.lower, main.upper),
        upper: less(all.upper, main.lower),
        source: source.to_owned(),
        reason: all.reason.clone(),
        ..Figure::default()
    }
}

/// Figures of some of the processes; `absent` says why there was none of them, if that is known.
fn part(run: &Accumulator, gauge_peaks: &GaugePeaks, cpu: Figure, absent: &str) -> Part {
    let otherwise = if absent.is_empty() { not_sampled(run) } else { absent };
    let mut figures = Figures::new();
    figures.insert(FigureId::CpuTime, cpu);
    add_gauge_peaks(&mut figures, FigureScope::Main, run, gauge_peaks, otherwise);
    Part { figures }
}

/// The machine, by all processes.
fn system(run: &Accumulator, cpu: &Figure) -> Part {
    let mut figures = Figures::new();
    let (stat, meminfo) = ("/proc/stat", "/proc/meminfo MemTotal - MemAvailable");
    let is_recorded = run.manifest.catalogue.iter().any(|metric| metric.name.starts_with("node."));
    let otherwise = match run.manifest.is_merged() && !is_recorded {
        true => "recordings of several machines, or several of one, were merged",
        false => "it was sampled less than twice, or left out",
    };
    let why = |source: SourceId| run.reason(source).unwrap_or(otherwise).to_owned();
    let (time, share) = match run.node.cpu() {
        Some((busy, all)) => (Figure::exact(busy, stat), Figure::exact(busy / all, stat)),
        None => {
            (Figure::unknown(stat, &why(SourceId::Cpu)), Figure::unknown(stat, &why(SourceId::Cpu)))
        }
    };
    figures.insert(FigureId::CpuTime, time);
    figures.insert(FigureId::CpuUtilizationMean, share);
    let peak = match run.node.busy.peak.value {
        Some(peak) => {
            Figure::sampled(possible(run, peak), stat).at(run.node.busy.peak.at).because(SHORT)
        }
        None => Figure::unknown(stat, &why(SourceId::Cpu)),
    };
    figures.insert(FigureId::CpuCoresPeak, peak);
    let used = match run.node.used.value {
        Some(used) => Figure::sampled(used, meminfo).at(run.node.used.at).because(SHORT),
        None => Figure::unknown(meminfo, &why(SourceId::Memory)),
    };
    figures.insert(FigureId::MemoryUsedPeak, used);
    let mean = match run.node.used_mean.until(run.duration()) {
        Some(mean) => Figure::sampled(mean, meminfo).because(SHORT),
        None => Figure::unknown(meminfo, &why(SourceId::Memory)),
    };
    figures.insert(FigureId::MemoryUsedMean, mean);
    for figure in run.node.device_figures() {
        let why = figure.collector().map_or_else(|| otherwise.to_owned(), why);
        figures.insert(figure.id, delta(&figure.deltas, &figure.source(), &why));
    }
    let energy = energy(run, &why(SourceId::Energy));
    figures.insert(FigureId::EnergyRun, energy_of_run(run, cpu, &energy));
    figures.insert(FigureId::Energy, energy);
    gpus::system(run, &mut figures);
    Part { figures }
}

/// Deltas of the counters of many devices during the run.
fn delta(growth: &DeviceCounterDeltas, source: &str, why: &str) -> Figure {
    let more =
        "a device appeared, disappeared or was reset during the run, and may have counted more";
    match growth.total() {
        Some(total) if growth.may_be_more() => {
            Figure::between(total, Method::Exact, total, None, source).because(more)
        }
        Some(total) => Figure::exact(total, source),
        None => Figure::unknown(source, why),
    }
}

/// Energy of the machine; a powered machine uses some, so a counter that did not advance is no
/// measurement of 0 J.
fn energy(run: &Accumulator, why: &str) -> Figure {
    let source = "RAPL, packages and their memory";
    let is_stuck = |growth: &DeviceCounterDeltas| growth.total() == Some(0.0);
    if is_stuck(&run.node.energy) || is_stuck(&run.node.energy_of_all) {
        return Figure::unknown(source, run.reason(SourceId::Energy).unwrap_or(STAND_STILL));
    }
    match (run.node.energy.total(), run.node.energy_of_all.total()) {
        (None, Some(_)) => Figure::unknown(source, "no package is metered here, only parts"),
        _ => delta(&run.node.energy, source, why),
    }
}

/// The run's part of the machine's energy: in proportion to its part of the CPU time.
fn energy_of_run(run: &Accumulator, cpu: &Figure, energy: &Figure) -> Figure {
    let source = "energy of the machine × CPU time of the run / CPU time of the machine";
    let Some(joules) = energy.value else {
        return Figure::unknown(source, energy.reason.as_deref().unwrap_or_default());
    };
    let busy = run.node.cpu().map(|(busy, _)| busy).filter(|busy| *busy > 0.0);
    match cpu.value.zip(busy) {
        // Nothing shows which process used what: it may have been all, or nearly nothing.
        Some((cpu, busy)) => {
            let part = joules * (cpu / busy).min(1.0);
            Figure::between(part, Method::Estimated, 0.0, Some(joules), source)
        }
        None => Figure::unknown(source, "the CPU time of the machine is not known"),
    }
}
