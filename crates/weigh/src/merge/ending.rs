//! The end of several merged recordings.

use std::time::Duration;

use super::layout::{Layout, Place};
use super::process_registry::ProcessRegistry;
use crate::model::numbering::numbered;
use crate::model::{End, Usage};
use crate::record::events::{HelperUsage, Reaping, RunEnd, StopReason, WatchEnd};
use crate::record::{Entry, Event, Recording};

/// The end of a recording, if it has one.
pub(super) fn of(recording: &Recording) -> Option<&Entry> {
    recording.entries().iter().rfind(|entry| entry.event.is_last())
}

/// The end of all, if each has one.
pub(super) fn of_all(
    recordings: &[Recording],
    layout: &Layout,
    process_registry: &ProcessRegistry,
) -> Option<Entry> {
    let ends: Option<Vec<&Entry>> = recordings.iter().map(of).collect();
    let ends: Vec<(&Entry, &Place)> = ends?.into_iter().zip(&layout.places).collect();
    let at = ends.iter().map(|(entry, place)| entry.at() + place.offset).max()?;
    let all: Vec<MergedEnd> = recordings
        .iter()
        .zip(&ends)
        .filter_map(|(recording, (entry, place))| closed(recording, entry, place))
        .collect();
    let clocks = ends.iter().map(|(entry, _)| clock(entry));
    let task_clock_seconds = clocks.sum::<Option<f64>>().filter(|_| layout.clocks);
    let event = if layout.exact {
        let accounts: Vec<&RunEnd> = ends.iter().filter_map(|(entry, _)| account(entry)).collect();
        Event::RunEnd(RunEnd {
            end: end(&all)?,
            duration_seconds: latest(&all, |one| one.over),
            measured_seconds: Some(latest(&all, |one| one.measured)),
            reaped: accounts.iter().fold(Usage::default(), |mut sum, end| {
                sum.add(&end.reaped);
                sum
            }),
            task_clock_seconds,
            io: accounts.iter().try_fold(Default::default(), |sum, end| Some(end.io?.and(&sum))),
            left: left(&all, process_registry),
            some_unseen: all.iter().any(|one| one.some_unseen),
            rss_before_exec_bytes: accounts
                .iter()
                .map(|end| end.rss_before_exec_bytes)
                .max()
                .unwrap_or(0),
            cpu_before_exec_seconds: accounts.iter().map(|end| end.cpu_before_exec_seconds).sum(),
            helpers: accounts.iter().fold(HelperUsage::default(), |mut sum, end| {
                sum.add(&end.helpers);
                sum
            }),
            monitor_cpu_seconds: all.iter().map(|one| one.monitor_cpu_seconds).sum(),
        })
    } else {
        Event::WatchEnd(WatchEnd {
            why: why(&all),
            end: end(&all),
            // There is no single command: monitoring lasts as long as that of any of them.
            duration_seconds: latest(&all, |one| one.measured),
            left: left(&all, process_registry),
            some_unseen: all.iter().any(|one| one.some_unseen),
            monitor_cpu_seconds: all.iter().map(|one| one.monitor_cpu_seconds).sum(),
            task_clock_seconds,
            // What one clock was started too late for is added to what another missed.
            task_clock_began_seconds: task_clock_seconds
                .map(|_| all.iter().map(|one| one.clock_began_seconds).sum()),
        })
    };
    Some(Entry::new(at, event))
}

/// CPU time of the task clock at an end.
pub(super) fn clock(entry: &Entry) -> Option<f64> {
    match &entry.event {
        Event::RunEnd(end) => end.task_clock_seconds,
        Event::WatchEnd(end) => end.task_clock_seconds,
        _ => None,
    }
}

/// The exact account at the end of a recording.
fn account(entry: &Entry) -> Option<&RunEnd> {
    if let Event::RunEnd(end) = &entry.event { Some(end) } else { None }
}

/// What every end says, whatever it is the end of.
struct MergedEnd {
    /// When it was over, since the first began.
    over: Duration,
    /// When measuring ended, since the first began.
    measured: Duration,
    why: StopReason,
    end: Option<End>,
    left: Vec<u32>,
    some_unseen: bool,
    monitor_cpu_seconds: f64,
    clock_began_seconds: f64,
}

fn closed(recording: &Recording, entry: &Entry, place: &Place) -> Option<MergedEnd> {
    let over =
        |seconds: f64| place.offset + Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let moved = |left: &[u32]| left.iter().map(|pid| numbered(*pid, place.namespace)).collect();
    match &entry.event {
        Event::RunEnd(end) => Some(MergedEnd {
            over: over(end.duration_seconds),
            measured: over(measured(recording, end, entry.seconds)),
            why: StopReason::Ended,
            end: Some(end.end),
            left: moved(&end.left),
            some_unseen: end.some_unseen,
            monitor_cpu_seconds: end.monitor_cpu_seconds,
            clock_began_seconds: 0.0,
        }),
        Event::WatchEnd(end) => Some(MergedEnd {
            over: over(end.duration_seconds),
            measured: over(end.duration_seconds),
            why: end.why,
            end: end.end,
            left: moved(&end.left),
            some_unseen: end.some_unseen,
            monitor_cpu_seconds: end.monitor_cpu_seconds,
            clock_began_seconds: end.task_clock_began_seconds.unwrap_or(0.0),
        }),
        _ => None,
    }
}

/// How long a recording of a command was measured, whose account was closed at this moment.
fn measured(recording: &Recording, end: &RunEnd, closed: f64) -> f64 {
    let mut reaping = Reaping::default();
    let mains = recording.manifest().mains();
    recording.entries().iter().for_each(|entry| reaping.event(entry, &mains));
    reaping.measured_seconds(end, closed)
}

/// The last of these moments, in seconds.
fn latest(all: &[MergedEnd], moment: fn(&MergedEnd) -> Duration) -> f64 {
    all.iter().map(moment).max().unwrap_or_default().as_secs_f64()
}

/// The first failed exit; success, when all are known to have succeeded.
fn end(all: &[MergedEnd]) -> Option<End> {
    let mut known = all.iter().filter_map(|one| one.end);
    let bad = known.find(|end| *end != End::Code(0));
    bad.or_else(|| all.iter().all(|one| one.end.is_some()).then_some(End::Code(0)))
}

/// Why not all of it was monitored to its end, if it was not.
fn why(all: &[MergedEnd]) -> StopReason {
    let is = |why: StopReason| all.iter().any(|one| one.why == why).then_some(why);
    is(StopReason::Asked).or_else(|| is(StopReason::Time)).unwrap_or(StopReason::Ended)
}

/// Processes that still run, as far as they were monitored to the end of all.
fn left(all: &[MergedEnd], process_registry: &ProcessRegistry) -> Vec<u32> {
    let mut left: Vec<u32> = all.iter().flat_map(|one| &one.left).copied().collect();
    left.sort_unstable();
    left.dedup();
    left.retain(|pid| process_registry.has(*pid));
    left
}
