//! Transforms of the rows between recording and files: window, rates, resampling.

use std::collections::VecDeque;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::grid::{GridPlan, TimeGrid};
use super::rates::Rates;
use super::tables::ExportTable;
use super::window::Windows;
use super::{Error, ExportOptions, shape, tables};
use crate::catalog::Scope;
use crate::record::Recording;

/// The shortest resampling step: weigh's shortest sampling interval.
const SHORTEST_STEP: i64 = 1_000_000;

/// The transforms of an export, the same for every table.
pub(super) struct Pipeline<'a> {
    recording: &'a Recording,
    windows: Option<Windows>,
    rates: bool,
    step: Option<i64>,
}

/// Receives the transformed tables.
pub(super) trait TableWriter {
    /// Begins a table.
    fn begin(&mut self, table: &str, schema: &SchemaRef) -> Result<(), Error>;
    /// Writes rows of it.
    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Error>;
    /// Ends the table.
    fn end(&mut self) -> Result<(), Error>;
}

/// The transform of one table.
enum Transform {
    Nothing,
    Cut(Windows),
    Rates(Box<Rates>, Option<Windows>),
    Grid(Box<TimeGrid>),
}

impl<'a> Pipeline<'a> {
    /// The pipeline for these options.
    pub(super) fn of(
        recording: &'a Recording,
        options: &ExportOptions,
    ) -> Result<Pipeline<'a>, Error> {
        let windows = Windows::of(recording, options.from, options.to, options.phase.as_deref())?;
        let step = options.resample.map(|step| i64::try_from(step.as_nanos()).unwrap_or(i64::MAX));
        if step.is_some_and(|step| step < SHORTEST_STEP) {
            return Err(Error::NoStep);
        }
        Ok(Pipeline { recording, windows, rates: options.rates, step })
    }

    /// Writes a table; returns what of it could not be read.
    pub(super) fn write_table(
        &self,
        mut table: ExportTable<'_>,
        files: &mut impl TableWriter,
        mut read: impl FnMut(u64),
    ) -> Result<Option<String>, Error> {
        let mut transform = self.transform(&table);
        files.begin(table.name, &transform.schema(&table))?;
        let mut lost = None;
        while let Some(batch) = table.next() {
            match batch {
                Ok(batch) => {
                    transform.rows(&batch, files)?;
                    read(batch.num_rows() as u64);
                }
                // The other batches are still readable.
                Err(error) => lost = Some(format!("{}: {error}", table.name)),
            }
        }
        if let Transform::Grid(grid) = &mut transform {
            grid.finish(&mut |rows| files.rows(&rows))?;
        }
        files.end()?;
        Ok(lost)
    }

    /// The columns of a table after the transform.
    #[cfg(feature = "parquet")]
    pub(super) fn schema(&self, table: &ExportTable<'_>) -> SchemaRef {
        self.transform(table).schema(table)
    }

    fn transform(&self, table: &ExportTable<'_>) -> Transform {
        // Processes have no window: one that started before it may matter in it.
        let windows = self.windows.clone().filter(|_| table.name != "processes");
        let Some(roles) = shape::roles(&table.schema) else {
            return windows.map_or(Transform::Nothing, Transform::Cut);
        };
        let ends = self.ends(table.name);
        let bases = shape::bases(table.name, &table.schema);
        if let Some(step) = self.step {
            let started = tables::started(self.recording);
            let end = self.end();
            let rates = self.rates;
            let plan = GridPlan { roles, bases, started, step, rates, windows, ends, end };
            Transform::Grid(Box::new(TimeGrid::new(&table.schema, plan)))
        } else if self.rates {
            let rates = Rates::of(&table.schema, roles, ends).with_bases(bases);
            Transform::Rates(Box::new(rates), windows)
        } else {
            windows.map_or(Transform::Nothing, Transform::Cut)
        }
    }

    /// When the entities of a table end.
    fn ends(&self, table: &str) -> VecDeque<(i64, shape::EntityKey)> {
        let scope = Scope::ALL.into_iter().find(|scope| scope.name() == table);
        match scope {
            Some(Scope::Process) => shape::ends(self.recording),
            Some(scope) if scope.name_column().is_some() => {
                let batches = self.recording.batches(scope).ok().flatten();
                let whole = batches.into_iter().flatten().filter_map(Result::ok);
                shape::disappearances(whole).unwrap_or_default()
            }
            _ => VecDeque::new(),
        }
    }

    /// When the run ended, in nanoseconds since 1970. If not recorded: the last tick, from weigh's
    /// own rows.
    fn end(&self) -> Option<i64> {
        let mut entries = self.recording.entries().iter();
        let end = entries.rfind(|entry| entry.event.is_last());
        end.map(|entry| tables::timestamp_of(self.recording, entry.seconds)).or_else(|| {
            let batches = self.recording.batches(Scope::Own).ok()??.filter_map(Result::ok);
            let last = |batch: RecordBatch| shape::times(&batch).ok()?.values().last().copied();
            batches.filter_map(last).last()
        })
    }
}

impl Transform {
    fn schema(&self, table: &ExportTable<'_>) -> SchemaRef {
        match self {
            Transform::Nothing | Transform::Cut(_) => table.schema.clone(),
            Transform::Rates(rates, _) => rates.schema().clone(),
            Transform::Grid(grid) => grid.schema().clone(),
        }
    }

    fn rows(&mut self, batch: &RecordBatch, files: &mut impl TableWriter) -> Result<(), Error> {
        match self {
            Transform::Nothing => files.rows(batch),
            Transform::Cut(windows) => files.rows(&windows.cut(batch)?),
            Transform::Rates(rates, windows) => {
                let rows = rates.rows(batch)?;
                match windows {
                    Some(windows) => files.rows(&windows.cut(&rows)?),
                    None => files.rows(&rows),
                }
            }
            Transform::Grid(grid) => grid.rows(batch, &mut |rows| files.rows(&rows)),
        }
    }
}
