//! The tracking file as CSV: two heads, and lines that end as `csv.DictWriter` ends them.

use super::super::Error;
use super::{CONSTANTS, Constants, MEASURES, Row, TIMESTAMP};
use crate::compat::python::{Value, repr};
use crate::destination::{Lines, OutputFile};

/// A CSV file that is being written.
pub struct Csv(Lines);

impl Csv {
    pub(super) fn create(destination: OutputFile, constants: &Constants) -> Result<Csv, Error> {
        let mut lines = Lines::create(destination, "\r\n")?;
        lines.line(&CONSTANTS.join(","))?;
        lines.line(&line(&constants.values()))?;
        lines.line(&format!("{},{TIMESTAMP}", MEASURES.join(",")))?;
        Ok(Csv(lines))
    }

    pub(super) fn row(&mut self, row: &Row) -> Result<(), Error> {
        Ok(self.0.line(&line(row))?)
    }

    pub(super) fn finish(self) -> Result<(), Error> {
        self.0.finish()?;
        Ok(())
    }
}

/// Cells in a line: numbers and the names of units, none of which needs quotes.
fn line(values: &[Value]) -> String {
    let cell = |value: &Value| match value {
        Value::Whole(number) => number.to_string(),
        Value::Real(number) => repr(*number),
        Value::Text(text) => text.clone(),
        Value::Missing | Value::List(_) | Value::Map(_) => String::new(),
    };
    values.iter().map(cell).collect::<Vec<_>>().join(",")
}
