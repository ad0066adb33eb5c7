//! The figures of a run, each with its method, bounds and source.

mod followed;
mod gpus;
mod group;
mod memory;
mod network;
mod parts;

pub use parts::of_parts;

use super::accumulate::Accumulator;
use super::curve::Peak;
use super::figure::{Figure, Figures, Method};
use crate::parse::io::Io;

const NOT_COLLECTED: &str = "the process collector was left out";
pub(super) const NOT_SEEN: &str = "no process of the run could be read";
pub(super) const SHORT: &str = "what lasted less than a tick may not have been seen";
const NO_END: &str = "the end of the run is not recorded";

/// Everything about the run as a whole.
pub fn of_run(run: &Accumulator) -> Figures {
    let mut figures = Figures::new();
    let mut put = |name: &str, figure: Figure| {
        figures.insert(name.to_owned(), figure);
    };
    let cpu = cpu_time(run);
    let (mean, peak) = (cores_mean(run, &cpu), cores_peak(run, &cpu));
    put("cpu_utilization_mean_ratio", share_of_cores(run, &mean));
    put("cpu_utilization_peak_ratio", share_of_cores(run, &peak));
    put("cpu_cores_mean", mean);
    put("cpu_cores_peak", peak);
    let (user, system) = user_and_system(run, &cpu);
    put("cpu_user_seconds", user);
    put("cpu_system_seconds", system);
    put("cpu_time_seconds", cpu);
    put("memory_peak_bytes", group::memory_peak(run, memory::peak(run)));
    let levels = &run.tree.combined;
    put("memory_rss_peak_bytes", level(run, levels.rss, "/proc/PID/stat rss, summed"));
    put("memory_pss_peak_bytes", level(run, levels.pss, "/proc/PID/smaps_rollup, summed"));
    put("memory_uss_peak_bytes", level(run, levels.uss, "/proc/PID/smaps_rollup, summed"));
    put("memory_mean_bytes", group::memory_mean(run).unwrap_or_else(|| memory::mean(run)));
    let swap = || level(run, levels.swap, "/proc/PID/status VmSwap, summed");
    put("swap_peak_bytes", group::swap_peak(run).unwrap_or_else(swap));
    put("threads_peak", level(run, levels.threads, "/proc/PID/stat num_threads, summed"));
    put("files_open_peak", level(run, levels.files, "/proc/PID/fd, summed"));
    put("io_read_bytes", io(run, |io| io.read_bytes));
    put("io_written_bytes", io(run, |io| io.written_bytes));
    put("io_read_calls", io(run, |io| io.read_calls));
    put("io_write_calls", io(run, |io| io.write_calls));
    let seen = io(run, |io| io.storage_read_bytes);
    put("io_storage_read_bytes", group::storage(run, |io| io.read, seen));
    let seen = io(run, |io| io.storage_written_bytes);
    put("io_storage_written_bytes", group::storage(run, |io| io.written, seen));
    put("network_sent_bytes", network::sent(run));
    put("network_received_bytes", network::received(run));
    let alive = |of: fn(&Alive) -> Option<u64>| run.tree.sum_of_alive(|_, events| of(events));
    let ended = ended(run);
    put("page_faults_major", counted(run, ended.major_faults, alive(|e| e.faults_major)));
    put("page_faults_minor", counted(run, ended.minor_faults, alive(|e| e.faults_minor)));
    let voluntary = alive(|e| e.switches_voluntary);
    put("context_switches_voluntary", counted(run, ended.voluntary_switches, voluntary));
    let involuntary = alive(|e| e.switches_involuntary);
    put("context_switches_involuntary", counted(run, ended.involuntary_switches, involuntary));
    group::add(run, &mut figures);
    gpus::add(run, &mut figures);
    network::add(run, &mut figures);
    within_the_run(run, &mut figures);
    figures
}

/// Moments are counted from just before exec, and the last look is just after the exit.
fn within_the_run(run: &Accumulator, figures: &mut Figures) {
    let duration = run.duration();
    for at in figures.values_mut().filter_map(|figure| figure.at_seconds.as_mut()) {
        *at = at.min(duration);
    }
}

type Alive = crate::collect::process::ProcessEvents;

/// Whether weigh did not start what was measured, and so waits for nobody.
fn is_followed(run: &Accumulator) -> bool {
    run.manifest.is_followed()
}

/// What those who have ended used: as `wait4` said, or as they were last seen.
fn ended(run: &Accumulator) -> crate::host::wait::Usage {
    let [minor, major, _] = run.tree.left_behind().faults;
    let [voluntary, involuntary] = run.tree.left_behind().switches;
    let mut usage = reaped(run);
    usage.minor_faults += minor;
    usage.major_faults += major;
    usage.voluntary_switches += voluntary;
    usage.involuntary_switches += involuntary;
    usage
}

pub(super) fn reaped(run: &Accumulator) -> crate::host::wait::Usage {
    run.account.as_ref().map_or(run.reaped, |end| end.reaped)
}

/// All CPU time: the kernel's count, or what was reaped and what is still alive.
fn cpu_time(run: &Accumulator) -> Figure {
    if let Some(figure) = group::cpu_time(run) {
        return figure;
    }
    let waited = reaped(run).cpu_seconds() + run.tree.cpu_of_alive();
    if is_followed(run) {
        return followed::cpu_time(run);
    }
    let Some(end) = &run.account else {
        let seen = (run.tree.total > 0).then_some(waited);
        return match run.clock.or(seen) {
            Some(value) => Figure::sampled(value, "the last tick").because(NO_END),
            None => Figure::unknown("the last tick", NO_END),
        };
    };
    match end.task_clock_seconds {
        // wait4 never hears of a child nobody waits for. The task clock does, but it also runs
        // while an interrupt or another guest of the hypervisor has the CPU.
        Some(clock) => {
            let elsewhere = run.node.elsewhere();
            let (value, lower) = if run.lost_children() == Some(true) {
                (clock, waited.max(clock - elsewhere))
            } else {
                (waited, waited)
            };
            let upper = Some(clock.max(waited));
            Figure::between(value, Method::Exact, lower, upper, "wait4, perf task-clock")
        }
        None => {
            let why = run.reason("task-clock").unwrap_or(match run.manifest.is_merged() {
                true => "the task clocks of several machines cannot be put together",
                false => "the task-clock collector was left out",
            });
            match run.lost_children() {
                Some(true) => Figure::sampled(run.cpu_seen(), "/proc/PID/stat")
                    .because(&format!("children nobody waited for are in it as last seen; {why}")),
                _ => Figure::between(waited, Method::Exact, waited, None, "wait4")
                    .because(&format!("children nobody waits for are not in it; {why}")),
            }
        }
    }
}

/// The kernel splits the exact sum by what it found running at its clock ticks.
fn user_and_system(run: &Accumulator, cpu: &Figure) -> (Figure, Figure) {
    if let Some(figures) = group::user_and_system(run) {
        return figures;
    }
    if is_followed(run) {
        return followed::user_and_system(run, cpu);
    }
    let reaped = reaped(run);
    let total = reaped.cpu_seconds();
    let (Some(value), true) = (cpu.value, total > 0.0) else {
        let unknown = Figure::unknown("wait4", NO_END);
        return (unknown.clone(), unknown);
    };
    let missing = (value - total).max(0.0);
    if missing > total {
        let reason = "most of it is of children nobody waited for, of whom only the sum is known";
        let figure = |part: f64| Figure {
            lower: Some(part),
            upper: Some(part + missing),
            ..Figure::unknown("wait4", reason)
        };
        return (figure(reaped.user_seconds), figure(reaped.system_seconds));
    }
    let figure = |part: f64| {
        let scaled = part * (value / total).max(1.0);
        let upper = (part + missing).max(scaled);
        let mut figure = Figure::between(
            scaled,
            Method::Estimated,
            part,
            Some(upper),
            "wait4, split by the kernel's clock ticks",
        );
        figure.reason = cpu.upper.is_none().then(|| cpu.reason.clone()).flatten();
        figure
    };
    (figure(reaped.user_seconds), figure(reaped.system_seconds))
}

fn cores_mean(run: &Accumulator, cpu: &Figure) -> Figure {
    let duration = run.duration();
    let Some(value) = cpu.value.filter(|_| duration > 0.0) else {
        let why = cpu.reason.as_deref().filter(|_| cpu.value.is_none());
        return Figure::unknown("CPU time / duration", why.unwrap_or("the run has no duration"));
    };
    let mut figure = cpu.clone();
    figure.value = Some(value / duration);
    figure.lower = cpu.lower.map(|bound| bound / duration);
    figure.upper = cpu.upper.map(|bound| bound / duration);
    figure.source = "CPU time / duration".to_owned();
    figure
}

/// Cores as a share of those that were expected, or of all that the run may use.
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

fn cores_peak(run: &Accumulator, cpu: &Figure) -> Figure {
    let mean = cpu.value.map(|value| value / run.duration()).filter(|mean| mean.is_finite());
    let source = match (run.clock, run.group.cpu.usage) {
        (Some(_), _) => "perf task-clock between ticks",
        (None, Some(_)) => "cgroup cpu.stat between ticks",
        (None, None) => "/proc/PID/stat",
    };
    match (run.cores.peak.value, mean) {
        // A peak below the mean only says that no tick fell into the busy part.
        (Some(peak), mean) if mean.is_none_or(|mean| peak >= mean) => {
            Figure::sampled(possible(run, peak), source).at(run.cores.peak.at).because(SHORT)
        }
        (_, Some(mean)) => Figure::sampled(mean, "CPU time / duration").because(SHORT),
        (_, None) => Figure::unknown(source, "the run was too short for a rate"),
    }
}

/// Nothing keeps more cores busy than there are: what is above is the clocks' granularity.
pub(super) fn possible(run: &Accumulator, cores: f64) -> f64 {
    cores.min(f64::from(run.manifest.host.cores))
}

fn level(run: &Accumulator, peak: Peak, source: &str) -> Figure {
    match peak.value {
        Some(value) => Figure::sampled(value, source).at(peak.at).because(SHORT),
        None => Figure::unknown(source, missing(run, NOT_SEEN)),
    }
}

/// Why nothing is known of the processes.
pub(super) fn missing<'a>(run: &'a Accumulator, otherwise: &'a str) -> &'a str {
    if run.manifest.collectors.iter().any(|name| name == "process") {
        run.reason("process").unwrap_or(otherwise)
    } else {
        NOT_COLLECTED
    }
}

fn io(run: &Accumulator, of: fn(&Io) -> u64) -> Figure {
    if is_followed(run) {
        return followed::io(run, of);
    }
    let alive = run.tree.sum_of_alive(|io, _| {
        Some(of(&Io {
            read_bytes: io.read?,
            written_bytes: io.written?,
            read_calls: io.read_calls?,
            write_calls: io.write_calls?,
            storage_read_bytes: io.storage_read?,
            storage_written_bytes: io.storage_written?,
            cancelled_bytes: 0,
        }))
    });
    match &run.account {
        Some(end) => match &end.io {
            Some(reaped) => {
                complete_or_more(run, of(reaped) as f64 + alive, "/proc/self/io of the reaper")
            }
            None => Figure::unknown("/proc/self/io", run.reason("io").unwrap_or(NOT_SEEN)),
        },
        None if alive > 0.0 => Figure::sampled(alive, "/proc/PID/io").because(NO_END),
        None => Figure::unknown("/proc/PID/io", NO_END),
    }
}

fn counted(run: &Accumulator, ended: u64, alive: f64) -> Figure {
    if is_followed(run) {
        return followed::counted(run, ended as f64 + alive);
    }
    if run.account.is_none() {
        return Figure::unknown("wait4", NO_END);
    }
    complete_or_more(run, ended as f64 + alive, "wait4")
}

/// A count that is exact, unless there were children that nobody waited for.
fn complete_or_more(run: &Accumulator, value: f64, source: &str) -> Figure {
    let missing = "children that nobody waited for, if there were any, are not in it";
    match run.clocks_agree() {
        Some(true) => Figure::exact(value, source),
        Some(false) => Figure::sampled(value, source).because(missing),
        None => Figure::between(value, Method::Exact, value, None, source).because(missing),
    }
}
