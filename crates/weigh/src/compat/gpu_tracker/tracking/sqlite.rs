//! The tracking file as SQLite: the tables `static_data` and `data`.

use std::path::Path;

use rusqlite::types::{ToSqlOutput, Value as Stored};
use rusqlite::{Connection, ToSql, params_from_iter};

use super::super::Error;
use super::{CONSTANTS, Constants, MEASURES, TIMESTAMP, TrackingRow};
use crate::compat::python::PythonValue;
use crate::destination::OutputFile;

/// A database that is being written.
pub struct TrackingDatabase {
    destination: OutputFile,
    connection: Connection,
    insert: String,
    rows: Vec<TrackingRow>,
}

impl ToSql for PythonValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Owned(match self {
            PythonValue::Whole(number) => Stored::Integer(*number),
            PythonValue::Real(number) => Stored::Real(*number),
            PythonValue::Text(text) => Stored::Text(text.clone()),
            PythonValue::Missing | PythonValue::List(_) | PythonValue::Map(_) => Stored::Null,
        }))
    }
}

impl TrackingDatabase {
    pub(super) fn create(
        destination: OutputFile,
        constants: &Constants,
    ) -> Result<TrackingDatabase, Error> {
        let connection = make(destination.partial_path(), constants)
            .map_err(|error| failed(&destination, &error))?;
        let insert = insert("data", MEASURES.len() + 1);
        Ok(TrackingDatabase { destination, connection, insert, rows: Vec::new() })
    }

    pub(super) fn row(&mut self, row: &TrackingRow) -> Result<(), Error> {
        // A statement is prepared once for many rows.
        const TOGETHER: usize = 512;
        self.rows.push(row.clone());
        if self.rows.len() < TOGETHER { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<(), Error> {
        let written = self.connection.prepare(&self.insert).and_then(|mut insert| {
            self.rows.drain(..).try_for_each(|row| insert.execute(params_from_iter(&row)).map(drop))
        });
        written.map_err(|error| failed(&self.destination, &error))
    }

    pub(super) fn finish(mut self) -> Result<(), Error> {
        self.flush()?;
        let done = self.connection.execute_batch("COMMIT");
        done.map_err(|error| failed(&self.destination, &error))?;
        self.connection.close().map_err(|(_, error)| failed(&self.destination, &error))?;
        self.destination.keep()?;
        Ok(())
    }
}

fn failed(destination: &OutputFile, error: &rusqlite::Error) -> Error {
    Error::Sqlite { path: destination.path().to_owned(), why: error.to_string() }
}

fn make(path: &Path, constants: &Constants) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    // The file is renamed into place only when it is complete: it needs no journal.
    connection.execute_batch("PRAGMA journal_mode = OFF; BEGIN")?;
    let of_constant = |name: &str| match name {
        "ram_unit" | "gpu_ram_unit" | "time_unit" => "VARCHAR",
        "ram_system_capacity" | "gpu_ram_system_capacity" => "FLOAT",
        _ => "INTEGER",
    };
    let of_measure = |name: &str| if name.ends_with("n_threads") { "INTEGER" } else { "FLOAT" };
    connection.execute_batch(&create_table("static_data", CONSTANTS.into_iter(), of_constant))?;
    let values = constants.values();
    connection.execute(&insert("static_data", values.len()), params_from_iter(&values))?;
    let columns = MEASURES.into_iter().chain([TIMESTAMP]);
    connection.execute_batch(&create_table("data", columns, of_measure))?;
    Ok(connection)
}

fn create_table<'a>(
    table: &str,
    columns: impl Iterator<Item = &'a str>,
    of: fn(&str) -> &'static str,
) -> String {
    let columns: Vec<_> = columns.map(|name| format!("\n\t{name} {}", of(name))).collect();
    format!("CREATE TABLE {table} ({}\n)", columns.join(", "))
}

fn insert(table: &str, columns: usize) -> String {
    format!("INSERT INTO {table} VALUES ({})", vec!["?"; columns].join(", "))
}
