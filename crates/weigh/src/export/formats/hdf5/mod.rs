//! HDF5: every table a dataset at the root, in the layout of PyTables.
//!
//! h5py, PyTables, `pandas.read_hdf(path, "process")` and h5dump read it. A table is a
//! one-dimensional dataset of compounds, in chunks that are shuffled and deflated. The file uses
//! old structures (superblock 0, object headers 1, B-trees 1), which every reader since HDF5 1.8
//! knows; all numbers are little-endian. References like (III.A.1) are to the HDF5 File Format
//! Specification, version 3.0,
//! <https://support.hdfgroup.org/documentation/hdf5/latest/_f_m_t3.html>.
//!
//! Written by hand, because hdf5-writer 0.12 builds the file in memory, and hdf5-pure 0.47, which
//! can append, is 127,000 lines, needs a path, and uses a chunk index that HDF5 before 1.10 cannot
//! read. Here only one chunk and the open nodes of its index are in memory.
//!
//! HDF5 has no nulls, so a column becomes:
//!
//! | column | stored | a missing value is |
//! |---|---|---|
//! | time | int64, nanoseconds since 1970 UTC (attribute `time_unit`) | -2⁶³, NumPy's NaT |
//! | uint32; the keys `pid`, `started` and `cpu` after `time` | as it is | an error |
//! | uint64, int64, never null | as it is | an error |
//! | uint64, int64, may be null | float64; a number it cannot hold exactly is an error | NaN |
//! | float64 | float64 | NaN |
//! | symbol | UTF-8, as long as the longest symbol of the dictionary, at least 32 bytes | empty |
//! | text | UTF-8, as long as the longest text, at most 4096 bytes | empty |
//!
//! The width of symbols is known with the first rows; that of texts only with the last, so a table
//! with texts is buffered in memory until it ends. Only small tables have texts. The schema's
//! metadata of a column (unit, kind, label, help, source) is in the attributes
//! `FIELD_<column>_UNIT` and so on, its name as `FIELD_<column>_METRIC`.

mod chunks;
mod dataset;
mod header;
mod root;
mod slot;
mod space;
#[cfg(test)]
mod tests;

use std::fs::File;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};

use super::super::{Cause, Sink};
use dataset::Dataset;
use root::Link;
use space::Space;

/// Tables as datasets of one HDF5 file.
pub(super) struct Hdf5Sink {
    space: Space,
    links: Vec<Link>,
    open: Option<OpenTable>,
}

/// The current table.
struct OpenTable {
    name: String,
    schema: SchemaRef,
    /// Rows buffered until the width of their texts is known.
    buffered: Vec<RecordBatch>,
    dataset: Option<Dataset>,
}

impl Hdf5Sink {
    /// Into this empty, seekable file.
    pub(super) fn create(file: File) -> Result<Hdf5Sink, Cause> {
        let mut space = Space::new(file);
        space.reserve(root::SUPERBLOCK_SIZE);
        Ok(Hdf5Sink { space, links: Vec::new(), open: None })
    }

    fn end_table(&mut self) -> Result<(), Cause> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        let dataset = match open.dataset.take() {
            Some(dataset) => dataset,
            None => open.dataset(&mut self.space)?,
        };
        let header = dataset.finish(&mut self.space, &open.name, &open.schema)?;
        self.links.push(Link { name: open.name, header });
        Ok(())
    }
}

impl OpenTable {
    /// The dataset, now that the widths of its columns are known, with the buffered rows.
    fn dataset(&mut self, space: &mut Space) -> Result<Dataset, Cause> {
        let whole = self.waits_for_texts();
        let mut dataset = Dataset::new(&self.schema, &self.buffered, whole)?;
        for batch in self.buffered.drain(..) {
            dataset.append(space, &batch)?;
        }
        Ok(dataset)
    }

    fn waits_for_texts(&self) -> bool {
        self.schema.fields().iter().any(|field| *field.data_type() == DataType::Utf8)
    }
}

impl Sink for Hdf5Sink {
    fn begin(&mut self, table: &str, schema: &SchemaRef) -> Result<(), Cause> {
        self.end_table()?;
        if table.is_empty() || table == "." || table.contains(['/', '\0']) {
            return Err(format!("{table:?} cannot be the name of an HDF5 dataset").into());
        }
        if self.links.iter().any(|link| link.name == table) {
            return Err(format!("the table {table} appears twice").into());
        }
        let (name, schema) = (table.to_owned(), SchemaRef::clone(schema));
        self.open = Some(OpenTable { name, schema, buffered: Vec::new(), dataset: None });
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Cause> {
        let open = self.open.as_mut().ok_or("rows before the first table")?;
        if let Some(dataset) = &mut open.dataset {
            return dataset.append(&mut self.space, batch);
        }
        if batch.num_rows() == 0 {
            return Ok(());
        }
        open.buffered.push(batch.clone());
        if !open.waits_for_texts() {
            open.dataset = Some(open.dataset(&mut self.space)?);
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), Cause> {
        self.end_table()?;
        root::write(&mut self.space, self.links)
    }
}
