//! GPUs as `nvidia-smi` prints them: `hw_metrics.csv`, `hw_dmon.csv`, and a table with the GPU
//! named in each row.
//!
//! pytyche runs `nvidia-smi --query-gpu=… --format=csv,nounits,noheader -l N`, a row for each GPU
//! in each round, and `nvidia-smi dmon -s mu -d N`. Memory is in MiB, truncated as by nvidia-smi.
//!
//! What surprised us: pytyche's reader takes the third column of `dmon -s mu` for memory
//! utilization, and it is BAR1 memory. `nvidia-smi` prints the columns in the order of the `-s`
//! letters, and with `-s um` the third column is memory utilization. So it is written like that
//! here: readers by header and readers by position find the same number.

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use super::{Error, moment};
use crate::catalog::Scope;
use crate::catalog::metrics::gpu::is_whole;
use crate::catalog::metrics::{GpuActivity, GpuMemory, GpuPower};
use crate::compat::row_spacing::RowSpacing;
use crate::destination::{self, Lines};
use crate::model::{Entity, Name, Tick};
use crate::record::{Entry, Event};
use crate::text::printable;

/// A row for each GPU in each round, without the number of the GPU.
const METRICS: &str = "hw_metrics.csv";
/// Utilization of each GPU.
const DMON: &str = "hw_dmon.csv";
/// The first table, with the GPU in each row.
const APART: &str = "hw_metrics_gpus.csv";
/// The files of a machine with GPUs.
pub(super) const FILES: [&str; 3] = [METRICS, DMON, APART];

/// What `--query-gpu=timestamp,index,uuid,name,…` has as its header.
const APART_HEADER: &str = "timestamp, index, uuid, name, utilization.gpu [%], \
     utilization.memory [%], memory.used [MiB], memory.total [MiB], power.draw [W], \
     temperature.gpu, clocks.current.sm [MHz], clocks.current.memory [MHz]";

/// The header of `dmon -s um` by drivers that know neither of the newer columns.
const DMON_HEADER: [[&str; 7]; 2] =
    [["# gpu", "sm", "mem", "enc", "dec", "fb", "bar1"], ["# Idx", "%", "%", "%", "%", "MB", "MB"]];

/// What nvidia-smi writes for values a GPU does not report, in the two kinds of tables.
const MISSING: &str = "[N/A]";
const MISSING_IN_DMON: &str = "-";

/// A whole GPU: values of its MIG instances are included.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SmiGpu {
    name: Name,
    index: usize,
    uuid: Option<String>,
    model: Option<String>,
}

/// The GPUs of a recording, in their order.
pub(super) fn whole_gpus(entries: &[Entry]) -> Vec<SmiGpu> {
    let mut gpus: Vec<SmiGpu> = Vec::new();
    for entry in entries {
        let Event::Gpu(gpu) = &entry.event else { continue };
        let name = Name::new(gpu.name.as_bytes());
        if is_whole(&gpu.name) && gpus.iter().all(|gpu| gpu.name != name) {
            let (uuid, model) = (gpu.uuid.clone(), gpu.model.clone());
            gpus.push(SmiGpu { name, index: gpus.len(), uuid, model });
        }
    }
    // GPUs of one vendor have its numbers; with two vendors those would not be unique.
    let numbered: Vec<_> = gpus.iter().map(|gpu| vendor_and_number(gpu.name.as_str())).collect();
    let vendor = numbered.first().and_then(|first| first.map(|(vendor, _)| vendor));
    let numbers: Option<Vec<usize>> = numbered
        .iter()
        .map(|gpu| gpu.filter(|gpu| Some(gpu.0) == vendor).map(|gpu| gpu.1))
        .collect();
    if let Some(numbers) = numbers {
        gpus.iter_mut().zip(numbers).for_each(|(gpu, number)| gpu.index = number);
        gpus.sort_by_key(|gpu| gpu.index);
    }
    gpus
}

/// `nvidia0` is the first of vendor `nvidia`.
fn vendor_and_number(name: &str) -> Option<(&str, usize)> {
    let (vendor, number) = name.split_at(name.find(|c: char| c.is_ascii_digit())?);
    Some((vendor, number.parse().ok()?))
}

/// The tables of GPUs, while they are written.
pub(super) struct Tables {
    gpus: Vec<SmiGpu>,
    spacing: RowSpacing,
    last: Option<Duration>,
    metrics: Lines,
    dmon: Lines,
    apart: Lines,
}

impl Tables {
    /// Creates the tables of these GPUs.
    pub(super) fn create(
        gpus: Vec<SmiGpu>,
        spacing: RowSpacing,
        begin: impl Fn(&str) -> Result<Lines, destination::Error>,
    ) -> Result<Tables, Error> {
        let [metrics, mut dmon, mut apart] = [begin(METRICS)?, begin(DMON)?, begin(APART)?];
        apart.line(APART_HEADER)?;
        DMON_HEADER.iter().try_for_each(|header| dmon.line(&columns(header)))?;
        Ok(Tables { gpus, spacing, last: None, metrics, dmon, apart })
    }

    /// Takes in a sample; the first of an interval is a round.
    pub(super) fn sample(&mut self, tick: &Tick, started: jiff::Timestamp) -> Result<(), Error> {
        let Some(table) = tick.table(Scope::Gpu).filter(|table| !table.is_empty()) else {
            return Ok(());
        };
        if self.last.is_some_and(|last| !self.spacing.is_over(last, tick.at)) {
            return Ok(());
        }
        self.last = Some(tick.at);
        let time = moment(started, tick.at.as_secs_f64()).strftime("%Y/%m/%d %H:%M:%S%.3f");
        for gpu in &self.gpus {
            // A GPU that was lost keeps its place in the round.
            let row = table.entities().iter().position(|entity| *entity == Entity::Named(gpu.name));
            let reading = row.map(|row| SmiReading {
                activity: table.get(row),
                memory: table.get(row),
                power: table.get(row),
            });
            let reading = reading.unwrap_or_default();
            let cells = reading.queried().map(|cell| cell.unwrap_or_else(|| MISSING.to_owned()));
            let cells = cells.join(", ");
            self.metrics.line(&format!("{time}, {cells}"))?;
            let named = |text: &Option<String>| match text {
                // nvidia-smi has no quotes: a comma in a name would add a column, a newline a row.
                Some(text) => printable(text).replace(',', " "),
                None => MISSING.to_owned(),
            };
            let (index, uuid, model) = (gpu.index, named(&gpu.uuid), named(&gpu.model));
            self.apart.line(&format!("{time}, {index}, {uuid}, {model}, {cells}"))?;
            let cells =
                reading.monitored().map(|c| c.unwrap_or_else(|| MISSING_IN_DMON.to_owned()));
            let index = index.to_string();
            let mut row = vec![index.as_str()];
            row.extend(cells.iter().map(String::as_str));
            self.dmon.line(&columns(&row))?;
        }
        Ok(())
    }

    /// Renames the files into place, or returns why there are none.
    pub(super) fn finish(self) -> Result<Result<[PathBuf; 3], String>, Error> {
        if self.last.is_none() {
            return Ok(Err(format!("{METRICS} is not written: no sample of a GPU is recorded")));
        }
        Ok(Ok([self.metrics.finish()?, self.dmon.finish()?, self.apart.finish()?]))
    }
}

/// A line of `dmon`: each column is seven wide, the first one five, and a space ends it.
fn columns(cells: &[&str]) -> String {
    let first = format!("{:>5}", cells.first().unwrap_or(&""));
    cells.iter().skip(1).fold(first, |line, cell| format!("{line}{cell:>7}")) + " "
}

/// What one GPU reported at one sample.
#[derive(Debug, Default)]
struct SmiReading {
    activity: GpuActivity,
    memory: GpuMemory,
    power: GpuPower,
}

fn percent(ratio: Option<f64>) -> Option<String> {
    ratio.map(|ratio| format!("{:.0}", 100.0 * ratio))
}

fn mebibytes(bytes: Option<u64>) -> Option<String> {
    bytes.map(|bytes| (bytes >> 20).to_string())
}

fn megahertz(hertz: Option<f64>) -> Option<String> {
    hertz.map(|hertz| format!("{:.0}", hertz / 1e6))
}

impl SmiReading {
    /// The columns after `timestamp`.
    fn queried(&self) -> [Option<String>; 8] {
        let SmiReading { activity, memory, power } = self;
        [
            percent(activity.utilization),
            percent(activity.memory_utilization),
            mebibytes(memory.used),
            mebibytes(memory.total),
            power.draw.map(|watts| format!("{watts:.2}")),
            power.temperature.map(|degrees| format!("{degrees:.0}")),
            megahertz(power.clock_sm),
            megahertz(power.clock_memory),
        ]
    }

    /// The columns after `gpu`.
    fn monitored(&self) -> [Option<String>; 6] {
        let SmiReading { activity, memory, .. } = self;
        [
            percent(activity.utilization),
            percent(activity.memory_utilization),
            percent(activity.encoder),
            percent(activity.decoder),
            mebibytes(memory.used),
            mebibytes(memory.bar1_used),
        ]
    }
}
