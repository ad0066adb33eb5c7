//! Running totals as rates.
//!
//! The rate in a row is the growth since the value before it, over the time between
//! the two; a process that did not run has no row meanwhile, and its rate is over all
//! of that time. The first row of each has none. A total that went back (a device that
//! was reset) has none either.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::Cause;
use super::column::{Cell, Column};
use super::shape::{self, Key, Role};

/// Turns the totals of one table into rates, a batch at a time.
pub struct Rates {
    schema: SchemaRef,
    roles: Vec<Role>,
    last: HashMap<Key, Vec<Option<(i64, f64)>>>,
    ends: VecDeque<(i64, Key)>,
}

/// The field of a total, as a rate.
pub fn rate_field(field: &Field) -> Field {
    let mut metadata = field.metadata().clone();
    let name = format!("{}_per_second", field.name());
    metadata.insert("kind".to_owned(), "gauge".to_owned());
    if let Some(unit) = metadata.get_mut("unit") {
        unit.push_str("/s");
    }
    Field::new(name, DataType::Float64, true).with_metadata(metadata)
}

impl Rates {
    /// For a table with these columns, of entities that end at these moments.
    pub fn of(schema: &Schema, roles: Vec<Role>, ends: VecDeque<(i64, Key)>) -> Rates {
        let fields = schema.fields().iter().zip(&roles).map(|(field, role)| match role {
            Role::Counter => Arc::new(rate_field(field)),
            _ => Arc::clone(field),
        });
        let fields: Vec<Arc<Field>> = fields.collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        Rates { schema, roles, last: HashMap::new(), ends }
    }

    /// The columns with rates.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The rows with rates.
    pub fn rows(&mut self, batch: &RecordBatch) -> Result<RecordBatch, Cause> {
        let columns = Column::all(batch)?;
        let times = shape::times(batch)?;
        let counters: Vec<usize> = self.places(Role::Counter).collect();
        let mut rates = vec![Vec::with_capacity(batch.num_rows()); counters.len()];
        let mut key = Vec::new();
        for (row, &at) in times.values().iter().enumerate() {
            self.forget_until(at);
            shape::key(&columns, &self.roles, row, &mut key);
            if !self.last.contains_key(key.as_slice()) {
                self.last.insert(key.as_slice().into(), vec![None; counters.len()]);
            }
            let Some(last) = self.last.get_mut(key.as_slice()) else { continue };
            for ((counter, last), rates) in counters.iter().zip(last).zip(&mut rates) {
                let value = match columns[*counter].cell(row) {
                    Cell::U64(value) => Some(value as f64),
                    Cell::F64(value) => Some(value),
                    _ => None,
                };
                rates.push(value.and_then(|value| rate(last.replace((at, value))?, (at, value))));
            }
        }
        let mut arrays: Vec<ArrayRef> = batch.columns().to_vec();
        for (counter, rates) in counters.into_iter().zip(rates) {
            arrays[counter] = Arc::new(Float64Array::from(rates));
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), arrays)?)
    }

    fn places(&self, wanted: Role) -> impl Iterator<Item = usize> {
        let places = self.roles.iter().enumerate();
        places.filter(move |(_, role)| **role == wanted).map(|(place, _)| place)
    }

    /// Processes end; what is kept must not grow with all that ever were.
    fn forget_until(&mut self, at: i64) {
        while self.ends.front().is_some_and(|(ended, _)| *ended < at) {
            let gone = self.ends.pop_front();
            gone.and_then(|(_, key)| self.last.remove(&key));
        }
    }
}

fn rate((before, from): (i64, f64), (now, to): (i64, f64)) -> Option<f64> {
    let seconds = now.saturating_sub(before) as f64 / 1e9;
    (seconds > 0.0 && to >= from).then(|| (to - from) / seconds)
}
