//! Figures of a cgroup: the kernel counts all processes in it, however short-lived, so its counters
//! are exact.

use super::super::accumulate::Accumulator;
use super::super::curve::Peak;
use super::super::evidence::{CgroupMemory, CpuEvidence};
use super::super::figure::{Figure, Figures, Method};
use super::{NO_END, SHORT};
use crate::catalog::metrics::{GroupCpu, GroupIo, GroupMemory};
use crate::catalog::{FigureId, Row, Scope, SourceId};
use crate::model::FaultSource;
use crate::record::Target;

const CPU: &str = "cgroup cpu.stat (v1: cpuacct.usage)";
const STAT: &str = "cgroup memory.stat";
const IO: &str = "cgroup io.stat (v1: blkio.throttle)";
const EVENTS: &str = "cgroup memory.events (v1: memory.oom_control)";
const THROTTLED: &str = "cgroup cpu.stat";

/// Whether an existing cgroup is monitored, and not one that was made for a command.
fn is_attached(run: &Accumulator) -> bool {
    matches!(run.manifest.target, Some(Target::Cgroup { .. }))
}

/// The baseline of an existing cgroup is its counters when weigh attaches.
fn counter(run: &Accumulator, source: &str) -> String {
    if run.cgroup.is_own() { source.to_owned() } else { format!("{source} since weigh attached") }
}

/// A counter of the cgroup: exact when it was read after everything else.
fn counted(run: &Accumulator, value: f64, source: &str) -> Figure {
    match why_not_to_the_end(run) {
        None => Figure::exact(value, source),
        Some(why) => Figure::sampled(value, source).because(why),
    }
}

/// Why the last usage of the cgroup may not have been read.
fn why_not_to_the_end(run: &Accumulator) -> Option<&str> {
    if run.end.is_none() {
        return Some(NO_END);
    }
    if run.group_was_sampled_last() {
        return None;
    }
    Some(run.reason(SourceId::Cgroup).unwrap_or("the group could not be read at the end"))
}

/// Why nothing is known of a group of metrics.
fn why(run: &Accumulator, group: &'static str) -> String {
    let why = run
        .reason(FaultSource::Group(Scope::Cgroup, group))
        .or_else(|| run.reason(SourceId::Cgroup));
    let is_collected = run.manifest.collects(SourceId::Cgroup);
    let otherwise = if is_collected {
        "the kernel does not report it for this group"
    } else {
        "the cgroup collector was left out"
    };
    why.unwrap_or(otherwise).to_owned()
}

/// All CPU time of the cgroup.
pub(super) fn cpu_time(run: &Accumulator) -> Option<Figure> {
    if run.left_its_group() {
        return None;
    }
    let why = why_not_to_the_end(run);
    let evidence = CpuEvidence::Cgroup { seconds: run.group_cpu()?, is_final: why.is_none() };
    let figure = evidence.figure(&counter(run, CPU));
    Some(match why {
        None => figure,
        Some(why) => figure.because(why),
    })
}

/// The kernel splits the exact sum by what it found running at its clock ticks. For a command,
/// `wait4` is finer.
pub(super) fn user_and_system(run: &Accumulator) -> Option<(Figure, Figure)> {
    if run.cgroup.is_own() {
        return None;
    }
    let (user, system) = run.cgroup.cpu.user.zip(run.cgroup.cpu.system)?;
    let reason = why_not_to_the_end(run);
    let upper = run.cgroup.cpu.usage.filter(|_| reason.is_none());
    let figure = |part: f64| {
        let upper = upper.map(|all| all.max(part));
        let figure = Figure::between(part, Method::Estimated, 0.0, upper, &counter(run, CPU));
        reason.map_or(figure.clone(), |why| figure.because(why))
    };
    Some((figure(user), figure(system)))
}

/// What the kernel counted of the memory of the cgroup, unless processes have left it.
pub(super) fn memory(run: &Accumulator) -> Option<CgroupMemory<'_>> {
    let (group, not_final) = (&run.cgroup, why_not_to_the_end(run));
    if run.left_its_group() {
        return None;
    }
    if let Some(peak) = group.risen() {
        return Some(CgroupMemory::Peak { peak, not_final });
    }
    // Without the kernel's high-water mark, the samples of a command's processes are better.
    let mark_before = group.mark_before();
    let current = CgroupMemory::Current { peak: group.current, mark_before, not_final };
    (!group.is_own()).then_some(current)
}

/// The memory of a cgroup that weigh attached to, over time.
pub(super) fn memory_mean(run: &Accumulator) -> Option<f64> {
    run.cgroup.mean.until(run.duration()).filter(|_| is_attached(run))
}

/// Swap of the cgroup.
pub(super) fn swap_peak(run: &Accumulator) -> Option<Figure> {
    let value = run.cgroup.swap.value.filter(|_| is_attached(run))?;
    let at = run.cgroup.swap.at;
    let source = "cgroup memory.swap.current (v1: memory.stat total_swap)";
    Some(Figure::sampled(value, source).at(at).because(SHORT))
}

/// Bytes to or from storage; `sampled` is what is known of the processes.
pub(super) fn storage(
    run: &Accumulator,
    of: fn(&GroupIo) -> Option<u64>,
    sampled: Figure,
) -> Figure {
    let count = of(&run.cgroup.io).filter(|_| !run.left_its_group());
    let Some(count) = count.map(|count| count as f64) else { return sampled };
    match run.reason(FaultSource::Group(Scope::Cgroup, GroupIo::GROUP)) {
        None => counted(run, count, &counter(run, IO)),
        // The cgroup misses something, and so may the samples of the processes.
        Some(why) if sampled.value.is_none_or(|value| value < count) => {
            Figure::sampled(count, &counter(run, IO)).because(why)
        }
        Some(_) => sampled,
    }
}

/// Figures that only cgroups have.
pub(super) fn add(run: &Accumulator, figures: &mut Figures) {
    let group = &run.cgroup;
    if group.sampled_at.is_none() && !is_attached(run) {
        return;
    }
    let gauge_peak = |peak: Peak, of: &'static str| match peak.value {
        Some(value) => Figure::sampled(value, STAT).at(peak.at).because(SHORT),
        None => Figure::unknown(STAT, &why(run, of)),
    };
    let count = |value: Option<f64>, source: &str, of: &'static str| match value {
        Some(value) => counted(run, value, &counter(run, source)),
        None => Figure::unknown(source, &why(run, of)),
    };
    let none = |source| Figure::unknown(source, &why(run, GroupIo::GROUP));
    let more = [
        (FigureId::MemoryAnonymousPeak, gauge_peak(group.anonymous, GroupMemory::GROUP)),
        (FigureId::MemoryCachePeak, gauge_peak(group.cache, GroupMemory::GROUP)),
        (
            FigureId::OomKills,
            count(group.oom_kills.map(|kills| kills as f64), EVENTS, GroupMemory::GROUP),
        ),
        (FigureId::CpuThrottled, count(group.throttling.throttled, THROTTLED, GroupCpu::GROUP)),
        (FigureId::IoStorageReadOperations, storage(run, |io| io.reads, none(IO))),
        (FigureId::IoStorageWriteOperations, storage(run, |io| io.writes, none(IO))),
    ];
    // A cgroup for the command is only made under the controllers that add something.
    let known = more.into_iter().filter(|(_, figure)| is_attached(run) || figure.value.is_some());
    figures.extend(known);
}
