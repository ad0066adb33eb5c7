//! A table through the Arrow C stream interface: pandas, polars, pyarrow and DuckDB read it without
//! a copy.
//!
//! <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use weigh::export::{self, TableBatches};
use weigh::record::Recording;

use crate::error::Raised;

/// The name that the interface gives to the capsule.
const CAPSULE: &CStr = c"arrow_array_stream";

/// A table of a recording, which can be read as often as wanted.
#[pyclass(frozen, module = "weigh._native")]
pub(crate) struct ArrowStream {
    recording: Arc<Recording>,
    name: String,
}

impl ArrowStream {
    pub(crate) fn new(recording: Arc<Recording>, name: String) -> ArrowStream {
        ArrowStream { recording, name }
    }
}

#[pymethods]
impl ArrowStream {
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The table as an Arrow C stream. Its types are as they were recorded: another schema cannot
    /// be requested, which the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches =
            py.detach(|| export::table(&self.recording, &self.name)).map_err(Raised::from)?;
        let stream = FFI_ArrowArrayStream::new(Box::new(Reader(batches)));
        PyCapsule::new_with_value(py, stream, CAPSULE)
    }
}

struct Reader(TableBatches);

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.0.next()?;
        Some(batch.map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }
}
