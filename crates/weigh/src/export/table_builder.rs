//! Builds small tables from rows, column by column.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray,
    UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};

use super::column::time_type;

/// Columns that are never null.
const KEYS: [&str; 3] = ["time", "pid", "started"];

/// Columns of a table being built.
#[derive(Default)]
pub(super) struct TableBuilder {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl TableBuilder {
    fn put(&mut self, name: &str, kind: DataType, help: &str, array: ArrayRef) {
        let field = Field::new(name, kind, !KEYS.contains(&name));
        let metadata = HashMap::from([("help".to_owned(), help.to_owned())]);
        self.fields.push(field.with_metadata(metadata));
        self.arrays.push(array);
    }

    /// A column of timestamps.
    pub(super) fn times<T>(
        &mut self,
        name: &str,
        help: &str,
        rows: &[T],
        of: impl Fn(&T) -> Option<i64>,
    ) {
        let array: TimestampNanosecondArray = rows.iter().map(of).collect();
        self.put(name, time_type(), help, Arc::new(array.with_timezone("UTC")));
    }

    /// A column of pids.
    pub(super) fn pids<T>(&mut self, name: &str, help: &str, rows: &[T], of: impl Fn(&T) -> u32) {
        let array = UInt32Array::from_iter_values(rows.iter().map(of));
        self.put(name, DataType::UInt32, help, Arc::new(array));
    }

    /// A column of texts.
    pub(super) fn texts<T>(
        &mut self,
        name: &str,
        help: &str,
        rows: &[T],
        of: impl Fn(&T) -> Option<String>,
    ) {
        let array: StringArray = rows.iter().map(of).collect();
        self.put(name, DataType::Utf8, help, Arc::new(array));
    }

    /// A column of signed integers.
    pub(super) fn integers<T>(
        &mut self,
        name: &str,
        help: &str,
        rows: &[T],
        of: impl Fn(&T) -> Option<i64>,
    ) {
        let array: Int64Array = rows.iter().map(of).collect();
        self.put(name, DataType::Int64, help, Arc::new(array));
    }

    /// A column of unsigned integers.
    pub(super) fn counts<T>(
        &mut self,
        name: &str,
        help: &str,
        rows: &[T],
        of: impl Fn(&T) -> Option<u64>,
    ) {
        let array: UInt64Array = rows.iter().map(of).collect();
        self.put(name, DataType::UInt64, help, Arc::new(array));
    }

    /// A column of real numbers.
    pub(super) fn numbers<T>(
        &mut self,
        name: &str,
        help: &str,
        rows: &[T],
        of: impl Fn(&T) -> Option<f64>,
    ) {
        let array: Float64Array = rows.iter().map(of).collect();
        self.put(name, DataType::Float64, help, Arc::new(array));
    }

    /// The finished table.
    pub(super) fn done(self) -> Result<RecordBatch, ArrowError> {
        RecordBatch::try_new(Arc::new(Schema::new(self.fields)), self.arrays)
    }
}
