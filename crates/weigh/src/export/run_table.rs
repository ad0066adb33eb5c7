//! The table of the run as a whole: what was recorded of it, and sums over its processes.
//!
//! The sums are derived from the frames of the recording while it is read, a batch at a time, so
//! that memory does not grow with the recording.

use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::Error;
use crate::catalog::metrics::RunTotalGpu;
use crate::catalog::{DERIVED, Metric, Row, SOURCES, Scope, SourceId, groups};
use crate::model::{Entity, Table};
use crate::record::{self, Frames, Moment, Recording, Replay};
use crate::summary::{Accumulator, RunTotals};

/// What the sums depend on; the machine's own tables need not be read.
const READ: [Scope; 6] =
    [Scope::Process, Scope::Run, Scope::Own, Scope::Cgroup, Scope::Gpu, Scope::GpuProcess];

/// Rows of a batch.
const BATCH: usize = 4096;

/// The table, an iterator over its batches.
pub(super) struct RunTable<'a> {
    /// About how many rows it has.
    pub rows: u64,
    replay: Replay<'a>,
    frames: Frames,
    accumulator: Accumulator,
    table: Table,
    started: Duration,
    schema: SchemaRef,
}

impl<'a> RunTable<'a> {
    /// Of a recording.
    pub(super) fn of(recording: &'a Recording) -> Result<RunTable<'a>, Error> {
        let used = |name: &str| recording.manifest().collectors.iter().any(|one| one == name);
        let mut groups = groups(SOURCES.iter().filter(|source| used(source.name)));
        groups.retain(|group| group.iter().any(|metric| READ.contains(&metric.scope)));
        let replay = Replay::of(recording, &groups)?;
        // What a tick has comes first: its rows fit. A run without GPUs has no columns of them.
        let has_gpus = used(SourceId::Gpu.name());
        let is_there = |group: &&&[Metric]| has_gpus || **group != RunTotalGpu::METRICS;
        groups.extend(DERIVED.iter().filter(is_there));
        let table = Table::new(Scope::Run, &groups);
        let started = recording.manifest().started.as_nanosecond().max(0);
        let started = Duration::from_nanos(started as u64);
        let schema = record::batch(&table, started).map_err(super::Cause::from)?.schema();
        Ok(RunTable {
            rows: recording.batches(Scope::Own)?.map_or(0, |batches| batches.rows),
            replay,
            frames: Frames::default(),
            accumulator: Accumulator::for_recording(recording),
            table,
            started,
            schema,
        })
    }

    /// Its columns.
    pub(super) fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Reads rows until a batch is full or the recording ends.
    fn fill(&mut self) -> Result<(), record::Error> {
        self.table.clear();
        while self.table.len() < BATCH {
            let Some(moment) = self.replay.next_moment()? else { return Ok(()) };
            let (accumulator, table) = (&mut self.accumulator, &mut self.table);
            self.frames.moment(moment, |frame| {
                accumulator.frame(frame);
                let Moment::Tick(tick) = frame.moment else { return };
                let recorded = tick.table(Scope::Run).filter(|recorded| !recorded.is_empty());
                match recorded {
                    Some(recorded) => table.append_row(recorded, 0),
                    None if tick.is_complete() => table.begin_row(tick.at, None, Entity::Single),
                    None => return,
                }
                let totals = accumulator.totals(frame.live);
                table.put(tick.at, Entity::Single, &totals.cpu);
                // Between two samples of all processes a sum would be of old and new values.
                if tick.is_complete() {
                    put_sums(table, tick.at, &totals);
                }
            });
        }
        Ok(())
    }
}

/// Adds the sums over processes to the last row.
fn put_sums(table: &mut Table, at: Duration, totals: &RunTotals) {
    table.put(at, Entity::Single, &totals.memory);
    table.put(at, Entity::Single, &totals.processes);
    table.put(at, Entity::Single, &totals.io);
    table.put(at, Entity::Single, &totals.gpu);
}

impl Iterator for RunTable<'_> {
    type Item = Result<RecordBatch, record::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.fill() {
            return Some(Err(error));
        }
        if self.table.is_empty() {
            return None;
        }
        record::batch(&self.table, self.started).ok().map(Ok)
    }
}
