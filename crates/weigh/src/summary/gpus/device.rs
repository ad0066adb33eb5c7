//! The fold over the rows of one GPU, and of the processes of the run on it.

use std::collections::HashMap;

use super::super::counter_delta::CounterDelta;
use super::super::curve::{Mean, Peak};
use super::super::device_counter_deltas::DeviceCounterDeltas;
use super::utilization::{UtilizationSample, UtilizationTracker, UtilizationWindow};
use super::{GpuSummary, GpuUser};
use crate::catalog::metrics::{
    GpuActivity, GpuEcc, GpuMemory, GpuPower, GpuProcessUsage, GpuThrottle,
};
use crate::model::{self, Entity, ProcessId};

/// Processes that are listed for one GPU.
const MAX_LISTED: usize = 100;

/// One GPU so far.
#[derive(Debug, Default, Clone)]
pub(super) struct DeviceAccumulator {
    pub(super) is: model::Gpu,
    memory: Peak,
    memory_free: Option<u64>,
    pub(super) utilization: UtilizationTracker,
    window: UtilizationWindow,
    memory_utilization: UtilizationTracker,
    /// Its last row with values: the time of the tick, and of the poll.
    answered: Option<(f64, f64)>,
    /// For how long it had values.
    covered: f64,
    /// Whether it ever had a row.
    pub(super) had_row: bool,
    /// For how long it had none while others did: it is lost.
    pub(super) lost: f64,
    power: Peak,
    power_mean: Mean,
    energy: DeviceCounterDeltas,
    energy_sampled: DeviceCounterDeltas,
    /// Whether the last row with power had its energy counter. Rows of a suspended GPU have no
    /// power.
    has_energy_counter: bool,
    /// When its power or energy was first and last known.
    energy_known: Option<(f64, f64)>,
    temperature: Peak,
    thermal_throttled: CounterDelta,
    power_throttled: CounterDelta,
    uncorrected: CounterDelta,
    processes: Option<u64>,
    processes_unknown: Option<u64>,
    pub(super) run_processes: HashMap<ProcessId, GpuProcessAccumulator>,
}

/// A process of the run on it so far.
#[derive(Debug, Default, Clone)]
pub(super) struct GpuProcessAccumulator {
    name: String,
    memory: Option<u64>,
    utilization: Option<f64>,
    /// Utilization × seconds, and the seconds that this is of.
    integrated: (f64, f64),
    /// Seconds after those, without a utilization yet.
    pending_s: f64,
}

impl DeviceAccumulator {
    /// One without rows yet, while others had some for so long.
    pub(super) fn new(is: model::Gpu, lost: f64) -> DeviceAccumulator {
        DeviceAccumulator { is, lost, ..DeviceAccumulator::default() }
    }

    /// Adds the rows of a tick, and returns the utilization. After a longer gap than this, the
    /// time in between is not known.
    pub(super) fn add(
        &mut self,
        at: f64,
        gap: f64,
        entity: Entity,
        activity: &GpuActivity,
        memory: &GpuMemory,
        power: &GpuPower,
    ) -> Option<f64> {
        let polled_at = at - activity.age.unwrap_or(0.0);
        match self.answered {
            // A slow driver counts as answering: its rows go on.
            Some((ticked, before)) if at - ticked <= gap => {
                self.covered += (polled_at - before).max(0.0);
            }
            Some((_, before)) => self.pause(before),
            None => {}
        }
        // A row without values is that of a driver that does not answer.
        let is_silent = (activity, memory, power)
            == (&GpuActivity::default(), &GpuMemory::default(), &GpuPower::default());
        self.answered = (!is_silent).then_some((at, polled_at));
        if let Some(used) = memory.used {
            self.memory.add(used as f64, at);
        }
        self.memory_free = [self.memory_free, memory.free].into_iter().flatten().min();
        let sampled = activity.busy.zip(activity.observed);
        let between = self.window.share(sampled);
        let share = activity.utilization;
        let busy =
            self.utilization.add(UtilizationSample { share, sampled, between, polled_at }, at);
        let (share, between) = (activity.memory_utilization, None);
        let sampled = activity.memory_busy.zip(activity.observed);
        self.memory_utilization.add(UtilizationSample { share, sampled, between, polled_at }, at);
        match power.draw {
            Some(watts) => {
                self.power.add(watts, at);
                self.power_mean.add(watts, at);
            }
            None => self.power_mean.pause(at),
        }
        if let Some(degrees) = power.temperature {
            self.temperature.add(degrees, at);
        }
        self.processes = self.processes.max(activity.processes);
        self.processes_unknown = self.processes_unknown.max(activity.processes_unknown);
        if *power != GpuPower::default() {
            self.has_energy_counter = power.energy.is_some();
            let first = self.energy_known.map_or(polled_at, |(first, _)| first);
            self.energy_known = Some((first, polled_at));
        }
        self.energy.add([(entity, power.energy)].into_iter());
        self.energy_sampled.add([(entity, power.energy_sampled)].into_iter());
        busy
    }

    /// The share of the known time in which it was not lost.
    pub(super) fn present_share(&self) -> f64 {
        if self.lost > 0.0 { self.covered / self.known_seconds() } else { 1.0 }
    }

    /// How long its utilization is known. A lost GPU is idle.
    pub(super) fn known_seconds(&self) -> f64 {
        self.covered + self.lost
    }

    /// How long its energy was known.
    pub(super) fn energy_seconds(&self) -> f64 {
        self.energy_known.map_or(0.0, |(first, last)| last - first)
    }

    fn pause(&mut self, at: f64) {
        self.utilization.pause(at);
        self.memory_utilization.pause(at);
        self.power_mean.pause(at);
    }

    /// Until when means are known: while the driver answers, a value is carried forward.
    fn end(&self, end: f64) -> f64 {
        self.answered.map_or(end, |(_, last)| last.min(end))
    }

    /// The mean utilization.
    pub(super) fn busy(&self, end: f64) -> Option<f64> {
        self.utilization.mean(self.end(end))
    }

    pub(super) fn add_throttling_and_errors(
        &mut self,
        at: f64,
        throttle: &GpuThrottle,
        errors: &GpuEcc,
    ) {
        self.thermal_throttled.add(throttle.thermal, at);
        self.power_throttled.add(throttle.power, at);
        self.uncorrected.add(errors.uncorrected.map(|count| count as f64), at);
    }

    /// Its energy, and whether that is by its own counter.
    pub(super) fn energy(&self) -> Option<(f64, bool)> {
        // One value of a counter has no delta.
        if self.covered <= 0.0 {
            return None;
        }
        let sampled = self.energy_sampled.total();
        // A counter that was found to be wrong is not reported any more, and one that never
        // advanced is wrong: a GPU that is awake draws power, reported or not.
        let has_advanced =
            |joules: &f64| *joules > 0.0 || sampled.is_some_and(|sampled| sampled <= 0.0);
        let counted = self.energy.total().filter(|_| self.has_energy_counter);
        let counted = counted.filter(has_advanced);
        counted.map(|joules| (joules, true)).or(sampled.map(|joules| (joules, false)))
    }

    pub(super) fn finish(self, end: f64) -> GpuSummary {
        let (energy, end) = (self.energy(), self.end(end));
        let mut processes: Vec<(ProcessId, GpuProcessAccumulator)> =
            self.run_processes.into_iter().collect();
        processes.sort_by_key(|(id, process)| (std::cmp::Reverse(process.memory), *id));
        let listed = processes.into_iter().take(MAX_LISTED).map(|(id, process)| GpuUser {
            pid: id.pid,
            name: process.name,
            memory_peak_bytes: process.memory,
            utilization_mean_ratio: match process.integrated {
                (integral, seconds) if seconds > 0.0 => Some(integral / seconds),
                _ => process.utilization,
            },
        });
        GpuSummary {
            is: self.is,
            memory_peak_bytes: self.memory.value,
            memory_peak_at_seconds: self.memory.value.map(|_| self.memory.at),
            memory_free_least_bytes: self.memory_free,
            utilization_mean_ratio: self.utilization.mean(end),
            utilization_peak_ratio: self.utilization.highest(end),
            memory_utilization_mean_ratio: self.memory_utilization.mean(end),
            memory_utilization_peak_ratio: self.memory_utilization.highest(end),
            power_mean_watts: self.power_mean.until(end),
            power_peak_watts: self.power.value,
            energy_joules: energy.map(|(joules, _)| joules),
            temperature_peak_celsius: self.temperature.value,
            throttled_by_heat_seconds: self.thermal_throttled.total(),
            throttled_by_power_seconds: self.power_throttled.total(),
            observed_seconds: (self.covered > 0.0).then_some(self.covered),
            memory_errors_uncorrected: self.uncorrected.total(),
            processes_peak: self.processes,
            processes_unknown_peak: self.processes_unknown,
            processes: listed.collect(),
        }
    }
}

impl GpuProcessAccumulator {
    /// Adds its row of a tick, so many seconds after the tick before. A share is of all the time
    /// since the last one, as far as it was on the GPU.
    pub(super) fn add(&mut self, name: String, share: &GpuProcessUsage, seconds: f64) {
        self.name = name;
        self.memory = self.memory.max(share.memory).max(share.memory_peak);
        self.pending_s += seconds;
        if let Some(ratio) = share.utilization {
            let seconds = std::mem::take(&mut self.pending_s);
            let (integral, total) = self.integrated;
            self.integrated = (integral + ratio * seconds, total + seconds);
            self.utilization = Some(ratio);
        }
    }
}
