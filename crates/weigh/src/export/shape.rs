//! What the columns of a recorded table are for, and whom a row is about.

use std::collections::VecDeque;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampNanosecondType;
use arrow_array::{RecordBatch, TimestampNanosecondArray};
use arrow_schema::Schema;

use super::column::{ArrowColumn, CellValue};
use super::{Cause, tables};
use crate::catalog::{Basis, Kind, Metric, Scope, all_groups};
use crate::record::{Event, Recording};

/// When each row of a batch was measured.
pub(super) fn times(batch: &RecordBatch) -> Result<&TimestampNanosecondArray, Cause> {
    let first = batch.columns().first();
    let times = first.and_then(|column| column.as_primitive_opt::<TimestampNanosecondType>());
    times.ok_or_else(|| "the first column is not the time".into())
}

/// What a column is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnRole {
    /// When.
    Time,
    /// Whom the row is about.
    Key,
    /// A level.
    Gauge,
    /// A running total.
    Counter,
    /// One of a few words.
    Symbol,
}

/// The roles of all columns; nothing when no column is a measurement.
pub(super) fn roles(schema: &Schema) -> Option<Vec<ColumnRole>> {
    let role = |(place, field): (usize, &arrow_schema::FieldRef)| {
        let kind = field.metadata().get("kind").map(String::as_str);
        match (place, kind, field.data_type().is_numeric()) {
            (0, _, _) => ColumnRole::Time,
            (_, None, _) => ColumnRole::Key,
            (_, Some(_), false) => ColumnRole::Symbol,
            (_, Some("counter"), true) => ColumnRole::Counter,
            (_, Some(_), true) => ColumnRole::Gauge,
        }
    };
    let roles: Vec<ColumnRole> = schema.fields().iter().enumerate().map(role).collect();
    let measured = roles.iter().any(|role| !matches!(role, ColumnRole::Time | ColumnRole::Key));
    measured.then_some(roles)
}

/// What the growth of each column is divided by: what the catalogue says of those it knows, and
/// else the time between the rows.
pub(super) fn bases(table: &str, schema: &Schema) -> Vec<Basis> {
    let scope = Scope::ALL.into_iter().find(|scope| scope.name() == table);
    let known: Vec<&'static Metric> = all_groups().into_iter().flatten().collect();
    let metric = |field: &arrow_schema::FieldRef| -> Option<&'static Metric> {
        let mut known = known.iter().filter(|metric| Some(metric.scope) == scope);
        known.find(|metric| metric.column() == *field.name()).copied()
    };
    let metrics: Vec<Option<&'static Metric>> = schema.fields().iter().map(metric).collect();
    let basis = |metric: &Option<&'static Metric>| {
        let total = metric.filter(|metric| metric.kind == Kind::Counter);
        total.map_or_else(Basis::default, |metric| Basis::of(metric, &metrics))
    };
    metrics.iter().map(basis).collect()
}

/// Tells one entity from the others of its table.
pub(super) type EntityKey = Box<[u8]>;

/// Writes the key of a row into a buffer that is used again and again.
pub(super) fn key(
    columns: &[ArrowColumn<'_>],
    roles: &[ColumnRole],
    row: usize,
    into: &mut Vec<u8>,
) {
    into.clear();
    for (column, _) in columns.iter().zip(roles).filter(|(_, role)| **role == ColumnRole::Key) {
        match column.cell(row) {
            CellValue::U64(number) => into.extend_from_slice(&number.to_le_bytes()),
            CellValue::I64(number) | CellValue::Time(number) => {
                into.extend_from_slice(&number.to_le_bytes())
            }
            CellValue::F64(number) => into.extend_from_slice(&number.to_le_bytes()),
            CellValue::Text(text) => {
                into.extend_from_slice(&(text.len() as u64).to_le_bytes());
                into.extend_from_slice(text.as_bytes());
            }
            CellValue::Null => into.push(0),
        }
    }
}

/// When things were last seen before they were not there for a while, or any more, in order.
///
/// A process that does nothing has no row; a device that has none is not there.
pub(super) fn disappearances(
    batches: impl Iterator<Item = RecordBatch>,
) -> Option<VecDeque<(i64, EntityKey)>> {
    let mut ends = VecDeque::new();
    let (mut before, mut now): (Vec<EntityKey>, Vec<EntityKey>) = (Vec::new(), Vec::new());
    let (mut earlier, mut at) = (i64::MIN, i64::MIN);
    let mut key = Vec::new();
    let mut end_tick = |before: &[EntityKey], now: &[EntityKey], earlier: i64| {
        let gone = before.iter().filter(|key| !now.contains(key));
        ends.extend(gone.map(|key| (earlier, key.clone())));
    };
    for batch in batches {
        let (roles, columns) = (roles(batch.schema_ref())?, ArrowColumn::all(&batch).ok()?);
        for (row, &time) in times(&batch).ok()?.values().iter().enumerate() {
            if time != at {
                end_tick(&before, &now, earlier);
                (before, now) = (now, Vec::new());
                (earlier, at) = (at, time);
            }
            self::key(&columns, &roles, row, &mut key);
            now.push(key.as_slice().into());
        }
    }
    end_tick(&before, &now, earlier);
    Some(ends)
}

/// When processes ended, in order: what is kept of them can be forgotten then.
pub(super) fn ends(recording: &Recording) -> VecDeque<(i64, EntityKey)> {
    let exits = recording.entries().iter().filter_map(|entry| match &entry.event {
        Event::ProcessExit { pid, started, .. } => {
            let key = [u64::from(*pid).to_le_bytes(), started.to_le_bytes()].concat();
            Some((tables::timestamp_of(recording, entry.seconds), key.into_boxed_slice()))
        }
        _ => None,
    });
    exits.collect()
}
