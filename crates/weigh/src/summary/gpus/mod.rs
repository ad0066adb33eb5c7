//! The fold over GPUs: each, all together, and the processes of the run on them.
//!
//! Values of MIG instances are also in those of the whole GPU, so sums are of whole ones. Processes
//! are listed where they run, which with MIG is in the instances.

mod device;
mod gpu;
mod run_memory;
#[cfg(test)]
mod tests;
mod utilization;

use std::collections::HashMap;

use device::DeviceAccumulator;

use super::curve::Peak;
use crate::catalog::Scope;
use crate::catalog::metrics::gpu::{is_whole, whole_of};
use crate::catalog::metrics::{GpuActivity, GpuMemory, GpuProcessUsage};
use crate::model::{self, Entity, Name, ProcessId, Tick};
pub use gpu::{GpuSummary, GpuUser};
use run_memory::RunMemory;

/// How long a driver may not answer before its last values are too old, at least.
const MIN_GAP: f64 = 2.0;

/// All GPUs.
#[derive(Debug, Default, Clone)]
pub(super) struct GpuAccumulator {
    each: Vec<(Name, DeviceAccumulator)>,
    /// After more seconds than these without values, the time in between is not known.
    gap: f64,
    /// The last tick with GPUs.
    last_tick: Option<f64>,
    /// Whether this is a merged recording: a GPU without a row is then not part of the run yet, or
    /// not any more.
    is_merged: bool,
    /// For how long any of them had a row.
    with_rows: f64,
    /// Memory in use on all of them, by all processes.
    pub(super) used: Peak,
    /// Memory of the main process, of the others of the run, and of both.
    pub(super) run_memory: [Peak; 3],
    /// The peak memory of one process, by the driver's accounting: the main process, one of the
    /// others, one of both.
    pub(super) driver_peaks: [Peak; 3],
    /// How many are busy at once: the sum of their utilization.
    pub(super) busy: Peak,
    /// What the last tick had of them: memory of the run's processes, and how many were busy.
    pub(super) now: (Option<f64>, Option<f64>),
    /// Processes of the run that exited since the last tick with GPUs: the next is of them, too.
    pub(super) exited: HashMap<ProcessId, String>,
    /// Whether there was a process that is not known, or whose memory is not.
    pub(super) some_unknown: bool,
}

/// The energy of GPUs.
pub(super) struct GpuEnergy {
    pub(super) joules: f64,
    /// Whether all of it is by counters of the GPUs.
    pub(super) is_counted: bool,
    /// Whether no GPU is missing in it.
    pub(super) is_complete: bool,
    /// The seconds that it is of, for the GPU with the fewest.
    pub(super) seconds: f64,
}

/// What a process is to the run.
pub(super) enum RunRole {
    /// The main one, by its name.
    Main(String),
    /// One of the others, by its name.
    Descendant(String),
    /// Not of the run.
    Other,
}

impl GpuAccumulator {
    /// None yet, of a run with this sampling interval.
    pub(super) fn new(interval: f64, is_merged: bool) -> GpuAccumulator {
        GpuAccumulator {
            gap: (3.0 * interval).max(MIN_GAP),
            is_merged,
            ..GpuAccumulator::default()
        }
    }

    /// Adds the event of a GPU.
    pub(super) fn add_gpu(&mut self, gpu: &model::Gpu) {
        self.device(Name::new(gpu.name.as_bytes())).is = gpu.clone();
    }

    fn device(&mut self, name: Name) -> &mut DeviceAccumulator {
        let index = self.each.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            let is = model::Gpu { name: name.to_string(), ..model::Gpu::default() };
            let lost = if self.is_merged { self.with_rows } else { 0.0 };
            self.each.push((name, DeviceAccumulator::new(is, lost)));
            self.each.len() - 1
        });
        &mut self.each[index].1
    }

    /// Adds the GPUs of a tick; `role` is that of a process.
    pub(super) fn add_tick(&mut self, tick: &Tick, role: impl Fn(&ProcessId) -> RunRole) {
        let at = tick.at.as_secs_f64();
        let Some(table) = tick.table(Scope::Gpu).filter(|table| !table.is_empty()) else { return };
        let elapsed = self.last_tick.replace(at).map_or(0.0, |before| at - before);
        let (mut used, mut busy, mut unknown) = (None, None, 0);
        let mut are_listed = true;
        for (row, entity) in table.entities().iter().enumerate() {
            let Entity::Named(name) = entity else { continue };
            let activity: GpuActivity = table.get(row);
            let memory: GpuMemory = table.get(row);
            if is_whole(name.as_str()) || !has_whole(table, *name) {
                add(&mut used, memory.used.map(|bytes| bytes as f64));
            }
            unknown += activity.processes_unknown.unwrap_or(0);
            // With MIG the instances list the processes.
            are_listed &= activity.processes.is_some() || has_instances(table, *name);
            let gap = self.gap;
            let gpu = self.device(*name);
            let share = gpu.add(at, gap, *entity, &activity, &memory, &table.get(row));
            gpu.add_throttling_and_errors(at, &table.get(row), &table.get(row));
            add(&mut busy, share.filter(|_| gpu.is.is_expected()));
        }
        self.add_missing(table, if elapsed <= self.gap { elapsed } else { 0.0 });
        used.into_iter().for_each(|used| self.used.add(used, at));
        self.now = (None, busy);
        busy.into_iter().for_each(|busy| self.busy.add(busy, at));
        self.add_processes(tick, role, are_listed && unknown == 0, elapsed);
        self.some_unknown |= unknown > 0;
    }

    /// Adds the GPUs without a row in a tick, so many seconds after the one before. One that had
    /// no row yet may be busy: its driver may be slow to start.
    fn add_missing(&mut self, table: &model::Table, elapsed: f64) {
        self.with_rows += elapsed;
        for (name, gpu) in &mut self.each {
            if table.entities().contains(&Entity::Named(*name)) {
                gpu.had_row = true;
            } else if gpu.had_row || self.is_merged {
                gpu.lost += elapsed;
            }
        }
    }

    /// Adds the processes of a tick, so many seconds after the tick before; `is_complete` if all
    /// processes on the GPUs are known.
    fn add_processes(
        &mut self,
        tick: &Tick,
        role: impl Fn(&ProcessId) -> RunRole,
        is_complete: bool,
        elapsed: f64,
    ) {
        let at = tick.at.as_secs_f64();
        let (mut main, mut others) = (RunMemory::default(), RunMemory::default());
        let Some(table) = tick.table(Scope::GpuProcess) else { return };
        for (row, entity) in table.entities().iter().enumerate() {
            let Entity::OnGpu(gpu, id) = entity else { continue };
            let share: GpuProcessUsage = table.get(row);
            let (memory, part, name) = match role(id) {
                RunRole::Main(name) => (&mut main, 0, name),
                RunRole::Descendant(name) => (&mut others, 1, name),
                RunRole::Other => continue,
            };
            memory.add(share.memory);
            if let Some(peak) = share.memory_peak {
                self.driver_peaks[part].add(peak as f64, at);
                self.driver_peaks[2].add(peak as f64, at);
            }
            if share.is_use() {
                // It could, whatever CUDA_VISIBLE_DEVICES says.
                self.mark_usable(*gpu);
            }
            if !share.is_merely_open() {
                self.device(*gpu).run_processes.entry(*id).or_default();
            }
            if let Some(process) = self.device(*gpu).run_processes.get_mut(id) {
                process.add(name, &share, elapsed);
            }
        }
        let all = main.plus(others);
        self.some_unknown |= all.some_unknown;
        self.now.0 = all.known(is_complete || all.some_known).filter(|_| !all.some_unknown);
        for (peak, memory) in self.run_memory.iter_mut().zip([main, others, all]) {
            let bytes = memory.known(is_complete || all.some_known);
            bytes.into_iter().for_each(|bytes| peak.add(bytes, at));
        }
    }

    /// A process of the run uses a GPU, and so the whole of it.
    fn mark_usable(&mut self, gpu: Name) {
        let whole = Name::new(whole_of(gpu.as_str()).as_bytes());
        for (name, device) in &mut self.each {
            if *name == gpu || *name == whole {
                device.is.usable = Some(true);
            }
        }
    }

    /// The GPUs that the run could use.
    fn expected(&self) -> impl Iterator<Item = &DeviceAccumulator> {
        self.each.iter().map(|(_, gpu)| gpu).filter(|gpu| gpu.is.is_expected())
    }

    /// The number of those.
    pub(super) fn expected_count(&self) -> usize {
        self.expected().count()
    }

    /// Whether all are MIG instances without the whole GPU.
    pub(super) fn are_mig_instances(&self) -> bool {
        self.each.iter().all(|(name, _)| !is_whole(name.as_str()))
    }

    /// Whether their utilization is of all samples of the drivers.
    pub(super) fn are_sampled(&self) -> bool {
        self.expected().all(|gpu| gpu.utilization.is_sampled())
    }

    /// Whether there is any GPU.
    pub(super) fn is_any(&self) -> bool {
        !self.each.is_empty()
    }

    /// How many were busy on average, of those whose utilization is known. Time without values,
    /// because the driver did not answer or was not polled yet, counts as the rest of the time; a
    /// lost GPU was idle afterwards, and in a merged recording a GPU was idle before and after its
    /// own recording.
    pub(super) fn busy_mean(&self, end: f64) -> Option<f64> {
        let means = self.expected().filter_map(|gpu| Some(gpu.busy(end)? * gpu.present_share()));
        let means: Vec<f64> = means.collect();
        (!means.is_empty()).then(|| means.iter().sum())
    }

    /// The seconds of which the utilization is known, for the GPU with the fewest.
    pub(super) fn known_seconds(&self, end: f64) -> Option<f64> {
        let reporting = self.expected().filter(|gpu| gpu.busy(end).is_some());
        reporting.map(DeviceAccumulator::known_seconds).min_by(f64::total_cmp)
    }

    /// Whether one has values of its utilization, and all of a time that began before the run.
    pub(super) fn is_all_early(&self) -> bool {
        self.expected().any(|gpu| gpu.utilization.is_all_early())
    }

    /// How many have a utilization: Intel's have none.
    pub(super) fn reporting(&self, end: f64) -> usize {
        self.expected().filter(|gpu| gpu.busy(end).is_some()).count()
    }

    /// The energy of all whose energy is known.
    pub(super) fn energy(&self) -> Option<GpuEnergy> {
        let known: Vec<(f64, bool)> =
            self.expected().filter_map(DeviceAccumulator::energy).collect();
        let reporting = self.expected().filter(|gpu| gpu.energy().is_some());
        let seconds = reporting.map(DeviceAccumulator::energy_seconds).min_by(f64::total_cmp)?;
        Some(GpuEnergy {
            joules: known.iter().map(|(joules, _)| joules).sum(),
            is_counted: known.iter().all(|(_, is_counted)| *is_counted),
            is_complete: known.len() == self.expected_count(),
            seconds,
        })
    }

    /// Each of them.
    pub(super) fn finish(self, end: f64) -> Vec<GpuSummary> {
        self.each.into_iter().map(|(_, gpu)| gpu.finish(end)).collect()
    }
}

/// The models of the whole GPUs, or their names.
pub(super) fn names(gpus: &[GpuSummary]) -> Vec<String> {
    let whole = gpus.iter().map(|gpu| &gpu.is).filter(|is| is_whole(&is.name));
    whole.map(|is| is.model.as_ref().unwrap_or(&is.name).clone()).collect()
}

/// Whether a table has MIG instances of this GPU.
fn has_instances(table: &model::Table, name: Name) -> bool {
    let is_instance = |entity: &Entity| match entity {
        Entity::Named(other) => whole_of(other.as_str()) == name.as_str(),
        _ => false,
    };
    table.entities().iter().any(|entity| *entity != Entity::Named(name) && is_instance(entity))
}

/// Whether a table has the whole GPU of this MIG instance.
fn has_whole(table: &model::Table, instance: Name) -> bool {
    let whole = Entity::Named(Name::new(whole_of(instance.as_str()).as_bytes()));
    table.entities().contains(&whole)
}

fn add(sum: &mut Option<f64>, value: Option<f64>) {
    if let Some(value) = value {
        *sum = Some(sum.unwrap_or(0.0) + value);
    }
}
