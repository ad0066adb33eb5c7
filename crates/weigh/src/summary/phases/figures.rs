//! The figures of one phase, each with its method, bounds and source.

use super::memory;
use super::sample::PhaseDelta;
use super::window::PhaseWindow;
use crate::catalog::{FigureId, FigureScope, SourceId};
use crate::model::Usage;
use crate::summary::Phase;
use crate::summary::accumulate::Accumulator;
use crate::summary::counters;
use crate::summary::evidence::CpuEvidence;
use crate::summary::figure::{Figure, Figures, Method};
use crate::summary::figures::shared_rules::{
    add_gauge_peaks, mean_cores, peak_cores, reaped_count,
};
use crate::summary::figures::{NO_PROCESS_SAMPLED, missing, share_of_cores};

const SHARED: &str = "value of the whole run: other phases overlapped";
const WHOLE: &str = "value of the whole run: the usage of its command is not known";
const MERGED: &str = "of all merged recordings, which were not sampled at the same time";
const NO_END: &str = "its end is not recorded: up to the last sample of the run";
const BETWEEN: &str = "interpolated: no sample was taken at the start or end of the phase";
const NOT_MEASURED: &str = "nothing was sampled while it lasted";
const ONLY_COMMANDS: &str = "known only for phases with a command: weigh phase NAME -- CMD";
const NOT_WAITED_FOR: &str = "auto-reaped children, and processes that started and exited between two samples, are not \
     included";
const TOO_SHORT: &str = "its command exited before it was sampled";

/// A clock tick of `/proc/PID/stat`: CPU times are truncated to it, four of each process.
const CLOCK_TICK: f64 = 0.01;

/// The I/O figures, in the order in which they are counted.
pub(super) const IO: [FigureId; 6] = [
    FigureId::IoRead,
    FigureId::IoWritten,
    FigureId::IoReadCalls,
    FigureId::IoWriteCalls,
    FigureId::IoStorageRead,
    FigureId::IoStorageWritten,
];

/// A phase as in the summary.
pub(super) fn of_phase(run: &Accumulator, window: PhaseWindow) -> Phase {
    let figures = figures(run, &window);
    let reaped = memory::reaped_size(&window);
    Phase {
        duration_seconds: window.end.map(|end| end - window.start),
        cpu_time_seconds: figures.value(FigureId::CpuTime),
        largest_process_bytes: reaped.filter(|(_, is_own)| *is_own).map(|(size, _)| size as u64),
        exit_code: window.exit.map(|end| end.exit_code()),
        start_seconds: window.start,
        id: window.id,
        name: window.name,
        parent: window.parent,
        figures,
    }
}

fn figures(run: &Accumulator, window: &PhaseWindow) -> Figures {
    let mut figures = Figures::new();
    let mut put = |id: FigureId, figure: Figure| {
        figures.insert(id, figure);
    };
    let cpu = cpu_time(run, window);
    let mean = mean_cores(&cpu, duration(run, window), "CPU time / duration", "it has no duration");
    let (user, system) = user_and_system(window, &cpu);
    put(FigureId::CpuUser, user);
    put(FigureId::CpuSystem, system);
    let (peak, between) = (window.peaks.cores.peak, "CPU time between samples");
    let peak = peak_cores(run, peak, &mean, between, "it was too short for a rate");
    put(FigureId::CpuCoresPeak, peak);
    put(FigureId::CpuUtilizationMean, share_of_cores(run, &mean));
    put(FigureId::CpuCoresMean, mean);
    put(FigureId::CpuTime, cpu);
    put(FigureId::MemoryPeak, memory::peak(run, window));
    put(FigureId::MemoryMean, memory::mean(run, window));
    for (which, id) in IO.into_iter().enumerate() {
        put(id, io(run, window, which));
    }
    let used = window.usage.unwrap_or_default();
    type Of = fn(&Usage) -> u64;
    let counts: [(FigureId, Of); 4] = [
        (FigureId::PageFaultsMajor, |used| used.major_faults),
        (FigureId::PageFaultsMinor, |used| used.minor_faults),
        (FigureId::ContextSwitchesVoluntary, |used| used.voluntary_switches),
        (FigureId::ContextSwitchesInvoluntary, |used| used.involuntary_switches),
    ];
    for (id, of) in counts {
        let source = "wait4 of its command";
        let known = window.usage.map(|_| exact_or_at_least(window, of(&used) as f64, source));
        let known = known.map(|figure| window.helpers.bound_count(figure, of));
        put(id, known.unwrap_or_else(|| Figure::unknown(source, ONLY_COMMANDS)));
    }
    let otherwise = why_nothing(run, window);
    add_gauge_peaks(&mut figures, FigureScope::Phase, run, &window.peaks.gauge_peaks, otherwise);
    if let Some(measured) = &window.measured {
        let clock = measured.clock.or(measured.summed);
        let is_sharp = clock.is_some_and(|delta| delta.is_boundary_sampled);
        figures.extend(counters::of_phase(run, &measured.counts, is_sharp));
    }
    figures.values_mut().filter(|figure| figure.value.is_some()).for_each(|figure| {
        add_notes(run, window, figure);
    });
    figures
}

fn not_exact(figure: &mut Figure) {
    if figure.method == Some(Method::Exact) {
        figure.method = Some(Method::Sampled);
    }
}

/// Adds the notes that apply to every figure of this phase.
fn add_notes(run: &Accumulator, window: &PhaseWindow, figure: &mut Figure) {
    if window.end.is_none() {
        not_exact(figure);
        figure.upper = None;
        add_reason(figure, NO_END);
    }
    if window.command.is_none() && run.manifest.is_merged() {
        not_exact(figure);
        (figure.lower, figure.upper) = (None, None);
        add_reason(figure, MERGED);
    }
    if window.command.is_none() && window.shared {
        add_reason(figure, SHARED);
    }
}

fn add_reason(figure: &mut Figure, why: &str) {
    figure.reason = Some(match figure.reason.take() {
        Some(reason) if reason.contains(why) => reason,
        Some(reason) => format!("{reason}; {why}"),
        None => why.to_owned(),
    });
}

fn cpu_time(run: &Accumulator, window: &PhaseWindow) -> Figure {
    window.helpers.bound_cpu(cpu_time_with_helper_exits(run, window))
}

/// CPU time of a phase, including the exits of helpers.
fn cpu_time_with_helper_exits(run: &Accumulator, window: &PhaseWindow) -> Figure {
    if let Some(usage) = &window.usage {
        return command_cpu(window, usage);
    }
    let Some(measured) = &window.measured else {
        return Figure::unknown("perf task-clock", NOT_MEASURED);
    };
    let method = |delta: &PhaseDelta| {
        if delta.is_boundary_sampled { Method::Exact } else { Method::Sampled }
    };
    let mut figure = match (&measured.clock, &measured.summed) {
        (Some(delta), summed) => {
            // The task clock runs on while an interrupt or another guest has the CPU. Where that is
            // more than clock ticks truncate, the sum over processes is closer.
            let lower = (delta.lower - measured.irq_and_steal).max(0.0);
            let (value, source) = match summed {
                Some(sum) if measured.irq_and_steal > 2.0 * CLOCK_TICK => {
                    let value = sum.value.clamp(lower.min(delta.value), delta.value);
                    (value, "perf task-clock of the run, /proc/PID/stat")
                }
                _ => (delta.value, "perf task-clock of the run"),
            };
            Figure::between(value, method(delta), lower, Some(delta.upper), source)
        }
        (None, Some(delta)) => {
            let lower = (delta.lower - 4.0 * CLOCK_TICK * measured.alive as f64).max(0.0);
            let why =
                run.reason(SourceId::TaskClock).unwrap_or("the task-clock collector was left out");
            Figure::between(delta.value, Method::Sampled, lower, None, "/proc/PID/stat, summed")
                .because(&format!("auto-reaped children are not included; {why}"))
        }
        (None, None) => {
            return Figure::unknown("perf task-clock", missing(run, NO_PROCESS_SAMPLED));
        }
    };
    let delta = measured.clock.or(measured.summed);
    if delta.is_some_and(|delta| !delta.is_boundary_sampled) {
        add_reason(&mut figure, BETWEEN);
    }
    if window.command.is_some() {
        add_reason(&mut figure, WHOLE);
    }
    figure
}

/// How far the command's own task clock is ahead of what was reaped.
fn clock_ahead(window: &PhaseWindow, usage: &Usage) -> Option<f64> {
    let clock = window.account.as_ref()?.task_clock_seconds?;
    let irq_and_steal = window.measured.map_or(0.0, |measured| measured.irq_and_steal);
    Some(clock - usage.cpu_seconds() - irq_and_steal)
}

fn command_cpu(window: &PhaseWindow, usage: &Usage) -> Figure {
    let reaped = usage.cpu_seconds();
    let clock = window.account.as_ref().and_then(|counters| counters.task_clock_seconds);
    let Some((clock, ahead)) = clock.zip(clock_ahead(window, usage)) else {
        return CpuEvidence::Wait4 { reaped, orphans_are_lost: false, sampled_more: None }
            .figure("wait4 of its command")
            .of_final_counters()
            .because("auto-reaped children are not included, and no task clock counted them");
    };
    // Ahead by more than the clocks' own differences: a child was auto-reaped.
    let has_auto_reaped_children = ahead > 0.005 + reaped * 0.01;
    let irq_and_steal = clock - reaped - ahead;
    CpuEvidence::Wait4AndClock { reaped, clock, irq_and_steal, has_auto_reaped_children }
        .figure("wait4 of its command, perf task-clock")
        .of_final_counters()
}

/// The kernel splits the sum by what it found running at its clock ticks.
fn user_and_system(window: &PhaseWindow, cpu: &Figure) -> (Figure, Figure) {
    let (parts, source) = match (&window.usage, &window.measured) {
        (Some(usage), _) => {
            let source = "wait4 of its command, split by the kernel's clock ticks";
            ((usage.user_seconds, usage.system_seconds), source)
        }
        (None, Some(measured)) => (measured.split, "CPU time, split as /proc/PID/stat has it"),
        (None, None) => ((0.0, 0.0), "/proc/PID/stat"),
    };
    let sum = parts.0 + parts.1;
    let (Some(value), true) = (cpu.value, sum > 0.0) else {
        let unknown = Figure::unknown(source, "too little CPU time to be split");
        return (unknown.clone(), unknown);
    };
    let figure = |part: f64| {
        let scaled = if window.usage.is_some() { part } else { value * part / sum };
        // Only the sum is counted.
        let upper = cpu.upper.map(|upper| upper.max(scaled));
        Figure {
            is_from_final_counters: window.usage.is_some(),
            ..Figure::between(scaled, Method::Estimated, 0.0, upper, source)
        }
    };
    (figure(parts.0), figure(parts.1))
}

/// How long the phase lasted, as far as it is known.
fn duration(run: &Accumulator, window: &PhaseWindow) -> f64 {
    window.end.unwrap_or(run.last) - window.start
}

/// Why there is no sample of the processes that count for a phase.
pub(super) fn why_nothing<'a>(run: &'a Accumulator, window: &PhaseWindow) -> &'a str {
    missing(run, if window.command.is_some() { TOO_SHORT } else { NOT_MEASURED })
}

fn io(run: &Accumulator, window: &PhaseWindow, which: usize) -> Figure {
    if let Some(io) = window.account.as_ref().and_then(|counters| counters.io) {
        return exact_or_at_least(window, io.counts()[which] as f64, "/proc/self/io of its parent");
    }
    let source = "/proc/PID/io, summed";
    let Some(delta) = window.measured.and_then(|measured| measured.io).map(|io| io[which]) else {
        return Figure::unknown(source, missing(run, NO_PROCESS_SAMPLED));
    };
    let method = if delta.is_boundary_sampled { Method::Exact } else { Method::Sampled };
    let value = delta.value.round();
    let mut figure = Figure::between(value, method, delta.lower.floor().min(value), None, source)
        .because(NOT_WAITED_FOR);
    if !delta.is_boundary_sampled {
        add_reason(&mut figure, BETWEEN);
    }
    if window.command.is_some() {
        add_reason(&mut figure, WHOLE);
    }
    figure
}

/// A count of what its command and its children used.
fn exact_or_at_least(window: &PhaseWindow, value: f64, source: &str) -> Figure {
    let agree = window.usage.as_ref().and_then(|usage| {
        clock_ahead(window, usage).map(|ahead| ahead < 0.001 + usage.cpu_seconds() * 0.001)
    });
    reaped_count(value, source, agree, Method::Exact, None)
}
