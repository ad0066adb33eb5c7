//! The figures of a run, each with its method, bounds and source.

use super::accumulate::Accumulator;
use super::curve::Peak;
use super::figure::{Figure, Figures, Method};
use super::tree::Levels;
use super::{Part, Parts};
use crate::parse::io::Io;

const NOT_COLLECTED: &str = "the process collector was left out";
const NOT_SEEN: &str = "no process of the run could be read";
const SHORT: &str = "what lasted less than a tick may not have been seen";
const UNSEEN: &str = "processes may have come and gone between two ticks, and their sizes add up";
const NO_END: &str = "the end of the run is not recorded";
/// A clock tick of `/proc/PID/stat`: CPU times are cut off below it.
const CLOCK_TICK: f64 = 0.01;

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
    put("memory_peak_bytes", memory_peak(run));
    let levels = &run.tree.combined;
    put("memory_rss_peak_bytes", level(run, levels.rss, "/proc/PID/stat rss, summed"));
    put("memory_pss_peak_bytes", level(run, levels.pss, "/proc/PID/smaps_rollup, summed"));
    put("memory_uss_peak_bytes", level(run, levels.uss, "/proc/PID/smaps_rollup, summed"));
    put("memory_mean_bytes", memory_mean(run));
    put("swap_peak_bytes", level(run, levels.swap, "/proc/PID/status VmSwap, summed"));
    put("threads_peak", level(run, levels.threads, "/proc/PID/stat num_threads, summed"));
    put("files_open_peak", level(run, levels.files, "/proc/PID/fd, summed"));
    put("io_read_bytes", io(run, |io| io.read_bytes));
    put("io_written_bytes", io(run, |io| io.written_bytes));
    put("io_read_calls", io(run, |io| io.read_calls));
    put("io_write_calls", io(run, |io| io.write_calls));
    put("io_storage_read_bytes", io(run, |io| io.storage_read_bytes));
    put("io_storage_written_bytes", io(run, |io| io.storage_written_bytes));
    let alive = |of: fn(&Alive) -> Option<u64>| run.tree.sum_of_alive(|_, events| of(events));
    let reaped = reaped(run);
    put("page_faults_major", counted(run, reaped.major_faults, alive(|e| e.faults_major)));
    put("page_faults_minor", counted(run, reaped.minor_faults, alive(|e| e.faults_minor)));
    let voluntary = alive(|e| e.switches_voluntary);
    put("context_switches_voluntary", counted(run, reaped.voluntary_switches, voluntary));
    let involuntary = alive(|e| e.switches_involuntary);
    put("context_switches_involuntary", counted(run, reaped.involuntary_switches, involuntary));
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

fn reaped(run: &Accumulator) -> crate::host::wait::Usage {
    run.end.as_ref().map_or(run.reaped, |end| end.reaped)
}

/// All CPU time: the kernel's count, or what was reaped and what is still alive.
fn cpu_time(run: &Accumulator) -> Figure {
    let waited = reaped(run).cpu_seconds() + run.tree.cpu_of_alive();
    let Some(end) = &run.end else {
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
            let why = run.reason("task-clock").unwrap_or("the task-clock collector was left out");
            let figure = Figure::between(waited, Method::Exact, waited, None, "wait4");
            figure.because(&format!("children nobody waits for are not in it; {why}"))
        }
    }
}

/// The kernel splits the exact sum by what it found running at its clock ticks.
fn user_and_system(run: &Accumulator, cpu: &Figure) -> (Figure, Figure) {
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
        return Figure::unknown("CPU time / duration", "the run has no duration");
    };
    let mut figure = cpu.clone();
    figure.value = Some(value / duration);
    figure.lower = cpu.lower.map(|bound| bound / duration);
    figure.upper = cpu.upper.map(|bound| bound / duration);
    figure.source = "CPU time / duration".to_owned();
    figure
}

/// Cores as a share of those that were expected, or of all that the run may use.
fn share_of_cores(run: &Accumulator, cores: &Figure) -> Figure {
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
    let source =
        if run.clock.is_some() { "perf task-clock between ticks" } else { "/proc/PID/stat" };
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
fn possible(run: &Accumulator, cores: f64) -> f64 {
    cores.min(f64::from(run.manifest.host.cores))
}

/// The most memory the tree had at once.
///
/// Not below: the largest sum of proportional shares, nor the largest single
/// process. Not above: the largest sizes that processes alive together ever had.
fn memory_peak(run: &Accumulator) -> Figure {
    let tree = &run.tree;
    let mut lower = tree.largest;
    for peak in [tree.combined.pss, command_exit(run).unwrap_or_default()] {
        if let Some(value) = peak.value {
            lower.see(value, peak.at);
        }
    }
    let alone = tree.total <= 1;
    let source = if alone { "VmHWM, ru_maxrss" } else { "smaps_rollup, VmHWM, ru_maxrss" };
    // Nothing was seen of it, and what wait4 says may be from before exec: at most that.
    let Some(value) = lower.value.or(tree.main_exit.value) else {
        return Figure::unknown(source, missing(run, NOT_SEEN));
    };
    let at = if lower.value.is_some() { lower.at } else { tree.main_exit.at };
    let known = lower.value.unwrap_or(0.0);
    let upper = memory_ceiling(run).map(|upper| upper.max(value));
    let method = match upper {
        Some(upper) if alone && upper == known => Method::Exact,
        _ => Method::Sampled,
    };
    let figure = Figure::between(value, method, known, upper, source).at(at);
    match upper {
        Some(_) => figure,
        None => figure.because(if run.end.is_none() { NO_END } else { UNSEEN }),
    }
}

/// The size with which the command's process was reaped, if that is the command's.
///
/// `ru_maxrss` survives exec: it says nothing that is below what the process had before.
fn command_exit(run: &Accumulator) -> Option<Peak> {
    // The way from there to exec itself takes a few pages more.
    const A_FEW_PAGES: f64 = 256.0 * 1024.0;
    let before = run.end.as_ref()?.rss_before_exec_bytes as f64;
    let peak = run.tree.main_exit;
    peak.value.is_some_and(|value| value > before + A_FEW_PAGES).then_some(peak)
}

/// What the peak is certainly not above, when that is known.
fn memory_ceiling(run: &Accumulator) -> Option<f64> {
    // Those who came and went unseen, or whom nobody waited for, may have had any size.
    if run.end.is_none() || run.some_unseen() || run.lost_children() == Some(true) {
        return None;
    }
    run.tree.ceiling(reaped(run).largest_rss_bytes as f64)
}

fn memory_mean(run: &Accumulator) -> Figure {
    let source = "/proc/PID/smaps_rollup, or stat, over time";
    match run.tree.mean.until(run.duration()) {
        Some(mean) => {
            Figure::between(mean, Method::Sampled, 0.0, memory_ceiling(run), source).because(SHORT)
        }
        None => Figure::unknown(source, missing(run, NOT_SEEN)),
    }
}

fn level(run: &Accumulator, peak: Peak, source: &str) -> Figure {
    match peak.value {
        Some(value) => Figure::sampled(value, source).at(peak.at).because(SHORT),
        None => Figure::unknown(source, missing(run, NOT_SEEN)),
    }
}

/// Why nothing is known of the processes.
fn missing<'a>(run: &'a Accumulator, otherwise: &'a str) -> &'a str {
    if run.manifest.collectors.iter().any(|name| name == "process") {
        run.reason("process").unwrap_or(otherwise)
    } else {
        NOT_COLLECTED
    }
}

fn io(run: &Accumulator, of: fn(&Io) -> u64) -> Figure {
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
    match &run.end {
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

fn counted(run: &Accumulator, reaped: u64, alive: f64) -> Figure {
    if run.end.is_none() {
        return Figure::unknown("wait4", NO_END);
    }
    complete_or_more(run, reaped as f64 + alive, "wait4")
}

/// A count that is exact, unless the task clock has seen children that nobody waited for.
fn complete_or_more(run: &Accumulator, value: f64, source: &str) -> Figure {
    let missing = "children that nobody waited for, if there were any, are not in it";
    match run.clocks_agree() {
        Some(true) => Figure::exact(value, source),
        Some(false) => Figure::sampled(value, source).because(missing),
        None => Figure::between(value, Method::Exact, value, None, source).because(missing),
    }
}

/// The same figures for the main process, the others, all of them, and the machine.
pub fn of_parts(run: &Accumulator) -> Parts {
    let all = of_run(run);
    let main = main_cpu(run);
    let others = descendants_cpu(&main, &all);
    let named = |name: &str| all.get(name).cloned().unwrap_or_default();
    let mut parts = Parts {
        main: part(run, &run.tree.main_levels, main),
        descendants: part(run, &run.tree.descendants, others),
        combined: part(run, &run.tree.combined, named("cpu_time_seconds")),
        system: system(run),
    };
    for name in ["cpu_cores_mean", "cpu_cores_peak", "memory_peak_bytes"] {
        parts.combined.figures.insert(name.to_owned(), named(name));
    }
    if let Some(peak) = run.main_cores.peak.value {
        let peak = possible(run, peak);
        let figure = Figure::sampled(peak, "/proc/PID/stat").at(run.main_cores.peak.at);
        parts.main.figures.insert("cpu_cores_peak".to_owned(), figure.because(SHORT));
    }
    for part in [&mut parts.main, &mut parts.descendants, &mut parts.system] {
        within_the_run(run, &mut part.figures);
    }
    parts
}

fn main_cpu(run: &Accumulator) -> Figure {
    let source = "/proc/PID/stat";
    match run.tree.main_cpu() {
        Some(value) if run.end.is_some() => {
            // User and system are each cut off at a clock tick.
            let upper = value + 2.0 * CLOCK_TICK;
            Figure::between(value, Method::Exact, value, Some(upper), source)
        }
        Some(value) => Figure::sampled(value, source).because(NO_END),
        None => Figure::unknown(source, missing(run, NOT_SEEN)),
    }
}

fn descendants_cpu(main: &Figure, all: &Figures) -> Figure {
    let source = "all less the main process";
    let Some((all, value)) = all.get("cpu_time_seconds").zip(main.value) else {
        return Figure::unknown(source, main.reason.as_deref().unwrap_or(NOT_SEEN));
    };
    let less = |bound: Option<f64>, by: Option<f64>| Some((bound? - by?).max(0.0));
    Figure {
        value: less(all.value, Some(value)),
        method: all.method,
        lower: less(all.lower, main.upper),
        upper: less(all.upper, main.lower),
        source: source.to_owned(),
        at_seconds: None,
        reason: all.reason.clone(),
    }
}

fn part(run: &Accumulator, levels: &Levels, cpu: Figure) -> Part {
    let mut figures = Figures::new();
    figures.insert("cpu_time_seconds".to_owned(), cpu);
    for (name, peak, source) in [
        ("memory_rss_peak_bytes", levels.rss, "/proc/PID/stat rss"),
        ("memory_pss_peak_bytes", levels.pss, "/proc/PID/smaps_rollup"),
        ("memory_uss_peak_bytes", levels.uss, "/proc/PID/smaps_rollup"),
        ("threads_peak", levels.threads, "/proc/PID/stat num_threads"),
    ] {
        figures.insert(name.to_owned(), level(run, peak, source));
    }
    Part { figures }
}

/// The machine, whoever used it.
fn system(run: &Accumulator) -> Part {
    let mut figures = Figures::new();
    let (stat, meminfo) = ("/proc/stat", "/proc/meminfo MemTotal - MemAvailable");
    let why = |source: &str| {
        run.reason(source).unwrap_or("it was looked at less than twice, or left out").to_owned()
    };
    let (time, share) = match run.node.cpu() {
        Some((busy, all)) => (Figure::exact(busy, stat), Figure::exact(busy / all, stat)),
        None => (Figure::unknown(stat, &why("cpu")), Figure::unknown(stat, &why("cpu"))),
    };
    figures.insert("cpu_time_seconds".to_owned(), time);
    figures.insert("cpu_utilization_mean_ratio".to_owned(), share);
    let peak = match run.node.busy.peak.value {
        Some(peak) => {
            Figure::sampled(possible(run, peak), stat).at(run.node.busy.peak.at).because(SHORT)
        }
        None => Figure::unknown(stat, &why("cpu")),
    };
    figures.insert("cpu_cores_peak".to_owned(), peak);
    let used = match run.node.used.value {
        Some(used) => Figure::sampled(used, meminfo).at(run.node.used.at).because(SHORT),
        None => Figure::unknown(meminfo, &why("memory")),
    };
    figures.insert("memory_used_peak_bytes".to_owned(), used);
    let mean = match run.node.used_mean.until(run.duration()) {
        Some(mean) => Figure::sampled(mean, meminfo).because(SHORT),
        None => Figure::unknown(meminfo, &why("memory")),
    };
    figures.insert("memory_used_mean_bytes".to_owned(), mean);
    Part { figures }
}
