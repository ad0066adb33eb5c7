//! JSON: one array of objects, or one object on each line.
//!
//! A missing value is null. Integers are written in full; a reader with floating-point numbers only
//! (JavaScript) rounds those above 2^53.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::super::column::{ArrowColumn, CellValue, timestamp_text};
use super::super::{Cause, Sink};

/// One table as JSON.
pub(crate) struct JsonSink<W> {
    out: W,
    array: bool,
    /// `{"name":` and `,"name":` of each column.
    prefixes: Vec<Vec<u8>>,
    rows: u64,
    line: Vec<u8>,
}

impl<W: Write> JsonSink<W> {
    /// As one array.
    pub(crate) fn array(out: W) -> JsonSink<W> {
        JsonSink { out, array: true, prefixes: Vec::new(), rows: 0, line: Vec::new() }
    }

    /// As one object on each line.
    pub(crate) fn lines(out: W) -> JsonSink<W> {
        JsonSink { array: false, ..JsonSink::array(out) }
    }
}

impl<W: Write> Sink for JsonSink<W> {
    fn begin(&mut self, _table: &str, schema: &SchemaRef) -> Result<(), Cause> {
        for (place, field) in schema.fields().iter().enumerate() {
            let mut prefix = vec![if place == 0 { b'{' } else { b',' }];
            serde_json::to_writer(&mut prefix, field.name())?;
            prefix.push(b':');
            self.prefixes.push(prefix);
        }
        if self.array {
            self.out.write_all(b"[")?;
        }
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Cause> {
        let columns = ArrowColumn::all(batch)?;
        for row in 0..batch.num_rows() {
            self.line.clear();
            if self.array {
                let separator: &[u8] = if self.rows == 0 { b"\n" } else { b",\n" };
                self.line.extend_from_slice(separator);
            }
            for (prefix, column) in self.prefixes.iter().zip(&columns) {
                self.line.extend_from_slice(prefix);
                value(&mut self.line, column.cell(row))?;
            }
            self.line.push(b'}');
            if !self.array {
                self.line.push(b'\n');
            }
            self.rows += 1;
            self.out.write_all(&self.line)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), Cause> {
        if self.array {
            self.out.write_all(b"\n]\n")?;
        }
        Ok(self.out.flush()?)
    }
}

fn value(line: &mut Vec<u8>, cell: CellValue<'_>) -> Result<(), Cause> {
    match cell {
        CellValue::Time(at) => {
            line.push(b'"');
            line.extend_from_slice(timestamp_text(at).as_bytes());
            line.push(b'"');
        }
        CellValue::U64(number) => {
            line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        }
        CellValue::I64(number) => {
            line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        }
        CellValue::F64(number) if number.is_finite() => {
            line.extend_from_slice(zmij::Buffer::new().format(number).as_bytes());
        }
        CellValue::Text(text) => serde_json::to_writer(line, text)?,
        // JSON has no NaN and no infinity.
        CellValue::Null | CellValue::F64(_) => line.extend_from_slice(b"null"),
    }
    Ok(())
}
