//! `resource_monitor.csv`, as Python's `csv.writer` writes it.

use super::polls::PollRow;
use crate::compat::python::{repr, rounded};
use crate::destination::{Lines, OutputFile};
use crate::export::Error;

/// The names of the columns.
const HEADER: &str = "timestamp,tool,pid,cpu_pct,cpu_user_s,cpu_sys_s,rss_kb,uss_kb,pss_kb";

/// The table while it is written.
pub(super) struct ResourceMonitorCsv(Lines);

impl ResourceMonitorCsv {
    /// Creates the file and writes the header.
    pub(super) fn create(destination: OutputFile) -> Result<ResourceMonitorCsv, Error> {
        let mut lines = Lines::create(destination, "\r\n")?;
        lines.line(HEADER)?;
        Ok(ResourceMonitorCsv(lines))
    }

    /// Writes a row.
    pub(super) fn row(&mut self, row: &PollRow<'_>) -> Result<(), Error> {
        Ok(self.0.line(&line(row))?)
    }

    /// Gives the file its name.
    pub(super) fn finish(self) -> Result<(), Error> {
        self.0.finish()?;
        Ok(())
    }
}

fn line(row: &PollRow<'_>) -> String {
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
        // What oasislmf writes where the system has no PSS.
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
