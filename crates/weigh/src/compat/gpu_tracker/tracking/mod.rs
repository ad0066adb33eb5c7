//! The tracking file: what is constant, then a row for each interval.

mod csv;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::path::Path;

use super::timepoints::Timepoint;
use super::{Error, GpuTrackerOptions, gpu};
use crate::compat::python::PythonValue;
use crate::destination::OutputFile;
use crate::record::Recording;

/// What is constant during a run, by name.
pub const CONSTANTS: [&str; 9] = [
    "ram_unit",
    "gpu_ram_unit",
    "time_unit",
    "ram_system_capacity",
    "gpu_ram_system_capacity",
    "system_core_count",
    "n_expected_cores",
    "system_gpu_count",
    "n_expected_gpus",
];

/// What is measured at each moment, by name.
pub const MEASURES: [&str; 21] = [
    "main_ram",
    "descendants_ram",
    "combined_ram",
    "system_ram",
    "main_gpu_ram",
    "descendants_gpu_ram",
    "combined_gpu_ram",
    "system_gpu_ram",
    "gpu_sum_utilization_percent",
    "gpu_hardware_utilization_percent",
    "main_n_threads",
    "descendants_n_threads",
    "combined_n_threads",
    "cpu_system_sum_utilization_percent",
    "cpu_system_hardware_utilization_percent",
    "cpu_main_sum_utilization_percent",
    "cpu_main_hardware_utilization_percent",
    "cpu_descendants_sum_utilization_percent",
    "cpu_descendants_hardware_utilization_percent",
    "cpu_combined_sum_utilization_percent",
    "cpu_combined_hardware_utilization_percent",
];

/// The column behind the measures: seconds since 1970.
pub const TIMESTAMP: &str = "timestamp";

/// One row: the measures and the timestamp.
pub type TrackingRow = [PythonValue; MEASURES.len() + 1];

/// What is constant during a run.
#[derive(Debug, Clone)]
pub struct Constants {
    options: GpuTrackerOptions,
    capacity: Option<f64>,
    cores: u32,
    gpus: gpu::GpuCounts,
}

impl Constants {
    /// Those of a run.
    pub fn of(recording: &Recording, options: &GpuTrackerOptions) -> Constants {
        let manifest = recording.manifest();
        let capacity = manifest.host.memory_bytes.map(|bytes| bytes as f64);
        Constants {
            options: options.of_run(manifest),
            capacity: capacity.map(|bytes| options.ram_unit.of_bytes(bytes)),
            cores: manifest.host.cores,
            gpus: gpu::GpuCounts::in_recording(recording, options.gpu_uuids.as_deref()),
        }
    }

    /// Their values, in the order of [`CONSTANTS`].
    pub fn values(&self) -> [PythonValue; CONSTANTS.len()] {
        let GpuTrackerOptions { ram_unit, gpu_ram_unit, time_unit, .. } = self.options;
        let text = |name: &str| PythonValue::Text(name.to_owned());
        [
            text(ram_unit.name()),
            text(gpu_ram_unit.name()),
            text(time_unit.name()),
            PythonValue::real(self.capacity),
            PythonValue::real(self.gpus.capacity.map(|bytes| gpu_ram_unit.of_bytes(bytes))),
            PythonValue::Whole(self.cores.into()),
            PythonValue::count(self.options.cores(self.cores)),
            PythonValue::whole(self.gpus.count),
            PythonValue::whole(self.gpus.expected),
        ]
    }

    /// The row of a timepoint, in the units of the file.
    pub fn row(&self, at: &Timepoint) -> TrackingRow {
        let ram = |part: usize| {
            PythonValue::real(at.ram[part].map(|bytes| self.options.ram_unit.of_bytes(bytes)))
        };
        let gpu = |part: usize| {
            PythonValue::real(
                at.gpu_ram[part].map(|bytes| self.options.gpu_ram_unit.of_bytes(bytes)),
            )
        };
        let gpu_busy = at.gpu_busy.map(|gpus| 100.0 * gpus);
        // Without a GPU the share is zero, not a division by zero.
        let gpus = self.gpus.expected.filter(|gpus| *gpus > 0);
        let gpu_share = gpu_busy.map(|percent| gpus.map_or(0.0, |gpus| percent / gpus as f64));
        let cpu = |part: usize| at.cores[part].map(|cores| 100.0 * cores);
        let of =
            |part: usize, cores: f64| PythonValue::real(cpu(part).map(|percent| percent / cores));
        let sum = |part: usize| PythonValue::real(cpu(part));
        let (machine, expected) = (f64::from(self.cores), self.options.cores(self.cores));
        [
            ram(0),
            ram(1),
            ram(2),
            ram(3),
            gpu(0),
            gpu(1),
            gpu(2),
            gpu(3),
            PythonValue::real(gpu_busy),
            PythonValue::real(gpu_share),
            PythonValue::whole(at.threads[0]),
            PythonValue::whole(at.threads[1]),
            PythonValue::whole(at.threads[2]),
            sum(0),
            of(0, machine),
            sum(1),
            of(1, expected),
            sum(2),
            of(2, expected),
            sum(3),
            of(3, expected),
            PythonValue::Real(at.timestamp),
        ]
    }
}

/// A tracking file that is being written.
pub enum TrackingWriter {
    /// As CSV.
    Csv(csv::TrackingCsv),
    /// As SQLite.
    #[cfg(feature = "sqlite")]
    Sqlite(sqlite::TrackingDatabase),
}

impl TrackingWriter {
    /// Creates the file, in the format of its extension.
    pub fn create(
        path: &Path,
        constants: &Constants,
        force: bool,
    ) -> Result<TrackingWriter, Error> {
        let destination = || OutputFile::create(path, force).map_err(Error::from);
        match format_of(path)? {
            TrackingFormat::Csv => {
                csv::TrackingCsv::create(destination()?, constants).map(TrackingWriter::Csv)
            }
            #[cfg(feature = "sqlite")]
            TrackingFormat::Sqlite => sqlite::TrackingDatabase::create(destination()?, constants)
                .map(TrackingWriter::Sqlite),
            #[cfg(not(feature = "sqlite"))]
            TrackingFormat::Sqlite => {
                let why = "this weigh was built without SQLite".to_owned();
                Err(Error::Sqlite { path: path.to_owned(), why })
            }
        }
    }

    /// Writes a row.
    pub fn row(&mut self, row: &TrackingRow) -> Result<(), Error> {
        match self {
            TrackingWriter::Csv(csv) => csv.row(row),
            #[cfg(feature = "sqlite")]
            TrackingWriter::Sqlite(sqlite) => sqlite.row(row),
        }
    }

    /// Writes what is left and gives the file its name.
    pub fn finish(self) -> Result<(), Error> {
        match self {
            TrackingWriter::Csv(csv) => csv.finish(),
            #[cfg(feature = "sqlite")]
            TrackingWriter::Sqlite(sqlite) => sqlite.finish(),
        }
    }
}

/// The format of a tracking or sub-tracking file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrackingFormat {
    /// Comma-separated values.
    Csv,
    /// A SQLite database.
    Sqlite,
}

impl TrackingFormat {
    /// The extension of such files.
    pub const fn extension(self) -> &'static str {
        match self {
            TrackingFormat::Csv => ".csv",
            TrackingFormat::Sqlite => ".sqlite",
        }
    }
}

/// The format of a file, by its extension.
pub fn format_of(path: &Path) -> Result<TrackingFormat, Error> {
    let name = path.as_os_str().as_encoded_bytes();
    [TrackingFormat::Csv, TrackingFormat::Sqlite]
        .into_iter()
        .find(|kind| name.ends_with(kind.extension().as_bytes()))
        .ok_or_else(|| Error::Extension { path: path.to_owned() })
}
