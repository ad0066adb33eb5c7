//! Apache ORC, as Hive, Spark, Trino and pandas read it.
//!
//! A file is stripes of rows and, at its end, a footer that says where they are
//! (<https://orc.apache.org/specification/ORCv1/>). A stripe is encoded as its rows come,
//! compressed with Zstandard when it is full, and written: memory is that of one stripe. ORC has no
//! unsigned integers; one above 2⁶³ − 1 is an error. There are no row indexes: exported tables are
//! read whole.

mod bits;
mod compress;
mod integers;
mod protobuf;
mod stripe;
mod tail;
mod time;

use std::io::Write;

use arrow_array::{RecordBatch, new_empty_array};
use arrow_schema::SchemaRef;

use self::compress::Chunks;
use self::stripe::{Encoded, StripeColumn};
use self::tail::{Count, MAGIC, Stripe};
use super::super::column::ArrowColumn;
use super::super::{Cause, Sink};

/// A stripe is full at either of these: writer and readers hold one stripe in memory.
const STRIPE_ROWS: usize = 256 * 1024;
const STRIPE_BYTES: usize = 16 * 1024 * 1024;
/// How many rows are added before the size of the stripe is checked again.
const STEP: usize = 16 * 1024;

/// One table as ORC.
pub(super) struct OrcSink<W> {
    out: W,
    chunks: Chunks,
    columns: Vec<StripeColumn>,
    /// Rows of the open stripe.
    rows: usize,
    stripes: Vec<Stripe>,
    /// Bytes written; 0 before the table begins.
    written: u64,
}

impl<W: Write> OrcSink<W> {
    /// Into this file.
    pub(super) fn new(out: W) -> OrcSink<W> {
        OrcSink {
            out,
            chunks: Chunks::default(),
            columns: Vec::new(),
            rows: 0,
            stripes: Vec::new(),
            written: 0,
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Cause> {
        self.written += bytes.len() as u64;
        Ok(self.out.write_all(bytes)?)
    }

    fn write_compressed(&mut self, bytes: &[u8]) -> Result<u64, Cause> {
        let mut chunks = Vec::new();
        self.chunks.append(bytes, &mut chunks)?;
        self.write(&chunks)?;
        Ok(chunks.len() as u64)
    }

    fn write_stripe(&mut self) -> Result<(), Cause> {
        let offset = self.written;
        let mut columns: Vec<Encoded> = self.columns.iter_mut().map(StripeColumn::take).collect();
        let mut streams = Vec::new();
        for (place, column) in columns.iter_mut().enumerate() {
            for (stream, bytes) in column.streams.drain(..) {
                streams.push((place, stream, self.write_compressed(&bytes)?));
            }
        }
        let data_length = self.written - offset;
        let footer = tail::stripe_footer(&streams, &columns);
        let footer_length = self.write_compressed(footer.as_bytes())?;
        let count = |column: &Encoded| Count { values: column.values, has_null: column.has_null };
        let counts = columns.iter().map(count).collect();
        let rows = std::mem::take(&mut self.rows) as u64;
        self.stripes.push(Stripe { offset, data_length, footer_length, rows, counts });
        Ok(())
    }
}

impl<W: Write> Sink for OrcSink<W> {
    fn begin(&mut self, table: &str, schema: &SchemaRef) -> Result<(), Cause> {
        if self.written > 0 {
            return Err(format!("an ORC file holds one table, not also {table}").into());
        }
        for field in schema.fields() {
            let none = new_empty_array(field.data_type());
            let unknown = || format!("column {} has an unknown type", field.name());
            let like = ArrowColumn::of(&none).ok_or_else(unknown)?;
            self.columns.push(StripeColumn::new(field.name(), &like));
        }
        self.write(MAGIC.as_bytes())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Cause> {
        if batch.num_columns() != self.columns.len() {
            return Err("a batch has other columns than its table".into());
        }
        let mut first = 0;
        while first < batch.num_rows() {
            let count = STEP.min(batch.num_rows() - first);
            let part = batch.slice(first, count);
            for (column, cells) in self.columns.iter_mut().zip(ArrowColumn::all(&part)?) {
                column.append(&cells)?;
            }
            first += count;
            self.rows += count;
            let buffered_bytes: usize = self.columns.iter().map(StripeColumn::buffered_bytes).sum();
            if self.rows >= STRIPE_ROWS || buffered_bytes >= STRIPE_BYTES {
                self.write_stripe()?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), Cause> {
        if self.rows > 0 {
            self.write_stripe()?;
        }
        let content_length = self.written;
        let metadata = tail::metadata(&self.stripes);
        let metadata_length = self.write_compressed(metadata.as_bytes())?;
        let footer = tail::footer(&self.columns, &self.stripes, content_length);
        let footer_length = self.write_compressed(footer.as_bytes())?;
        let postscript = tail::postscript(footer_length, metadata_length);
        self.write(postscript.as_bytes())?;
        self.write(&[postscript.as_bytes().len() as u8])?;
        Ok(self.out.flush()?)
    }
}

#[cfg(test)]
mod tests;
