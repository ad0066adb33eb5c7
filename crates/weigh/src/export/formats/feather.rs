//! Feather version 2: the Arrow IPC file, with the schema's metadata.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_schema::SchemaRef;

use super::super::{Cause, Sink};

/// One table as Feather.
pub(super) struct FeatherSink<W: Write> {
    state: FeatherState<W>,
}

enum FeatherState<W: Write> {
    New(Option<W>),
    Begun(Box<FileWriter<W>>),
}

impl<W: Write> FeatherSink<W> {
    /// Into this file.
    pub(super) fn new(out: W) -> FeatherSink<W> {
        FeatherSink { state: FeatherState::New(Some(out)) }
    }
}

impl<W: Write> Sink for FeatherSink<W> {
    fn begin(&mut self, _table: &str, schema: &SchemaRef) -> Result<(), Cause> {
        let FeatherState::New(out) = &mut self.state else { return Err("a second table".into()) };
        let out = out.take().ok_or("a second table")?;
        let options =
            IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD))?;
        let writer = FileWriter::try_new_with_options(out, schema, options)?;
        self.state = FeatherState::Begun(Box::new(writer));
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Cause> {
        match &mut self.state {
            FeatherState::Begun(writer) => Ok(writer.write(batch)?),
            FeatherState::New(_) => Err("rows of no table".into()),
        }
    }

    fn finish(self: Box<Self>) -> Result<(), Cause> {
        match self.state {
            FeatherState::Begun(mut writer) => {
                writer.finish()?;
                Ok(writer.get_mut().flush()?)
            }
            FeatherState::New(_) => Ok(()),
        }
    }
}
