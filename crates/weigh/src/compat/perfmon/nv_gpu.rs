//! `nv_gpu_metrics.json`: what each of NVIDIA's GPUs did, a list for each metric.
//!
//! Units are NVML's, as theirs are: MHz, percent, milliwatts, nanoseconds, thousands of bytes a
//! second, and memory in bytes. All of them are whole numbers.
//!
//! What surprised us: their `ecc_errors` are called after bits that flip, and are what NVML counts
//! as corrected (`sp`) and uncorrected (`dp`), whatever the number of bits, over the card's whole
//! life. `violation` is the time below the clocks that were asked for, for whatever reason, since
//! the driver was loaded. `gpu_memory` is what NVML's first call for memory says is used: all but
//! what is free, so what the driver keeps for itself is in it. `num_procs` are processes that
//! compute. Theirs loses a metric of all GPUs when one card does not have it; here
//! it is null for that card, and every list is as long as `time_stamps`.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::NV_GPU;
use super::json::JsonWriter;
use super::seconds::Seconds;
use super::sections::Sections;
use super::spooled_rows::SpooledRows;
use crate::catalog::metrics::gpu::name_there;
use crate::catalog::metrics::{GpuActivity, GpuEcc, GpuLink, GpuMemory, GpuPower, GpuThrottle};
use crate::catalog::{Scope, all_groups};
use crate::compat::python::PythonValue;
use crate::export::Error;
use crate::model::{Entity, Gpu, Name, Table};
use crate::record::{Event, Moment, Recording};

/// One look at a card.
struct GpuSample {
    second: u64,
    activity: GpuActivity,
    memory: GpuMemory,
    power: GpuPower,
    throttle: GpuThrottle,
    ecc: GpuEcc,
    link: GpuLink,
}

/// A list: where it stands, and what of a look is in it.
type GpuList = (&'static str, Option<&'static str>, fn(&GpuSample) -> Option<u64>);

/// Every list of a card, in the order of their keys.
const SERIES: [GpuList; 19] = [
    ("clock_info", Some("graphics"), |look| megahertz(look.power.clock_graphics)),
    ("clock_info", Some("memory"), |look| megahertz(look.power.clock_memory)),
    ("clock_info", Some("sm"), |look| megahertz(look.power.clock_sm)),
    ("decoder_util", None, |look| percent(look.activity.decoder)),
    ("ecc_errors", Some("dp"), |look| look.ecc.uncorrected_lifetime),
    ("ecc_errors", Some("sp"), |look| look.ecc.corrected_lifetime),
    ("encoder_util", None, |look| percent(look.activity.encoder)),
    ("fan_speed", None, |look| percent(look.power.fan)),
    ("memory_used", Some("bar1_memory"), |look| look.memory.bar1_used),
    ("memory_used", Some("gpu_memory"), |look| not_free(&look.memory)),
    ("num_procs", None, |look| look.activity.processes_computing),
    ("pci_thgpt", Some("recv"), |look| look.link.pcie_received.map(thousands)),
    ("pci_thgpt", Some("send"), |look| look.link.pcie_sent.map(thousands)),
    ("power_usage", None, |look| whole(look.power.draw, 1e3)),
    ("temperature", None, |look| whole(look.power.temperature, 1.0)),
    ("time_stamps", None, |look| Some(look.second)),
    ("utilization_rates", Some("gpu"), |look| percent(look.activity.utilization)),
    ("utilization_rates", Some("memory"), |look| percent(look.activity.memory_utilization)),
    ("violation", None, |look| whole(look.throttle.below_application_clocks, 1e9)),
];

/// A number in a smaller unit, where it is the whole one that the driver said.
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
/// have, tells the two apart, and the free memory is the same.
fn not_free(memory: &GpuMemory) -> Option<u64> {
    memory.total?.checked_sub(memory.free?)
}

fn thousands(bytes: u64) -> u64 {
    bytes / 1000
}

/// A whole card of NVIDIA's: the host it is in, and its number there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct NvidiaGpu {
    host: String,
    number: u32,
}

/// All GPUs that a recording tells of, each as a card of this file, or why it is none.
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
            // Containers of one machine see different cards under one number.
            Some(_) => Err("another GPU of that host has its number"),
            None if !name.starts_with("nvidia") => Err("it is not NVIDIA's"),
            None => Err("it is a part of a GPU, and perfmon knows whole ones"),
        };
        (gpu, card)
    })
    .collect()
}

/// Whether there is a GPU to be written of.
pub(super) fn has_any(recording: &Recording) -> bool {
    cards(recording).iter().any(|(_, card)| card.is_ok())
}

/// The hosts whose GPUs a recording tells of: several, of one that was put together.
pub(super) fn hosts(recording: &Recording) -> BTreeSet<String> {
    cards(recording).into_iter().filter_map(|(_, card)| Some(card.ok()?.host)).collect()
}

/// Why there is none.
pub(super) fn why_none(recording: &Recording) -> Error {
    let left_out = left_out(recording);
    let absent = recording.manifest().absent.get("gpu");
    let why = match (left_out.is_empty(), absent) {
        (false, _) => left_out.join("; "),
        (true, Some(why)) => why.clone(),
        (true, None) => "no NVIDIA GPU is in the recording".to_owned(),
    };
    Error::NoNvidiaGpu { why }
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
    /// By their names in it.
    named: HashMap<Name, NvidiaGpu>,
    rows: BTreeMap<NvidiaGpu, GpuRows>,
}

impl NvidiaGpus {
    /// Goes through a recording once; rows wait in this directory.
    pub(super) fn of(
        recording: &Recording,
        mut seconds: Seconds,
        directory: &Path,
    ) -> Result<NvidiaGpus, Error> {
        let named = cards(recording)
            .into_iter()
            .filter_map(|(gpu, card)| Some((Name::new(gpu.name.as_bytes()), card.ok()?)));
        let mut cards = NvidiaGpus {
            directory: directory.to_owned(),
            named: named.collect(),
            rows: BTreeMap::new(),
        };
        let mut written = Ok(());
        recording.replay(&all_groups(), |moment| {
            if let Moment::Tick(tick) = moment
                && let Some(table) = tick.table(Scope::Gpu)
                && written.is_ok()
            {
                written = cards.see(table, &mut seconds, tick.at);
            }
        })?;
        written.map_err(|source| Error::file(directory, source))?;
        Ok(cards)
    }

    /// Takes in a look at all of them.
    fn see(&mut self, table: &Table, seconds: &mut Seconds, at: Duration) -> io::Result<()> {
        let mut second = None;
        for (row, entity) in table.entities().iter().enumerate() {
            let Entity::Named(name) = entity else { continue };
            let Some(card) = self.named.get(name) else { continue };
            // Of the first card; the others were looked at in the same moment.
            let Some(second) = *second.get_or_insert_with(|| seconds.of(at)) else { break };
            let look = GpuSample {
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
            rows.put(SERIES.map(|(_, _, value)| value(&look)))?;
        }
        Ok(())
    }

    /// Writes their lists.
    pub(super) fn write(
        self,
        sections: &mut Sections,
        untold: &mut MissingMetrics,
    ) -> io::Result<()> {
        for (NvidiaGpu { host, number }, mut rows) in self.rows {
            untold.see(rows.told());
            sections.add(format!("gpu-{number}.{host}"), |json| write(&mut rows, json))?;
        }
        Ok(())
    }
}

/// The lists of one card.
fn write(rows: &mut GpuRows, json: &mut JsonWriter<impl Write>) -> io::Result<()> {
    let mut outer = None;
    json.open('{')?;
    for (column, (name, part, _)) in SERIES.into_iter().enumerate() {
        if outer.is_some_and(|outer| outer != name) {
            json.close('}')?;
            outer = None;
        }
        if outer.is_none() {
            json.key(name)?;
        }
        if let Some(part) = part {
            if outer.replace(name).is_none() {
                json.open('{')?;
            }
            json.key(part)?;
        }
        json.open('[')?;
        rows.column(column, |value| json.item(&PythonValue::whole(value)))?;
        json.close(']')?;
    }
    if outer.is_some() {
        json.close('}')?;
    }
    json.close('}')
}

/// Lists that have no value at all.
#[derive(Debug, Default)]
pub(super) struct MissingMetrics {
    cards: u64,
    /// NvidiaGpus that never told it, for each list.
    of: [u64; SERIES.len()],
}

impl MissingMetrics {
    fn see(&mut self, told: &[bool; SERIES.len()]) {
        self.cards += 1;
        for (count, told) in self.of.iter_mut().zip(told) {
            *count += u64::from(!told);
        }
    }

    /// What was never told, and of how many GPUs.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        let untold = SERIES.into_iter().zip(self.of).filter(|(_, cards)| *cards > 0);
        untold.map(|((name, part, _), cards)| {
            let part = part.map(|part| format!(".{part}")).unwrap_or_default();
            format!("{name}{part} is null: {cards} of {} GPUs did not tell it", self.cards)
        })
    }
}
