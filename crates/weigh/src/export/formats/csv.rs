//! Comma-separated values, quoted as RFC 4180 has it.
//!
//! A missing value is an empty field, an empty text is `""`. Lines end with a plain
//! newline, which every reader takes and every Unix tool expects.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::super::column::{Cell, Column, moment};
use super::super::{Cause, Sink};

/// One table as CSV.
pub struct Csv<W> {
    out: W,
    line: Vec<u8>,
}

impl<W: Write> Csv<W> {
    /// Into this file.
    pub fn new(out: W) -> Csv<W> {
        Csv { out, line: Vec::new() }
    }
}

impl<W: Write> Sink for Csv<W> {
    fn begin(&mut self, _table: &str, schema: &SchemaRef) -> Result<(), Cause> {
        self.line.clear();
        for (place, field) in schema.fields().iter().enumerate() {
            if place > 0 {
                self.line.push(b',');
            }
            text(&mut self.line, field.name());
        }
        self.line.push(b'\n');
        Ok(self.out.write_all(&self.line)?)
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Cause> {
        let columns = Column::all(batch)?;
        for row in 0..batch.num_rows() {
            self.line.clear();
            for (place, column) in columns.iter().enumerate() {
                if place > 0 {
                    self.line.push(b',');
                }
                cell(&mut self.line, column.cell(row));
            }
            self.line.push(b'\n');
            self.out.write_all(&self.line)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), Cause> {
        Ok(self.out.flush()?)
    }
}

fn cell(line: &mut Vec<u8>, cell: Cell<'_>) {
    match cell {
        Cell::Null => {}
        Cell::Time(at) => line.extend_from_slice(moment(at).as_bytes()),
        Cell::U64(number) => line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes()),
        Cell::I64(number) => line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes()),
        Cell::F64(number) => line.extend_from_slice(zmij::Buffer::new().format(number).as_bytes()),
        Cell::Text(words) => text(line, words),
    }
}

fn text(line: &mut Vec<u8>, words: &str) {
    let bare = !words.is_empty() && !words.contains(['"', ',', '\n', '\r']);
    if bare {
        line.extend_from_slice(words.as_bytes());
        return;
    }
    line.push(b'"');
    line.extend_from_slice(words.replace('"', "\"\"").as_bytes());
    line.push(b'"');
}
