//! One GPU, as the summary follows it, and the processes of the run on it.

use std::collections::HashMap;

use super::super::curve::{Mean, Peak};
use super::super::growth::Growth;
use super::super::rise::CounterRise;
use super::busy::{Busy, Look, Window};
use super::{Gpu, GpuUser};
use crate::catalog::metrics::{GpuActivity, GpuEcc, GpuMemory, GpuPower, GpuShare, GpuThrottle};
use crate::model::{self, Entity, ProcessId};

/// Processes that are listed for one GPU; more nobody reads.
const LISTED: usize = 100;

/// What is kept of it.
#[derive(Debug, Default)]
pub(super) struct Followed {
    pub(super) is: model::Gpu,
    memory: Peak,
    memory_free: Option<u64>,
    pub(super) utilization: Busy,
    window: Window,
    memory_utilization: Busy,
    /// When its last answer was told and when it was asked for that, and for how long it has
    /// answered.
    answered: Option<(f64, f64)>,
    covered: f64,
    /// Whether it ever had a row, and for how long it had none while others did: it is lost.
    pub(super) was_there: bool,
    pub(super) lost: f64,
    power: Peak,
    power_mean: Mean,
    energy: Growth,
    energy_sampled: Growth,
    /// Whether the last look that told of its power told its own counter. A look at a card that
    /// sleeps tells nothing of it.
    counts_energy: bool,
    /// When its energy was first and last told.
    energy_told: Option<(f64, f64)>,
    temperature: Peak,
    heat_held: CounterRise,
    power_held: CounterRise,
    uncorrected: CounterRise,
    processes: Option<u64>,
    processes_unknown: Option<u64>,
    pub(super) users: HashMap<ProcessId, User>,
}

/// What is kept of a process on it.
#[derive(Debug, Default)]
pub(super) struct User {
    name: String,
    memory: Option<u64>,
    utilization: Option<f64>,
    /// Share of the GPU × seconds, and the seconds that this is of.
    used: (f64, f64),
    /// Seconds of which its share is not told yet.
    untold: f64,
}

impl Followed {
    /// One that nobody has looked at yet, and that others were looked at without for so long.
    pub(super) fn new(is: model::Gpu, lost: f64) -> Followed {
        Followed { is, lost, ..Followed::default() }
    }

    /// Takes in a look; after a longer gap than this, what was in between is not known. Says how
    /// busy it was.
    pub(super) fn see(
        &mut self,
        at: f64,
        gap: f64,
        entity: Entity,
        activity: &GpuActivity,
        memory: &GpuMemory,
        power: &GpuPower,
    ) -> Option<f64> {
        let looked = at - activity.age.unwrap_or(0.0);
        match self.answered {
            // A driver that takes its time answers all the same: its rows go on.
            Some((told, then)) if at - told <= gap => self.covered += (looked - then).max(0.0),
            Some((_, then)) => self.pause(then),
            None => {}
        }
        // A row without anything is that of a driver that is silent.
        let is_silent = (activity, memory, power)
            == (&GpuActivity::default(), &GpuMemory::default(), &GpuPower::default());
        self.answered = (!is_silent).then_some((at, looked));
        if let Some(used) = memory.used {
            self.memory.see(used as f64, at);
        }
        self.memory_free = [self.memory_free, memory.free].into_iter().flatten().min();
        let sampled = activity.busy.zip(activity.observed);
        let between = self.window.share(sampled);
        let share = activity.utilization;
        let busy = self.utilization.see(Look { share, sampled, between, looked }, at);
        let (share, between) = (activity.memory_utilization, None);
        let sampled = activity.memory_busy.zip(activity.observed);
        self.memory_utilization.see(Look { share, sampled, between, looked }, at);
        match power.draw {
            Some(watts) => {
                self.power.see(watts, at);
                self.power_mean.see(watts, at);
            }
            None => self.power_mean.pause(at),
        }
        if let Some(degrees) = power.temperature {
            self.temperature.see(degrees, at);
        }
        self.processes = self.processes.max(activity.processes);
        self.processes_unknown = self.processes_unknown.max(activity.processes_unknown);
        if *power != GpuPower::default() {
            self.counts_energy = power.energy.is_some();
            self.energy_told = Some((self.energy_told.map_or(looked, |(first, _)| first), looked));
        }
        self.energy.see([(entity, power.energy)].into_iter());
        self.energy_sampled.see([(entity, power.energy_sampled)].into_iter());
        busy
    }

    /// The share of the time of which anything is known in which it was there.
    pub(super) fn share_of_time(&self) -> f64 {
        if self.lost > 0.0 { self.covered / self.known_seconds() } else { 1.0 }
    }

    /// How long it is known what it did. One that is lost does nothing.
    pub(super) fn known_seconds(&self) -> f64 {
        self.covered + self.lost
    }

    /// How long its energy was told.
    pub(super) fn energy_seconds(&self) -> f64 {
        self.energy_told.map_or(0.0, |(first, last)| last - first)
    }

    fn pause(&mut self, at: f64) {
        self.utilization.pause(at);
        self.memory_utilization.pause(at);
        self.power_mean.pause(at);
    }

    /// Until when means are known: while it answers, a value holds.
    fn end(&self, end: f64) -> f64 {
        self.answered.map_or(end, |(_, last)| last.min(end))
    }

    /// The share of its time in which it was busy.
    pub(super) fn busy(&self, end: f64) -> Option<f64> {
        self.utilization.mean(self.end(end))
    }

    pub(super) fn see_trouble(&mut self, at: f64, throttle: &GpuThrottle, errors: &GpuEcc) {
        self.heat_held.see(throttle.thermal, at);
        self.power_held.see(throttle.power, at);
        self.uncorrected.see(errors.uncorrected.map(|count| count as f64), at);
    }

    /// Its energy, and whether it counted that itself.
    pub(super) fn energy(&self) -> Option<(f64, bool)> {
        // A counter that was looked at once has not told what was used.
        if self.covered <= 0.0 {
            return None;
        }
        let sampled = self.energy_sampled.total();
        // A counter that was found to be wrong is not told any more, and one that never moved
        // would be: a card that is awake takes some, whether or not it says how much.
        let is_moved =
            |joules: &f64| *joules > 0.0 || sampled.is_some_and(|sampled| sampled <= 0.0);
        let counted = self.energy.total().filter(|_| self.counts_energy).filter(is_moved);
        counted.map(|joules| (joules, true)).or(sampled.map(|joules| (joules, false)))
    }

    pub(super) fn finish(self, end: f64) -> Gpu {
        let (energy, end) = (self.energy(), self.end(end));
        let mut users: Vec<(ProcessId, User)> = self.users.into_iter().collect();
        users.sort_by_key(|(id, user)| (std::cmp::Reverse(user.memory), *id));
        let listed = users.into_iter().take(LISTED).map(|(id, user)| GpuUser {
            pid: id.pid,
            name: user.name,
            memory_peak_bytes: user.memory,
            utilization_mean_ratio: match user.used {
                (used, seconds) if seconds > 0.0 => Some(used / seconds),
                _ => user.utilization,
            },
        });
        Gpu {
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
            throttled_by_heat_seconds: self.heat_held.total(),
            throttled_by_power_seconds: self.power_held.total(),
            observed_seconds: (self.covered > 0.0).then_some(self.covered),
            memory_errors_uncorrected: self.uncorrected.total(),
            processes_peak: self.processes,
            processes_unknown_peak: self.processes_unknown,
            processes: listed.collect(),
        }
    }
}

impl User {
    /// Takes in what it has of the GPU, so many seconds after the look before. A share is that of
    /// all the time since the last one, as far as it was seen on the GPU.
    pub(super) fn see(&mut self, name: String, share: &GpuShare, seconds: f64) {
        self.name = name;
        self.memory = self.memory.max(share.memory).max(share.memory_peak);
        self.untold += seconds;
        if let Some(ratio) = share.utilization {
            let seconds = std::mem::take(&mut self.untold);
            self.used = (self.used.0 + ratio * seconds, self.used.1 + seconds);
            self.utilization = Some(ratio);
        }
    }
}
