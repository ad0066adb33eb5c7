//! Which sources a run uses: those that are enabled and available.
//!
//! An unavailable source is not a fault: most machines have no InfiniBand, and most users may not
//! read energy counters. A recording notes it in `run.json`, `weigh doctor` explains it, and the
//! run does not warn, unless the source was requested by name.

use super::{Probe, provider};
use crate::catalog::{Source, SourceId};
use crate::host::Host;
use crate::model::settings::Settings;

/// The sources of a run.
pub struct Selection {
    /// Those that are used.
    pub sources: Vec<&'static Source>,
    /// Those that are not available.
    pub absent: Vec<Absence>,
}

/// A source that is not available here.
pub struct Absence {
    /// Which one.
    pub source: &'static Source,
    /// Why, and a command that helps, if there is one.
    pub why: String,
    /// Whether it was requested by name.
    pub is_missed: bool,
}

/// The enabled sources that are available on this machine.
pub fn select(host: &Host, settings: &Settings) -> Selection {
    let mut selection = Selection { sources: Vec::new(), absent: Vec::new() };
    for source in settings.sources() {
        let is_tried = source.everywhere
            // Of requested events some are counted where others are not.
            || (source.id == SourceId::Perf && settings.requests_events());
        let why = if is_tried { None } else { refusal(host, source) };
        match why {
            None => selection.sources.push(source),
            Some(why) => {
                let named = settings.collect.iter().flatten().any(|name| name == source.name);
                selection.absent.push(Absence { source, why, is_missed: named });
            }
        }
    }
    selection
}

fn refusal(host: &Host, source: &Source) -> Option<String> {
    match (provider(source.id)?.probe)(host) {
        Probe::Ready => None,
        Probe::Absent { why } => Some(why),
        Probe::Denied { why, hint } => Some(format!("{why}; {hint}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    fn names(selection: &Selection) -> Vec<&str> {
        selection.sources.iter().map(|source| source.name).collect()
    }

    #[test]
    fn unavailable_source_is_left_out_with_its_reason() {
        let fake = FakeHost::new().proc("self/net/dev", "");
        let selection = select(&fake.host(), &Settings::default());
        let names = names(&selection);
        assert!(names.contains(&"network") && names.contains(&"cpu"), "{names:?}");
        assert!(!names.contains(&"disk"), "{names:?}");
        let disk = selection.absent.iter().find(|absence| absence.source.name == "disk").unwrap();
        assert!(disk.why.contains("proc/diskstats") && !disk.is_missed, "{}", disk.why);
    }

    #[test]
    fn unavailable_source_requested_by_name_is_missed() {
        let settings = Settings { collect: Some(vec!["disk".into()]), ..Settings::default() };
        let selection = select(&FakeHost::new().host(), &settings);
        assert_eq!(names(&selection), ["own"]);
        assert!(selection.absent[0].is_missed);
    }
}
