//! GPUs as `nvidia-smi` prints them: `hw_metrics.csv`, `hw_dmon.csv`, and a table with the GPU
//! named in each row.
//!
//! Theirs is `nvidia-smi --query-gpu=… --format=csv,nounits,noheader -l N`, a row for each GPU in
//! each round, and `nvidia-smi dmon -s mu -d N`. Memory is in MiB, cut as nvidia-smi cuts it.
//!
//! What surprised us: their reader takes the third column of `dmon -s mu` for how busy the
//! memory is, and it is BAR1 memory. `nvidia-smi` prints the columns in the order they are asked
//! for, and with `-s um` the third column is what they take it for. So that is how it is written
//! here: whoever reads the header and whoever counts columns find the same number.

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

/// A row for each GPU in each round, without a word on which GPU it is.
const METRICS: &str = "hw_metrics.csv";
/// How busy each GPU is.
const DMON: &str = "hw_dmon.csv";
/// The first table again, with the GPU in each row.
const APART: &str = "hw_metrics_gpus.csv";
/// The files there are where there are GPUs.
pub(super) const FILES: [&str; 3] = [METRICS, DMON, APART];

/// What `--query-gpu=timestamp,index,uuid,name,…` has as its header.
const APART_HEADER: &str = "timestamp, index, uuid, name, utilization.gpu [%], \
     utilization.memory [%], memory.used [MiB], memory.total [MiB], power.draw [W], \
     temperature.gpu, clocks.current.sm [MHz], clocks.current.memory [MHz]";

/// The header of `dmon -s um` by drivers that know neither of the newer columns.
const DMON_HEADER: [[&str; 7]; 2] =
    [["# gpu", "sm", "mem", "enc", "dec", "fb", "bar1"], ["# Idx", "%", "%", "%", "%", "MB", "MB"]];

/// What nvidia-smi writes for what a GPU does not tell, in the two kinds of tables.
const MISSING: &str = "[N/A]";
const MISSING_IN_DMON: &str = "-";

/// A whole GPU: what its parts have is in it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SmiGpu {
    name: Name,
    index: usize,
    uuid: Option<String>,
    model: Option<String>,
}

/// The GPUs of a recording, in their order.
pub(super) fn cards(entries: &[Entry]) -> Vec<SmiGpu> {
    let mut cards: Vec<SmiGpu> = Vec::new();
    for entry in entries {
        let Event::Gpu(gpu) = &entry.event else { continue };
        let name = Name::new(gpu.name.as_bytes());
        if is_whole(&gpu.name) && cards.iter().all(|card| card.name != name) {
            let (uuid, model) = (gpu.uuid.clone(), gpu.model.clone());
            cards.push(SmiGpu { name, index: cards.len(), uuid, model });
        }
    }
    // Those of one maker have the maker's numbers; of two makers those would be there twice.
    let told: Vec<_> = cards.iter().map(|card| maker_and_number(card.name.as_str())).collect();
    let maker = told.first().and_then(|first| first.map(|(maker, _)| maker));
    let numbers: Option<Vec<usize>> = told
        .iter()
        .map(|told| told.filter(|told| Some(told.0) == maker).map(|told| told.1))
        .collect();
    if let Some(numbers) = numbers {
        cards.iter_mut().zip(numbers).for_each(|(card, number)| card.index = number);
        cards.sort_by_key(|card| card.index);
    }
    cards
}

/// `nvidia0` is NVIDIA's first.
fn maker_and_number(name: &str) -> Option<(&str, usize)> {
    let (maker, number) = name.split_at(name.find(|c: char| c.is_ascii_digit())?);
    Some((maker, number.parse().ok()?))
}

/// The tables of GPUs, while they are written.
pub(super) struct Tables {
    cards: Vec<SmiGpu>,
    spacing: RowSpacing,
    last: Option<Duration>,
    metrics: Lines,
    dmon: Lines,
    apart: Lines,
}

impl Tables {
    /// Begins the tables of these GPUs.
    pub(super) fn create(
        cards: Vec<SmiGpu>,
        spacing: RowSpacing,
        begin: impl Fn(&str) -> Result<Lines, destination::Error>,
    ) -> Result<Tables, Error> {
        let [metrics, mut dmon, mut apart] = [begin(METRICS)?, begin(DMON)?, begin(APART)?];
        apart.line(APART_HEADER)?;
        DMON_HEADER.iter().try_for_each(|header| dmon.line(&columns(header)))?;
        Ok(Tables { cards, spacing, last: None, metrics, dmon, apart })
    }

    /// Takes in a look; the first of an interval is a round.
    pub(super) fn see(&mut self, tick: &Tick, started: jiff::Timestamp) -> Result<(), Error> {
        let Some(table) = tick.table(Scope::Gpu).filter(|table| !table.is_empty()) else {
            return Ok(());
        };
        if self.last.is_some_and(|last| !self.spacing.is_over(last, tick.at)) {
            return Ok(());
        }
        self.last = Some(tick.at);
        let time = moment(started, tick.at.as_secs_f64()).strftime("%Y/%m/%d %H:%M:%S%.3f");
        for card in &self.cards {
            // A GPU that was lost keeps its place in the round.
            let row = table.entities().iter().position(|who| *who == Entity::Named(card.name));
            let told = row.map(|row| SmiReading {
                activity: table.get(row),
                memory: table.get(row),
                power: table.get(row),
            });
            let told = told.unwrap_or_default();
            let cells = told.queried().map(|cell| cell.unwrap_or_else(|| MISSING.to_owned()));
            let cells = cells.join(", ");
            self.metrics.line(&format!("{time}, {cells}"))?;
            let named = |text: &Option<String>| match text {
                // A comma in a name would be one more column, and a newline one more row: nvidia-smi
                // has no quotes.
                Some(text) => printable(text).replace(',', " "),
                None => MISSING.to_owned(),
            };
            let (index, uuid, model) = (card.index, named(&card.uuid), named(&card.model));
            self.apart.line(&format!("{time}, {index}, {uuid}, {model}, {cells}"))?;
            let cells = told.monitored().map(|c| c.unwrap_or_else(|| MISSING_IN_DMON.to_owned()));
            let index = index.to_string();
            let mut row = vec![index.as_str()];
            row.extend(cells.iter().map(String::as_str));
            self.dmon.line(&columns(&row))?;
        }
        Ok(())
    }

    /// Gives the files their names; or says why there are none.
    pub(super) fn finish(self) -> Result<Result<[PathBuf; 3], String>, Error> {
        if self.last.is_none() {
            return Ok(Err(format!("{METRICS} is not written: no look at a GPU is recorded")));
        }
        Ok(Ok([self.metrics.finish()?, self.dmon.finish()?, self.apart.finish()?]))
    }
}

/// A line of `dmon`: each column is seven wide, the first one five, and a space ends it.
fn columns(cells: &[&str]) -> String {
    let first = format!("{:>5}", cells.first().unwrap_or(&""));
    cells.iter().skip(1).fold(first, |line, cell| format!("{line}{cell:>7}")) + " "
}

/// What one GPU told at one look.
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
    /// The columns behind `timestamp`.
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

    /// The columns behind `gpu`.
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
