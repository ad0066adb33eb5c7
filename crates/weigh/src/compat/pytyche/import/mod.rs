//! The files of pytyche's HWMonitor, as nvidia-smi and pytyche write them, read into a summary.
//!
//! The result is not a recording: such files have no processes, no phases and no exact totals, and
//! a recording made from them would claim what was not measured.
//!
//! `hw_metrics.csv` has a row for each GPU in each round and does not say which GPU it is of
//! (`rounds`); `hw_dmon.csv` has its number, but no times; `cpu_metrics.csv` is of the machine.
//! Where `hw_metrics_gpus.csv` exists, which weigh writes, it is read instead of the first.
//!
//! What surprised us: times of GPUs are in the machine's time zone and those of CPUs in UTC, and
//! the offset is not in the files. So they are never combined here.

pub mod cpu_metrics;
pub mod dmon;
mod error;
mod gpus;
mod lines;
pub mod nvidia_smi;
mod rounds;
#[cfg(test)]
mod tests;
mod times;

use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use jiff::civil::DateTime;
use serde::Serialize;

pub use error::Error;
pub use gpus::ImportedGpu;
pub use lines::{FileRead, Unreadable};
pub use times::RowTimes;

use crate::compat::pytyche::ResourceSummary;
use crate::summary;
use lines::{Malformed, each_line};
use rounds::QueryRounds;

const METRICS: &str = "hw_metrics.csv";
const APART: &str = "hw_metrics_gpus.csv";
const DMON: &str = "hw_dmon.csv";
const CPU: &str = "cpu_metrics.csv";

/// What the files of one monitor contain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Imported {
    /// Where they are.
    pub directory: PathBuf,
    /// What was found in each.
    pub files: Vec<FileRead>,
    /// Each GPU.
    pub gpus: Vec<ImportedGpu>,
    /// All GPUs together, where some rows cannot be attributed to a GPU; else null.
    pub gpus_together: Option<ImportedGpu>,
    /// The CPUs of the machine.
    pub cpu: ImportedCpu,
    /// What is missing or doubtful in the numbers.
    pub notes: Vec<String>,
}

/// The CPUs of the machine, used by any process.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct ImportedCpu {
    /// Share of CPU time in user mode; null when it is not known.
    pub user_mean_ratio: Option<f64>,
    /// Share of idle CPU time; null when it is not known.
    pub idle_mean_ratio: Option<f64>,
}

impl Imported {
    /// The same as pytyche's `ResourceSummary` reports it.
    pub fn resources(&self) -> ResourceSummary {
        let gpus: Vec<summary::GpuSummary> = match &self.gpus_together {
            Some(together) => vec![together.into()],
            None => self.gpus.iter().map(summary::GpuSummary::from).collect(),
        };
        ResourceSummary {
            cpu_usr_mean_pct: self.cpu.user_mean_ratio.map(|ratio| 100.0 * ratio),
            cpu_idle_mean_pct: self.cpu.idle_mean_ratio.map(|ratio| 100.0 * ratio),
            ..ResourceSummary::of_gpus(gpus.iter())
        }
    }
}

/// Reads the files of a directory.
pub fn read(directory: &Path) -> Result<Imported, Error> {
    match std::fs::metadata(directory) {
        Ok(there) if there.is_dir() => {}
        Ok(_) => return Err(Error::NotADirectory { path: directory.to_owned() }),
        Err(source) => return Err(Error::Read { path: directory.to_owned(), source }),
    }
    let bytes = |name: &str| contents(&directory.join(name));
    let (apart, plain) = (bytes(APART)?, bytes(METRICS)?);
    let metrics = apart.map(|bytes| (APART, bytes)).or(plain.map(|bytes| (METRICS, bytes)));
    let (dmon, cpu) = (bytes(DMON)?, bytes(CPU)?);
    if metrics.is_none() && dmon.is_none() && cpu.is_none() {
        let (directory, names) = (directory.to_owned(), vec![METRICS, DMON, CPU]);
        return Err(Error::Nothing { directory, names });
    }
    let there = [metrics.is_some(), dmon.is_some(), cpu.is_some()];
    let absent = [METRICS, DMON, CPU].into_iter().zip(there).filter(|(_, is_there)| !is_there);
    let mut notes: Vec<String> = absent.map(|(name, _)| format!("{name} does not exist")).collect();
    let imported = summarize(metrics, dmon, cpu);
    // Files without a line are from a machine without nvidia-smi: they are not malformed.
    let is_unreadable = imported.files.iter().all(|file| file.rows == 0);
    let unread = imported.files.iter().find(|file| file.unreadable_lines > 0);
    if let Some(file) = unread.filter(|_| is_unreadable) {
        let why = file.notes().into_iter().next().unwrap_or_default();
        return Err(Error::NoRow { directory: directory.to_owned(), why });
    }
    notes.extend(imported.notes);
    Ok(Imported { directory: directory.to_owned(), notes, ..imported })
}

/// Reads these files, whatever their names are; one that does not exist has no rows.
pub fn read_files(
    metrics: Option<&Path>,
    cpu: Option<&Path>,
    dmon: Option<&Path>,
) -> Result<Imported, Error> {
    let bytes = |path: Option<&Path>| path.map_or(Ok(None), contents);
    let metrics = bytes(metrics)?.map(|bytes| (METRICS, bytes));
    Ok(summarize(metrics, bytes(dmon)?, bytes(cpu)?))
}

/// The bytes of a file; `None` where there is none. A pipe may never end, and is not opened.
fn contents(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let kind = match std::fs::metadata(path) {
        Ok(of_file) => of_file.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let is = match kind {
        kind if kind.is_file() => return std::fs::read(path).map(Some).map_err(failed),
        kind if kind.is_dir() => "a directory",
        kind if kind.is_fifo() => "a named pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    };
    Err(Error::NotAFile { path: path.to_owned(), is })
}

/// The summary of files with these contents.
fn summarize(
    metrics: Option<(&str, Vec<u8>)>,
    dmon: Option<Vec<u8>>,
    cpu: Option<Vec<u8>>,
) -> Imported {
    let mut files = Vec::new();
    let (of_dmon, monitored) = dmon.map(|bytes| monitored(&bytes)).unzip();
    let monitored = monitored.unwrap_or_default();
    let queried = metrics.map(|(name, bytes)| {
        let queried = queried(name, &bytes, gpus::in_dmon(&monitored).len());
        files.push(queried.file);
        (queried.rows, queried.moments, queried.rounds)
    });
    files.extend(of_dmon);
    let cpu = cpu.map(|bytes| {
        let (file, cpu) = cpu_shares(&bytes);
        files.push(file);
        cpu
    });
    let mut notes: Vec<String> = files.iter().flat_map(FileRead::notes).collect();
    let (rows, moments, rounds) = queried.unwrap_or_default();
    let gpus = gpus::summarize(&rows, &moments, &rounds, &monitored);
    notes.extend(gpus.notes);
    Imported {
        directory: PathBuf::new(),
        files,
        gpus: gpus.each,
        gpus_together: gpus.together,
        cpu: cpu.unwrap_or_default(),
        notes,
    }
}

/// What nvidia-smi's query has printed.
struct Queried {
    file: FileRead,
    rows: Vec<nvidia_smi::SmiRow>,
    /// When, in seconds since the first.
    moments: Vec<f64>,
    rounds: QueryRounds,
}

fn queried(name: &str, bytes: &[u8], in_dmon: usize) -> Queried {
    let mut columns = nvidia_smi::SmiColumns::of_pytyche();
    let mut rows: Vec<nvidia_smi::SmiRow> = Vec::new();
    let mut file = each_line(name, bytes, |line| {
        if let Some(named) = nvidia_smi::SmiColumns::of_header(line) {
            columns = named;
            return Ok(false);
        }
        let row = columns.row(line);
        // An unreadable row keeps its place, so that the GPUs of the other rows do not shift.
        rows.extend(row.clone().or_else(|_| columns.place(line)));
        row.map(|_| true)
    });
    let first = rows.first().map(|row| row.at);
    let elapsed = |at: DateTime| first.map_or(0.0, |first| at.duration_since(first).as_secs_f64());
    let moments: Vec<f64> = rows.iter().map(|row| elapsed(row.at)).collect();
    let rounds = QueryRounds::of(&moments, in_dmon);
    if let [first, .., last] | [first @ last] = &rows[..] {
        let written = [first, last].map(|row| row.at.strftime("%Y/%m/%d %H:%M:%S%.3f").to_string());
        file.times = Some(RowTimes::of(&rounds.begins(&rows, &moments), written));
    }
    Queried { file, rows, moments, rounds }
}

fn monitored(bytes: &[u8]) -> (FileRead, Vec<dmon::DmonRow>) {
    let mut columns = None;
    let mut rows = Vec::new();
    let file = each_line(DMON, bytes, |line| {
        if dmon::is_header(line) {
            columns = dmon::DmonColumns::of_header(line).or(columns);
            return Ok(false);
        }
        let columns = columns.ok_or(Malformed("no header before it"))?;
        rows.push(columns.row(line)?);
        Ok(true)
    });
    (file, rows)
}

fn cpu_shares(bytes: &[u8]) -> (FileRead, ImportedCpu) {
    let mut rows: Vec<cpu_metrics::CpuMetricsRow> = Vec::new();
    let mut file = each_line(CPU, bytes, |line| {
        if line == cpu_metrics::HEADER {
            return Ok(false);
        }
        rows.push(cpu_metrics::row(line)?);
        Ok(true)
    });
    let first = rows.first().map(|row| row.at);
    let elapsed =
        |at: jiff::Timestamp| first.map_or(0.0, |first| at.duration_since(first).as_secs_f64());
    let moments: Vec<f64> = rows.iter().map(|row| elapsed(row.at)).collect();
    if let [first, .., last] | [first @ last] = &rows[..] {
        file.times = Some(RowTimes::of(&moments, [first, last].map(|row| row.at.to_string())));
    }
    let mean = |of: fn(&cpu_metrics::CpuMetricsRow) -> f64| {
        let values: Vec<Option<f64>> = rows.iter().map(|row| Some(of(row))).collect();
        times::mean(&moments, &values)
    };
    let (user_mean_ratio, idle_mean_ratio) = (mean(|row| row.user), mean(|row| row.idle));
    (file, ImportedCpu { user_mean_ratio, idle_mean_ratio })
}
