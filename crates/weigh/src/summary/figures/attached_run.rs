//! Figures of processes that weigh attached to and did not start: it does not reap them, so the
//! samples are all that is known.

use super::super::accumulate::Accumulator;
use super::super::evidence::CpuEvidence;
use super::super::figure::{Figure, Method};
use super::{NO_END, missing};
use crate::model::Io;

const STAT: &str = "/proc/PID/stat since weigh attached";
const NO_PROCESS_SAMPLED: &str = "no process of the target could be sampled";
const LAST: &str = "what a process used between its last sample and its exit may be missing";

/// A clock tick of `/proc/PID/stat`: user and system time are each truncated to it.
const CLOCK_TICK: f64 = 0.01;

/// CPU time of all attached processes.
///
/// Upper bound: what all cores can have done between the last sample of a process and its exit.
pub(super) fn cpu_time(run: &Accumulator) -> Figure {
    if run.tree.total == 0 {
        return Figure::unknown(STAT, missing(run, NO_PROCESS_SAMPLED));
    }
    let value = run.helpers.cpu_without_helpers(run.tree.cpu_of_live_processes());
    if let Some((clock, began)) = run.attached_clock() {
        return clocked(run, value, clock, began);
    }
    let after_last_samples = run.gaps * f64::from(run.manifest.host.cores);
    let cut_off = 2.0 * CLOCK_TICK * run.tree.total as f64;
    let unsampled = (!run.may_miss_processes()).then_some(after_last_samples + cut_off);
    let figure = CpuEvidence::Sampled { seconds: value, unsampled }.figure(STAT);
    match run.end {
        None => figure.because(NO_END),
        Some(_) if run.gaps > 0.0 || unsampled.is_none() => figure.because(LAST),
        Some(_) => figure,
    }
}

/// CPU time by the kernel's task clocks: they also run while an interrupt or another guest has the
/// CPU, and were opened slightly after weigh attached.
fn clocked(run: &Accumulator, sampled: f64, clock: f64, began: f64) -> Figure {
    let before_clock_opened = began * f64::from(run.manifest.host.cores);
    let irq_and_steal = run.node.irq_and_steal();
    CpuEvidence::AttachedClock { clock, sampled, irq_and_steal, before_clock_opened }
        .figure("perf task-clock since weigh attached")
}

/// CPU time of the main process and of the others, when so much was sampled of the main one.
pub(super) fn main_and_others(run: &Accumulator, sampled: f64, all: &Figure) -> (Figure, Figure) {
    if run.tree.total <= 1 && !run.may_miss_processes() {
        return (all.clone(), Figure::exact(0.0, "there was no other process"));
    }
    let others = (run.tree.cpu_of_live_processes() - sampled).max(0.0);
    let upper = |other: f64| all.upper.map(|upper| (upper - other).max(0.0));
    let figure = |sampled: f64, other: f64| {
        let upper = upper(other).map(|upper| upper.max(sampled));
        Figure::between(sampled, Method::Sampled, sampled, upper, STAT).because(LAST)
    };
    (figure(sampled, others), figure(others, sampled))
}

/// The kernel's own split of the sampled time.
pub(super) fn user_and_system(run: &Accumulator, cpu: &Figure) -> (Figure, Figure) {
    if cpu.value.is_none() {
        let unknown = Figure::unknown(STAT, missing(run, NO_PROCESS_SAMPLED));
        return (unknown.clone(), unknown);
    }
    let (user, system) = run.tree.split_of_alive();
    // What a clock counted beyond the samples is split as those.
    let more = cpu.value.map_or(1.0, |value| (value / (user + system)).max(1.0));
    let more = if more.is_finite() { more } else { 1.0 };
    let figure = |part: f64, other: f64| {
        let upper = cpu.upper.map(|upper| (upper - other).max(part * more));
        let figure = Figure::between(part * more, Method::Estimated, part, upper, STAT);
        Figure { reason: cpu.reason.clone(), ..figure }
    };
    (figure(user, system), figure(system, user))
}

/// One count of I/O.
pub(super) fn io(run: &Accumulator, of: fn(&Io) -> u64) -> Figure {
    const SOURCE: &str = "/proc/PID/io since weigh attached";
    let Some(all) = run.tree.io() else {
        return Figure::unknown(SOURCE, missing(run, "no process's I/O could be read"));
    };
    let all = Io::of_counts(all);
    sampled(run, of(&all.less(run.helpers.io())) as f64, SOURCE)
}

/// A count of page faults or context switches.
pub(super) fn counted(run: &Accumulator, value: f64) -> Figure {
    const SOURCE: &str = "/proc/PID/stat and status since weigh attached";
    if run.tree.total == 0 {
        return Figure::unknown(SOURCE, missing(run, NO_PROCESS_SAMPLED));
    }
    sampled(run, value, SOURCE)
}

fn sampled(run: &Accumulator, value: f64, source: &str) -> Figure {
    Figure::sampled(value, source).because(if run.end.is_some() { LAST } else { NO_END })
}
