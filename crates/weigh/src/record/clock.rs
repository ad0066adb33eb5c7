//! How far the clocks of several machines are apart.
//!
//! The times of a recording are counted from its beginning, by a clock that never jumps; only the
//! beginning itself is by the wall clock of its machine. So one number for each machine is missing:
//! how far its wall clock is ahead of that of a reference. It is known from intervals:
//!
//! | source | the clock of a machine is ahead by | width |
//! |---|---|---|
//! | marks that begin with `barrier`, of one text on both | the difference of their times | what they differ among themselves, at least 50 ms |
//! | `launch.json` of a job | between its beginning less when the launcher saw it, and its beginning less when the launcher started it: the cause precedes the effect | as long as a recorder takes to begin |
//! | NFS: a file's time of change is by the clock of the server | the difference of both machines to the server | a write and its answer, and a clock tick of the server |
//! | the kernel's own bound of its error, while a time service runs (adjtimex) | 0 | both bounds together |
//!
//! The first two show what was; the others only narrow them, and are left out where they
//! contradict. Lustre, GPFS and most others take the time of change from the client, so they tell
//! nothing. A clock is corrected when it is known to be off: where 0 is within the interval, it
//! stays as it is, and the interval says how much it may be off all the same.

use std::io::{BufRead, BufReader};
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::job_directory::LaunchTimes;
use super::{Entry, Event, files};

/// Two marks after one barrier are not set at the same moment.
const BARRIER_SECONDS: f64 = 0.05;

/// Marks that are set after a barrier begin with this.
const BARRIER: &str = "barrier";

/// What a recorder knows of the wall clock of its machine.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ClockReading {
    /// How far it is ahead of the clock of the file system's server; null where that does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead_of_server_seconds: Option<f64>,
    /// By how much that may be wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_within_seconds: Option<f64>,
    /// By how much it may be wrong, as the kernel has it from a time service; null without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synchronised_within_seconds: Option<f64>,
}

/// How far a clock is ahead of that of the reference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClockOffset {
    /// The middle of the interval.
    pub seconds: f64,
    /// Half of the interval.
    pub uncertainty_seconds: f64,
    /// By how much the times of its recording were corrected.
    pub corrected_seconds: f64,
    /// How it is known.
    pub source: String,
}

impl ClockOffset {
    /// As somebody has said.
    pub fn given(seconds: f64) -> ClockOffset {
        let (uncertainty_seconds, source) = (0.0, "given".to_owned());
        ClockOffset { seconds, uncertainty_seconds, corrected_seconds: seconds, source }
    }
}

/// What a recording says of its clock.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedClock {
    /// The name of its directory.
    folder: String,
    /// The machine's name.
    pub host: String,
    boot: Option<String>,
    started: Timestamp,
    reading: ClockReading,
    /// Marks after barriers: their texts and times, in seconds since 1970 by its own clock.
    barriers: Vec<(String, f64)>,
}

/// The part of `run.json` that is about its clock.
#[derive(Deserialize)]
struct ClockDescription {
    started: Timestamp,
    host: HostDescription,
    #[serde(default)]
    clock: Option<ClockReading>,
}

#[derive(Deserialize)]
struct HostDescription {
    name: String,
    #[serde(default)]
    boot: Option<String>,
}

impl RecordedClock {
    /// Of the recording in a directory; `None` when it cannot be read.
    pub fn of(directory: &Path) -> Option<RecordedClock> {
        let bytes = files::read_regular(&directory.join("run.json")).ok()?;
        let ClockDescription { started, host, clock } = serde_json::from_slice(&bytes).ok()?;
        let since_1970 = started.as_nanosecond() as f64 / 1e9;
        let events = files::open_regular(&directory.join(files::EVENTS)).ok()?;
        let barriers = BufReader::new(events)
            .split(b'\n')
            .map_while(Result::ok)
            .filter_map(|line| barrier(&line))
            .map(|(text, seconds)| (text, since_1970 + seconds));
        Some(RecordedClock {
            folder: directory.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            host: host.name,
            boot: host.boot,
            started,
            reading: clock.unwrap_or_default(),
            barriers: barriers.collect(),
        })
    }

    /// When the recording began, by a clock that its own is ahead of.
    pub fn started_less(&self, ahead: f64) -> Timestamp {
        let ahead = SignedDuration::try_from_secs_f64(ahead).unwrap_or_default();
        self.started.checked_sub(ahead).unwrap_or(self.started)
    }

    fn is_of_boot(&self, boot: Option<&str>) -> bool {
        self.boot.is_some() && self.boot.as_deref() == boot
    }
}

/// The text and time of a mark after a barrier. Few lines of events are marks: only those are
/// parsed.
fn barrier(line: &[u8]) -> Option<(String, f64)> {
    let has = |word: &str| line.windows(word.len()).any(|part| part == word.as_bytes());
    if !has("\"mark\"") || !has(BARRIER) {
        return None;
    }
    let entry: Entry = serde_json::from_slice(line).ok()?;
    match entry.event {
        Event::Mark { text } if text.starts_with(BARRIER) => Some((text, entry.seconds)),
        _ => None,
    }
}

/// Between which values an offset is.
#[derive(Debug, Clone, Copy, PartialEq)]
struct OffsetBounds {
    low: f64,
    high: f64,
}

impl OffsetBounds {
    fn around(middle: f64, half: f64) -> OffsetBounds {
        OffsetBounds { low: middle - half, high: middle + half }
    }

    /// What is in both; `None` when they contradict each other.
    fn within(self, other: OffsetBounds) -> Option<OffsetBounds> {
        let (low, high) = (self.low.max(other.low), self.high.min(other.high));
        (low <= high).then_some(OffsetBounds { low, high })
    }
}

/// How far each clock is ahead of that of the reference: the machine of the launcher, or the first.
/// `None` where nothing tells.
pub fn offsets(clocks: &[RecordedClock], launch: Option<&LaunchTimes>) -> Vec<Option<ClockOffset>> {
    let beside = |clock: &&RecordedClock| {
        launch.is_some_and(|launch| clock.is_of_boot(launch.boot.as_deref()))
    };
    let Some(reference) = clocks.iter().find(beside).or(clocks.first()) else { return Vec::new() };
    clocks.iter().map(|clock| offset(clock, reference, launch)).collect()
}

fn offset(
    clock: &RecordedClock,
    reference: &RecordedClock,
    launch: Option<&LaunchTimes>,
) -> Option<ClockOffset> {
    if std::ptr::eq(clock, reference) || clock.is_of_boot(reference.boot.as_deref()) {
        let source = "the reference, or the same machine".to_owned();
        return Some(ClockOffset {
            seconds: 0.0,
            uncertainty_seconds: 0.0,
            corrected_seconds: 0.0,
            source,
        });
    }
    let known = [
        ("marks after barriers", by_barriers(clock, reference)),
        ("the launcher", launch.and_then(|launch| by_launch(clock, reference, launch))),
        ("the file server's clock", by_server(clock, reference)),
        ("the time service", by_service(clock, reference)),
    ];
    let mut found: Option<OffsetBounds> = None;
    let mut sources: Vec<&str> = Vec::new();
    for (source, bounds) in known {
        let Some(bounds) = bounds else { continue };
        let narrowed = match found {
            None => Some(bounds),
            Some(known) => known.within(bounds),
        };
        if let Some(narrowed) = narrowed.filter(|narrowed| found != Some(*narrowed)) {
            found = Some(narrowed);
            sources.push(source);
        }
    }
    let OffsetBounds { low, high } = found?;
    let (seconds, uncertainty_seconds) = ((low + high) / 2.0, (high - low) / 2.0);
    Some(ClockOffset {
        seconds,
        uncertainty_seconds,
        corrected_seconds: if low <= 0.0 && high >= 0.0 { 0.0 } else { seconds },
        source: sources.join(", "),
    })
}

fn by_barriers(clock: &RecordedClock, reference: &RecordedClock) -> Option<OffsetBounds> {
    // A text that is used several times does not say which of them belong together.
    let once = |of: &RecordedClock, text: &str| {
        let mut times = of.barriers.iter().filter(|(known, _)| known == text);
        let first = times.next().map(|(_, at)| *at);
        first.filter(|_| times.next().is_none())
    };
    let differences: Vec<f64> = clock
        .barriers
        .iter()
        .filter_map(|(text, _)| Some(once(clock, text)? - once(reference, text)?))
        .collect();
    let low = differences.iter().copied().reduce(f64::min)?;
    let high = differences.iter().copied().reduce(f64::max)?;
    Some(OffsetBounds::around((low + high) / 2.0, BARRIER_SECONDS.max((high - low) / 2.0)))
}

/// How far it is ahead of the launcher's clock.
fn of_launcher(clock: &RecordedClock, launch: &LaunchTimes) -> Option<OffsetBounds> {
    if clock.is_of_boot(launch.boot.as_deref()) {
        return Some(OffsetBounds { low: 0.0, high: 0.0 });
    }
    let seen = launch.seen.get(&clock.folder)?;
    let since = |at: &Timestamp| (clock.started.as_nanosecond() - at.as_nanosecond()) as f64 / 1e9;
    Some(OffsetBounds { low: since(seen), high: since(&launch.launched) })
}

fn by_launch(
    clock: &RecordedClock,
    reference: &RecordedClock,
    launch: &LaunchTimes,
) -> Option<OffsetBounds> {
    let (own, other) = (of_launcher(clock, launch)?, of_launcher(reference, launch)?);
    Some(OffsetBounds { low: own.low - other.high, high: own.high - other.low })
}

fn by_server(clock: &RecordedClock, reference: &RecordedClock) -> Option<OffsetBounds> {
    let (own, other) = (clock.reading, reference.reading);
    let ahead = own.ahead_of_server_seconds? - other.ahead_of_server_seconds?;
    Some(OffsetBounds::around(ahead, own.server_within_seconds? + other.server_within_seconds?))
}

fn by_service(clock: &RecordedClock, reference: &RecordedClock) -> Option<OffsetBounds> {
    let (own, other) = (clock.reading, reference.reading);
    let error = own.synchronised_within_seconds? + other.synchronised_within_seconds?;
    Some(OffsetBounds::around(0.0, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 1_700_000_000;

    /// A clock of which nothing is known, of a recording that began so many seconds later by it.
    fn clock(host: &str, later: f64) -> RecordedClock {
        RecordedClock {
            folder: host.to_owned(),
            host: host.to_owned(),
            boot: Some(format!("boot of {host}")),
            started: at(later),
            reading: ClockReading::default(),
            barriers: Vec::new(),
        }
    }

    fn at(seconds: f64) -> Timestamp {
        Timestamp::from_nanosecond(i128::from(START) * 1_000_000_000 + (seconds * 1e9) as i128)
            .unwrap()
    }

    /// A launcher on n1, that started recorders at 0 and saw those of both after a second.
    fn launch() -> LaunchTimes {
        let seen = ["n1", "n2"].map(|node| (node.to_owned(), at(1.0)));
        LaunchTimes { boot: Some("boot of n1".to_owned()), launched: at(0.0), seen: seen.into() }
    }

    fn of_second(clocks: &[RecordedClock], launch: Option<&LaunchTimes>) -> Option<ClockOffset> {
        let found = offsets(clocks, launch);
        assert_eq!(found[0].as_ref().unwrap().corrected_seconds, 0.0, "the reference");
        found[1].clone()
    }

    #[test]
    fn clock_that_is_known_to_be_off_is_corrected_and_the_rest_is_said() {
        // Truly both began after 0.5 s; the second clock is 90 s ahead.
        let clocks = [clock("n1", 0.5), clock("n2", 90.5)];
        assert_eq!(of_second(&clocks, None), None, "nothing tells");
        let offset = of_second(&clocks, Some(&launch())).unwrap();
        assert!((offset.seconds - 90.0).abs() <= offset.uncertainty_seconds);
        assert_eq!((offset.uncertainty_seconds, offset.corrected_seconds), (0.5, offset.seconds));
        let clocks = [clock("n1", 0.5), clock("n2", 0.7)];
        let offset = of_second(&clocks, Some(&launch())).unwrap();
        assert_eq!(offset.corrected_seconds, 0.0, "0 is possible: {offset:?}");
    }

    #[test]
    fn other_sources_narrow_what_the_launcher_shows_and_never_contradict_it() {
        let mut clocks = [clock("n1", 0.5), clock("n2", 90.5)];
        let served = |ahead| ClockReading {
            ahead_of_server_seconds: Some(ahead),
            server_within_seconds: Some(0.02),
            ..ClockReading::default()
        };
        (clocks[0].reading, clocks[1].reading) = (served(3.0), served(92.99));
        let offset = of_second(&clocks, Some(&launch())).unwrap();
        assert!((offset.seconds - 89.99).abs() < 1e-6, "{offset:?}");
        assert!((offset.uncertainty_seconds - 0.04).abs() < 1e-6);
        assert_eq!(offset.source, "the launcher, the file server's clock");
        for clock in &mut clocks {
            // A time service that has stopped, and a kernel that does not know.
            clock.reading = ClockReading { synchronised_within_seconds: Some(0.01), ..served(3.0) };
        }
        let offset = of_second(&clocks, Some(&launch())).unwrap();
        assert_eq!(offset.source, "the launcher");
    }

    #[test]
    fn marks_after_one_barrier_are_of_one_moment() {
        let mut clocks = [clock("n1", 0.0), clock("n2", 0.0)];
        let mark = |text: &str, at: f64| (text.to_owned(), START as f64 + at);
        clocks[0].barriers = vec![mark("barrier 1", 10.0), mark("barrier 2", 20.0)];
        clocks[1].barriers =
            vec![mark("barrier 1", 7.0), mark("barrier 2", 17.2), mark("barrier 3", 1.0)];
        let offset = of_second(&clocks, None).unwrap();
        assert!((offset.seconds + 2.9).abs() < 1e-6, "{offset:?}");
        assert!((offset.uncertainty_seconds - 0.1).abs() < 1e-6);
        clocks[1].barriers.push(mark("barrier 1", 70.0));
        let offset = of_second(&clocks, None).unwrap();
        assert!((offset.seconds + 2.8).abs() < 1e-6, "one text twice says nothing: {offset:?}");
    }

    #[test]
    fn recorders_on_one_machine_have_one_clock() {
        let mut clocks = [clock("n1", 0.0), clock("n2", 50.0)];
        clocks[1].boot = clocks[0].boot.clone();
        assert_eq!(of_second(&clocks, None).unwrap().uncertainty_seconds, 0.0);
    }
}
