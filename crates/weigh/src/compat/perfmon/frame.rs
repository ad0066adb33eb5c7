//! The table of a group of metrics, as perfmon's data frame: a row for each host and time.
//!
//! The heads of columns that its documentation fixes are kept; the others are ours.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};

use super::group_rows::{GroupRows, ListContent};
use crate::export::{Error, ExportFormat, TableFiles};

/// Rows of a batch.
const BATCH: usize = 4096;

/// A table that is being written.
struct FrameBatch {
    schema: Arc<Schema>,
    /// The columns of the rows, and whether they are real numbers.
    columns: Vec<(usize, bool)>,
    host: String,
    rows: Vec<Vec<Option<u64>>>,
}

impl FrameBatch {
    fn of(rows: &GroupRows) -> FrameBatch {
        let all = rows.columns().iter().enumerate();
        let mut columns: Vec<usize> =
            all.map(|(place, _)| place).filter(|place| rows.is_in_table(*place)).collect();
        // Host and time come first.
        columns.sort_by_key(|place| rows.columns()[*place].key != "time_stamps");
        let is_real = |place: &usize| rows.columns()[*place].content == ListContent::Real;
        let field = |place: &usize| {
            let kind = if is_real(place) { DataType::Float64 } else { DataType::UInt64 };
            Field::new(&rows.columns()[*place].header, kind, true)
        };
        let host = Field::new("Host", DataType::Utf8, false);
        let fields: Vec<Field> = [host].into_iter().chain(columns.iter().map(field)).collect();
        FrameBatch {
            schema: Arc::new(Schema::new(fields)),
            columns: columns.iter().map(|place| (*place, is_real(place))).collect(),
            host: String::new(),
            rows: Vec::new(),
        }
    }

    fn put(&mut self, row: &[Option<u64>], files: &mut TableFiles) -> Result<(), Error> {
        self.rows.push(self.columns.iter().map(|(place, _)| row[*place]).collect());
        if self.rows.len() < BATCH { Ok(()) } else { self.flush(files) }
    }

    fn flush(&mut self, files: &mut TableFiles) -> Result<(), Error> {
        let count = self.rows.len();
        if count == 0 {
            return Ok(());
        }
        let hosts = std::iter::repeat_n(self.host.as_str(), count);
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(StringArray::from_iter_values(hosts))];
        for (column, (_, is_real)) in self.columns.iter().enumerate() {
            let values = self.rows.iter().map(|row| row[column]);
            arrays.push(match is_real {
                true => {
                    Arc::new(values.map(|bits| bits.map(f64::from_bits)).collect::<Float64Array>())
                }
                false => Arc::new(values.collect::<UInt64Array>()),
            });
        }
        self.rows.clear();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays);
        files.rows(&batch.map_err(|error| Error::Rows(error.into()))?)
    }
}

/// Writes the table into a file of each format.
pub(super) fn write(
    name: &str,
    rows: &mut GroupRows,
    formats: &[ExportFormat],
    directory: &Path,
    force: bool,
) -> Result<Vec<PathBuf>, Error> {
    let mut batch = FrameBatch::of(rows);
    let mut files = TableFiles::create(formats, directory, name, &batch.schema, force)?;
    let hosts: Vec<String> = rows.hosts().map(str::to_owned).collect();
    for host in hosts {
        batch.host = host.clone();
        let mut failure = Ok(());
        let read = rows.each_row(&host, |row| {
            if failure.is_ok() {
                failure = batch.put(row, &mut files);
            }
            Ok(())
        });
        read.map_err(|source| Error::file(directory, source))?;
        failure?;
        batch.flush(&mut files)?;
    }
    files.finish()
}
