//! The end of several merged recordings.

use std::time::Duration;

use super::layout::{Layout, Place};
use super::process_registry::ProcessRegistry;
use crate::model::numbering::numbered;
use crate::model::{End, Usage};
use crate::record::events::HelperUsage;
use crate::record::{Entry, Event, FinalCounters, Reaping, Recording, RunEnd, StopReason};

/// The end of a recording and when it was recorded, if it has one.
pub(super) fn of(recording: &Recording) -> Option<(&RunEnd, Duration)> {
    recording.entries().iter().rev().find_map(|entry| match &entry.event {
        Event::RunEnd(end) => Some((end, entry.at())),
        _ => None,
    })
}

/// The end of all, if each has one.
pub(super) fn of_all(
    recordings: &[Recording],
    layout: &Layout,
    process_registry: &ProcessRegistry,
) -> Option<Entry> {
    let members = recordings.iter().zip(&layout.places);
    let all: Option<Vec<MemberEnd<'_>>> =
        members.map(|(recording, place)| MemberEnd::of(recording, place)).collect();
    let all = all?;
    let closed = all.iter().map(|one| one.closed).max()?;
    let clocks = all.iter().map(|one| one.end.task_clock_seconds);
    let task_clock_seconds = clocks.sum::<Option<f64>>().filter(|_| layout.clocks);
    let began = all.iter().filter_map(|one| one.end.task_clock_began_seconds).sum();
    let final_counters = layout.exact.then(|| Box::new(final_counters(&all)));
    let end = RunEnd {
        why: final_counters.is_none().then(|| why(&all)),
        exit: exit(&all),
        duration_seconds: match final_counters {
            Some(_) => latest(&all, |one| one.over),
            // There is no single command: monitoring lasts as long as that of any of them.
            None => latest(&all, |one| one.measured),
        },
        measured_seconds: final_counters.as_ref().map(|_| latest(&all, |one| one.measured)),
        task_clock_seconds,
        // What one clock was started too late for is added to what another missed.
        task_clock_began_seconds: task_clock_seconds.map(|_| began),
        still_running: left(&all, process_registry),
        may_miss_processes: all.iter().any(|one| one.end.may_miss_processes),
        monitor_cpu_seconds: all.iter().map(|one| one.end.monitor_cpu_seconds).sum(),
        final_counters,
    };
    Some(Entry::new(closed, Event::RunEnd(end)))
}

/// The end of one of them.
struct MemberEnd<'a> {
    end: &'a RunEnd,
    namespace: usize,
    /// When it was over, since the first began.
    over: Duration,
    /// When measuring ended, since the first began.
    measured: Duration,
    /// When it was recorded, since the first began.
    closed: Duration,
}

impl<'a> MemberEnd<'a> {
    fn of(recording: &'a Recording, place: &Place) -> Option<MemberEnd<'a>> {
        let (end, closed) = of(recording)?;
        let mut reaping = Reaping::default();
        let mains = recording.manifest().mains();
        recording.entries().iter().for_each(|entry| reaping.event(entry, &mains));
        let after =
            |seconds: f64| place.offset + Duration::try_from_secs_f64(seconds).unwrap_or_default();
        Some(MemberEnd {
            end,
            namespace: place.namespace,
            over: after(end.duration_seconds),
            measured: after(reaping.measured_seconds(end, closed.as_secs_f64())),
            closed: place.offset + closed,
        })
    }
}

/// The exact counts of all.
fn final_counters(all: &[MemberEnd<'_>]) -> FinalCounters {
    let mut sum = FinalCounters {
        reaped: Usage::default(),
        io: Some(Default::default()),
        rss_before_exec_bytes: 0,
        cpu_before_exec_seconds: 0.0,
        helpers: HelperUsage::default(),
    };
    for one in all.iter().filter_map(|one| one.end.final_counters.as_deref()) {
        sum.reaped.add(&one.reaped);
        sum.io = sum.io.zip(one.io).map(|(sum, io)| io.and(&sum));
        sum.rss_before_exec_bytes = sum.rss_before_exec_bytes.max(one.rss_before_exec_bytes);
        sum.cpu_before_exec_seconds += one.cpu_before_exec_seconds;
        sum.helpers.add(&one.helpers);
    }
    sum
}

/// The last of these moments, in seconds.
fn latest(all: &[MemberEnd<'_>], moment: fn(&MemberEnd<'_>) -> Duration) -> f64 {
    all.iter().map(moment).max().unwrap_or_default().as_secs_f64()
}

/// The first failed exit; success, when all are known to have succeeded.
fn exit(all: &[MemberEnd<'_>]) -> Option<End> {
    let mut known = all.iter().filter_map(|one| one.end.exit);
    let bad = known.find(|end| *end != End::Code(0));
    bad.or_else(|| all.iter().all(|one| one.end.exit.is_some()).then_some(End::Code(0)))
}

/// Why not all of it was monitored to its end, if it was not.
fn why(all: &[MemberEnd<'_>]) -> StopReason {
    let is = |why: StopReason| all.iter().any(|one| one.end.why == Some(why)).then_some(why);
    use StopReason::{Blocking, DurationOver, LauncherExited, StopRequested, TimeLimit};
    let reasons = [TimeLimit, LauncherExited, Blocking, StopRequested, DurationOver];
    reasons.into_iter().find_map(is).unwrap_or(StopReason::Ended)
}

/// Processes that still run, as far as they were monitored to the end of all.
fn left(all: &[MemberEnd<'_>], process_registry: &ProcessRegistry) -> Vec<u32> {
    let moved = |one: &MemberEnd<'_>| {
        let left = one.end.still_running.iter();
        left.map(|pid| numbered(*pid, one.namespace)).collect::<Vec<_>>()
    };
    let mut left: Vec<u32> = all.iter().flat_map(moved).collect();
    left.sort_unstable();
    left.dedup();
    left.retain(|pid| process_registry.has(*pid));
    left
}
