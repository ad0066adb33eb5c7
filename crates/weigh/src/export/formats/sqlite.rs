//! One SQLite database with all tables.
//!
//! Times are text (RFC 3339, UTC, to the nanosecond), which SQLite's date functions
//! read and which sorts; a missing value is NULL. SQLite's integers end at
//! 2^63 - 1: a larger one is an error, not another number. The table `columns` says
//! what each column means.

use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, ToSql};

use super::super::column::{ArrowColumn, CellValue, timestamp_text};
use super::super::{Cause, Sink};

/// All tables as an SQLite database.
pub(super) struct SqliteSink {
    connection: Connection,
    insert: String,
    names: Vec<String>,
}

impl SqliteSink {
    /// Into this file, which is empty.
    pub(super) fn create(path: &Path) -> Result<SqliteSink, Cause> {
        let connection = Connection::open(path)?;
        // The file is not visible before it is complete, so it needs no journal.
        connection.execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;
             BEGIN;
             CREATE TABLE columns (\"table\" TEXT, \"column\" TEXT, unit TEXT, kind TEXT,
                                   label TEXT, help TEXT, source TEXT);",
        )?;
        Ok(SqliteSink { connection, insert: String::new(), names: Vec::new() })
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl Sink for SqliteSink {
    fn begin(&mut self, table: &str, schema: &SchemaRef) -> Result<(), Cause> {
        let columns: Vec<String> = schema
            .fields()
            .iter()
            .map(|field| {
                let kind = match field.data_type() {
                    DataType::Float64 => "REAL",
                    kind if kind.is_integer() => "INTEGER",
                    _ => "TEXT",
                };
                format!("{} {kind}", quoted(field.name()))
            })
            .collect();
        let table_name = quoted(table);
        self.connection
            .execute_batch(&format!("CREATE TABLE {table_name} ({})", columns.join(", ")))?;
        let mut explain =
            self.connection.prepare("INSERT INTO columns VALUES (?, ?, ?, ?, ?, ?, ?)")?;
        for field in schema.fields() {
            let metadata = |key: &str| field.metadata().get(key);
            let [unit, kind, label, help, source] =
                ["unit", "kind", "label", "help", "source"].map(metadata);
            explain.execute((table, field.name(), unit, kind, label, help, source))?;
        }
        let places = vec!["?"; columns.len()].join(", ");
        self.insert = format!("INSERT INTO {table_name} VALUES ({places})");
        self.names = schema.fields().iter().map(|field| field.name().clone()).collect();
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Cause> {
        let columns = ArrowColumn::all(batch)?;
        let mut insert = self.connection.prepare_cached(&self.insert)?;
        for row in 0..batch.num_rows() {
            for (place, column) in columns.iter().enumerate() {
                let value = value(column.cell(row))
                    .ok_or_else(|| format!("{} is more than 2^63 - 1", self.names[place]))?;
                insert.raw_bind_parameter(place + 1, value)?;
            }
            insert.raw_execute()?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), Cause> {
        self.connection.execute_batch("COMMIT")?;
        self.connection.close().map_err(|(_, error)| error.into())
    }
}

/// A cell as an SQLite value; `None` when it does not fit.
fn value(cell: CellValue<'_>) -> Option<impl ToSql + '_> {
    Some(match cell {
        CellValue::Null => ToSqlOutput::Owned(Value::Null),
        CellValue::Time(at) => ToSqlOutput::Owned(Value::Text(timestamp_text(at))),
        CellValue::U64(number) => ToSqlOutput::Owned(Value::Integer(i64::try_from(number).ok()?)),
        CellValue::I64(number) => ToSqlOutput::Owned(Value::Integer(number)),
        CellValue::F64(number) => ToSqlOutput::Owned(Value::Real(number)),
        CellValue::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
    })
}
