//! The tracking file as CSV: two heads, and lines that end as `csv.DictWriter` ends them.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use super::super::python::{Value, repr};
use super::super::{Error, place};
use super::{CONSTANTS, Constants, MEASURES, Row, TIMESTAMP};

/// A CSV file that is being written.
pub struct Csv {
    path: PathBuf,
    out: BufWriter<File>,
}

impl Csv {
    pub(super) fn create(path: &Path, constants: &Constants) -> Result<Csv, Error> {
        let mut csv = Csv { path: path.to_owned(), out: BufWriter::new(place::create(path)?) };
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
        place::forget(&self.path);
        Error::File { path: self.path.clone(), source }
    }

    pub(super) fn finish(mut self) -> Result<PathBuf, Error> {
        self.out.flush().map_err(|source| self.failed(source))?;
        Ok(self.path)
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
