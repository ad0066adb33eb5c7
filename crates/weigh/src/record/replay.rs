//! Replays a recorded run, moment by moment.
//!
//! Events and ticks come in the order of their sequence numbers, which is the order in which they
//! were recorded. A reader pulls the next moment, so that several recordings can be walked side by
//! side. One batch of each scope is held, however long the recording is.

use std::path::Path;
use std::slice::Iter;
use std::time::Duration;

use super::batches::Batches;
use super::stream::decode;
use super::{AttachBaseline, Entry, Error, Recording};
use crate::catalog::Metric;
use crate::model::{Table, Tick};

/// A moment of a run.
#[derive(Debug, Clone, Copy)]
pub enum Moment<'a> {
    /// Something was measured.
    Tick(&'a Tick),
    /// Something happened.
    Event(&'a Entry),
}

/// A position in a recorded run.
pub struct Replay<'a> {
    cursors: Vec<Cursor>,
    entries: Iter<'a, Entry>,
    tick: Tick,
    baseline: Option<AttachBaseline>,
}

impl<'a> Replay<'a> {
    /// At the beginning of a run, with the columns of these groups, and with the baseline
    /// subtracted.
    pub fn of(recording: &'a Recording, groups: &[&'static [Metric]]) -> Result<Replay<'a>, Error> {
        // What processes used before weigh attached is not the run's.
        let baseline = recording.manifest().attach_clock_ticks.map(AttachBaseline::new);
        Ok(Replay { baseline, ..Replay::as_recorded(recording, groups)? })
    }

    /// The same, with counters as the kernel gave them.
    pub(crate) fn as_recorded(
        recording: &'a Recording,
        groups: &[&'static [Metric]],
    ) -> Result<Replay<'a>, Error> {
        let started = recording.own_start();
        let mut cursors = Vec::new();
        for (scope, path) in recording.streams() {
            let shape = Table::new(scope, groups);
            // Its first rows may not have reached the disk.
            if path.exists() && !shape.metrics().is_empty() {
                let mut cursor = Cursor::open(&path, shape, started)?;
                cursor.refill()?;
                cursors.push(cursor);
            }
        }
        let entries = recording.entries().iter();
        Ok(Replay { cursors, entries, tick: Tick::new(groups), baseline: None })
    }

    /// The tick that comes next.
    fn next_tick(&self) -> Option<TickPlace> {
        let places = self.cursors.iter().filter_map(Cursor::place);
        places.reduce(|first, other| if other.is_before(&first) { other } else { first })
    }

    /// The event that comes next, if it precedes this tick.
    fn next_event(&self, tick: Option<TickPlace>) -> Option<&'a Entry> {
        let entry = self.entries.as_slice().first()?;
        tick.is_none_or(|tick| entry.precedes(tick.at, tick.sequence)).then_some(entry)
    }

    /// When the next moment is, since the run began; `None` at the end.
    pub fn time(&self) -> Option<Duration> {
        let tick = self.next_tick();
        self.next_event(tick).map(Entry::at).or(tick.map(|tick| tick.at))
    }

    /// The next moment.
    pub fn next_moment(&mut self) -> Result<Option<Moment<'_>>, Error> {
        let tick = self.next_tick();
        if let Some(entry) = self.next_event(tick) {
            self.entries.next();
            if let Some(baseline) = &mut self.baseline {
                baseline.event(entry);
            }
            return Ok(Some(Moment::Event(entry)));
        }
        let Some(tick) = tick else { return Ok(None) };
        self.tick.begin(tick.at);
        for cursor in &mut self.cursors {
            while cursor.place() == Some(tick) {
                cursor.move_row_to(&mut self.tick);
                cursor.refill()?;
            }
        }
        self.tick.read_completeness();
        if let Some(baseline) = &mut self.baseline {
            baseline.tick(&mut self.tick);
        }
        Ok(Some(Moment::Tick(&self.tick)))
    }
}

/// Which tick a row is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TickPlace {
    at: Duration,
    /// Recordings of earlier versions have none: their rows of one time are one tick.
    sequence: Option<u64>,
}

impl TickPlace {
    /// By sequence number: several ticks may have one time.
    fn is_before(&self, other: &TickPlace) -> bool {
        match self.sequence.zip(other.sequence) {
            Some((own, others)) => own < others,
            None => self.at < other.at,
        }
    }
}

/// A position in one stream.
struct Cursor {
    batches: Batches,
    table: Table,
    row: usize,
    started: Duration,
}

impl Cursor {
    fn open(path: &Path, table: Table, started: Duration) -> Result<Cursor, Error> {
        Ok(Cursor { batches: Batches::open(path)?, table, row: 0, started })
    }

    /// The tick of the next row.
    fn place(&self) -> Option<TickPlace> {
        let at = *self.table.times().get(self.row)?;
        Some(TickPlace { at, sequence: self.table.sequence()[self.row] })
    }

    /// Reads the next batch when the last one is used up.
    fn refill(&mut self) -> Result<(), Error> {
        while self.row >= self.table.len() {
            self.table.clear();
            self.row = 0;
            let Some(batch) = self.batches.next() else { return Ok(()) };
            // An invalid one costs that batch; `Losses` reports it.
            let Ok(batch) = batch else { continue };
            if decode(&batch, self.started, &mut self.table).is_none() {
                self.table.clear();
            }
        }
        Ok(())
    }

    fn move_row_to(&mut self, tick: &mut Tick) {
        if let Some(table) = tick.table_mut(self.table.scope()) {
            table.append_row(&self.table, self.row);
        }
        self.row += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Scope, all_groups};
    use crate::record::{Event, Frame};
    use crate::testing::{CHILD, FakeRun, MAIN, cpu};

    /// How many processes each tick has, and the marks.
    fn moments(recording: &Recording) -> Vec<String> {
        let mut moments = Vec::new();
        let each = |frame: &Frame<'_>| match frame.moment {
            Moment::Tick(tick) => {
                let entities = tick.table(Scope::Process).unwrap().entities();
                moments.push(format!("{} rows", entities.len()));
            }
            Moment::Event(Entry { event: Event::Mark { text }, .. }) => moments.push(text.clone()),
            Moment::Event(_) => {}
        };
        recording.replay(&all_groups(), each).unwrap();
        moments
    }

    fn mark(text: &str) -> Event {
        Event::Mark { text: text.to_owned() }
    }

    #[test]
    fn events_and_ticks_of_one_time_come_in_the_order_in_which_they_were_recorded() {
        let mut run = FakeRun::new();
        run.event(1.0, mark("first")).sample_some(1.0, |tick| cpu(tick, MAIN, 0.1, 0.0));
        run.event(1.0, mark("second")).sample(1.0, |tick| {
            cpu(tick, MAIN, 0.1, 0.0);
            cpu(tick, CHILD, 0.1, 0.0);
        });
        run.event(0.5, mark("late"));
        let directory = tempfile::tempdir().unwrap();
        let recording = run.record(&directory.path().join("run"));
        assert_eq!(moments(&recording), ["first", "1 rows", "second", "2 rows", "late"]);
    }

    #[test]
    fn without_sequence_numbers_the_events_of_a_moment_precede_its_rows() {
        let mut run = FakeRun::new();
        run.sample(1.0, |tick| cpu(tick, MAIN, 0.1, 0.0)).event(1.0, mark("exit"));
        let directory = tempfile::tempdir().unwrap();
        let recording = run.record(&directory.path().join("run"));
        assert_eq!(moments(&recording), ["1 rows", "exit"]);
        // As earlier versions wrote it.
        let events = directory.path().join("run/events.jsonl");
        let lines = std::fs::read_to_string(&events).unwrap();
        std::fs::write(&events, lines.replace(r#""seq":2,"#, "")).unwrap();
        let recording = Recording::open(recording.directory()).unwrap();
        assert_eq!(recording.entries()[0].sequence, None);
        assert_eq!(moments(&recording), ["exit", "1 rows"]);
    }
}
