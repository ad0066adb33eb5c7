//! Where each recording is in the merged one: its time offset, its clock, its numbering.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;

use super::ending;
use crate::model::{CLOCK_TICKS, ProcessId};
use crate::record::{Event, Manifest, Recording, RunEnd, Target};

/// Where all of them are.
#[derive(Debug)]
pub(super) struct Layout {
    /// When the first of them began.
    pub started: Timestamp,
    /// That moment in clock ticks, on a clock for all.
    pub zero: u64,
    /// One for each recording.
    pub places: Vec<Place>,
    /// Whether their accounts add up.
    pub exact: bool,
    /// Whether their task clocks do: none is missing, and the account of interrupts that goes
    /// with them is that of one machine.
    pub clocks: bool,
    /// Whether all have the same view of the same machine.
    pub one_machine: bool,
}

/// Where one recording is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// How long after the first it began.
    pub offset: Duration,
    /// The namespace of its pids, or the first when it has several.
    pub namespace: usize,
    /// Whether others have this namespace, too.
    pub is_shared: bool,
    /// Clock ticks by which the merged clock is ahead of its own.
    pub ahead: i64,
    /// What was before this moment is not counted, in clock ticks; 0 when all is.
    pub attached: u64,
}

impl Layout {
    /// Of some recordings.
    pub(super) fn of(recordings: &[Recording]) -> Layout {
        let manifests: Vec<&Manifest> = recordings.iter().map(Recording::manifest).collect();
        let started = manifests.iter().map(|one| one.started).min().unwrap_or_default();
        let offsets: Vec<Duration> =
            manifests.iter().map(|one| since(started, one.started)).collect();
        let (zero, ahead) = clocks(&manifests, &offsets);
        let namespaces = namespaces(&manifests);
        let places: Vec<Place> = (0..manifests.len())
            .map(|one| Place {
                offset: offsets[one],
                namespace: namespaces[one],
                is_shared: namespaces.iter().filter(|other| **other == namespaces[one]).count() > 1,
                ahead: ahead[one],
                attached: manifests[one]
                    .attach_clock_ticks
                    .map_or(0, |attached| attached.saturating_add_signed(ahead[one])),
            })
            .collect();
        let (one_machine, apart) = (one_machine(&manifests), all_different(recordings, &places));
        let has_clock = |one: &Recording| {
            ending::of(one).is_some_and(|(end, _)| end.task_clock_seconds.is_some())
        };
        Layout {
            exact: apart && recordings.iter().all(has_account),
            clocks: apart && one_machine && recordings.iter().all(has_clock),
            one_machine,
            started,
            zero,
            places,
        }
    }

    /// The last moment that anything is known of.
    pub(super) fn last(&self, recordings: &[Recording]) -> Duration {
        let last = |(one, place): (&Recording, &Place)| {
            let last = one.entries().iter().map(|entry| entry.at()).max();
            last.unwrap_or_default() + place.offset
        };
        recordings.iter().zip(&self.places).map(last).max().unwrap_or_default()
    }
}

/// How many recordings one is: more than one when it is itself a merge.
pub(super) fn members_of(manifest: &Manifest) -> usize {
    match &manifest.target {
        Some(Target::Merged { members, .. }) => members.len(),
        _ => 1,
    }
}

fn since(first: Timestamp, moment: Timestamp) -> Duration {
    let nanoseconds = moment.as_nanosecond() - first.as_nanosecond();
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0))
}

/// Whether both were in the same boot of the same machine, as far as that is known.
fn same_boot(one: &Manifest, other: &Manifest) -> bool {
    one.host.boot.is_some() && one.host.boot == other.host.boot
}

/// The beginning of all on the merged clock, and how far that is ahead of the clock of each.
///
/// Clocks of machines have nothing in common but the wall clock at the moment each recording began.
/// Recordings of one boot have one clock, and must agree to the tick: the start time identifies a
/// process.
fn clocks(manifests: &[&Manifest], offsets: &[Duration]) -> (u64, Vec<i64>) {
    let ticks = |offset: &Duration| (offset.as_secs_f64() * CLOCK_TICKS).round() as i64;
    // Without a process there is no moment of the machine's clock either.
    let known = |place: &usize| manifests[*place].zero() > 0;
    let own = |place: usize| manifests[place].zero() as i64 - ticks(&offsets[place]);
    let zeros: Vec<i64> = (0..manifests.len())
        .map(|place| {
            let same = |other: &usize| same_boot(manifests[place], manifests[*other]);
            let first = (0..manifests.len()).filter(known).find(same);
            own(first.unwrap_or(place))
        })
        .collect();
    // The one that is furthest ahead, so that no start is before all clocks.
    let zero = zeros.iter().copied().max().unwrap_or(0).max(0);
    (zero as u64, zeros.into_iter().map(|one| zero - one).collect())
}

/// The namespace of each: that of the first with the same pids.
fn namespaces(manifests: &[&Manifest]) -> Vec<usize> {
    let mut firsts: Vec<usize> = Vec::new();
    let mut next = 0;
    for (place, one) in manifests.iter().enumerate() {
        let same = |other: &usize| {
            let namespace = &one.host.pid_namespace;
            let other = manifests[*other];
            namespace.is_some() && *namespace == other.host.pid_namespace && same_boot(one, other)
        };
        let found = (0..place).find(same);
        firsts.push(found.map_or(next, |found| firsts[found]));
        next += members_of(one);
    }
    firsts
}

/// Whether it has an account at its end, and no process outlives it.
fn has_account(recording: &Recording) -> bool {
    let is_complete = |end: &RunEnd| end.final_counters.is_some() && end.still_running.is_empty();
    !recording.manifest().is_attached()
        && ending::of(recording).is_some_and(|(end, _)| is_complete(end))
}

/// Whether no process is in two of the recordings.
fn all_different(recordings: &[Recording], places: &[Place]) -> bool {
    let mut seen: HashSet<ProcessId> = HashSet::new();
    for (recording, place) in recordings.iter().zip(places).filter(|(_, place)| place.is_shared) {
        let own: HashSet<ProcessId> = recording
            .entries()
            .iter()
            .filter_map(|entry| match entry.event {
                Event::ProcessStart { pid, started, .. } => Some(ProcessId { pid, started }),
                _ => None,
            })
            .map(|id| id.moved(place.namespace, place.ahead))
            .collect();
        if own.iter().any(|id| seen.contains(id)) {
            return false;
        }
        seen.extend(own);
    }
    true
}

/// Whether all are of one machine and see the same of it: containers may be shown less.
fn one_machine(manifests: &[&Manifest]) -> bool {
    let view = |one: &Manifest| (one.host.cores, one.host.memory_bytes);
    manifests.iter().all(|one| same_boot(one, manifests[0]) && view(one) == view(manifests[0]))
}
