//! Time windows of a run: from one time to another, or the phases of one name.

use arrow_array::{BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;
use std::time::Duration;

use super::{Cause, Error, shape, tables};
use crate::quantity;
use crate::record::Recording;

/// A start or end of a window, as given by the user.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TimeBound {
    /// Time since the start of the run.
    After(Duration),
    /// A point in time.
    At(jiff::Timestamp),
}

impl TimeBound {
    /// Reads `30s`, `1h 30m`, or a time such as `2026-11-15T18:05:48Z`.
    pub fn parse(text: &str) -> Result<TimeBound, String> {
        if let Ok(after) = quantity::parse_duration(text) {
            return Ok(TimeBound::After(after));
        }
        text.parse().map(TimeBound::At).map_err(|_| {
            "write it like 90s or 1h30m after the start, or like 2026-11-15T18:05:48Z".to_owned()
        })
    }

    fn nanoseconds(self, started: i64) -> i64 {
        let clamped = |wide: i128| wide.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        match self {
            TimeBound::After(after) => clamped(i128::from(started) + after.as_nanos() as i128),
            TimeBound::At(time) => clamped(time.as_nanosecond()),
        }
    }
}

/// The selected half-open intervals, in nanoseconds since 1970; disjoint and in order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Windows(Vec<(i64, i64)>);

impl Windows {
    /// The windows for these options; `None` for the whole run.
    pub(super) fn of(
        recording: &Recording,
        from: Option<TimeBound>,
        to: Option<TimeBound>,
        phase: Option<&str>,
    ) -> Result<Option<Windows>, Error> {
        if from.is_none() && to.is_none() && phase.is_none() {
            return Ok(None);
        }
        let started = tables::started(recording);
        let from = from.map_or(i64::MIN, |moment| moment.nanoseconds(started));
        let to = to.map_or(i64::MAX, |moment| moment.nanoseconds(started));
        if from >= to {
            return Err(Error::EmptyWindow);
        }
        let Some(phase) = phase else { return Ok(Some(Windows(vec![(from, to)]))) };
        let all = tables::phases_of(recording);
        let named = all.iter().filter(|one| one.name == phase);
        let is_known = named.clone().next().is_some();
        let parts: Vec<(i64, i64)> = named
            .map(|one| (one.at.max(from), one.ended().unwrap_or(i64::MAX).min(to)))
            .filter(|(from, to)| from < to)
            .collect();
        if parts.is_empty() && is_known {
            return Err(Error::EmptyWindow);
        }
        if parts.is_empty() {
            let mut there: Vec<String> = all.into_iter().map(|one| one.name).collect();
            there.sort();
            there.dedup();
            return Err(Error::NoPhase { name: phase.to_owned(), there });
        }
        Ok(Some(Windows(merged(parts))))
    }

    /// Whether a time is in one of them.
    pub(super) fn contains(&self, at: i64) -> bool {
        self.0.iter().any(|(from, to)| (*from..*to).contains(&at))
    }

    /// How many nanoseconds between two times are in them.
    pub(super) fn overlap(&self, from: i64, to: i64) -> i64 {
        let inside = |(first, last): &(i64, i64)| {
            // Times of a damaged recording may be centuries apart.
            to.min(*last).saturating_sub(from.max(*first)).max(0)
        };
        self.0.iter().map(inside).fold(0, i64::saturating_add)
    }

    /// The rows of a batch that are in them.
    pub(super) fn cut(&self, batch: &RecordBatch) -> Result<RecordBatch, Cause> {
        let times = shape::times(batch)?;
        let inside: BooleanArray =
            times.values().iter().map(|at| Some(self.contains(*at))).collect();
        Ok(filter_record_batch(batch, &inside)?)
    }
}

/// The union of intervals: phases of one name may overlap.
fn merged(mut parts: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    parts.sort_unstable();
    let mut apart: Vec<(i64, i64)> = Vec::new();
    for (from, to) in parts {
        match apart.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => apart.push((from, to)),
        }
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_phases_are_merged() {
        assert_eq!(merged(vec![(5, 9), (0, 4), (1, 2), (4, 5), (20, 30)]), [(0, 9), (20, 30)]);
    }

    #[test]
    fn window_end_is_exclusive() {
        let windows = Windows(vec![(0, 10), (20, 30)]);
        assert!(
            windows.contains(0)
                && windows.contains(9)
                && !windows.contains(10)
                && windows.contains(20)
        );
        assert_eq!(windows.overlap(5, 25), 10);
    }

    #[test]
    fn time_bounds_are_durations_or_timestamps() {
        assert_eq!(TimeBound::parse("90s"), Ok(TimeBound::After(Duration::from_secs(90))));
        let time = "2026-11-15T18:05:48Z".parse().unwrap();
        assert_eq!(TimeBound::parse("2026-11-15T18:05:48Z"), Ok(TimeBound::At(time)));
        assert!(TimeBound::parse("yesterday").is_err());
    }
}
