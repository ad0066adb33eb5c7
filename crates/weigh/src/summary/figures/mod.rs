//! The figures of a run, each with its method, bounds and source.

mod attached_run;
mod cgroup;
mod gpus;
pub(super) mod memory;
mod network;
mod parts;
pub(super) mod shared_rules;

pub(super) use parts::of_parts;

use super::accumulate::Accumulator;
use super::counters;
use super::evidence::CpuEvidence;
use super::figure::{Figure, Figures, Method};
use super::tools::Tool;
use crate::catalog::{FigureId, FigureScope, SourceId};
use crate::model::{FaultSource, Io, Usage};
use shared_rules::{add_gauge_peaks, gauge_peak, mean_cores, peak_cores, reaped_count};

const NOT_COLLECTED: &str = "the process collector was left out";
pub(super) const NO_PROCESS_SAMPLED: &str = "no process of the run could be read";
pub(super) const SHORT: &str = "spikes shorter than the sampling interval may be missed";
const MORE_THAN_ALL: &str =
    "the CPU time of the processes exceeds that of the run: some of it was counted twice";
const TOO_SHORT: &str = "too short to sample: the processes exited before their memory was read";
pub(super) const NO_END: &str = "the end of the run is not recorded";

/// Everything about the run as a whole.
pub(super) fn of_run(run: &Accumulator) -> Figures {
    let mut figures = Figures::new();
    let mut put = |id: FigureId, figure: Figure| {
        figures.insert(id, figure);
    };
    let cpu = cpu_time(run);
    let mean =
        mean_cores(&cpu, run.duration(), "CPU time / measured time", "the run has no duration");
    let peak = cores_peak(run, &mean);
    put(FigureId::CpuUtilizationMean, share_of_cores(run, &mean));
    put(FigureId::CpuUtilizationPeak, share_of_cores(run, &peak));
    put(FigureId::CpuCoresMean, mean);
    put(FigureId::CpuCoresPeak, peak);
    let (user, system) = user_and_system(run, &cpu);
    put(FigureId::CpuUser, user);
    put(FigureId::CpuSystem, system);
    put(FigureId::CpuTime, cpu);
    put(FigureId::MemoryPeak, memory::peak(run));
    let gauge_peaks = &run.tree.combined;
    // Most runs have none, and changed bytes may look like some.
    if gauge_peaks.hugetlb.value > Some(0.0) && !run.losses.are_changes() {
        let source = "/proc/PID/status HugetlbPages, summed";
        put(
            FigureId::MemoryHugetlbPeak,
            gauge_peak(run, gauge_peaks.hugetlb, source, not_sampled(run)),
        );
    }
    put(FigureId::MemoryMean, memory::mean(run));
    put(FigureId::IoRead, io(run, |io| io.read_bytes));
    put(FigureId::IoWritten, io(run, |io| io.written_bytes));
    put(FigureId::IoReadCalls, io(run, |io| io.read_calls));
    put(FigureId::IoWriteCalls, io(run, |io| io.write_calls));
    let sampled = io(run, |io| io.storage_read_bytes);
    put(FigureId::IoStorageRead, cgroup::storage(run, |io| io.read, sampled));
    let sampled = io(run, |io| io.storage_written_bytes);
    put(FigureId::IoStorageWritten, cgroup::storage(run, |io| io.written, sampled));
    put(FigureId::NetworkSent, network::sent(run));
    put(FigureId::NetworkReceived, network::received(run));
    let alive = run.tree.events_of_live_processes();
    put(FigureId::PageFaultsMajor, counted(run, |ended| ended.major_faults, alive.faults_major));
    put(FigureId::PageFaultsMinor, counted(run, |ended| ended.minor_faults, alive.faults_minor));
    put(
        FigureId::ContextSwitchesVoluntary,
        counted(run, |ended| ended.voluntary_switches, alive.switches_voluntary),
    );
    let switches = counted(run, |ended| ended.involuntary_switches, alive.switches_involuntary);
    put(FigureId::ContextSwitchesInvoluntary, switches);
    add_gauge_peaks(&mut figures, FigureScope::Run, run, gauge_peaks, not_sampled(run));
    figures.extend(cgroup::swap_peak(run).map(|swap| (FigureId::SwapPeak, swap)));
    cgroup::add(run, &mut figures);
    counters::add(run, &mut figures);
    gpus::add(run, &mut figures);
    network::add(run, &mut figures);
    within_the_run(run, &mut figures);
    figures
}

/// Sums of the same seconds in another order differ by less.
const A_ROUNDING_ERROR: f64 = 1e-6;

/// CPU time of the run that is in no sample of a process: of processes that were too short, and of
/// the last moments of others.
///
/// The processes' values are truncated to clock ticks in places, so the true value may be less. The
/// upper bound is what is left of the run's upper bound. Where the processes have more than the
/// run, some of it is counted twice, and nothing bounds the rest.
pub(super) fn add_unattributed(figures: &mut Figures, tools: &[Tool]) {
    let source = "CPU time less that of each process as it was last sampled";
    let Some(all) = figures.get(FigureId::CpuTime) else { return };
    let known: Vec<f64> = tools.iter().filter_map(|tool| tool.cpu_time_seconds).collect();
    let figure = match all.value.filter(|_| !known.is_empty()) {
        Some(value) => {
            let known = known.iter().sum::<f64>();
            let rest = (value - known).max(0.0);
            let (upper, reason) = if known > value + A_ROUNDING_ERROR {
                (None, Some(MORE_THAN_ALL.to_owned()))
            } else {
                (all.upper.map(|upper| (upper - known).max(rest)), all.reason.clone())
            };
            Figure { reason, ..Figure::between(rest, Method::Sampled, 0.0, upper, source) }
        }
        None => Figure::unknown(source, all.reason.as_deref().unwrap_or(NO_PROCESS_SAMPLED)),
    };
    figures.insert(FigureId::CpuUnattributed, figure);
}

/// Times are counted from just before exec, and the last sample is just after the exit.
fn within_the_run(run: &Accumulator, figures: &mut Figures) {
    let duration = run.duration();
    for figure in figures.values_mut() {
        let times = [&mut figure.at_seconds, &mut figure.after_seconds, &mut figure.before_seconds];
        times.into_iter().flatten().for_each(|at| *at = at.min(duration));
    }
}

/// Whether weigh did not start what was measured, and so reaps nothing.
fn is_attached(run: &Accumulator) -> bool {
    run.manifest.is_attached()
}

/// What exited processes used: as `wait4` reported, or as last sampled.
fn ended(run: &Accumulator) -> Usage {
    let [minor, major, _] = run.tree.exited_counts().faults;
    let [voluntary, involuntary] = run.tree.exited_counts().switches;
    let mut usage = reaped(run);
    usage.minor_faults += minor;
    usage.major_faults += major;
    usage.voluntary_switches += voluntary;
    usage.involuntary_switches += involuntary;
    usage
}

/// What was reaped, with what `weigh mark` and `weigh phase` used.
pub(super) fn reaped(run: &Accumulator) -> Usage {
    run.final_counters().map_or(run.reaped, |counters| counters.reaped)
}

/// All CPU time: the kernel's counter, or what was reaped and what is still alive.
fn cpu_time(run: &Accumulator) -> Figure {
    run.helpers.bound_cpu(cpu_time_with_helper_exits(run))
}

/// All CPU time, by the best evidence there is. What helpers used while they exited is still in it.
fn cpu_time_with_helper_exits(run: &Accumulator) -> Figure {
    if let Some(figure) = cgroup::cpu_time(run) {
        return figure;
    }
    let reaped_and_alive = run
        .helpers
        .cpu_without_helpers(reaped(run).cpu_seconds() + run.tree.cpu_of_live_processes());
    if is_attached(run) {
        return attached_run::cpu_time(run);
    }
    let Some(end) = run.end.as_ref().filter(|end| end.final_counters.is_some()) else {
        let sampled = (run.tree.total > 0).then_some(reaped_and_alive);
        return match run.clock.or(sampled) {
            Some(seconds) => CpuEvidence::Sampled { seconds, unsampled: None }
                .figure("the last tick")
                .because(NO_END),
            None => Figure::unknown("the last tick", NO_END),
        };
    };
    match end.task_clock_seconds {
        Some(clock) => CpuEvidence::Wait4AndClock {
            reaped: reaped_and_alive,
            clock,
            irq_and_steal: run.node.irq_and_steal(),
            has_auto_reaped_children: run.children_were_auto_reaped() == Some(true),
        }
        .figure("wait4, perf task-clock")
        .of_final_counters(),
        None => {
            let why = run.reason(SourceId::TaskClock).unwrap_or(match run.manifest.is_merged() {
                true => "the task clocks of several machines cannot be merged",
                false => "the task-clock collector was left out",
            });
            let orphans =
                run.why_orphans_may_be_missing().map_or_else(String::new, |why| format!("; {why}"));
            let sampled_more =
                (run.children_were_auto_reaped() == Some(true)).then(|| run.cpu_sampled());
            let orphans_are_lost = run.why_orphans_may_be_missing().is_some();
            let evidence =
                CpuEvidence::Wait4 { reaped: reaped_and_alive, orphans_are_lost, sampled_more };
            match sampled_more {
                Some(_) => evidence
                    .figure("/proc/PID/stat")
                    .because(&format!("auto-reaped children are in it as last sampled; {why}")),
                None => evidence
                    .figure("wait4")
                    .of_final_counters()
                    .because(&format!("auto-reaped children are not included; {why}{orphans}")),
            }
        }
    }
}

/// The kernel splits the exact sum by what it found running at its clock ticks.
fn user_and_system(run: &Accumulator, cpu: &Figure) -> (Figure, Figure) {
    if let Some(figures) = cgroup::user_and_system(run) {
        return figures;
    }
    if is_attached(run) {
        return attached_run::user_and_system(run, cpu);
    }
    let reaped = run.helpers.usage_without_helpers(&reaped(run));
    let total = reaped.cpu_seconds();
    let (Some(value), true) = (cpu.value, total > 0.0) else {
        let unknown = Figure::unknown("wait4", NO_END).of_final_counters();
        return (unknown.clone(), unknown);
    };
    let missing = (value - total).max(0.0);
    if missing > total {
        let reason =
            "most of it was used by auto-reaped children, of which only user + system is known";
        let figure = |part: f64| Figure {
            lower: Some(part),
            upper: Some(part + missing),
            ..Figure::unknown("wait4", reason).of_final_counters()
        };
        return (figure(reaped.user_seconds), figure(reaped.system_seconds));
    }
    let figure = |part: f64| {
        let scaled = part * (value / total).max(1.0);
        // Only the sum is counted: what ran between two clock ticks may be either.
        let upper = cpu.upper.map(|upper| upper.max(scaled));
        let source = "wait4, split by the kernel's clock ticks";
        let mut figure =
            Figure::between(scaled, Method::Estimated, 0.0, upper, source).of_final_counters();
        figure.reason = cpu.upper.is_none().then(|| cpu.reason.clone()).flatten();
        figure
    };
    (figure(reaped.user_seconds), figure(reaped.system_seconds))
}

/// Cores used as a share of those that were expected, or of all that the run may use.
pub(super) fn share_of_cores(run: &Accumulator, cores: &Figure) -> Figure {
    let (all, whose) = match run.manifest.expected_cores {
        Some(expected) => (expected, "expected"),
        None => (run.manifest.host.cores_allowed, "allowed"),
    };
    let share = |value: Option<f64>| value.map(|value| value / all);
    Figure {
        value: share(cores.value),
        lower: share(cores.lower),
        upper: share(cores.upper),
        source: format!("{} / {all} cores {whose}", cores.source),
        ..cores.clone()
    }
}

fn cores_peak(run: &Accumulator, mean: &Figure) -> Figure {
    let source = match (run.clock, run.cgroup.cpu.usage) {
        (Some(_), _) => "perf task-clock between ticks",
        (None, Some(_)) => "cgroup cpu.stat between ticks",
        (None, None) => "/proc/PID/stat",
    };
    peak_cores(run, run.cores.peak, mean, source, "the run was too short for a rate")
}

/// The lower bound of a sampled peak of cores, where the mean has this one.
///
/// Without a counter of the kernel for the whole run it is from clock ticks of `/proc/PID/stat`:
/// one of them in a short window may overstate it. A peak is never below the mean.
pub(super) fn least_cores(run: &Accumulator, peak: f64, mean: Option<f64>) -> f64 {
    match run.clock.is_none() && run.cgroup.cpu.usage.is_none() {
        true => mean.unwrap_or(0.0).min(peak).max(0.0),
        false => peak,
    }
}

/// CPU utilisation is at most the number of cores: what is above is the clocks' granularity.
pub(super) fn possible(run: &Accumulator, cores: f64) -> f64 {
    cores.min(f64::from(run.manifest.host.cores))
}

/// Why there is no sample of the processes.
pub(super) fn not_sampled(run: &Accumulator) -> &'static str {
    if run.tree.total > 0 { TOO_SHORT } else { NO_PROCESS_SAMPLED }
}

/// Why nothing is known of the processes.
pub(super) fn missing<'a>(run: &'a Accumulator, otherwise: &'a str) -> &'a str {
    if run.manifest.collects(SourceId::Process) {
        run.reason(SourceId::Process).unwrap_or(otherwise)
    } else {
        NOT_COLLECTED
    }
}

fn io(run: &Accumulator, of: fn(&Io) -> u64) -> Figure {
    if is_attached(run) {
        return attached_run::io(run, of);
    }
    let alive = of(&Io::of_counts(run.tree.io_of_live_processes())) as f64;
    match run.final_counters() {
        Some(account) => match &account.io {
            Some(reaped) => {
                let count = (of(reaped) as f64 + alive - of(run.helpers.io()) as f64).max(0.0);
                exact_or_at_least(run, count, "/proc/self/io of the reaper")
            }
            None => Figure::unknown(
                "/proc/self/io",
                run.reason(FaultSource::Io).unwrap_or(NO_PROCESS_SAMPLED),
            ),
        },
        None if alive > 0.0 => Figure::sampled(alive, "/proc/PID/io").because(NO_END),
        None => Figure::unknown("/proc/PID/io", NO_END),
    }
}

fn counted(run: &Accumulator, of: fn(&Usage) -> u64, alive: u64) -> Figure {
    let count = run.helpers.count_without_helpers((of(&ended(run)) + alive) as f64, of);
    let figure = match run.final_counters() {
        _ if is_attached(run) => attached_run::counted(run, count),
        None => Figure::unknown("wait4", NO_END).of_final_counters(),
        Some(_) => exact_or_at_least(run, count, "wait4"),
    };
    run.helpers.bound_count(figure, of)
}

/// A count of what weigh has reaped.
fn exact_or_at_least(run: &Accumulator, value: f64, source: &str) -> Figure {
    reaped_count(
        value,
        source,
        run.no_child_was_auto_reaped(),
        wait4_method(run),
        run.why_orphans_may_be_missing(),
    )
}

/// The method of a count from `wait4`, where no task clock shows whether it is complete: not exact
/// when orphans are reparented to another process.
fn wait4_method(run: &Accumulator) -> Method {
    if run.why_orphans_may_be_missing().is_some() { Method::Sampled } else { Method::Exact }
}
