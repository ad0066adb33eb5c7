//! The batches of a stream with the attach baseline subtracted: what exported tables are made of.
//!
//! Batches of a run that weigh started pass unchanged. In others the columns with a baseline are
//! replaced, and every other column passes, also one that this weigh does not know. Sequence numbers
//! are for the order of a replay, and no part of a table.

use std::sync::Arc;
use std::time::Duration;
use std::vec::IntoIter;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::baseline::{AttachBaseline, BASED};
use super::batches::Batches;
use super::stream::{array, decode, without_sequence};
use super::{Entry, Error, Recording};
use crate::catalog::{Kind, MetricRelation, Scope, all_groups};
use crate::model::Table;

/// The complete batches of one stream, since weigh attached.
pub struct BaselinedBatches {
    batches: Batches,
    baseline: Option<Subtraction>,
}

struct Subtraction {
    baseline: AttachBaseline,
    /// Events that were not applied yet.
    entries: IntoIter<Entry>,
    table: Table,
    started: Duration,
}

impl BaselinedBatches {
    /// The batches of one scope; `None` when it was not measured.
    pub(super) fn of(
        recording: &Recording,
        scope: Scope,
    ) -> Result<Option<BaselinedBatches>, Error> {
        let Some(batches) = recording.batches(scope)? else { return Ok(None) };
        let attached = recording.manifest().attach_clock_ticks.filter(|_| BASED.contains(&scope));
        let baseline = attached.map(|attached| Subtraction {
            baseline: AttachBaseline::new(attached),
            entries: recording.entries().to_vec().into_iter(),
            table: Table::new(scope, &all_groups()),
            started: recording.own_start(),
        });
        Ok(Some(BaselinedBatches { batches, baseline }))
    }

    /// Its columns; nothing when not even the schema has reached the disk.
    pub fn schema(&self) -> Option<SchemaRef> {
        let schema = self.batches.schema()?;
        schema.project(&without_sequence(&schema)).ok().map(Arc::new)
    }

    /// Rows of all complete batches.
    pub fn rows(&self) -> u64 {
        self.batches.rows
    }
}

impl Iterator for BaselinedBatches {
    type Item = Result<RecordBatch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let batch = match self.batches.next()? {
                Ok(batch) => batch,
                Err(error) => return Some(Err(error)),
            };
            let batch = match &mut self.baseline {
                Some(baseline) => baseline.subtract(&batch),
                None => Some(batch),
            };
            // An invalid one costs that batch; `Losses` reports it.
            if let Some(batch) =
                batch.and_then(|batch| batch.project(&without_sequence(batch.schema_ref())).ok())
            {
                return Some(Ok(batch));
            }
        }
    }
}

impl Subtraction {
    fn subtract(&mut self, batch: &RecordBatch) -> Option<RecordBatch> {
        self.table.clear();
        decode(batch, self.started, &mut self.table)?;
        let mut row = 0;
        while row < self.table.len() {
            let tick = (self.table.times()[row], self.table.sequence()[row]);
            while let Some(entry) = self.entries.as_slice().first()
                && entry.precedes(tick.0, tick.1)
            {
                self.baseline.event(entry);
                self.entries.next();
            }
            let ticks = self.table.times()[row..].iter().zip(&self.table.sequence()[row..]);
            let same = ticks.take_while(|(at, number)| (**at, **number) == tick).count();
            self.baseline.rows(&mut self.table, row..row + same);
            row += same;
        }
        let mut columns = batch.columns().to_vec();
        for (metric, column) in self.table.metrics().iter().zip(self.table.columns()) {
            let is_based = metric.kind == Kind::Counter
                || matches!(metric.relation, MetricRelation::HighWaterMarkOf(_));
            let place = batch.schema().index_of(&metric.column()).ok();
            if let Some(place) = place.filter(|_| is_based) {
                columns[place] = array(metric, column);
            }
        }
        RecordBatch::try_new(Arc::clone(&batch.schema()), columns).ok()
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Float64Type;

    use super::*;
    use crate::catalog::Row;
    use crate::catalog::metrics::ProcessCpu;
    use crate::record::stream::SEQUENCE;
    use crate::record::{Frame, Moment};
    use crate::testing::{CHILD, FakeRun, MAIN, cpu, cpu_with_children};

    fn user(batches: impl Iterator<Item = Result<RecordBatch, Error>>) -> Vec<f64> {
        let column = ProcessCpu::metric(|row| &mut row.user).unwrap().column();
        let values = |batch: Result<RecordBatch, Error>| {
            let batch = batch.unwrap();
            let column = batch.column_by_name(&column).unwrap();
            column.as_primitive::<Float64Type>().values().to_vec()
        };
        batches.flat_map(values).collect()
    }

    #[test]
    fn exported_counters_of_an_attached_run_are_those_of_its_replay() {
        let mut run = FakeRun::new();
        run.manifest.attach_clock_ticks = Some(5000);
        run.starts(0.0, MAIN, "work").starts_under(0.0, CHILD, MAIN.pid, "child");
        run.sample(0.5, |tick| {
            cpu(tick, MAIN, 100.0, 0.0);
            cpu(tick, CHILD, 40.0, 0.0);
        });
        run.exits(0.9, CHILD);
        run.sample(1.0, |tick| cpu_with_children(tick, MAIN, 101.5, 40.25));
        let directory = tempfile::tempdir().unwrap();
        let recording = run.record(&directory.path().join("run"));
        let raw = user(recording.batches(Scope::Process).unwrap().unwrap());
        assert_eq!(raw, [100.0, 40.0, 101.5]);
        let based = user(recording.baselined_batches(Scope::Process).unwrap().unwrap());
        assert_eq!(based, [0.0, 0.0, 1.5]);
        let mut replayed = Vec::new();
        let take = |frame: &Frame<'_>| {
            if let Moment::Tick(tick) = frame.moment {
                let rows = tick.table(Scope::Process).unwrap().rows::<ProcessCpu>();
                replayed.extend(rows.filter_map(|(_, row)| row.user));
            }
        };
        recording.replay(&all_groups(), take).unwrap();
        assert_eq!(based, replayed);
    }

    #[test]
    fn exported_tables_have_no_sequence_numbers() {
        for attach_clock_ticks in [None, Some(5000)] {
            let mut run = FakeRun::new();
            run.manifest.attach_clock_ticks = attach_clock_ticks;
            run.starts(0.0, MAIN, "work").sample(0.5, |tick| cpu(tick, MAIN, 3.0, 0.0));
            let directory = tempfile::tempdir().unwrap();
            let recording = run.record(&directory.path().join("run"));
            let mut batches = recording.baselined_batches(Scope::Process).unwrap().unwrap();
            let schema = batches.schema().unwrap();
            assert!(schema.index_of(SEQUENCE).is_err());
            assert_eq!(batches.next().unwrap().unwrap().schema(), schema);
            let raw = recording.batches(Scope::Process).unwrap().unwrap().schema().unwrap();
            assert_eq!(raw.fields().len(), schema.fields().len() + 1);
        }
    }

    #[test]
    fn counters_of_a_command_that_weigh_started_pass_as_they_are() {
        let mut run = FakeRun::new();
        run.starts(0.0, MAIN, "work").sample(0.5, |tick| cpu(tick, MAIN, 3.0, 0.0));
        let directory = tempfile::tempdir().unwrap();
        let recording = run.record(&directory.path().join("run"));
        assert_eq!(user(recording.baselined_batches(Scope::Process).unwrap().unwrap()), [3.0]);
    }
}
