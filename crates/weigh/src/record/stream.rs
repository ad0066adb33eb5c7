//! Tables to Arrow IPC streams and back.
//!
//! Each column carries its unit, kind, label, help and source in the field's
//! metadata, so the file explains itself to every tool that reads Arrow.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, TimestampNanosecondType, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float64Array, RecordBatch, StringArray,
    TimestampNanosecondArray, UInt8Array, UInt32Array, UInt64Array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};

use crate::catalog::{Metric, Scope, Type, Value};
use crate::model::{Cells, Column, Entity, Name, ProcessId, Table};

/// The column of sequence numbers: which rows are of one tick, and where it is among the events.
pub(super) const SEQUENCE: &str = "seq";

/// Encodes batches of one table for one stream.
pub(super) struct Encoder {
    schema: Arc<Schema>,
    /// Writers of small and of large batches into one stream; most short runs have no large one.
    plain: StreamWriter<Vec<u8>>,
    compressed: Option<StreamWriter<Vec<u8>>>,
    header: Vec<u8>,
    started: Duration,
    effort: Effort,
}

/// How much effort goes into small batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effort {
    /// During the run: only large batches are compressed. For small ones it would save next to
    /// nothing, and at 5 µs a buffer be most of what a tick with one process costs.
    Little,
    /// After the run: all of them.
    Full,
}

impl Effort {
    fn compresses(self, rows: usize) -> bool {
        self == Effort::Full || rows >= 128
    }
}

impl Encoder {
    /// An encoder for tables like this one, of a run that began at this wall-clock time.
    pub(super) fn new(
        table: &Table,
        started: Duration,
        effort: Effort,
    ) -> Result<Encoder, ArrowError> {
        let schema = Arc::new(schema(table, started));
        let mut plain = writer(&schema, None)?;
        let header = std::mem::take(plain.get_mut());
        Ok(Encoder { schema, plain, compressed: None, header, started, effort })
    }

    /// The bytes that a stream begins with.
    pub(super) fn header(&self) -> &[u8] {
        &self.header
    }

    /// The bytes of one more batch.
    pub(super) fn encode(&mut self, table: &Table) -> Result<&[u8], ArrowError> {
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays(table, self.started))?;
        let writer = match &mut self.compressed {
            _ if !self.effort.compresses(table.len()) => &mut self.plain,
            Some(compressed) => compressed,
            none => none.insert(writer(&self.schema, Some(CompressionType::ZSTD))?),
        };
        writer.get_mut().clear();
        writer.write(&batch)?;
        Ok(writer.get_ref())
    }
}

/// A writer, whose first bytes are the header of a stream.
fn writer(
    schema: &Schema,
    compression: Option<CompressionType>,
) -> Result<StreamWriter<Vec<u8>>, ArrowError> {
    // 8 is the least that Arrow allows; 64 would triple the size of small batches.
    let options = IpcWriteOptions::try_new(8, false, arrow_ipc::MetadataVersion::V5)?
        .try_with_compression(compression)?;
    StreamWriter::try_new_with_options(Vec::new(), schema, options)
}

/// The rows of a table as a batch without sequence numbers, of a run that began at this wall-clock
/// time.
pub(crate) fn batch(table: &Table, started: Duration) -> Result<RecordBatch, ArrowError> {
    let schema = Arc::new(schema(table, started));
    let exported = without_sequence(&schema);
    RecordBatch::try_new(schema, arrays(table, started))?.project(&exported)
}

/// The columns of a table but for the sequence numbers.
pub(super) fn without_sequence(schema: &Schema) -> Vec<usize> {
    let fields = schema.fields().iter().enumerate();
    fields.filter(|(_, field)| field.name() != SEQUENCE).map(|(place, _)| place).collect()
}

fn arrays(table: &Table, started: Duration) -> Vec<ArrayRef> {
    let times = table.times().iter().map(|at| (started + *at).as_nanos() as i64);
    let times = TimestampNanosecondArray::from_iter_values(times).with_timezone("UTC");
    let sequence = UInt64Array::from_iter(table.sequence().iter().copied());
    let mut arrays: Vec<ArrayRef> = vec![Arc::new(times), Arc::new(sequence)];
    arrays.extend(keys(table));
    let columns = table.metrics().iter().zip(table.columns());
    arrays.extend(columns.map(|(metric, column)| array(metric, column)));
    arrays
}

fn keys(table: &Table) -> Vec<ArrayRef> {
    let entities = table.entities().iter();
    match table.scope() {
        Scope::Node | Scope::Run | Scope::Cgroup | Scope::Own => Vec::new(),
        Scope::Cpu => {
            let cpus = entities.map(|entity| match entity {
                Entity::Cpu(cpu) => Some(*cpu),
                _ => None,
            });
            vec![Arc::new(UInt32Array::from_iter(cpus))]
        }
        Scope::Process => {
            let ids = entities.map(|entity| match entity {
                Entity::Process(id) => Some(*id),
                _ => None,
            });
            vec![
                Arc::new(UInt32Array::from_iter(ids.clone().map(|id| Some(id?.pid)))),
                Arc::new(UInt64Array::from_iter(ids.map(|id| Some(id?.started)))),
            ]
        }
        Scope::Nic
        | Scope::IbPort
        | Scope::Disk
        | Scope::Energy
        | Scope::Gpu
        | Scope::PerfEvent => {
            let names = entities.map(|entity| match entity {
                Entity::Named(name) => Some(name.as_str()),
                _ => None,
            });
            vec![Arc::new(StringArray::from_iter(names))]
        }
        Scope::GpuProcess => {
            let pairs = entities.map(|entity| match entity {
                Entity::OnGpu(gpu, id) => Some((gpu.as_str(), *id)),
                _ => None,
            });
            vec![
                Arc::new(StringArray::from_iter(pairs.clone().map(|pair| Some(pair?.0)))),
                Arc::new(UInt32Array::from_iter(pairs.clone().map(|pair| Some(pair?.1.pid)))),
                Arc::new(UInt64Array::from_iter(pairs.map(|pair| Some(pair?.1.started)))),
            ]
        }
    }
}

pub(super) fn array(metric: &Metric, column: &Column) -> ArrayRef {
    let nulls = NullBuffer::new(BooleanBuffer::from(column.present.as_slice()));
    let nulls = (nulls.null_count() > 0).then_some(nulls);
    match (&column.cells, metric.stored) {
        (Cells::U64(cells), _) => {
            Arc::new(UInt64Array::new(ScalarBuffer::from(cells.clone()), nulls))
        }
        (Cells::F64(cells), _) => {
            Arc::new(Float64Array::new(ScalarBuffer::from(cells.clone()), nulls))
        }
        (Cells::Symbol(cells), stored) => {
            let words = if let Type::Symbol(words) = stored { words } else { &[] };
            let keys = UInt8Array::new(ScalarBuffer::from(cells.clone()), nulls);
            let words: ArrayRef = Arc::new(StringArray::from_iter_values(words));
            Arc::new(DictionaryArray::<UInt8Type>::new(keys, words))
        }
    }
}

fn schema(table: &Table, started: Duration) -> Schema {
    let time = DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
    let mut fields =
        vec![Field::new("time", time, false), Field::new(SEQUENCE, DataType::UInt64, true)];
    let name = table.scope().name_column().map(|column| Field::new(column, DataType::Utf8, false));
    match table.scope() {
        Scope::Node | Scope::Run | Scope::Cgroup | Scope::Own => {}
        Scope::Cpu => fields.push(Field::new("cpu", DataType::UInt32, false)),
        Scope::Process | Scope::GpuProcess => {
            fields.extend(name);
            fields.push(Field::new("pid", DataType::UInt32, false));
            fields.push(Field::new("started", DataType::UInt64, false));
        }
        Scope::Nic
        | Scope::IbPort
        | Scope::Disk
        | Scope::Energy
        | Scope::Gpu
        | Scope::PerfEvent => {
            fields.extend(name);
        }
    }
    fields.extend(table.metrics().iter().map(|metric| field(metric)));
    let metadata = HashMap::from([
        ("weigh.scope".to_owned(), table.scope().name().to_owned()),
        ("weigh.format".to_owned(), super::FORMAT.to_string()),
        ("weigh.started_ns".to_owned(), started.as_nanos().to_string()),
    ]);
    Schema::new_with_metadata(fields, metadata)
}

fn field(metric: &Metric) -> Field {
    let data = match metric.stored {
        Type::U64 => DataType::UInt64,
        Type::F64 => DataType::Float64,
        Type::Symbol(_) => {
            DataType::Dictionary(Box::new(DataType::UInt8), Box::new(DataType::Utf8))
        }
    };
    let metadata = [
        ("name", metric.name()),
        ("unit", metric.unit.name().to_owned()),
        ("kind", metric.kind.name().to_owned()),
        ("label", metric.label.to_owned()),
        ("help", metric.help.to_owned()),
        ("source", metric.source.to_owned()),
    ];
    Field::new(metric.column(), data, true)
        .with_metadata(metadata.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// Adds the rows of a batch to a table; columns the table does not have are skipped.
pub(super) fn decode(batch: &RecordBatch, started: Duration, table: &mut Table) -> Option<()> {
    let times = batch.column_by_name("time")?.as_primitive_opt::<TimestampNanosecondType>()?;
    // Earlier versions recorded none.
    let sequence = batch.column_by_name(SEQUENCE).and_then(|c| c.as_primitive_opt::<UInt64Type>());
    let entities = entities(batch, table.scope())?;
    let columns: Vec<Option<&ArrayRef>> =
        table.metrics().iter().map(|metric| batch.column_by_name(&metric.column())).collect();
    for row in 0..batch.num_rows() {
        let at =
            Duration::from_nanos(u64::try_from(times.value(row)).ok()?).saturating_sub(started);
        let entity = entities(row)?;
        let number = sequence.filter(|column| column.is_valid(row)).map(|column| column.value(row));
        table.begin_row(at, number, entity);
        for (column, array) in columns.iter().enumerate() {
            if let Some(value) = array.and_then(|array| value(array, row, table.metrics()[column]))
            {
                table.set_last(column, value);
            }
        }
    }
    Some(())
}

fn entities(
    batch: &RecordBatch,
    scope: Scope,
) -> Option<Box<dyn Fn(usize) -> Option<Entity> + '_>> {
    let numbers = |name| batch.column_by_name(name)?.as_primitive_opt::<UInt32Type>();
    let names = || batch.column_by_name(scope.name_column()?)?.as_string_opt::<i32>();
    let processes = || {
        let pids = numbers("pid")?;
        let started = batch.column_by_name("started")?.as_primitive_opt::<UInt64Type>()?;
        Some(|row| ProcessId { pid: pids.value(row), started: started.value(row) })
    };
    Some(match scope {
        Scope::Node | Scope::Run | Scope::Cgroup | Scope::Own => Box::new(|_| Some(Entity::Single)),
        Scope::Cpu => {
            let cpus = numbers("cpu")?;
            Box::new(|row| Some(Entity::Cpu(cpus.value(row))))
        }
        Scope::Process => {
            let process = processes()?;
            Box::new(move |row| Some(Entity::Process(process(row))))
        }
        Scope::GpuProcess => {
            let (names, process) = (names()?, processes()?);
            let name = |row| Name::new(names.value(row).as_bytes());
            Box::new(move |row| Some(Entity::OnGpu(name(row), process(row))))
        }
        Scope::Nic
        | Scope::IbPort
        | Scope::Disk
        | Scope::Energy
        | Scope::Gpu
        | Scope::PerfEvent => {
            let names = names()?;
            Box::new(|row| Some(Entity::Named(Name::new(names.value(row).as_bytes()))))
        }
    })
}

fn value(array: &ArrayRef, row: usize, metric: &Metric) -> Option<Value> {
    if array.is_null(row) {
        return None;
    }
    match metric.stored {
        Type::U64 => array.as_primitive_opt::<UInt64Type>().map(|a| Value::U64(a.value(row))),
        Type::F64 => array.as_primitive_opt::<Float64Type>().map(|a| Value::F64(a.value(row))),
        Type::Symbol(words) => {
            let symbols = array.as_any().downcast_ref::<DictionaryArray<UInt8Type>>()?;
            let known = symbols.values().as_string_opt::<i32>()?;
            let key = usize::from(symbols.keys().value(row));
            let word = (key < known.len()).then(|| known.value(key))?;
            words.iter().position(|w| *w == word).map(|place| Value::Symbol(place as u8))
        }
    }
}
