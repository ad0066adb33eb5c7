//! Tracking and sub-tracking files that are SQLite databases.
//!
//! They may be from untrusted sources: they are opened read-only, and their schema is not
//! trusted.

use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Statement};

use super::super::Error;
use super::super::tracking::{CONSTANTS, MEASURES, TIMESTAMP};
use super::blocks::{COLUMNS, Position};
use super::statistics::Summing;
use super::tracked::Tracked;
use crate::compat::python::PythonValue;
use crate::destination::OutputFile;
use crate::record::files;

fn failed(path: &Path) -> impl Fn(rusqlite::Error) -> Error {
    let path = path.to_owned();
    move |error| Error::Sqlite { path: path.clone(), why: error.to_string() }
}

fn open(path: &Path) -> Result<Connection, Error> {
    // Opening a pipe or a device in its place could block forever.
    drop(files::open_regular(path)?);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed(path))?;
    connection.execute_batch("PRAGMA trusted_schema = OFF").map_err(failed(path))?;
    Ok(connection)
}

fn select<'a>(
    connection: &'a Connection,
    path: &Path,
    table: &str,
    columns: &[&str],
) -> Result<Statement<'a>, Error> {
    let columns: Vec<_> = columns.iter().map(|name| format!("\"{table}\".\"{name}\"")).collect();
    let query = format!("SELECT {} FROM \"{table}\"", columns.join(", "));
    connection.prepare(&query).map_err(failed(path))
}

fn number(path: &Path, row: usize, name: &str, cell: ValueRef<'_>) -> Result<f64, Error> {
    match cell {
        ValueRef::Null => Ok(f64::NAN),
        ValueRef::Integer(number) => Ok(number as f64),
        ValueRef::Real(number) => Ok(number),
        _ => Err(wrong(path, row, format!("{name} is not a number"))),
    }
}

fn wrong(path: &Path, row: usize, why: String) -> Error {
    Error::Sqlite { path: path.to_owned(), why: format!("row {row} of data: {why}") }
}

/// Reads a tracking file.
pub(super) fn tracked(path: &Path) -> Result<Tracked, Error> {
    let connection = open(path)?;
    let mut tracked = Tracked::new(constants(&connection, path)?, Summing::InOrder);
    let mut names = MEASURES.to_vec();
    names.push(TIMESTAMP);
    let mut statement = select(&connection, path, "data", &names)?;
    let mut rows = statement.query([]).map_err(failed(path))?;
    let mut count = 0;
    while let Some(row) = rows.next().map_err(failed(path))? {
        count += 1;
        let cell = |(place, name): (usize, &&str)| {
            number(path, count, name, row.get_ref(place).map_err(failed(path))?)
        };
        let numbers = names.iter().enumerate().map(cell).collect::<Result<Vec<_>, _>>()?;
        let timestamp = numbers[MEASURES.len()];
        if !timestamp.is_finite() {
            return Err(wrong(path, count, "the timestamp is missing".to_owned()));
        }
        tracked.push(timestamp, numbers);
    }
    Ok(tracked)
}

fn constants(connection: &Connection, path: &Path) -> Result<Vec<(String, PythonValue)>, Error> {
    let mut statement = select(connection, path, "static_data", &CONSTANTS)?;
    let read = statement.query_row([], |row| {
        let value = |(place, name): (usize, &&str)| {
            let value = match row.get_ref(place)? {
                ValueRef::Integer(number) => PythonValue::Whole(number),
                ValueRef::Real(number) => PythonValue::Real(number),
                ValueRef::Text(text) => {
                    PythonValue::Text(String::from_utf8_lossy(text).into_owned())
                }
                ValueRef::Null | ValueRef::Blob(_) => PythonValue::Real(f64::NAN),
            };
            Ok(((*name).to_owned(), value))
        };
        CONSTANTS.iter().enumerate().map(value).collect()
    });
    read.map_err(failed(path))
}

/// Reads a sub-tracking file.
pub(super) fn positions(path: &Path) -> Result<Vec<Position>, Error> {
    let connection = open(path)?;
    let mut statement = select(&connection, path, "data", &COLUMNS)?;
    let mut rows = statement.query([]).map_err(failed(path))?;
    let mut positions = Vec::new();
    while let Some(row) = rows.next().map_err(failed(path))? {
        let count = positions.len() + 1;
        let cell = |place: usize| row.get_ref(place).map_err(failed(path));
        let timestamp = number(path, count, "timestamp", cell(3)?)?;
        let (ValueRef::Integer(process_id), ValueRef::Text(name)) = (cell(0)?, cell(1)?) else {
            return Err(wrong(path, count, "the process id or the name is missing".to_owned()));
        };
        let stop = match cell(2)? {
            ValueRef::Integer(0) => false,
            ValueRef::Integer(1) => true,
            _ => return Err(wrong(path, count, "the position is neither 0 nor 1".to_owned())),
        };
        if !timestamp.is_finite() {
            return Err(wrong(path, count, "the timestamp is missing".to_owned()));
        }
        let name = String::from_utf8_lossy(name).into_owned();
        positions.push(Position { process_id, name, stop, timestamp });
    }
    Ok(positions)
}

/// Writes a sub-tracking file.
pub(super) fn write(path: &Path, positions: &[Position]) -> Result<(), Error> {
    let destination = OutputFile::create(path, false)?;
    fill(destination.partial_path(), positions).map_err(failed(path))?;
    destination.keep()?;
    Ok(())
}

fn fill(path: &Path, positions: &[Position]) -> rusqlite::Result<()> {
    let connection = Connection::open(path)?;
    connection.execute_batch(
        "PRAGMA journal_mode = OFF; BEGIN;
         CREATE TABLE data (
           process_id INTEGER, code_block_name VARCHAR, position INTEGER, timestamp FLOAT
         )",
    )?;
    let mut insert = connection.prepare("INSERT INTO data VALUES (?, ?, ?, ?)")?;
    for Position { process_id, name, stop, timestamp } in positions {
        insert.execute((process_id, name, i64::from(*stop), timestamp))?;
    }
    drop(insert);
    connection.execute_batch("COMMIT")
}
