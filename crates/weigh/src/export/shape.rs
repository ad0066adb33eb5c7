//! Roles of the columns of a recorded table, and keys of its entities.

use std::collections::VecDeque;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampNanosecondType;
use arrow_array::{RecordBatch, TimestampNanosecondArray};
use arrow_schema::Schema;

use super::column::{ArrowColumn, CellValue};
use super::{Cause, tables};
use crate::catalog::{Kind, Metric, RateDenominator, Scope, all_groups};
use crate::record::{Event, Recording};

/// When each row of a batch was measured.
pub(super) fn times(batch: &RecordBatch) -> Result<&TimestampNanosecondArray, Cause> {
    let first = batch.columns().first();
    let times = first.and_then(|column| column.as_primitive_opt::<TimestampNanosecondType>());
    times.ok_or_else(|| "the first column is not the time".into())
}

/// The role of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnRole {
    /// The time of the row.
    Time,
    /// Part of the entity's key.
    Key,
    /// A gauge.
    Gauge,
    /// A counter.
    Counter,
    /// A symbol from a short list.
    Symbol,
}

/// The roles of all columns; `None` when no column is a measurement.
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

/// What the delta of each column is divided by: from the catalogue where it is known, else the time
/// between the rows.
pub(super) fn bases(table: &str, schema: &Schema) -> Vec<RateDenominator> {
    let scope = Scope::ALL.into_iter().find(|scope| scope.name() == table);
    let known: Vec<&'static Metric> = all_groups().into_iter().flatten().collect();
    let metric = |field: &arrow_schema::FieldRef| -> Option<&'static Metric> {
        let mut known = known.iter().filter(|metric| Some(metric.scope) == scope);
        known.find(|metric| metric.column() == *field.name()).copied()
    };
    let metrics: Vec<Option<&'static Metric>> = schema.fields().iter().map(metric).collect();
    let basis = |metric: &Option<&'static Metric>| {
        let total = metric.filter(|metric| metric.kind == Kind::Counter);
        total.map_or_else(RateDenominator::default, |metric| {
            RateDenominator::for_counter(metric, &metrics)
        })
    };
    metrics.iter().map(basis).collect()
}

/// Identifies an entity within its table.
pub(super) type EntityKey = Box<[u8]>;

/// Writes the key of a row into a reused buffer.
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
                into.extend_from_slice(&number.to_le_bytes());
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

/// The last row of each entity before it was absent in a tick, in order.
///
/// Only for devices: a sleeping process has no row either, but a device without a row is absent.
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

/// When processes exited, in order: their state can be dropped then.
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
