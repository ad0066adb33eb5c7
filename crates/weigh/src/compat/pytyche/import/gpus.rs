//! The figures of each GPU, or of all together where rows cannot be attributed to one.

use serde::Serialize;

use super::rounds::{self, Apart, Mixed, QueryRounds};
use super::times;
use super::{dmon, nvidia_smi};
use crate::summary;

/// One GPU, used by any process. What is not known is null.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ImportedGpu {
    /// Its number; null for all together.
    pub index: Option<u32>,
    /// Its UUID, where the file has it.
    pub uuid: Option<String>,
    /// Its model, where the file has it.
    pub model: Option<String>,
    /// Its rows.
    pub rows: u64,
    /// All memory it has.
    pub memory_bytes: Option<u64>,
    /// The most memory that was in use at once.
    pub memory_peak_bytes: Option<u64>,
    /// Share of the time in which something was computed.
    pub utilization_mean_ratio: Option<f64>,
    /// The highest share of a row.
    pub utilization_peak_ratio: Option<f64>,
    /// Share of the time in which memory was read or written.
    pub memory_utilization_mean_ratio: Option<f64>,
    /// The highest share of a row.
    pub memory_utilization_peak_ratio: Option<f64>,
    /// Power on average.
    pub power_mean_watts: Option<f64>,
    /// The highest power of a row.
    pub power_peak_watts: Option<f64>,
    /// Energy, estimated: power between two rows times the time between them.
    pub energy_joules: Option<f64>,
    /// The time covered by this energy.
    pub energy_covers_seconds: Option<f64>,
    /// The highest temperature of a row.
    pub temperature_peak_celsius: Option<f64>,
}

/// Only its figures: its name in a recording is not known.
impl From<&ImportedGpu> for summary::GpuSummary {
    fn from(gpu: &ImportedGpu) -> summary::GpuSummary {
        summary::GpuSummary {
            memory_peak_bytes: gpu.memory_peak_bytes.map(|bytes| bytes as f64),
            utilization_mean_ratio: gpu.utilization_mean_ratio,
            utilization_peak_ratio: gpu.utilization_peak_ratio,
            memory_utilization_mean_ratio: gpu.memory_utilization_mean_ratio,
            memory_utilization_peak_ratio: gpu.memory_utilization_peak_ratio,
            power_mean_watts: gpu.power_mean_watts,
            power_peak_watts: gpu.power_peak_watts,
            energy_joules: gpu.energy_joules,
            temperature_peak_celsius: gpu.temperature_peak_celsius,
            ..summary::GpuSummary::default()
        }
    }
}

/// The GPUs of both tables.
#[derive(Debug, Default)]
pub(super) struct ImportedGpus {
    pub each: Vec<ImportedGpu>,
    pub together: Option<ImportedGpu>,
    pub notes: Vec<String>,
}

/// The numbers of the GPUs that dmon shows, in their order.
pub(super) fn in_dmon(monitored: &[dmon::DmonRow]) -> Vec<u32> {
    let mut numbers: Vec<u32> = monitored.iter().map(|row| row.gpu).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Combines the rows of the query and of dmon: one may have what the other lacks.
pub(super) fn summarize(
    queried: &[nvidia_smi::SmiRow],
    moments: &[f64],
    rounds: &QueryRounds,
    monitored: &[dmon::DmonRow],
) -> ImportedGpus {
    let numbers = in_dmon(monitored);
    let mut all = ImportedGpus::default();
    match rounds::apart(queried, rounds, &numbers) {
        Ok(Apart { gpus, left_out }) => {
            if left_out > 0 {
                all.notes.push(format!(
                    "rows whose GPU is not known: {left_out} of {}; they count for all GPUs together, \
                    and not for any one",
                    queried.len()
                ));
                all.together = Some(all_together(queried));
            }
            let each = gpus.iter().map(|(index, places)| ImportedGpu {
                index: Some(*index),
                ..by_query(queried, moments, places)
            });
            all.each = each.collect();
        }
        Err(Mixed { why, most }) => {
            all.notes.push(why);
            let mut together = all_together(queried);
            // dmon has rows of more GPUs, so its mean is nearer to the mean of all.
            if numbers.len() > most {
                together.utilization_mean_ratio = None;
                together.memory_utilization_mean_ratio = None;
            }
            all.together = Some(together);
        }
    }
    for number in numbers {
        let rows: Vec<&dmon::DmonRow> = monitored.iter().filter(|row| row.gpu == number).collect();
        match all.each.iter_mut().find(|gpu| gpu.index == Some(number)) {
            Some(gpu) => gpu.complete(&by_dmon(number, &rows)),
            None => all.each.push(by_dmon(number, &rows)),
        }
    }
    all.each.sort_by_key(|gpu| gpu.index);
    if let Some(together) = &mut all.together {
        together.include(&all.each);
    }
    all
}

fn by_query(rows: &[nvidia_smi::SmiRow], moments: &[f64], places: &[usize]) -> ImportedGpu {
    let at: Vec<f64> = places.iter().map(|place| moments[*place]).collect();
    let of = |value: fn(&nvidia_smi::SmiRow) -> Option<f64>| -> Vec<Option<f64>> {
        places.iter().map(|place| value(&rows[*place])).collect()
    };
    let power = of(|row| row.power);
    let energy = times::energy(&at, &power);
    let (busy, memory_busy) = (of(|row| row.utilization), of(|row| row.memory_utilization));
    let used = places.iter().filter_map(|place| rows[*place].memory_used).max();
    let last = places.last().map(|place| &rows[*place]);
    ImportedGpu {
        uuid: last.and_then(|row| row.uuid.clone()),
        model: last.and_then(|row| row.name.clone()),
        rows: places.len() as u64,
        memory_bytes: places.iter().filter_map(|place| rows[*place].memory_total).max(),
        memory_peak_bytes: used,
        utilization_mean_ratio: times::mean(&at, &busy),
        utilization_peak_ratio: times::peak(&busy),
        memory_utilization_mean_ratio: times::mean(&at, &memory_busy),
        memory_utilization_peak_ratio: times::peak(&memory_busy),
        power_mean_watts: times::mean(&at, &power),
        power_peak_watts: times::peak(&power),
        energy_joules: energy.map(|(joules, _)| joules),
        energy_covers_seconds: energy.map(|(_, seconds)| seconds),
        temperature_peak_celsius: times::peak(&of(|row| row.temperature)),
        ..ImportedGpu::default()
    }
}

/// Peaks are those of any one GPU; means are over all rows. Energy needs the GPU of each row.
fn all_together(rows: &[nvidia_smi::SmiRow]) -> ImportedGpu {
    let places: Vec<usize> = (0..rows.len()).collect();
    // Evenly spaced rows: each has the same weight.
    let steady: Vec<f64> = places.iter().map(|place| *place as f64).collect();
    ImportedGpu {
        uuid: None,
        model: None,
        memory_bytes: None,
        energy_joules: None,
        energy_covers_seconds: None,
        ..by_query(rows, &steady, &places)
    }
}

fn by_dmon(number: u32, rows: &[&dmon::DmonRow]) -> ImportedGpu {
    // dmon prints no times; it prints at a steady rate.
    let steady: Vec<f64> = (0..rows.len()).map(|place| place as f64).collect();
    let busy: Vec<Option<f64>> = rows.iter().map(|row| row.utilization).collect();
    let memory_busy: Vec<Option<f64>> = rows.iter().map(|row| row.memory_utilization).collect();
    ImportedGpu {
        index: Some(number),
        rows: rows.len() as u64,
        memory_peak_bytes: rows.iter().filter_map(|row| row.memory_used).max(),
        utilization_mean_ratio: times::mean(&steady, &busy),
        utilization_peak_ratio: times::peak(&busy),
        memory_utilization_mean_ratio: times::mean(&steady, &memory_busy),
        memory_utilization_peak_ratio: times::peak(&memory_busy),
        ..ImportedGpu::default()
    }
}

impl ImportedGpu {
    /// Fills what is missing. A mean and its peak are of the same rows.
    fn complete(&mut self, other: &ImportedGpu) {
        self.memory_peak_bytes = self.memory_peak_bytes.or(other.memory_peak_bytes);
        if self.utilization_mean_ratio.is_none() {
            self.utilization_mean_ratio = other.utilization_mean_ratio;
            self.utilization_peak_ratio = other.utilization_peak_ratio;
        }
        if self.memory_utilization_mean_ratio.is_none() {
            self.memory_utilization_mean_ratio = other.memory_utilization_mean_ratio;
            self.memory_utilization_peak_ratio = other.memory_utilization_peak_ratio;
        }
    }
    /// Includes the known GPUs in all GPUs together: no peak of one is higher, and a mean that the
    /// unattributed rows lack is the mean over those.
    fn include(&mut self, each: &[ImportedGpu]) {
        let most = |mine: Option<f64>, of: fn(&ImportedGpu) -> Option<f64>| {
            mine.into_iter().chain(each.iter().filter_map(of)).reduce(f64::max)
        };
        let mean = |of: fn(&ImportedGpu) -> Option<f64>| {
            let known: Vec<f64> = each.iter().filter_map(of).collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
        };
        let used = each.iter().filter_map(|gpu| gpu.memory_peak_bytes).max();
        self.memory_peak_bytes = self.memory_peak_bytes.max(used);
        self.utilization_peak_ratio =
            most(self.utilization_peak_ratio, |gpu| gpu.utilization_peak_ratio);
        self.memory_utilization_peak_ratio =
            most(self.memory_utilization_peak_ratio, |gpu| gpu.memory_utilization_peak_ratio);
        self.utilization_mean_ratio =
            self.utilization_mean_ratio.or_else(|| mean(|gpu| gpu.utilization_mean_ratio));
        self.memory_utilization_mean_ratio = self
            .memory_utilization_mean_ratio
            .or_else(|| mean(|gpu| gpu.memory_utilization_mean_ratio));
    }
}
