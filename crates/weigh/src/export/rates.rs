//! Counters as rates.
//!
//! The rate in a row is the delta to the value before it, over the time between the two; a sleeping
//! process has no rows, so its rate is over all of that time. The first row of an entity has no
//! rate, nor has a counter that decreased (a device reset). Where rows have the age of their
//! readings (GPUs), the time is that between the two readings, and a row that repeats the last
//! reading has no rate.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::Cause;
use super::column::ArrowColumn;
use super::shape::{self, ColumnRole, EntityKey};
use crate::catalog::RateDenominator;
use crate::model::{CounterReading, Delta};

/// Turns the counters of one table into rates, a batch at a time.
pub(super) struct Rates {
    schema: SchemaRef,
    roles: Vec<ColumnRole>,
    bases: Vec<RateDenominator>,
    last: HashMap<EntityKey, Vec<Option<CounterReading>>>,
    ends: VecDeque<(i64, EntityKey)>,
}

/// The field of a counter, as a rate.
pub(super) fn rate_field(field: &Field) -> Field {
    let mut metadata = field.metadata().clone();
    let name = format!("{}_per_second", field.name());
    metadata.insert("kind".to_owned(), "gauge".to_owned());
    if let Some(unit) = metadata.get_mut("unit") {
        unit.push_str("/s");
    }
    Field::new(name, DataType::Float64, true).with_metadata(metadata)
}

impl Rates {
    /// For a table with these columns, of entities that end at these times.
    pub(super) fn of(
        schema: &Schema,
        roles: Vec<ColumnRole>,
        ends: VecDeque<(i64, EntityKey)>,
    ) -> Rates {
        let fields = schema.fields().iter().zip(&roles).map(|(field, role)| match role {
            ColumnRole::Counter => Arc::new(rate_field(field)),
            _ => Arc::clone(field),
        });
        let fields: Vec<Arc<Field>> = fields.collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        let bases = vec![RateDenominator::default(); roles.len()];
        Rates { schema, roles, bases, last: HashMap::new(), ends }
    }

    /// The same, with a rate basis for each column.
    pub(super) fn with_bases(self, bases: Vec<RateDenominator>) -> Rates {
        Rates { bases, ..self }
    }

    /// The columns with rates.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The rows with rates.
    pub(super) fn rows(&mut self, batch: &RecordBatch) -> Result<RecordBatch, Cause> {
        let columns = ArrowColumn::all(batch)?;
        let times = shape::times(batch)?;
        let counters: Vec<usize> = self.places(ColumnRole::Counter).collect();
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
                let basis = self.bases[*counter];
                let cell = |column: usize| columns[column].cell(row).number();
                let now =
                    cell(*counter).map(|value| CounterReading::from_row(at, value, basis, cell));
                rates.push(now.and_then(|now| rate(last, now, basis)));
            }
        }
        let mut arrays: Vec<ArrayRef> = batch.columns().to_vec();
        for (counter, rates) in counters.into_iter().zip(rates) {
            arrays[counter] = Arc::new(Float64Array::from(rates));
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), arrays)?)
    }

    fn places(&self, wanted: ColumnRole) -> impl Iterator<Item = usize> {
        let places = self.roles.iter().enumerate();
        places.filter(move |(_, role)| **role == wanted).map(|(place, _)| place)
    }

    /// Forgets ended entities, so that memory does not grow with their number.
    fn forget_until(&mut self, at: i64) {
        while self.ends.front().is_some_and(|(ended, _)| *ended < at) {
            let gone = self.ends.pop_front();
            gone.and_then(|(_, key)| self.last.remove(&key));
        }
    }
}

/// The rate up to a reading, which becomes the last one if it is new.
fn rate(
    last: &mut Option<CounterReading>,
    now: CounterReading,
    basis: RateDenominator,
) -> Option<f64> {
    let delta = last.map(|before| now.since(&before, basis));
    if delta != Some(Delta::NoNewReading) {
        *last = Some(now);
    }
    delta?.rate(basis)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use arrow_array::TimestampNanosecondArray;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Float64Type;

    use super::*;

    /// Samples of a GPU that draws 500 W and is fully utilised: (tick, age of the reading).
    const SAMPLES: [(f64, f64); 5] = [(1.0, 0.1), (2.0, 0.6), (3.0, 1.602), (4.0, 0.0), (5.0, 0.9)];

    fn rows() -> RecordBatch {
        let kind = |kind: &str| HashMap::from([("kind".to_owned(), kind.to_owned())]);
        let total = |name: &str, value: &dyn Fn(f64) -> f64| {
            let values = SAMPLES.iter().map(|(tick, age)| value((tick - age) * 100.0));
            let field = Field::new(name, DataType::Float64, true).with_metadata(kind("counter"));
            (field, Arc::new(Float64Array::from_iter_values(values)) as ArrayRef)
        };
        let times = SAMPLES.iter().map(|(tick, _)| (tick * 1e9) as i64);
        let times = TimestampNanosecondArray::from_iter_values(times).with_timezone("UTC");
        let ages = Float64Array::from_iter_values(SAMPLES.iter().map(|(_, age)| *age));
        // The driver's samples are 0.1 s long, and the last one is not complete.
        let (busy, busy_seconds) = total("activity_busy_seconds", &|at| (at / 10.0).floor() / 10.0);
        let (seen, seen_seconds) =
            total("activity_observed_seconds", &|at| (at / 10.0).floor() / 10.0);
        let (energy, joules) = total("power_energy_joules", &|at| at.round() * 5.0);
        let fields = vec![
            Field::new("time", super::super::column::time_type(), false),
            Field::new("activity_age_seconds", DataType::Float64, true)
                .with_metadata(kind("gauge")),
            busy,
            seen,
            energy,
        ];
        let columns =
            vec![Arc::new(times) as _, Arc::new(ages) as _, busy_seconds, seen_seconds, joules];
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
    }

    #[test]
    fn gpu_rates_are_over_the_time_between_readings() {
        let rows = rows();
        let schema = rows.schema();
        let rates = Rates::of(&schema, shape::roles(&schema).unwrap(), VecDeque::new());
        let made = rates.with_bases(shape::bases("gpu", &schema)).rows(&rows).unwrap();
        let of = |name: &str| -> Vec<Option<f64>> {
            made.column_by_name(name).unwrap().as_primitive::<Float64Type>().iter().collect()
        };
        for rate in of("activity_busy_seconds_per_second").into_iter().flatten() {
            assert!((rate - 1.0).abs() < 1e-9, "{rate}");
        }
        let watts = of("power_energy_joules_per_second");
        assert_eq!((watts[0], watts[2]), (None, None), "the third has the second's reading");
        for rate in watts.iter().flatten() {
            assert!((rate - 500.0).abs() < 15.0, "{watts:?}");
        }
        assert_eq!(watts.iter().flatten().count(), 3);
    }
}
