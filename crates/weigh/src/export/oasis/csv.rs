//! `resource_monitor.csv`, as Python's `csv.writer` writes it.

use std::fs::File;
use std::io::{BufWriter, Write};

use super::follow::Row;
use crate::destination::Destination;
use crate::export::Error;
use crate::export::python::{repr, rounded};

/// The names of the columns.
const HEADER: &str = "timestamp,tool,pid,cpu_pct,cpu_user_s,cpu_sys_s,rss_kb,uss_kb,pss_kb";

/// The table while it is written.
pub struct Csv {
    destination: Destination,
    out: BufWriter<File>,
}

impl Csv {
    /// Begins the file.
    pub fn create(destination: Destination) -> Result<Csv, Error> {
        let file = destination.file().map_err(|source| Error::file(destination.path(), source))?;
        let mut csv = Csv { destination, out: BufWriter::new(file) };
        csv.line(HEADER)?;
        Ok(csv)
    }

    /// Writes a row.
    pub fn row(&mut self, row: &Row<'_>) -> Result<(), Error> {
        self.line(&line(row))
    }

    fn line(&mut self, line: &str) -> Result<(), Error> {
        let written = write!(self.out, "{line}\r\n");
        written.map_err(|source| Error::file(self.destination.path(), source))
    }

    /// Gives the file its name.
    pub fn finish(mut self) -> Result<(), Error> {
        self.out.flush().map_err(|source| Error::file(self.destination.path(), source))?;
        self.destination.keep()?;
        Ok(())
    }
}

fn line(row: &Row<'_>) -> String {
    let kibibytes = |bytes: Option<u64>| bytes.map(|bytes| (bytes / 1024).to_string());
    [
        repr(row.timestamp),
        quoted(row.tool),
        row.pid.to_string(),
        repr(rounded(100.0 * row.cores, 1)),
        repr(rounded(row.cpu[0], 3)),
        repr(rounded(row.cpu[1], 3)),
        kibibytes(row.rss).unwrap_or_default(),
        kibibytes(row.uss).unwrap_or_default(),
        // What theirs has where a system does not tell.
        kibibytes(row.pss).unwrap_or_else(|| "-1".to_owned()),
    ]
    .join(",")
}

/// A name, in quotes where it needs them.
fn quoted(name: &str) -> String {
    if name.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.to_owned()
    }
}
