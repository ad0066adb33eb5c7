//! Many runs as one table: a directory of Parquet files, partitioned by run and host.
//!
//! ```text
//! DIR/process/run=20261115T180548-1f2e3d4c/host=node-a/part-0.parquet
//! ```
//!
//! All files of a table have the same columns, the union over all runs, so that every engine that
//! knows partitions reads them as one table. Times are in microseconds: Spark refuses Parquet's
//! nanoseconds. `runs` has one row for each run: its metadata and its figures.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampNanosecondType;
use arrow_array::{ArrayRef, RecordBatch, TimestampMicrosecondArray, new_null_array};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

use super::formats::SinkFile;
use super::pipeline::{Pipeline, TableWriter};
use super::{
    Cause, Error, ExportFormat, ExportOptions, ExportProgress, Exported, chosen, runs, unfinished,
};
use crate::destination::OutputFile;
use crate::record::{self, Manifest, Recording};

/// The table with one row for each run.
pub(super) const RUNS: &str = "runs";

/// Writes the tables of many recordings as one dataset.
pub fn dataset(
    recordings: &[PathBuf],
    options: &ExportOptions,
    directory: &Path,
    mut progress: impl FnMut(ExportProgress),
) -> Result<Exported, Error> {
    let mut plan = DatasetPlan::of(recordings, options)?;
    let of = plan.rows;
    let mut missing = std::mem::take(&mut plan.missing);
    let mut rows = 0;
    let mut files = Vec::new();
    plan.check(directory, options.force)?;
    for run in &plan.runs {
        let recording = Recording::open(&run.path)?;
        let name = run.path.display();
        let mut parts = PartitionFiles {
            plan: &plan,
            place: PartitionPath::of(directory, recording.manifest()),
            force: options.force,
            open: None,
            done: Vec::new(),
        };
        let pipeline = Pipeline::of(&recording, options)?;
        let (tables, mut lost) = chosen(&recording, options)?;
        lost.extend(unfinished(&recording));
        for table in tables {
            lost.extend(pipeline.write_table(table, &mut parts, |more| {
                rows += more;
                progress(ExportProgress { rows, of });
            })?);
        }
        missing.extend(lost.into_iter().map(|what| format!("{name}: {what}")));
        parts.begin(RUNS, &run.row.schema())?;
        parts.rows(&run.row)?;
        parts.end()?;
        files.append(&mut parts.done);
    }
    Ok(Exported { files, missing })
}

/// What is to be written.
#[derive(Default)]
struct DatasetPlan {
    runs: Vec<DatasetRun>,
    /// The columns of each table: the union over all runs.
    columns: BTreeMap<String, SchemaRef>,
    rows: u64,
    missing: Vec<String>,
}

/// A run of the dataset; it is opened again when it is written.
struct DatasetRun {
    path: PathBuf,
    manifest: Manifest,
    row: RecordBatch,
}

impl DatasetPlan {
    fn of(recordings: &[PathBuf], options: &ExportOptions) -> Result<DatasetPlan, Error> {
        let mut plan = DatasetPlan::default();
        let mut why = "there is none".to_owned();
        for path in recordings {
            // One that is damaged, or has no such phase, must not stop the others.
            match plan.add_run(path, options) {
                Ok(()) => {}
                Err(error) => {
                    why = format!("{}: {error}", path.display());
                    plan.missing.push(format!("left out: {why}"));
                }
            }
        }
        if plan.runs.is_empty() { Err(Error::NoRuns { why }) } else { Ok(plan) }
    }

    fn add_run(&mut self, path: &Path, options: &ExportOptions) -> Result<(), Error> {
        let recording = Recording::open(path)?;
        let manifest = recording.manifest();
        if let Some(other) = self.runs.iter().find(|run| run.manifest.id == manifest.id) {
            let why = format!("it is a copy of {}", other.path.display());
            return Err(Cause::from(why).into());
        }
        let pipeline = Pipeline::of(&recording, options)?;
        let (tables, _) = chosen(&recording, options)?;
        let row = runs::row(&recording)?;
        let mut columns = self.columns.clone();
        for table in &tables {
            add(&mut columns, table.name, &pipeline.schema(table))?;
        }
        add(&mut columns, RUNS, &row.schema())?;
        self.columns = columns;
        self.rows += tables.iter().map(|table| table.rows).sum::<u64>();
        self.runs.push(DatasetRun { path: path.to_owned(), manifest: manifest.clone(), row });
        Ok(())
    }

    /// Checks that no file exists before the first is created.
    fn check(&self, directory: &Path, force: bool) -> Result<(), Error> {
        for run in &self.runs {
            let place = PartitionPath::of(directory, &run.manifest);
            for table in self.columns.keys() {
                OutputFile::check(&place.file(table), force)?;
            }
        }
        Ok(())
    }
}

/// Adds the columns of one run to those of the others.
fn add(
    columns: &mut BTreeMap<String, SchemaRef>,
    table: &str,
    schema: &SchemaRef,
) -> Result<(), Error> {
    let schema = microseconds(schema);
    let known = columns.entry(table.to_owned()).or_insert_with(|| schema.clone());
    let mut fields: Vec<Arc<Field>> = known.fields().to_vec();
    for field in schema.fields() {
        match known.field_with_name(field.name()) {
            Ok(there) if there.data_type() == field.data_type() => {}
            Ok(_) => {
                let why = format!("{table}: {} has another type in other runs", field.name());
                return Err(Cause::from(why).into());
            }
            // Null in runs without it.
            Err(_) => fields.push(Arc::new(field.as_ref().clone().with_nullable(true))),
        }
    }
    let metadata = HashMap::from([("weigh.table".to_owned(), table.to_owned())]);
    *known = Arc::new(Schema::new_with_metadata(fields, metadata));
    Ok(())
}

/// The same columns with times in microseconds.
fn microseconds(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            let kind = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
            Arc::new(field.as_ref().clone().with_data_type(kind))
        }
        _ => Arc::clone(field),
    });
    Arc::new(Schema::new_with_metadata(fields.collect::<Fields>(), schema.metadata().clone()))
}

fn in_microseconds(column: ArrayRef) -> ArrayRef {
    match column.as_primitive_opt::<TimestampNanosecondType>() {
        Some(times) => {
            let shorter: TimestampMicrosecondArray = times.unary(|at| at.div_euclid(1000));
            Arc::new(shorter.with_timezone("UTC"))
        }
        None => column,
    }
}

/// The partition directories of one run.
struct PartitionPath {
    directory: PathBuf,
    below: PathBuf,
}

impl PartitionPath {
    fn of(directory: &Path, manifest: &Manifest) -> PartitionPath {
        let run = record::host_directory(&manifest.id);
        let host = record::host_directory(&manifest.host.name);
        let below = Path::new(&format!("run={run}")).join(format!("host={host}"));
        PartitionPath { directory: directory.to_owned(), below }
    }

    fn file(&self, table: &str) -> PathBuf {
        self.directory.join(table).join(&self.below).join("part-0.parquet")
    }
}

/// The files of one run, each with the columns of all runs.
struct PartitionFiles<'a> {
    plan: &'a DatasetPlan,
    place: PartitionPath,
    force: bool,
    open: Option<(SinkFile, SchemaRef)>,
    done: Vec<PathBuf>,
}

impl TableWriter for PartitionFiles<'_> {
    fn begin(&mut self, table: &str, schema: &SchemaRef) -> Result<(), Error> {
        let schema = self.plan.columns.get(table).unwrap_or(schema);
        let mut file =
            SinkFile::create(ExportFormat::Parquet, &self.place.file(table), self.force, false)?;
        file.with_sink(|sink| sink.begin(table, schema))?;
        self.open = Some((file, schema.clone()));
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let Some((file, schema)) = &mut self.open else { return Ok(()) };
        let column = |field: &Arc<Field>| -> ArrayRef {
            match batch.column_by_name(field.name()) {
                Some(column) => Arc::clone(column),
                None => new_null_array(field.data_type(), batch.num_rows()),
            }
        };
        let columns = schema.fields().iter().map(column).map(in_microseconds).collect();
        let wide = RecordBatch::try_new(schema.clone(), columns).map_err(Cause::from)?;
        file.with_sink(|sink| sink.rows(&wide))
    }

    fn end(&mut self) -> Result<(), Error> {
        if let Some((file, _)) = self.open.take() {
            self.done.push(file.finish()?);
        }
        Ok(())
    }
}
