//! One table: a chunked dataset of compounds, with the attributes of a PyTables table.

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema};
use flate2::{Compress, Compression, FlushCompress, Status};

use super::super::super::Cause;
use super::super::super::column::ArrowColumn;
use super::chunks::ChunkIndex;
use super::header::{AttributeText, ObjectHeader};
use super::slot::{ColumnSlot, slots};
use super::space::Space;

/// Bytes of a chunk before it is deflated. Readers keep whole chunks in a cache of 1 MiB.
const CHUNK_SIZE: usize = 512 * 1024;
const DEFLATE_LEVEL: u32 = 4;
const TIME_UNIT: &str = "ns since 1970-01-01T00:00:00Z";
/// Metadata of a column that becomes attributes.
const NOTES: [&str; 6] = ["name", "unit", "kind", "label", "help", "source"];

// Types of header messages.
const DATASPACE: u16 = 0x01;
const DATATYPE: u16 = 0x03;
const FILL_VALUE: u16 = 0x05;
const LAYOUT: u16 = 0x08;
const FILTERS: u16 = 0x0b;

/// A dataset that rows are added to.
pub(super) struct Dataset {
    slots: Vec<ColumnSlot>,
    row_size: usize,
    chunk_rows: usize,
    /// The open chunk, already shuffled: all first bytes of its rows, then all second ones…
    planes: Vec<u8>,
    /// Rows in it.
    filled: usize,
    rows: u64,
    index: ChunkIndex,
    deflate: Compress,
    deflated: Vec<u8>,
}

impl Dataset {
    /// An empty dataset, sized for these rows; `whole` when no others will follow.
    pub(super) fn new(
        schema: &Schema,
        buffered: &[RecordBatch],
        whole: bool,
    ) -> Result<Dataset, Cause> {
        let slots = slots(schema, buffered)?;
        let row_size: usize = slots.iter().map(|slot| slot.stored.size()).sum();
        let mut chunk_rows = CHUNK_SIZE / row_size.max(1);
        if whole {
            chunk_rows = chunk_rows.min(buffered.iter().map(RecordBatch::num_rows).sum());
        }
        let chunk_rows = chunk_rows.max(1);
        Ok(Dataset {
            slots,
            row_size,
            chunk_rows,
            planes: vec![0; chunk_rows * row_size],
            filled: 0,
            rows: 0,
            index: ChunkIndex::default(),
            deflate: Compress::new(Compression::new(DEFLATE_LEVEL), true),
            deflated: Vec::new(),
        })
    }

    /// Adds rows.
    pub(super) fn append(&mut self, space: &mut Space, batch: &RecordBatch) -> Result<(), Cause> {
        let columns = ArrowColumn::all(batch)?;
        if columns.len() != self.slots.len() {
            return Err("rows with other columns than their table".into());
        }
        let mut done = 0;
        while done < batch.num_rows() {
            let rows = done..batch.num_rows().min(done + self.chunk_rows - self.filled);
            for (slot, column) in self.slots.iter().zip(&columns) {
                let (stride, at) = (self.chunk_rows, self.filled);
                slot.fill(&mut self.planes, stride, at, *column, rows.clone())?;
            }
            self.filled += rows.len();
            done = rows.end;
            if self.filled == self.chunk_rows {
                self.end_chunk(space)?;
            }
        }
        Ok(())
    }

    /// Writes what is left; returns the address of the dataset's header.
    pub(super) fn finish(
        mut self,
        space: &mut Space,
        name: &str,
        schema: &Schema,
    ) -> Result<u64, Cause> {
        self.end_chunk(space)?;
        let chunks = self.rows.next_multiple_of(self.chunk_rows as u64);
        let index = std::mem::take(&mut self.index).finish(space, chunks)?;

        let mut header = ObjectHeader::default();
        header.message(DATASPACE, &dataspace(self.rows))?;
        header.message(DATATYPE, &self.datatype()?)?;
        // Version 2: space allocated incrementally, fill value written on allocation, default zero.
        header.message(FILL_VALUE, &[2, 3, 0, 1, 0, 0, 0, 0])?;
        header.message(FILTERS, &self.filters())?;
        header.message(LAYOUT, &self.layout(index))?;
        header.attribute("CLASS", AttributeText("TABLE"))?;
        header.attribute("VERSION", AttributeText("2.7"))?;
        header.attribute("TITLE", AttributeText(name))?;
        header.attribute("NROWS", i64::try_from(self.rows)?)?;
        describe(&mut header, schema)?;
        Ok(space.append(&header.bytes()?)?)
    }

    fn end_chunk(&mut self, space: &mut Space) -> Result<(), Cause> {
        if self.filled == 0 {
            return Ok(());
        }
        self.deflate.reset();
        self.deflated.clear();
        // Large enough for incompressible bytes, so that one call deflates all.
        self.deflated.reserve(self.planes.len() + self.planes.len() / 100 + 1024);
        let end = FlushCompress::Finish;
        if self.deflate.compress_vec(&self.planes, &mut self.deflated, end)? != Status::StreamEnd {
            return Err("a chunk could not be deflated".into());
        }
        let address = space.append(&self.deflated)?;
        self.index.add(space, self.rows, address, u32::try_from(self.deflated.len())?)?;
        self.rows += self.filled as u64;
        self.filled = 0;
        // Padding of texts, and rows after the last one of the last chunk, must be zero.
        self.planes.fill(0);
        Ok(())
    }

    /// A compound (IV.A.2.d, class 6, version 1).
    fn datatype(&self) -> Result<Vec<u8>, Cause> {
        let mut message = vec![0x16];
        message.extend_from_slice(&u16::try_from(self.slots.len())?.to_le_bytes());
        message.push(0);
        message.extend_from_slice(&u32::try_from(self.row_size)?.to_le_bytes());
        for slot in &self.slots {
            let name_size = (slot.name.len() + 1).next_multiple_of(8);
            let end = message.len() + name_size;
            message.extend_from_slice(slot.name.as_bytes());
            message.resize(end, 0);
            message.extend_from_slice(&u32::try_from(slot.offset)?.to_le_bytes());
            // Dimensions of an array, of which there are none.
            message.extend_from_slice(&[0; 28]);
            message.extend_from_slice(&slot.stored.datatype());
        }
        Ok(message)
    }

    /// Shuffle (2) by the size of a row, then deflate (1) (IV.A.2.l, version 1).
    fn filters(&self) -> Vec<u8> {
        let mut message = vec![1, 2, 0, 0, 0, 0, 0, 0];
        let filters =
            [(2u16, b"shuffle\0", self.row_size as u32), (1, b"deflate\0", DEFLATE_LEVEL)];
        for (filter, name, value) in filters {
            let (required, values) = (0u16, 1u16);
            for word in [filter, name.len() as u16, required, values] {
                message.extend_from_slice(&word.to_le_bytes());
            }
            message.extend_from_slice(name);
            message.extend_from_slice(&value.to_le_bytes());
            message.extend_from_slice(&[0; 4]);
        }
        message
    }

    /// Chunks (2) with their index, of two dimensions: rows, bytes of a row (IV.A.2.i, version 3).
    fn layout(&self, index: u64) -> Vec<u8> {
        let mut message = vec![3, 2, 2];
        message.extend_from_slice(&index.to_le_bytes());
        message.extend_from_slice(&(self.chunk_rows as u32).to_le_bytes());
        message.extend_from_slice(&(self.row_size as u32).to_le_bytes());
        message
    }
}

/// One dimension, which may grow (IV.A.2.b, version 1).
fn dataspace(rows: u64) -> Vec<u8> {
    let (limits_follow, unlimited) = (1, u64::MAX);
    let mut message = vec![1, 1, limits_follow, 0, 0, 0, 0, 0];
    message.extend_from_slice(&rows.to_le_bytes());
    message.extend_from_slice(&unlimited.to_le_bytes());
    message
}

/// Attributes of the columns that PyTables requires, and those for readers.
fn describe(header: &mut ObjectHeader, schema: &Schema) -> Result<(), Cause> {
    for (place, field) in schema.fields().iter().enumerate() {
        header.attribute(&format!("FIELD_{place}_NAME"), AttributeText(field.name()))?;
    }
    header.attribute("time_unit", AttributeText(TIME_UNIT))?;
    header.attribute(
        "missing_values",
        AttributeText("NaN; of a text: empty; of a time: -2**63 (NaT)"),
    )?;
    for (place, field) in schema.fields().iter().enumerate() {
        let notes = NOTES.iter().filter_map(|note| Some((*note, field.metadata().get(*note)?)));
        for (note, text) in notes.filter(|(_, text)| !text.is_empty()) {
            // FIELD_n_NAME is taken: it is the column's.
            let note = if note == "name" { "METRIC" } else { note };
            let attribute = format!("FIELD_{place}_{}", note.to_uppercase());
            header.attribute(&attribute, AttributeText(text))?;
        }
        let is_time = matches!(field.data_type(), DataType::Timestamp(_, _));
        if is_time && !field.metadata().contains_key("unit") {
            header.attribute(&format!("FIELD_{place}_UNIT"), AttributeText(TIME_UNIT))?;
        }
    }
    Ok(())
}
