//! The tracking file as CSV: two headers, and the line ends of `csv.DictWriter`.

use super::super::Error;
use super::{CONSTANTS, Constants, MEASURES, TIMESTAMP, TrackingRow};
use crate::compat::python::{PythonValue, repr};
use crate::destination::{Lines, OutputFile};

/// A CSV file that is being written.
pub struct TrackingCsv(Lines);

impl TrackingCsv {
    pub(super) fn create(
        destination: OutputFile,
        constants: &Constants,
    ) -> Result<TrackingCsv, Error> {
        let mut lines = Lines::create(destination, "\r\n")?;
        lines.line(&CONSTANTS.join(","))?;
        lines.line(&line(&constants.values()))?;
        lines.line(&format!("{},{TIMESTAMP}", MEASURES.join(",")))?;
        Ok(TrackingCsv(lines))
    }

    pub(super) fn row(&mut self, row: &TrackingRow) -> Result<(), Error> {
        Ok(self.0.line(&line(row))?)
    }

    pub(super) fn finish(self) -> Result<(), Error> {
        self.0.finish()?;
        Ok(())
    }
}

/// Cells in a line: numbers and the names of units, none of which needs quotes.
fn line(values: &[PythonValue]) -> String {
    let cell = |value: &PythonValue| match value {
        PythonValue::Whole(number) => number.to_string(),
        PythonValue::Real(number) => repr(*number),
        PythonValue::Text(text) => text.clone(),
        PythonValue::Missing | PythonValue::List(_) | PythonValue::Map(_) => String::new(),
    };
    values.iter().map(cell).collect::<Vec<_>>().join(",")
}
