//! One Excel workbook with a sheet for each table.
//!
//! Excel's times have a precision of about a microsecond, its integers end at 2^53 and its sheets
//! at 1,048,576 rows. So there are two time columns (`time`, to calculate with, and `time_utc`,
//! text to the nanosecond), larger integers are texts, and a longer table continues in a second
//! sheet. A missing value is an empty cell.

use std::fs::File;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use rust_xlsxwriter::{Format, Workbook, Worksheet, XlsxError};

use super::super::column::{ArrowColumn, CellValue, timestamp_text};
use super::super::{Cause, Sink};
use crate::record::caught;

/// Rows of a sheet below its header.
const SHEET: u32 = 1_048_575;
/// The longest text of a cell, in UTF-16 units.
const TEXT: usize = 32_767;
/// The largest integer that Excel stores exactly.
const WHOLE: u64 = 1 << 53;
/// From Excel's first day to 1970, in days.
const EPOCH: f64 = 25_569.0;

/// All tables as a workbook.
pub(super) struct XlsxSink {
    file: File,
    workbook: Workbook,
    bold: Format,
    date: Format,
    table: String,
    names: Vec<String>,
    sheets: usize,
    parts: u32,
    row: u32,
}

impl XlsxSink {
    /// Into this file; temporary data is in unnamed files of this directory.
    pub(super) fn new(file: File, directory: &Path) -> Result<XlsxSink, Cause> {
        let mut workbook = Workbook::new();
        workbook.set_tempdir(directory)?;
        Ok(XlsxSink {
            file,
            workbook,
            bold: Format::new().set_bold(),
            date: Format::new().set_num_format("yyyy-mm-dd hh:mm:ss.000"),
            table: String::new(),
            names: Vec::new(),
            sheets: 0,
            parts: 0,
            row: 0,
        })
    }

    fn begin_sheet(&mut self) -> Result<(), XlsxError> {
        self.parts += 1;
        self.sheets += 1;
        self.row = 0;
        let name = match self.parts {
            1 => self.table.clone(),
            part => format!("{}_{part}", self.table),
        };
        let sheet = self.workbook.add_worksheet_with_constant_memory()?;
        sheet.set_name(name)?.set_freeze_panes(1, 0)?;
        for (column, name) in (0..).zip(&self.names) {
            sheet.set_column_width(column, if name.starts_with("time") { 24 } else { 14 })?;
            sheet.write_with_format(0, column, name.as_str(), &self.bold)?;
        }
        Ok(())
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), Cause> {
        let columns = ArrowColumn::all(batch)?;
        for row in 0..batch.num_rows() {
            if self.row == SHEET {
                self.begin_sheet()?;
            }
            self.row += 1;
            let sheet = self.workbook.worksheet_from_index(self.sheets - 1)?;
            let mut place = 0;
            for column in &columns {
                let cell = column.cell(row);
                put(sheet, self.row, place, cell, &self.date)?;
                place += 1;
                if let (CellValue::Time(at), 1) = (cell, place) {
                    sheet.write_string(self.row, place, timestamp_text(at))?;
                    place += 1;
                }
            }
        }
        Ok(())
    }
}

impl Sink for XlsxSink {
    fn begin(&mut self, table: &str, schema: &SchemaRef) -> Result<(), Cause> {
        table.clone_into(&mut self.table);
        let names = schema.fields().iter().map(|field| field.name().clone());
        self.names = names.collect();
        self.names.insert(self.names.len().min(1), "time_utc".to_owned());
        self.parts = 0;
        guarded(|| Ok(self.begin_sheet()?))
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Cause> {
        guarded(|| self.write(batch))
    }

    fn finish(mut self: Box<Self>) -> Result<(), Cause> {
        guarded(|| Ok(self.workbook.save_to_writer(self.file)?))
    }
}

fn put(
    sheet: &mut Worksheet,
    row: u32,
    column: u16,
    cell: CellValue<'_>,
    date: &Format,
) -> Result<(), XlsxError> {
    match cell {
        CellValue::Null => {}
        CellValue::Time(at) => {
            let days = at as f64 / 86_400e9 + EPOCH;
            sheet.write_number_with_format(row, column, days, date)?;
        }
        CellValue::U64(number) if number <= WHOLE => {
            sheet.write_number(row, column, number as f64)?;
        }
        CellValue::I64(number) if number.unsigned_abs() <= WHOLE => {
            sheet.write_number(row, column, number as f64)?;
        }
        CellValue::U64(number) => {
            sheet.write_string(row, column, number.to_string())?;
        }
        CellValue::I64(number) => {
            sheet.write_string(row, column, number.to_string())?;
        }
        CellValue::F64(number) => {
            sheet.write_number(row, column, number)?;
        }
        CellValue::Text(text) => {
            sheet.write_string(row, column, cut(text))?;
        }
    }
    Ok(())
}

/// As much of a text as fits into a cell.
fn cut(text: &str) -> &str {
    let mut units = 0;
    let end = text.char_indices().find(|(_, c)| {
        units += c.len_utf16();
        units > TEXT
    });
    end.map_or(text, |(end, _)| &text[..end])
}

/// rust_xlsxwriter panics when there is no space for its temporary files.
fn guarded(write: impl FnOnce() -> Result<(), Cause>) -> Result<(), Cause> {
    caught(write).unwrap_or_else(|| Err("no space for the temporary files of a workbook".into()))
}
