//! File formats, one in each module, and the files of one export.

pub(super) mod csv;
mod feather;
#[cfg(feature = "hdf5")]
mod hdf5;
pub(super) mod json;
mod orc;
#[cfg(feature = "parquet")]
mod parquet;
mod pickle;
#[cfg(feature = "sqlite")]
mod sqlite;
mod trace;
#[cfg(feature = "xlsx")]
mod xlsx;

use std::io::BufWriter;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::pipeline::TableWriter;
use super::{Cause, Error, Sink};
use crate::destination::OutputFile;

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// Comma-separated values.
    Csv,
    /// One JSON array of objects.
    Json,
    /// One JSON object on each line.
    Jsonl,
    /// Apache Parquet.
    #[cfg(feature = "parquet")]
    Parquet,
    /// Feather version 2, the Arrow IPC file.
    Feather,
    /// HDF5 with all tables.
    #[cfg(feature = "hdf5")]
    Hdf5,
    /// Apache ORC.
    Orc,
    /// A pandas DataFrame.
    Pickle,
    /// An SQLite database with all tables.
    #[cfg(feature = "sqlite")]
    Sqlite,
    /// A Chrome trace, for Perfetto.
    Trace,
    /// An Excel workbook with all tables.
    #[cfg(feature = "xlsx")]
    Xlsx,
}

impl ExportFormat {
    /// All formats.
    pub const ALL: &'static [ExportFormat] = &[
        ExportFormat::Csv,
        ExportFormat::Json,
        ExportFormat::Jsonl,
        #[cfg(feature = "parquet")]
        ExportFormat::Parquet,
        ExportFormat::Feather,
        #[cfg(feature = "hdf5")]
        ExportFormat::Hdf5,
        ExportFormat::Orc,
        ExportFormat::Pickle,
        #[cfg(feature = "sqlite")]
        ExportFormat::Sqlite,
        ExportFormat::Trace,
        #[cfg(feature = "xlsx")]
        ExportFormat::Xlsx,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            ExportFormat::Csv => "csv",
            ExportFormat::Json => "json",
            ExportFormat::Jsonl => "jsonl",
            #[cfg(feature = "parquet")]
            ExportFormat::Parquet => "parquet",
            ExportFormat::Feather => "feather",
            #[cfg(feature = "hdf5")]
            ExportFormat::Hdf5 => "hdf5",
            ExportFormat::Orc => "orc",
            ExportFormat::Pickle => "pickle",
            #[cfg(feature = "sqlite")]
            ExportFormat::Sqlite => "sqlite",
            ExportFormat::Trace => "trace",
            #[cfg(feature = "xlsx")]
            ExportFormat::Xlsx => "xlsx",
        }
    }

    /// Its file name extension.
    const fn extension(self) -> &'static str {
        match self {
            #[cfg(feature = "hdf5")]
            ExportFormat::Hdf5 => "h5",
            ExportFormat::Pickle => "pkl",
            ExportFormat::Trace => "trace.json",
            other => other.name(),
        }
    }

    /// Whether one file holds all tables.
    const fn holds_all_tables(self) -> bool {
        match self {
            #[cfg(feature = "hdf5")]
            ExportFormat::Hdf5 => true,
            #[cfg(feature = "sqlite")]
            ExportFormat::Sqlite => true,
            ExportFormat::Trace => true,
            #[cfg(feature = "xlsx")]
            ExportFormat::Xlsx => true,
            _ => false,
        }
    }

    /// Creates a file of this format.
    fn open(
        self,
        destination: &OutputFile,
        spreadsheet_safe: bool,
    ) -> Result<Box<dyn Sink>, Cause> {
        let out = || destination.file().map(BufWriter::new);
        Ok(match self {
            ExportFormat::Csv => Box::new(csv::CsvSink::new(out()?, spreadsheet_safe)),
            ExportFormat::Json => Box::new(json::JsonSink::array(out()?)),
            ExportFormat::Jsonl => Box::new(json::JsonSink::lines(out()?)),
            #[cfg(feature = "parquet")]
            ExportFormat::Parquet => Box::new(parquet::ParquetSink::new(destination.file()?)),
            ExportFormat::Feather => Box::new(feather::FeatherSink::new(out()?)),
            #[cfg(feature = "hdf5")]
            ExportFormat::Hdf5 => Box::new(hdf5::Hdf5Sink::create(destination.file()?)?),
            ExportFormat::Orc => Box::new(orc::OrcSink::new(out()?)),
            ExportFormat::Pickle => {
                Box::new(pickle::PickleSink::new(out()?, destination.directory()))
            }
            #[cfg(feature = "sqlite")]
            ExportFormat::Sqlite => {
                Box::new(sqlite::SqliteSink::create(destination.partial_path())?)
            }
            ExportFormat::Trace => Box::new(trace::TraceSink::new(out()?)?),
            #[cfg(feature = "xlsx")]
            ExportFormat::Xlsx => {
                Box::new(xlsx::XlsxSink::new(destination.file()?, destination.directory())?)
            }
        })
    }
}

/// The files of one export.
pub(super) struct ExportFiles {
    directory: PathBuf,
    formats: Vec<ExportFormat>,
    force: bool,
    /// Escape CSV text that a spreadsheet would take as a formula.
    pub(super) spreadsheet_safe: bool,
    /// Files that hold all tables.
    whole: Vec<SinkFile>,
    /// Files of the current table.
    current: Vec<SinkFile>,
    done: Vec<PathBuf>,
}

/// The name of a file that holds all tables, before its extension.
const ALL_TABLES: &str = "run";

impl ExportFiles {
    /// Checks that no file exists before the first is created.
    pub(super) fn plan(
        formats: &[ExportFormat],
        tables: &[&str],
        directory: &Path,
        force: bool,
    ) -> Result<ExportFiles, Error> {
        let mut once: Vec<ExportFormat> = Vec::new();
        for format in formats {
            if !once.contains(format) {
                once.push(*format);
            }
        }
        let formats = once;
        let mut files = ExportFiles {
            directory: directory.to_owned(),
            formats: formats.clone(),
            force,
            spreadsheet_safe: false,
            whole: Vec::new(),
            current: Vec::new(),
            done: Vec::new(),
        };
        for format in &formats {
            let names = if format.holds_all_tables() { &[ALL_TABLES] } else { tables };
            for name in names {
                OutputFile::check(&files.path(*format, name), force)?;
            }
        }
        let whole = formats.iter().filter(|format| format.holds_all_tables());
        files.whole = whole
            .map(|format| SinkFile::create(*format, &files.path(*format, ALL_TABLES), force, false))
            .collect::<Result<_, Error>>()?;
        Ok(files)
    }

    fn path(&self, format: ExportFormat, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.{}", format.extension()))
    }

    /// Completes the files of all tables. Returns the paths written.
    pub(super) fn finish(mut self) -> Result<Vec<PathBuf>, Error> {
        for file in std::mem::take(&mut self.whole) {
            self.done.push(file.finish()?);
        }
        Ok(self.done)
    }

    fn open(&mut self) -> impl Iterator<Item = &mut SinkFile> {
        self.whole.iter_mut().chain(&mut self.current)
    }
}

impl TableWriter for ExportFiles {
    fn begin(&mut self, table: &str, schema: &SchemaRef) -> Result<(), Error> {
        let apart = self.formats.iter().filter(|format| !format.holds_all_tables());
        self.current = apart
            .map(|format| {
                let path = self.path(*format, table);
                SinkFile::create(*format, &path, self.force, self.spreadsheet_safe)
            })
            .collect::<Result<_, Error>>()?;
        self.open().try_for_each(|file| file.with_sink(|sink| sink.begin(table, schema)))
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        self.open().try_for_each(|file| file.with_sink(|sink| sink.rows(batch)))
    }

    fn end(&mut self) -> Result<(), Error> {
        for file in std::mem::take(&mut self.current) {
            self.done.push(file.finish()?);
        }
        Ok(())
    }
}

/// One table that is made elsewhere, in a file of each format.
pub(crate) struct TableFiles {
    files: Vec<SinkFile>,
}

impl TableFiles {
    /// Creates `<name>.<extension>` for each format.
    pub(crate) fn create(
        formats: &[ExportFormat],
        directory: &Path,
        name: &str,
        schema: &SchemaRef,
        force: bool,
    ) -> Result<TableFiles, Error> {
        let mut files = Vec::new();
        for format in formats {
            let path = directory.join(format!("{name}.{}", format.extension()));
            OutputFile::check(&path, force)?;
            let mut file = SinkFile::create(*format, &path, force, false)?;
            file.with_sink(|sink| sink.begin(name, schema))?;
            files.push(file);
        }
        Ok(TableFiles { files })
    }

    /// Adds rows.
    pub(crate) fn rows(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        self.files.iter_mut().try_for_each(|file| file.with_sink(|sink| sink.rows(batch)))
    }

    /// Completes the files, and returns their paths.
    pub(crate) fn finish(self) -> Result<Vec<PathBuf>, Error> {
        self.files.into_iter().map(SinkFile::finish).collect()
    }
}

/// A file that is being written.
pub(super) struct SinkFile {
    destination: OutputFile,
    sink: Box<dyn Sink>,
}

impl SinkFile {
    /// Creates a file.
    pub(super) fn create(
        format: ExportFormat,
        path: &Path,
        force: bool,
        spreadsheet_safe: bool,
    ) -> Result<SinkFile, Error> {
        let destination = OutputFile::create(path, force)?;
        let failed = |source| Error::Write { path: path.to_owned(), source };
        let sink = format.open(&destination, spreadsheet_safe).map_err(failed)?;
        Ok(SinkFile { destination, sink })
    }

    /// Writes with its sink; errors get the path.
    pub(super) fn with_sink(
        &mut self,
        what: impl FnOnce(&mut dyn Sink) -> Result<(), Cause>,
    ) -> Result<(), Error> {
        let failed = |source| Error::Write { path: self.destination.path().to_owned(), source };
        what(self.sink.as_mut()).map_err(failed)
    }

    /// Completes it under its final name.
    pub(super) fn finish(self) -> Result<PathBuf, Error> {
        let path = self.destination.path().to_owned();
        self.sink.finish().map_err(|source| Error::Write { path, source })?;
        Ok(self.destination.keep()?)
    }
}
