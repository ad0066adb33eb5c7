//! Typed columns and cells of an exported table, for all file formats.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float64Type, Int64Type, TimestampNanosecondType, UInt8Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray,
    UInt8Array, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, TimeUnit};

use super::Cause;

/// A typed column of a batch.
#[derive(Debug, Clone, Copy)]
pub enum ArrowColumn<'a> {
    /// Nanoseconds since 1970, UTC.
    Time(&'a TimestampNanosecondArray),
    /// Small unsigned integers: keys.
    U32(&'a UInt32Array),
    /// Unsigned integers.
    U64(&'a UInt64Array),
    /// Signed integers.
    I64(&'a Int64Array),
    /// Real numbers.
    F64(&'a Float64Array),
    /// Symbols from a short list: indices and the list (a dictionary).
    Symbol(&'a UInt8Array, &'a StringArray),
    /// Any text.
    Text(&'a StringArray),
}

/// One cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CellValue<'a> {
    /// Null: not measured.
    Null,
    /// Nanoseconds since 1970, UTC.
    Time(i64),
    /// An unsigned integer.
    U64(u64),
    /// A signed integer.
    I64(i64),
    /// A real number.
    F64(f64),
    /// A symbol or any text.
    Text(&'a str),
}

impl CellValue<'_> {
    /// A measured number.
    pub fn number(&self) -> Option<f64> {
        match self {
            CellValue::U64(value) => Some(*value as f64),
            CellValue::F64(value) => Some(*value),
            _ => None,
        }
    }
}

/// The Arrow type of a timestamp.
pub fn time_type() -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()))
}

/// The Arrow type of a symbol (dictionary).
pub fn symbol_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::UInt8), Box::new(DataType::Utf8))
}

impl<'a> ArrowColumn<'a> {
    /// A typed view of an array, if the type is supported.
    pub fn of(array: &'a ArrayRef) -> Option<ArrowColumn<'a>> {
        Some(match array.data_type() {
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                ArrowColumn::Time(array.as_primitive_opt::<TimestampNanosecondType>()?)
            }
            DataType::UInt32 => ArrowColumn::U32(array.as_primitive_opt::<UInt32Type>()?),
            DataType::UInt64 => ArrowColumn::U64(array.as_primitive_opt::<UInt64Type>()?),
            DataType::Int64 => ArrowColumn::I64(array.as_primitive_opt::<Int64Type>()?),
            DataType::Float64 => ArrowColumn::F64(array.as_primitive_opt::<Float64Type>()?),
            DataType::Dictionary(_, _) => {
                let symbols = array.as_dictionary_opt::<UInt8Type>()?;
                ArrowColumn::Symbol(symbols.keys(), symbols.values().as_string_opt::<i32>()?)
            }
            DataType::Utf8 => ArrowColumn::Text(array.as_string_opt::<i32>()?),
            _ => return None,
        })
    }

    /// The columns of a batch, in its order.
    pub fn all(batch: &'a RecordBatch) -> Result<Vec<ArrowColumn<'a>>, Cause> {
        let fields = batch.schema_ref().fields().iter();
        fields
            .zip(batch.columns())
            .map(|(field, array)| {
                let unknown = || format!("column {} has an unknown type", field.name());
                ArrowColumn::of(array).ok_or_else(|| unknown().into())
            })
            .collect()
    }

    /// One cell.
    pub fn cell(&self, row: usize) -> CellValue<'a> {
        fn present<T>(array: &impl Array, row: usize, cell: T) -> Option<T> {
            (!array.is_null(row)).then_some(cell)
        }
        let cell = match *self {
            ArrowColumn::Time(a) => present(a, row, CellValue::Time(a.value(row))),
            ArrowColumn::U32(a) => present(a, row, CellValue::U64(u64::from(a.value(row)))),
            ArrowColumn::U64(a) => present(a, row, CellValue::U64(a.value(row))),
            ArrowColumn::I64(a) => present(a, row, CellValue::I64(a.value(row))),
            ArrowColumn::F64(a) => present(a, row, CellValue::F64(a.value(row))),
            ArrowColumn::Symbol(keys, symbols) => {
                let place = usize::from(keys.value(row));
                (!keys.is_null(row) && place < symbols.len())
                    .then(|| CellValue::Text(symbols.value(place)))
            }
            ArrowColumn::Text(a) => (!a.is_null(row)).then(|| CellValue::Text(a.value(row))),
        };
        cell.unwrap_or(CellValue::Null)
    }
}

/// A timestamp as text: RFC 3339, UTC, to the nanosecond, of fixed length.
pub fn timestamp_text(nanoseconds: i64) -> String {
    let timestamp = jiff::Timestamp::from_nanosecond(i128::from(nanoseconds)).unwrap_or_default();
    format!("{timestamp:.9}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamp_text_has_nanoseconds_and_fixed_length() {
        assert_eq!(timestamp_text(1_763_316_348_123_456_789), "2025-11-16T18:05:48.123456789Z");
        assert_eq!(timestamp_text(1_763_316_348_000_000_000), "2025-11-16T18:05:48.000000000Z");
    }
}
