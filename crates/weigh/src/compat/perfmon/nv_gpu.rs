//! `nv_gpu_metrics.json`: a list for each metric of each NVIDIA GPU.
//!
//! Units are NVML's, as in perfmon: MHz, percent, milliwatts, nanoseconds, thousands of bytes a
//! second, and memory in bytes. All of them are whole numbers.
//!
//! What surprised us: `ecc_errors` are named after single and double bit errors, but are what NVML
//! counts as corrected (`sp`) and uncorrected (`dp`), with any number of bits, over the lifetime of
//! the card. `violation` is the time below the requested clocks, for any reason, since the driver
//! was loaded. `gpu_memory` is the `used` of NVML's first memory call: all but the free memory, so
//! memory reserved by the driver is included. `num_procs` are compute processes. perfmon loses a
//! metric of all GPUs when one card does not have it; here it is null for that card, and every list
//! is as long as `time_stamps`.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::NV_GPU;
use super::group_rows::{GroupRows, ListColumn, ListContent};
use super::seconds::Seconds;
use super::spooled_rows::SpooledRows;
use crate::catalog::metrics::gpu::name_there;
use crate::catalog::metrics::{GpuActivity, GpuEcc, GpuLink, GpuMemory, GpuPower, GpuThrottle};
use crate::catalog::{Scope, all_groups};
use crate::export::Error;
use crate::model::{Entity, Gpu, Name, Table};
use crate::record::{Event, Moment, Recording};

/// One sample of a card.
struct GpuSample {
    second: u64,
    activity: GpuActivity,
    memory: GpuMemory,
    power: GpuPower,
    throttle: GpuThrottle,
    ecc: GpuEcc,
    link: GpuLink,
}

/// A list: its key, the key inside of it, the head of its column, and its value of a sample.
type GpuList = (&'static str, Option<&'static str>, &'static str, fn(&GpuSample) -> Option<u64>);

/// All lists of a card, in the order of their keys.
const SERIES: [GpuList; 19] = [
    ("clock_info", Some("graphics"), "Clock graphics [MHz]", |sample| {
        megahertz(sample.power.clock_graphics)
    }),
    ("clock_info", Some("memory"), "Clock memory [MHz]", |sample| {
        megahertz(sample.power.clock_memory)
    }),
    ("clock_info", Some("sm"), "Clock SM [MHz]", |sample| megahertz(sample.power.clock_sm)),
    ("decoder_util", None, "Decoder utilization [%]", |sample| percent(sample.activity.decoder)),
    ("ecc_errors", Some("dp"), "ECC errors DP", |sample| sample.ecc.uncorrected_lifetime),
    ("ecc_errors", Some("sp"), "ECC errors SP", |sample| sample.ecc.corrected_lifetime),
    ("encoder_util", None, "Encoder utilization [%]", |sample| percent(sample.activity.encoder)),
    ("fan_speed", None, "Fan speed [%]", |sample| percent(sample.power.fan)),
    ("memory_used", Some("bar1_memory"), "BAR1 memory [bytes]", |sample| sample.memory.bar1_used),
    ("memory_used", Some("gpu_memory"), "GPU memory [bytes]", |sample| not_free(&sample.memory)),
    ("num_procs", None, "Number of processes", |sample| sample.activity.processes_computing),
    ("pci_thgpt", Some("recv"), "PCIe received [KB/s]", |sample| {
        sample.link.pcie_received.map(thousands)
    }),
    ("pci_thgpt", Some("send"), "PCIe sent [KB/s]", |sample| sample.link.pcie_sent.map(thousands)),
    ("power_usage", None, "Power usage [mW]", |sample| whole(sample.power.draw, 1e3)),
    ("temperature", None, "Temperature [C]", |sample| whole(sample.power.temperature, 1.0)),
    ("time_stamps", None, "Timestamps", |sample| Some(sample.second)),
    ("utilization_rates", Some("gpu"), "GPU utilization [%]", |sample| {
        percent(sample.activity.utilization)
    }),
    ("utilization_rates", Some("memory"), "Memory utilization [%]", |sample| {
        percent(sample.activity.memory_utilization)
    }),
    ("violation", None, "Violation [ns]", |sample| {
        whole(sample.throttle.below_application_clocks, 1e9)
    }),
];

/// The same as columns.
pub(super) fn columns() -> Vec<ListColumn> {
    let column = |(key, part, header, _): GpuList| ListColumn {
        key,
        part: part.map(str::to_owned),
        header: header.to_owned(),
        content: ListContent::Whole,
        is_optional: false,
    };
    SERIES.into_iter().map(column).collect()
}

/// A value in the unit of the driver, in which it was a whole number.
fn whole(number: Option<f64>, times: f64) -> Option<u64> {
    let number = (number? * times).round();
    (number >= 0.0 && number < u64::MAX as f64).then_some(number as u64)
}

fn percent(ratio: Option<f64>) -> Option<u64> {
    whole(ratio, 100.0)
}

fn megahertz(hertz: Option<f64>) -> Option<u64> {
    whole(hertz, 1e-6)
}

/// `used` of nvmlDeviceGetMemoryInfo: allocated or reserved. Its second version, which recordings
/// have, separates the two; the free memory is the same.
fn not_free(memory: &GpuMemory) -> Option<u64> {
    memory.total?.checked_sub(memory.free?)
}

fn thousands(bytes: u64) -> u64 {
    bytes / 1000
}

/// An NVIDIA card, not a MIG instance: its host, and its number there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct NvidiaGpu {
    host: String,
    number: u32,
}

/// All GPUs of a recording, each as a card of this file, or why it is left out.
fn cards(recording: &Recording) -> Vec<(&Gpu, Result<NvidiaGpu, &'static str>)> {
    let mut taken = BTreeSet::new();
    let gpus = recording.entries().iter().filter_map(|entry| match &entry.event {
        Event::Gpu(gpu) => Some(&**gpu),
        _ => None,
    });
    gpus.map(|gpu| {
        let name = name_there(&gpu.name);
        let card = name.strip_prefix("nvidia").and_then(|number| {
            let host = gpu.node.as_ref().unwrap_or(&recording.manifest().host.name).clone();
            Some(NvidiaGpu { host, number: number.parse().ok()? })
        });
        let card = match card {
            Some(card) if taken.insert(card.clone()) => Ok(card),
            // Containers on one machine have different cards under the same number.
            Some(_) => Err("another GPU of that host has its number"),
            None if !name.starts_with("nvidia") => Err("it is not an NVIDIA GPU"),
            None => Err("it is a MIG instance, and perfmon has only whole GPUs"),
        };
        (gpu, card)
    })
    .collect()
}

/// Whether there is a GPU to write.
pub(super) fn has_any(recording: &Recording) -> bool {
    cards(recording).iter().any(|(_, card)| card.is_ok())
}

/// The hosts of the GPUs of a recording: several, if it is merged.
pub(super) fn hosts(recording: &Recording) -> BTreeSet<String> {
    cards(recording).into_iter().filter_map(|(_, card)| Some(card.ok()?.host)).collect()
}

/// Why there is no GPU to write.
pub(super) fn why_none(recording: &Recording) -> String {
    let left_out = left_out(recording);
    let absent = recording.manifest().absent.get("gpu");
    match (left_out.is_empty(), absent) {
        (false, _) => left_out.join("; "),
        (true, Some(why)) => why.clone(),
        (true, None) => "no NVIDIA GPU is in the recording".to_owned(),
    }
}

/// GPUs that are not in the file, and why.
pub(super) fn left_out(recording: &Recording) -> Vec<String> {
    let line = |(gpu, card): (&Gpu, Result<NvidiaGpu, &str>)| {
        card.err().map(|why| format!("{NV_GPU} has no {}: {why}", gpu.name))
    };
    cards(recording).into_iter().filter_map(line).collect()
}

/// The rows of one card.
type GpuRows = SpooledRows<{ SERIES.len() }>;

/// The cards of one recording.
pub(super) struct NvidiaGpus {
    directory: PathBuf,
    /// By their names in the recording.
    named: HashMap<Name, NvidiaGpu>,
    rows: BTreeMap<NvidiaGpu, GpuRows>,
}

impl NvidiaGpus {
    /// Reads a recording once; rows are spooled in this directory.
    pub(super) fn of(
        recording: &Recording,
        mut seconds: Seconds,
        directory: &Path,
    ) -> Result<NvidiaGpus, Error> {
        let named = cards(recording)
            .into_iter()
            .filter_map(|(gpu, card)| Some((Name::new(gpu.name.as_bytes()), card.ok()?)));
        let mut gpus = NvidiaGpus {
            directory: directory.to_owned(),
            named: named.collect(),
            rows: BTreeMap::new(),
        };
        let mut written = Ok(());
        recording.replay(&all_groups(), |frame| {
            if let Moment::Tick(tick) = frame.moment
                && let Some(table) = tick.table(Scope::Gpu)
                && written.is_ok()
            {
                written = gpus.sample(table, &mut seconds, tick.at);
            }
        })?;
        written.map_err(|source| Error::file(directory, source))?;
        Ok(gpus)
    }

    /// Takes in a sample of all cards.
    fn sample(&mut self, table: &Table, seconds: &mut Seconds, at: Duration) -> io::Result<()> {
        let mut second = None;
        for (row, entity) in table.entities().iter().enumerate() {
            let Entity::Named(name) = entity else { continue };
            let Some(card) = self.named.get(name) else { continue };
            // All cards are sampled at the same time: the first one decides.
            let Some(second) = *second.get_or_insert_with(|| seconds.of(at)) else { break };
            let sample = GpuSample {
                second,
                activity: table.get(row),
                memory: table.get(row),
                power: table.get(row),
                throttle: table.get(row),
                ecc: table.get(row),
                link: table.get(row),
            };
            let rows = match self.rows.entry(card.clone()) {
                Entry::Occupied(there) => there.into_mut(),
                Entry::Vacant(new) => new.insert(SpooledRows::create(&self.directory)?),
            };
            rows.put(SERIES.map(|(_, _, _, value)| value(&sample)))?;
        }
        Ok(())
    }

    /// Adds their rows to those of all hosts.
    pub(super) fn add_to(self, all: &mut GroupRows) -> io::Result<()> {
        for (NvidiaGpu { host, number }, mut rows) in self.rows {
            all.add_host(&format!("gpu-{number}.{host}"), |put| rows.each_row(|row| put(row)))?;
        }
        Ok(())
    }
}
