//! Which runs of a list are wanted.

use std::time::Duration;

use jiff::Timestamp;

use super::{Labels, ListedRun};
use crate::quantity;

/// Which runs are wanted; an empty filter takes all.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunFilter {
    /// Those of one of these names; `*` stands for any text.
    pub names: Vec<String>,
    /// Those with all of these labels.
    pub labels: Vec<LabelFilter>,
    /// Those that started then or later.
    pub since: Option<Timestamp>,
    /// Those that failed.
    pub failed: bool,
}

impl RunFilter {
    /// Whether it takes all runs.
    pub fn is_empty(&self) -> bool {
        *self == RunFilter::default()
    }

    /// Whether this run is wanted.
    pub fn takes(&self, one: &ListedRun) -> bool {
        let is_named = || self.names.iter().any(|pattern| matches(pattern, &one.run.name));
        (self.names.is_empty() || is_named())
            && self.labels.iter().all(|label| label.is_in(&one.run.labels))
            && self.since.is_none_or(|since| one.run.started >= since)
            && (!self.failed || one.has_failed())
    }
}

/// A label that a run must have.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelFilter {
    /// Its key.
    pub key: String,
    /// Its value; any when there is none.
    pub value: Option<String>,
}

impl LabelFilter {
    /// Reads `KEY=VALUE`, or `KEY` for any value.
    pub fn parse(text: &str) -> Result<LabelFilter, String> {
        let (key, value) = match text.split_once('=') {
            Some((key, value)) => (key, Some(value.to_owned())),
            None => (text, None),
        };
        match key {
            "" => Err("write it like commit=abc123, or commit for any value".to_owned()),
            _ => Ok(LabelFilter { key: key.to_owned(), value }),
        }
    }

    fn is_in(&self, labels: &Labels) -> bool {
        let found = labels.get(&self.key);
        found.is_some_and(|found| self.value.as_ref().is_none_or(|value| value == found))
    }
}

/// From when on runs are wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Since {
    /// So long ago.
    Ago(Duration),
    /// From then on.
    At(Timestamp),
}

impl Since {
    /// Reads `2h` (ago), a date or a local time such as `2026-11-01` and `2026-11-01T12:30`, or a
    /// time such as `2026-11-01T12:30:00Z`.
    pub fn parse(text: &str) -> Result<Since, String> {
        if let Ok(ago) = quantity::parse_duration(text) {
            return Ok(Since::Ago(ago));
        }
        let zone = jiff::tz::TimeZone::system();
        let local = text.parse().and_then(|time: jiff::civil::DateTime| time.to_zoned(zone));
        let time = text.parse().or_else(|_| local.map(|zoned| zoned.timestamp()));
        time.map(Since::At).map_err(|_| {
            "write it like 2h or 7d, like 2026-11-01, or like 2026-11-01T12:30:00Z".to_owned()
        })
    }

    /// The moment, as seen from now: since 1970 by the wall clock.
    pub fn moment(self, now: Duration) -> Timestamp {
        match self {
            Since::At(time) => time,
            Since::Ago(ago) => timestamp(now.saturating_sub(ago)),
        }
    }
}

/// A moment from the time since 1970.
pub(super) fn timestamp(since_1970: Duration) -> Timestamp {
    Timestamp::from_nanosecond(since_1970.as_nanos() as i128).unwrap_or(Timestamp::MAX)
}

/// Whether a name matches a pattern in which `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(name) = name.strip_prefix(start) else { return false };
    let mut ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
    ends.any(|at| matches(rest, &name[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_stands_for_any_text() {
        for (pattern, name, is_so) in [
            ("train", "train", true),
            ("train", "train-2", false),
            ("train*", "train-2", true),
            ("*-2", "train-2", true),
            ("t*n*2", "train-2", true),
            ("*", "", true),
            ("t*x", "train", false),
            ("*ü*", "grün", true),
        ] {
            assert_eq!(matches(pattern, name), is_so, "{pattern} {name}");
        }
    }

    #[test]
    fn since_takes_a_duration_a_date_and_a_time() {
        let now = Duration::from_secs(1_800_000_000);
        let ago = Since::parse("2h").unwrap().moment(now);
        assert_eq!(ago.as_second(), 1_800_000_000 - 7200);
        let at = Since::parse("2026-11-01T12:30:00Z").unwrap().moment(now);
        assert_eq!(at.to_string(), "2026-11-01T12:30:00Z");
        let noon = Since::parse("2026-11-01T12:00").unwrap().moment(now);
        let midnight = Since::parse("2026-11-01").unwrap().moment(now);
        assert_eq!(noon.as_second() - midnight.as_second(), 12 * 3600);
        assert!(Since::parse("yesterday").is_err());
    }

    #[test]
    fn label_without_a_value_stands_for_any() {
        let labels = Labels::from([("commit".to_owned(), "abc".to_owned())]);
        let has = |text: &str| LabelFilter::parse(text).unwrap().is_in(&labels);
        assert!(has("commit=abc") && has("commit"));
        assert!(!has("commit=ab") && !has("commit=") && !has("branch"));
        assert!(LabelFilter::parse("=x").is_err());
    }
}
