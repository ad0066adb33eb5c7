//! The tracking file as CSV: two heads, and lines that end as `csv.DictWriter` ends them.

use std::fs::File;
use std::io::{BufWriter, Write};

use super::super::Error;
use super::{CONSTANTS, Constants, MEASURES, Row, TIMESTAMP};
use crate::destination::Destination;
use crate::export::python::{Value, repr};

/// A CSV file that is being written.
pub struct Csv {
    destination: Destination,
    out: BufWriter<File>,
}

impl Csv {
    pub(super) fn create(destination: Destination, constants: &Constants) -> Result<Csv, Error> {
        let file = destination.file().map_err(Error::file(destination.path()))?;
        let mut csv = Csv { destination, out: BufWriter::new(file) };
        csv.line(&CONSTANTS.join(","))?;
        csv.line(&line(&constants.values()))?;
        csv.line(&format!("{},{TIMESTAMP}", MEASURES.join(",")))?;
        Ok(csv)
    }

    pub(super) fn row(&mut self, row: &Row) -> Result<(), Error> {
        self.line(&line(row))
    }

    fn line(&mut self, line: &str) -> Result<(), Error> {
        write!(self.out, "{line}\r\n").map_err(|source| self.failed(source))
    }

    fn failed(&self, source: std::io::Error) -> Error {
        Error::file(self.destination.path())(source)
    }

    pub(super) fn finish(mut self) -> Result<(), Error> {
        self.out.flush().map_err(|source| self.failed(source))?;
        self.destination.keep()?;
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
