//! Comma-separated values, quoted as in RFC 4180.
//!
//! A missing value is an empty field, an empty text is `""`. Lines end with `\n`, which every
//! reader takes and every Unix tool expects. Control characters, which could control a terminal
//! that shows the file, are escaped (`\u{1b}`) except tabs and line ends, which belong to texts.
//!
//! A spreadsheet takes a text that begins with `=`, `+`, `-` or `@` as a formula, quoted or not.
//! Other readers want it unchanged, so it gets a leading apostrophe only on request.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::super::column::{ArrowColumn, CellValue, timestamp_text};
use super::super::{Cause, Sink};

/// One table as CSV.
pub(crate) struct CsvSink<W> {
    out: W,
    line: Vec<u8>,
    /// Whether formulas are escaped.
    spreadsheet_safe: bool,
}

impl<W: Write> CsvSink<W> {
    /// Into this file; optionally with formulas escaped for spreadsheets.
    pub(crate) fn new(out: W, spreadsheet_safe: bool) -> CsvSink<W> {
        CsvSink { out, line: Vec::new(), spreadsheet_safe }
    }
}

impl<W: Write> Sink for CsvSink<W> {
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
        let columns = ArrowColumn::all(batch)?;
        for row in 0..batch.num_rows() {
            self.line.clear();
            for (place, column) in columns.iter().enumerate() {
                if place > 0 {
                    self.line.push(b',');
                }
                match column.cell(row) {
                    CellValue::Text(value) if self.spreadsheet_safe && is_formula(value) => {
                        text(&mut self.line, &format!("'{value}"));
                    }
                    other => cell(&mut self.line, other),
                }
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

fn cell(line: &mut Vec<u8>, cell: CellValue<'_>) {
    match cell {
        CellValue::Null => {}
        CellValue::Time(at) => line.extend_from_slice(timestamp_text(at).as_bytes()),
        CellValue::U64(number) => {
            line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        }
        CellValue::I64(number) => {
            line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        }
        CellValue::F64(number) => {
            line.extend_from_slice(zmij::Buffer::new().format(number).as_bytes());
        }
        CellValue::Text(value) => text(line, value),
    }
}

/// Whether a spreadsheet would take it as a formula.
fn is_formula(value: &str) -> bool {
    value.starts_with(['=', '+', '-', '@', '\t', '\r', '\n'])
}

fn text(line: &mut Vec<u8>, value: &str) {
    let acts = |c: char| c.is_control() && !"\t\r\n".contains(c);
    if value.contains(acts) {
        let mut escaped = String::with_capacity(value.len() + 8);
        for c in value.chars() {
            match acts(c) {
                true => escaped.extend(c.escape_unicode()),
                false => escaped.push(c),
            }
        }
        return text(line, &escaped);
    }
    let bare = !value.is_empty() && !value.contains(['"', ',', '\n', '\r']);
    if bare {
        line.extend_from_slice(value.as_bytes());
        return;
    }
    line.push(b'"');
    line.extend_from_slice(value.replace('"', "\"\"").as_bytes());
    line.push(b'"');
}
