//! One table of a recording as Arrow batches, for programs that read it in memory.
//!
//! What was recorded is read a batch at a time, as the reader asks for it. The table of the run as
//! a whole is derived first: it borrows the recording, and has one row for each tick.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::tables::{self, BatchSource, ExportTable};
use super::{Error, table_names};
use crate::record::{self, BaselinedBatches, Recording};

/// A table, an iterator over its batches.
pub struct TableBatches {
    schema: SchemaRef,
    rows: Rows,
}

enum Rows {
    Recorded(Box<BaselinedBatches>),
    Derived(std::vec::IntoIter<RecordBatch>),
}

impl TableBatches {
    /// Its columns.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl Iterator for TableBatches {
    type Item = Result<RecordBatch, record::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.rows {
            Rows::Recorded(batches) => batches.next(),
            Rows::Derived(batches) => batches.next().map(Ok),
        }
    }
}

/// A table of a recording by its name.
pub fn table(recording: &Recording, name: &str) -> Result<TableBatches, Error> {
    if !table_names().any(|there| there == name) {
        return Err(Error::NoTable { name: name.to_owned() });
    }
    let (mut found, missing) = tables::of(recording, Some(&[name.to_owned()]))?;
    let Some(table) = found.pop() else {
        return Err(Error::NotRecorded { why: missing.join("; ") });
    };
    let ExportTable { schema, batches, .. } = table;
    let rows = match batches {
        BatchSource::Recorded(batches) => Rows::Recorded(batches),
        BatchSource::Run(batches) => {
            Rows::Derived(batches.collect::<Result<Vec<RecordBatch>, _>>()?.into_iter())
        }
        BatchSource::Made(batch) => Rows::Derived(Vec::from_iter(batch).into_iter()),
    };
    Ok(TableBatches { schema, rows })
}

/// The names of the tables that a recording has.
pub fn tables_of(recording: &Recording) -> Result<Vec<&'static str>, Error> {
    let (tables, _) = tables::of(recording, None)?;
    Ok(tables.into_iter().map(|table| table.name).collect())
}
