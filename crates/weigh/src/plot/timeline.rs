//! The time axis of a run: its length, phases and marks.

use std::collections::HashMap;

use super::chart::{Band, Mark, Timeline};
use crate::record::{Entry, Event};

/// More bands or marks cannot be told apart; the longest bands and the first marks are kept.
const MAX_BANDS: usize = 300;
const MAX_MARKS: usize = 100;

/// Nested phases are drawn up to this depth.
pub(crate) const MAX_DEPTH: usize = 2;

/// Builds the timeline from events.
#[derive(Debug, Default)]
pub(crate) struct TimelineBuilder {
    timeline: Timeline,
    /// Open phases: id to index of the band.
    open: HashMap<String, usize>,
    depths: HashMap<String, usize>,
}

impl TimelineBuilder {
    /// Extends the run to the time of a sample.
    pub(crate) fn extend_to(&mut self, at: f64) {
        self.timeline.end = self.timeline.end.max(at);
    }

    /// Adds an event.
    pub(crate) fn event(&mut self, entry: &Entry) {
        match &entry.event {
            Event::PhaseStart { id, name, parent } => {
                let around = parent.as_ref().and_then(|parent| self.depths.get(parent));
                let depth = around.map_or(0, |depth| depth + 1);
                self.depths.insert(id.clone(), depth);
                self.open.insert(id.clone(), self.timeline.bands.len());
                let (from, to) = (entry.seconds, f64::INFINITY);
                self.timeline.bands.push(Band { name: name.clone(), from, to, depth });
            }
            Event::PhaseEnd { id, .. } => {
                if let Some(place) = self.open.remove(id) {
                    self.timeline.bands[place].to = entry.seconds;
                }
            }
            Event::Mark { text } => {
                self.timeline.marks.push(Mark { text: text.clone(), at: entry.seconds });
            }
            event if event.is_last() => self.extend_to(entry.seconds),
            _ => {}
        }
    }

    /// The timeline. Times outside the run are clamped: a recording may come from a stranger.
    pub(crate) fn finish(mut self) -> Timeline {
        let end = self.timeline.end;
        let inside = |at: f64| if at.is_nan() { 0.0 } else { at.clamp(0.0, end) };
        let (bands, marks) = (&mut self.timeline.bands, &mut self.timeline.marks);
        let all = (bands.len(), marks.len());
        for band in bands.iter_mut() {
            (band.from, band.to) = (inside(band.from), inside(band.to.max(band.from)));
        }
        bands.retain(|band| band.depth <= MAX_DEPTH);
        if bands.len() > MAX_BANDS {
            bands.sort_by(|a, b| (b.to - b.from).total_cmp(&(a.to - a.from)));
            bands.truncate(MAX_BANDS);
            bands.sort_by(|a, b| a.from.total_cmp(&b.from));
        }
        marks.truncate(MAX_MARKS);
        marks.iter_mut().for_each(|mark| mark.at = inside(mark.at));
        self.timeline.left_out = (all.0 - bands.len(), all.1 - marks.len());
        self.timeline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64, event: Event) -> Entry {
        Entry { seconds, ..Entry::new(std::time::Duration::ZERO, event) }
    }

    #[test]
    fn nested_phase_is_a_deeper_band_and_open_phase_ends_with_the_run() {
        let mut times = TimelineBuilder::default();
        let start = |id: &str, parent: Option<&str>| Event::PhaseStart {
            id: id.to_owned(),
            name: format!("phase {id}"),
            parent: parent.map(str::to_owned),
        };
        times.event(&at(1.0, start("a", None)));
        times.event(&at(2.0, start("b", Some("a"))));
        let end = Event::PhaseEnd { id: "b".into(), usage: None, end: None, account: None };
        times.event(&at(3.0, end));
        times.event(&at(4.0, Event::Mark { text: "here".into() }));
        times.extend_to(5.0);
        let timeline = times.finish();
        let bands: Vec<_> = timeline.bands.iter().map(|b| (b.from, b.to, b.depth)).collect();
        assert_eq!(bands, [(1.0, 5.0, 0), (2.0, 3.0, 1)]);
        assert_eq!((timeline.end, timeline.marks[0].at), (5.0, 4.0));
        assert_eq!(timeline.left_out, (0, 0));
    }

    #[test]
    fn times_outside_the_run_are_clamped_and_dropped_phases_counted() {
        let mut times = TimelineBuilder::default();
        times.extend_to(9.0);
        for (place, seconds) in [1e15, -1e300, f64::NAN].into_iter().enumerate() {
            times.event(&at(seconds, Event::Mark { text: place.to_string() }));
        }
        for depth in 0..5_u32 {
            let parent = depth.checked_sub(1).map(|above| above.to_string());
            let (id, name) = (depth.to_string(), "deep".to_owned());
            times.event(&at(6.0, Event::PhaseStart { id, name, parent }));
        }
        let end = Event::PhaseEnd { id: "0".into(), usage: None, end: None, account: None };
        times.event(&at(2.0, end));
        let timeline = times.finish();
        assert_eq!(timeline.end, 9.0);
        let marks: Vec<f64> = timeline.marks.iter().map(|mark| mark.at).collect();
        assert_eq!(marks, [9.0, 0.0, 0.0]);
        assert_eq!((timeline.bands[0].from, timeline.bands[0].to), (6.0, 6.0));
        assert_eq!(timeline.left_out, (2, 0));
    }
}
