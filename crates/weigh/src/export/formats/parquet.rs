//! Apache Parquet, with the Arrow schema inside, so that units and categories survive.

use std::fs::File;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::super::{Cause, Sink};

/// Rows of a row group: small in memory, and readers can skip whole groups by their times.
const GROUP: usize = 256 * 1024;

/// One table as Parquet.
pub(super) struct ParquetSink {
    file: Option<File>,
    writer: Option<ArrowWriter<File>>,
}

impl ParquetSink {
    /// Into this file.
    pub(super) fn new(file: File) -> ParquetSink {
        ParquetSink { file: Some(file), writer: None }
    }
}

impl Sink for ParquetSink {
    fn begin(&mut self, _table: &str, schema: &SchemaRef) -> Result<(), Cause> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
            .set_max_row_group_row_count(Some(GROUP))
            // Enough to skip row groups; page statistics cost more than they save here.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_created_by(format!("weigh {}", env!("CARGO_PKG_VERSION")))
            .build();
        let file = self.file.take().ok_or("a second table")?;
        self.writer = Some(ArrowWriter::try_new(file, schema.clone(), Some(properties))?);
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Cause> {
        Ok(self.writer.as_mut().ok_or("rows of no table")?.write(batch)?)
    }

    fn finish(self: Box<Self>) -> Result<(), Cause> {
        if let Some(writer) = self.writer {
            writer.close()?;
        }
        Ok(())
    }
}
