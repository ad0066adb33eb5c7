//! Replays a recorded run, moment by moment.
//!
//! A reader pulls the next moment, so that several recordings can be walked side by side. One batch
//! of each scope is held, however long the recording is.

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
        let baseline = recording.manifest().came.map(AttachBaseline::new);
        Ok(Replay { baseline, ..Replay::as_recorded(recording, groups)? })
    }

    /// The same, with counters as the kernel gave them.
    pub(crate) fn as_recorded(
        recording: &'a Recording,
        groups: &[&'static [Metric]],
    ) -> Result<Replay<'a>, Error> {
        let started = recording.manifest().started.as_nanosecond().max(0);
        let started = Duration::from_nanos(started as u64);
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

    /// When something was next measured.
    fn next_tick_time(&self) -> Option<Duration> {
        self.cursors.iter().filter_map(Cursor::time).min()
    }

    /// When the next moment is, since the run began; `None` at the end.
    pub fn time(&self) -> Option<Duration> {
        let happened = self.entries.as_slice().first().map(Entry::at);
        happened.into_iter().chain(self.next_tick_time()).min()
    }

    /// The next moment. Events precede the rows of the same time.
    pub fn next_moment(&mut self) -> Result<Option<Moment<'_>>, Error> {
        let next_tick_time = self.next_tick_time();
        let until = next_tick_time.map_or(f64::INFINITY, |at| at.as_secs_f64());
        if let Some(entry) = self.entries.as_slice().first()
            && (next_tick_time.is_none() || entry.seconds <= until)
        {
            self.entries.next();
            if let Some(baseline) = &mut self.baseline {
                baseline.event(entry);
            }
            return Ok(Some(Moment::Event(entry)));
        }
        let Some(at) = next_tick_time else { return Ok(None) };
        self.tick.begin(at);
        for cursor in &mut self.cursors {
            while cursor.time() == Some(at) {
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

    /// The time of the next row.
    fn time(&self) -> Option<Duration> {
        self.table.times().get(self.row).copied()
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
