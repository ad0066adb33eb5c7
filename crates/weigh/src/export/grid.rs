//! Resampling: one row for each time step and entity.
//!
//! Values are carried forward until the next reading: a sleeping process has no row, and still has
//! its memory. A gauge becomes its time-weighted mean over the step; a counter its last value, or
//! with rates its delta over the time (for readings older than their row, the time between the
//! readings; without a new reading the last rate is carried forward); a symbol its last value.
//! Where an entity exists in part of a step only, or the step is partly outside the window, values
//! are means over that part. The time of a row is the start of its step, counted from the start of
//! the run.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray, TimestampNanosecondArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::column::{ArrowColumn, CellValue};
use super::lagged_rate::LaggedRate;
use super::out_cell::{OutCell, array};
use super::rates::rate_field;
use super::shape::{self, ColumnRole, EntityKey};
use super::step_mean::StepMean;
use super::window::Windows;
use super::{Cause, Error};
use crate::catalog::RateDenominator;
use crate::model::CounterReading;

/// The most steps without a row: a laptop may sleep over a weekend, but a damaged recording must
/// not fill the disk.
const LONGEST_GAP: i64 = 10_000_000;

/// Rows of an emitted batch.
const BATCH: usize = 8192;

/// Receives finished batches.
pub(super) type EmitBatch<'a> = dyn FnMut(RecordBatch) -> Result<(), Error> + 'a;

/// Parameters of a grid.
pub(super) struct GridPlan {
    /// The roles of the columns.
    pub roles: Vec<ColumnRole>,
    /// What the delta of each counter is divided by.
    pub bases: Vec<RateDenominator>,
    /// When the run began, in nanoseconds since 1970.
    pub started: i64,
    /// The length of a step, in nanoseconds.
    pub step: i64,
    /// Counters as rates.
    pub rates: bool,
    /// The selected parts of the run.
    pub windows: Option<Windows>,
    /// When entities end, in order.
    pub ends: VecDeque<(i64, EntityKey)>,
    /// When the run ended, if known.
    pub end: Option<i64>,
}

/// Resamples one table.
pub(super) struct TimeGrid {
    plan: GridPlan,
    schema: SchemaRef,
    /// In order of first row.
    entities: Vec<GridEntity>,
    places: HashMap<EntityKey, usize>,
    /// The step that is being filled.
    step: i64,
    last: i64,
    /// Finished values of each column, and the times of their rows.
    cells: Vec<Vec<OutCell>>,
    times: Vec<i64>,
    /// The dictionary of each symbol column.
    symbols: Vec<Option<StringArray>>,
}

struct GridEntity {
    key: EntityKey,
    first_seen: i64,
    ended: Option<i64>,
    values: Vec<StepMean>,
    /// Counters whose readings are older than their row.
    lagged: Vec<LaggedRate>,
    /// Last keys and symbols.
    symbols: Vec<OutCell>,
}

impl TimeGrid {
    /// For a table with these columns.
    pub(super) fn new(schema: &Schema, plan: GridPlan) -> TimeGrid {
        let fields = schema.fields().iter().zip(&plan.roles).map(|(field, role)| match role {
            ColumnRole::Counter if plan.rates => Arc::new(rate_field(field)),
            ColumnRole::Counter | ColumnRole::Gauge => {
                let field = Field::new(field.name(), DataType::Float64, true)
                    .with_metadata(field.metadata().clone());
                Arc::new(field)
            }
            _ => Arc::clone(field),
        });
        let fields: Vec<Arc<Field>> = fields.collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        let columns = plan.roles.len();
        TimeGrid {
            plan,
            schema,
            entities: Vec::new(),
            places: HashMap::new(),
            step: i64::MIN,
            last: i64::MIN,
            cells: vec![Vec::new(); columns],
            times: Vec::new(),
            symbols: vec![None; columns],
        }
    }

    /// The columns of the grid.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Adds rows, and emits finished batches.
    pub(super) fn rows(
        &mut self,
        batch: &RecordBatch,
        emit: &mut EmitBatch<'_>,
    ) -> Result<(), Error> {
        let columns = ArrowColumn::all(batch)?;
        let times = shape::times(batch)?;
        self.learn_symbols(&columns);
        let mut key = Vec::new();
        for (row, &at) in times.values().iter().enumerate() {
            self.advance_to(at, emit)?;
            self.last = self.last.max(at);
            shape::key(&columns, &self.plan.roles, row, &mut key);
            self.push(&columns, row, &key, at);
        }
        Ok(())
    }

    /// Emits what is left.
    pub(super) fn finish(&mut self, emit: &mut EmitBatch<'_>) -> Result<(), Error> {
        if self.step != i64::MIN {
            let end = self.plan.end.unwrap_or(self.last).max(self.last);
            self.advance_to(end, emit)?;
            self.close(end.min(self.begin(self.step + 1)), emit)?;
        }
        self.emit(emit)
    }

    /// Ends all steps before the one that contains a time.
    fn advance_to(&mut self, at: i64, emit: &mut EmitBatch<'_>) -> Result<(), Error> {
        let step = at.saturating_sub(self.plan.started).div_euclid(self.plan.step);
        if self.step == i64::MIN {
            self.step = step;
        }
        if step.saturating_sub(self.step) > LONGEST_GAP {
            let why = "its times are further apart than 10 million steps: take longer ones";
            return Err(Cause::from(why).into());
        }
        while self.step < step {
            self.close(self.begin(self.step + 1), emit)?;
            self.step += 1;
        }
        Ok(())
    }

    /// When a step begins.
    fn begin(&self, step: i64) -> i64 {
        self.plan.started.saturating_add(step.saturating_mul(self.plan.step))
    }

    /// All batches share the first dictionary; some file formats require it.
    fn learn_symbols(&mut self, columns: &[ArrowColumn<'_>]) {
        for (known, column) in self.symbols.iter_mut().zip(columns) {
            if let (None, ArrowColumn::Symbol(_, symbols)) = (&known, column) {
                *known = Some((*symbols).clone());
            }
        }
    }

    fn note_ends(&mut self, at: i64) {
        while self.plan.ends.front().is_some_and(|(ended, _)| *ended <= at) {
            let Some((ended, key)) = self.plan.ends.pop_front() else { return };
            if let Some(&place) = self.places.get(&key) {
                self.entities[place].ended = Some(ended);
            }
        }
    }

    fn push(&mut self, columns: &[ArrowColumn<'_>], row: usize, key: &[u8], at: i64) {
        let place = match self.places.get(key) {
            Some(&place) => place,
            None => {
                let values = vec![StepMean::starting(at); columns.len()];
                let lagged = vec![LaggedRate::default(); columns.len()];
                let symbols = vec![OutCell::Missing; columns.len()];
                let key: EntityKey = key.into();
                self.places.insert(key.clone(), self.entities.len());
                self.entities.push(GridEntity {
                    key,
                    first_seen: at,
                    ended: None,
                    values,
                    lagged,
                    symbols,
                });
                self.entities.len() - 1
            }
        };
        let entity = &mut self.entities[place];
        let windows = self.plan.windows.as_ref();
        for (place, (column, role)) in columns.iter().zip(&self.plan.roles).enumerate() {
            let basis = self.plan.bases[place];
            if let (true, Some(value)) = (basis.is_of_readings(), column.cell(row).number()) {
                let total = CounterReading::from_row(at, value, basis, |other| {
                    columns[other].cell(row).number()
                });
                entity.lagged[place].push(total, basis, at, windows);
            }
            // Null means not read: the last value is carried forward.
            match (role, column.cell(row)) {
                (_, CellValue::Null) | (ColumnRole::Time, _) => {}
                (ColumnRole::Gauge | ColumnRole::Counter, CellValue::U64(value)) => {
                    entity.values[place].push(value as f64, at, windows);
                }
                (ColumnRole::Gauge | ColumnRole::Counter, CellValue::F64(value)) => {
                    entity.values[place].push(value, at, windows);
                }
                (_, CellValue::U64(value)) => entity.symbols[place] = OutCell::Integer(value),
                (_, CellValue::Text(text)) => entity.symbols[place].set_text(text),
                _ => {}
            }
        }
    }

    /// Ends the step at a time: a row for every entity that existed in it.
    fn close(&mut self, end: i64, emit: &mut EmitBatch<'_>) -> Result<(), Error> {
        self.note_ends(end);
        let begin = self.begin(self.step);
        let windows = self.plan.windows.as_ref();
        for entity in &mut self.entities {
            let ended = entity.ended.unwrap_or(end).min(end);
            let from = entity.first_seen.max(begin);
            let lifetime =
                windows.map_or(ended.saturating_sub(from), |windows| windows.overlap(from, ended));
            // An entity with a single sample still has a row.
            let seen = entity.first_seen >= begin
                && windows.is_none_or(|windows| windows.contains(entity.first_seen));
            if lifetime > 0 || seen {
                self.times.push(begin);
                for (column, role) in self.plan.roles.iter().enumerate() {
                    let mean = &mut entity.values[column];
                    mean.carry_to(ended, windows);
                    self.cells[column].push(match role {
                        ColumnRole::Time => OutCell::Missing,
                        ColumnRole::Key | ColumnRole::Symbol => entity.symbols[column].clone(),
                        ColumnRole::Gauge => mean.mean().into(),
                        ColumnRole::Counter
                            if self.plan.rates && self.plan.bases[column].is_of_readings() =>
                        {
                            entity.lagged[column].rate(self.plan.bases[column]).into()
                        }
                        ColumnRole::Counter if self.plan.rates => {
                            mean.rate(lifetime, entity.first_seen < begin).into()
                        }
                        ColumnRole::Counter => mean.value.into(),
                    });
                }
            }
            entity.values.iter_mut().for_each(|mean| mean.begin_step(end));
            entity.lagged.iter_mut().for_each(LaggedRate::begin_step);
        }
        self.entities.retain(|entity| entity.ended.is_none_or(|ended| ended > end));
        if self.places.len() > self.entities.len() {
            let places = self.entities.iter().enumerate();
            self.places = places.map(|(place, entity)| (entity.key.clone(), place)).collect();
        }
        if self.times.len() >= BATCH { self.emit(emit) } else { Ok(()) }
    }

    fn emit(&mut self, emit: &mut EmitBatch<'_>) -> Result<(), Error> {
        if self.times.is_empty() {
            return Ok(());
        }
        let times = TimestampNanosecondArray::from(std::mem::take(&mut self.times));
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(times.with_timezone("UTC"))];
        let columns = self.cells.iter().zip(self.schema.fields()).zip(&self.symbols);
        for ((cells, field), symbols) in columns.skip(1) {
            arrays.push(array(field.data_type(), cells, symbols.as_ref())?);
        }
        self.cells.iter_mut().for_each(Vec::clear);
        let schema = Arc::clone(&self.schema);
        emit(RecordBatch::try_new(schema, arrays).map_err(Cause::from)?)
    }
}
