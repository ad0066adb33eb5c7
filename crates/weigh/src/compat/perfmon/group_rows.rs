//! The rows of one of perfmon's groups of metrics, of all hosts: spooled in an unnamed temporary
//! file, and written from there column by column (JSON) and row by row (tables).
//!
//! Memory does not grow with the length of a job, and one file is open for all its nodes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Result, Seek, SeekFrom, Write};
use std::path::Path;

use super::json::JsonWriter;
use crate::compat::python::PythonValue;

/// Bytes of a value: whether there is one, and which.
const CELL: usize = 1 + size_of::<u64>();

/// What a list holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListContent {
    /// Whole numbers.
    Whole,
    /// Real numbers, spooled as their bits.
    Real,
    /// Nothing: a list that perfmon has, of something that is not measured.
    EmptyList,
    /// The same, of a map.
    EmptyMap,
}

/// A list of perfmon's JSON, and the column of its table.
#[derive(Debug, Clone)]
pub(super) struct ListColumn {
    /// Its key.
    pub(super) key: &'static str,
    /// The key inside of it.
    pub(super) part: Option<String>,
    /// The head of its column.
    pub(super) header: String,
    /// What it holds.
    pub(super) content: ListContent,
    /// It is left out of a host that does not have it, as perfmon does.
    pub(super) is_optional: bool,
}

impl ListColumn {
    /// Its name for people.
    fn name(&self) -> String {
        let part = self.part.as_ref().map(|part| format!(".{part}"));
        format!("{}{}", self.key, part.unwrap_or_default())
    }

    /// Whether it has values at all.
    pub(super) fn has_values(&self) -> bool {
        matches!(self.content, ListContent::Whole | ListContent::Real)
    }
}

/// The rows of one host.
#[derive(Debug)]
struct HostRows {
    first: u64,
    count: u64,
    ever_set: Vec<bool>,
}

/// The rows of all hosts.
pub(super) struct GroupRows {
    columns: Vec<ListColumn>,
    file: BufWriter<File>,
    rows: u64,
    hosts: BTreeMap<String, HostRows>,
}

impl GroupRows {
    /// No rows yet; the file is in this directory. The columns are in the order of their keys.
    pub(super) fn create(columns: Vec<ListColumn>, directory: &Path) -> Result<GroupRows> {
        let file = BufWriter::new(tempfile::tempfile_in(directory)?);
        Ok(GroupRows { columns, file, rows: 0, hosts: BTreeMap::new() })
    }

    /// Adds the rows of a host, which `each` puts one after the other.
    pub(super) fn add_host(
        &mut self,
        host: &str,
        each: impl FnOnce(&mut dyn FnMut(&[Option<u64>]) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let mut added =
            HostRows { first: self.rows, count: 0, ever_set: vec![false; self.columns.len()] };
        let file = &mut self.file;
        each(&mut |row| {
            for (value, ever_set) in row.iter().zip(&mut added.ever_set) {
                *ever_set |= value.is_some();
                file.write_all(&[u8::from(value.is_some())])?;
                file.write_all(&value.unwrap_or(0).to_le_bytes())?;
            }
            added.count += 1;
            Ok(())
        })?;
        self.rows += added.count;
        if added.count > 0 {
            self.hosts.insert(host.to_owned(), added);
        }
        Ok(())
    }

    /// The hosts that have rows.
    pub(super) fn hosts(&self) -> impl Iterator<Item = &str> {
        self.hosts.keys().map(String::as_str)
    }

    /// Its columns.
    pub(super) fn columns(&self) -> &[ListColumn] {
        &self.columns
    }

    /// Whether a column has a place in the table: it is not optional, or some host has it.
    pub(super) fn is_in_table(&self, column: usize) -> bool {
        let is_set = || self.hosts.values().any(|host| host.ever_set[column]);
        self.columns[column].has_values() && (!self.columns[column].is_optional || is_set())
    }

    /// Calls `each` with the rows of a host, one after the other.
    pub(super) fn each_row(
        &mut self,
        host: &str,
        mut each: impl FnMut(&[Option<u64>]) -> Result<()>,
    ) -> Result<()> {
        let Some(rows) = self.hosts.get(host) else { return Ok(()) };
        self.file.flush()?;
        let width = self.columns.len() * CELL;
        let mut reader = BufReader::new(self.file.get_ref());
        reader.seek(SeekFrom::Start(rows.first * width as u64))?;
        let (mut bytes, mut row) = (vec![0; width], vec![None; self.columns.len()]);
        for _ in 0..rows.count {
            reader.read_exact(&mut bytes)?;
            for (cell, value) in bytes.chunks_exact(CELL).zip(&mut row) {
                let (is_there, number) = (cell[0] != 0, cell[1..].try_into());
                *value = number.ok().filter(|_| is_there).map(u64::from_le_bytes);
            }
            each(&row)?;
        }
        // The next row is written at the end.
        self.file.seek(SeekFrom::End(0)).map(drop)
    }

    /// Writes the whole document, as `json.dumps(…, indent=4, sort_keys=True)` would. Rows are
    /// `step` seconds apart.
    pub(super) fn write_json(&mut self, into: File, step: f64) -> Result<()> {
        const HOSTS: &str = "host_names";
        const STEP: &str = "sampling_frequency";
        let names: Vec<String> = self.hosts.keys().cloned().collect();
        let mut keys: Vec<&str> = names.iter().map(String::as_str).collect();
        keys.extend([HOSTS, STEP]);
        keys.sort_unstable();
        let mut json = JsonWriter::new(BufWriter::new(into), 0);
        json.open('{')?;
        for key in keys {
            json.key(key)?;
            match key {
                HOSTS => {
                    json.open('[')?;
                    names
                        .iter()
                        .try_for_each(|name| json.item(&PythonValue::Text(name.clone())))?;
                    json.close(']')?;
                }
                STEP => json.value(&PythonValue::count(step))?,
                host => self.write_host(host, &mut json)?,
            }
        }
        json.close('}')?;
        json.finish()?.flush()
    }

    /// The lists of one host.
    fn write_host(&mut self, host: &str, json: &mut JsonWriter<impl Write>) -> Result<()> {
        let mut outer = None;
        json.open('{')?;
        for place in 0..self.columns.len() {
            let column = self.columns[place].clone();
            let is_set = self.hosts.get(host).is_some_and(|rows| rows.ever_set[place]);
            if column.is_optional && !is_set {
                continue;
            }
            if outer.is_some_and(|outer| outer != column.key) {
                json.close('}')?;
                outer = None;
            }
            if outer.is_none() {
                json.key(column.key)?;
            }
            if let Some(part) = &column.part {
                if outer.replace(column.key).is_none() {
                    json.open('{')?;
                }
                json.key(part)?;
            }
            let (open, close) = match column.content {
                ListContent::EmptyMap => ('{', '}'),
                _ => ('[', ']'),
            };
            json.open(open)?;
            match column.content {
                ListContent::Whole => {
                    self.each_row(host, |row| json.item(&PythonValue::whole(row[place])))?;
                }
                ListContent::Real => self.each_row(host, |row| {
                    json.item(&PythonValue::real(row[place].map(f64::from_bits)))
                })?,
                ListContent::EmptyList | ListContent::EmptyMap => {}
            }
            json.close(close)?;
        }
        if outer.is_some() {
            json.close('}')?;
        }
        json.close('}')
    }

    /// Lists that have no value at all, and of how many hosts; `what` these are.
    pub(super) fn missing(&self, what: &str) -> Vec<String> {
        let of = self.hosts.len();
        let columns = self.columns.iter().enumerate();
        let expected = columns.filter(|(_, column)| column.has_values() && !column.is_optional);
        let counted = expected.map(|(place, column)| {
            (column, self.hosts.values().filter(|host| !host.ever_set[place]).count())
        });
        counted
            .filter(|(_, missing)| *missing > 0)
            .map(|(column, missing)| {
                format!("{} is null: {missing} of {of} {what} did not report it", column.name())
            })
            .collect()
    }
}
