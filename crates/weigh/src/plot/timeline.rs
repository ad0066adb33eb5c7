//! The time of a run: how long it was, its phases and its marks.

use std::collections::HashMap;

use super::chart::{Band, Mark, Timeline};
use crate::record::{Entry, Event};

/// More bands or marks than these are no longer told apart; the longest and the first stay.
const MOST_BANDS: usize = 300;
const MOST_MARKS: usize = 100;

/// Follows what happens in a run.
#[derive(Debug, Default)]
pub struct Times {
    timeline: Timeline,
    /// Phases that last, by their ids: where their band is.
    open: HashMap<String, usize>,
    depths: HashMap<String, usize>,
}

impl Times {
    /// Something was measured.
    pub fn reach(&mut self, at: f64) {
        self.timeline.end = self.timeline.end.max(at);
    }

    /// Something happened.
    pub fn event(&mut self, entry: &Entry) {
        self.reach(entry.seconds);
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
            _ => {}
        }
    }

    /// All of it.
    pub fn finish(mut self) -> Timeline {
        let end = self.timeline.end;
        let bands = &mut self.timeline.bands;
        bands.iter_mut().for_each(|band| band.to = band.to.min(end));
        if bands.len() > MOST_BANDS {
            bands.sort_by(|a, b| (b.to - b.from).total_cmp(&(a.to - a.from)));
            bands.truncate(MOST_BANDS);
            bands.sort_by(|a, b| a.from.total_cmp(&b.from));
        }
        self.timeline.marks.truncate(MOST_MARKS);
        self.timeline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64, event: Event) -> Entry {
        Entry { seconds, event }
    }

    #[test]
    fn a_phase_inside_another_is_a_band_below_it_and_lasts_as_long_as_the_run() {
        let mut times = Times::default();
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
        times.reach(5.0);
        let timeline = times.finish();
        let bands: Vec<_> = timeline.bands.iter().map(|b| (b.from, b.to, b.depth)).collect();
        assert_eq!(bands, [(1.0, 5.0, 0), (2.0, 3.0, 1)]);
        assert_eq!((timeline.end, timeline.marks[0].at), (5.0, 4.0));
    }
}
