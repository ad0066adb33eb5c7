//! GPUs, as the summary follows them: each for itself, all together, and who uses them.
//!
//! What a divided GPU's parts have is in the whole, so sums are of whole ones. Processes are
//! told of where they are, which on a divided one is in its parts.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::curve::{Mean, Peak};
use super::figure::whole_when_whole;
use super::growth::Growth;
use crate::catalog::Scope;
use crate::collect::gpu::{GpuActivity, GpuMemory, GpuPower, GpuShare, is_expected, is_whole};
use crate::sample::{self, Entity, Name, ProcessId, Tick};

/// What one GPU did during the run, whoever used it. What is not known is null.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Gpu {
    /// What it is.
    #[serde(flatten)]
    pub is: sample::Gpu,
    /// The most memory that was in use at once.
    #[serde(serialize_with = "whole_when_whole")]
    pub memory_peak_bytes: Option<f64>,
    /// Share of the time in which something was computed.
    pub utilization_mean_ratio: Option<f64>,
    /// The highest share that was seen.
    pub utilization_peak_ratio: Option<f64>,
    /// Power on average.
    pub power_mean_watts: Option<f64>,
    /// The most power that was seen.
    pub power_peak_watts: Option<f64>,
    /// Energy.
    pub energy_joules: Option<f64>,
    /// The highest temperature that was seen.
    pub temperature_peak_celsius: Option<f64>,
    /// The processes of the run on it, those with most memory first.
    pub processes: Vec<GpuUser>,
}

/// A process of the run on one GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuUser {
    /// Its pid.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// The most memory of the GPU it had; null when the driver does not tell.
    pub memory_peak_bytes: Option<u64>,
    /// Share of the multiprocessors' time that was its own, on average over what was sampled.
    pub utilization_mean_ratio: Option<f64>,
}

/// Processes that are listed for one GPU; more nobody reads.
const LISTED: usize = 100;

#[derive(Debug, Default)]
struct Followed {
    is: sample::Gpu,
    memory: Peak,
    utilization: Peak,
    utilization_mean: Mean,
    /// Time busy and time observed, at the first look and at the last.
    sampled: Option<[(f64, f64); 2]>,
    power: Peak,
    power_mean: Mean,
    energy: Growth,
    energy_sampled: Growth,
    /// Whether the last look that told energy told that of its own counter.
    counts_energy: bool,
    temperature: Peak,
    users: HashMap<ProcessId, User>,
}

#[derive(Debug, Default)]
struct User {
    name: String,
    memory: Option<u64>,
    utilization: (f64, u32),
}

/// All GPUs.
#[derive(Debug, Default)]
pub(super) struct Gpus {
    each: Vec<(Name, Followed)>,
    /// Memory in use on all of them, whoever uses it.
    pub(super) used: Peak,
    /// Memory of the main process, of the others of the run, and of both.
    pub(super) of_run: [Peak; 3],
    /// How many are busy at once: the sum of their shares.
    pub(super) busy: Peak,
    /// Whether there was a process of which nobody knows whose it is, or what it has.
    pub(super) some_unknown: bool,
}

/// The energy of GPUs.
pub(super) struct Energy {
    pub(super) joules: f64,
    /// Whether all of it was counted by the cards themselves.
    pub(super) is_counted: bool,
    /// Whether no GPU is missing in it.
    pub(super) is_of_all: bool,
}

/// Who a process is to the run.
pub(super) enum Role {
    /// The main one, by its name.
    Main(String),
    /// One of the others, by its name.
    Descendant(String),
    /// None of the run.
    Other,
}

impl Gpus {
    /// A GPU was told of.
    pub(super) fn meet(&mut self, gpu: &sample::Gpu) {
        self.of(Name::new(gpu.name.as_bytes())).is = gpu.clone();
    }

    fn of(&mut self, name: Name) -> &mut Followed {
        let place = self.each.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            let is = sample::Gpu { name: name.to_string(), ..sample::Gpu::default() };
            self.each.push((name, Followed { is, ..Followed::default() }));
            self.each.len() - 1
        });
        &mut self.each[place].1
    }

    /// Takes in the GPUs of a tick, and says who somebody is.
    pub(super) fn see(&mut self, tick: &Tick, role: impl Fn(&ProcessId) -> Role) {
        let at = tick.at.as_secs_f64();
        let Some(table) = tick.table(Scope::Gpu).filter(|table| !table.is_empty()) else { return };
        let (mut used, mut busy, mut unknown) = (None, None, 0);
        let mut are_listed = true;
        for (row, entity) in table.entities().iter().enumerate() {
            let Entity::Named(name) = entity else { continue };
            let activity: GpuActivity = table.get(row);
            let memory: GpuMemory = table.get(row);
            if is_whole(name.as_str()) {
                add(&mut used, memory.used.map(|bytes| bytes as f64));
            }
            if is_expected(&self.of(*name).is) {
                add(&mut busy, activity.utilization);
            }
            unknown += activity.processes_unknown.unwrap_or(0);
            // A divided one does not list its processes; its parts do.
            are_listed &= activity.processes.is_some() || is_divided(table, *name);
            self.of(*name).see(at, *entity, &activity, &memory, &table.get(row));
        }
        used.into_iter().for_each(|used| self.used.see(used, at));
        busy.into_iter().for_each(|busy| self.busy.see(busy, at));
        self.users(tick, role, are_listed && unknown == 0);
        self.some_unknown |= unknown > 0;
    }

    /// Takes in the processes of a tick; whether all there are, are known.
    fn users(&mut self, tick: &Tick, role: impl Fn(&ProcessId) -> Role, is_whole: bool) {
        let at = tick.at.as_secs_f64();
        let (mut main, mut others) = (0.0, 0.0);
        let mut is_any = false;
        let Some(table) = tick.table(Scope::GpuProcess) else { return };
        for (row, entity) in table.entities().iter().enumerate() {
            let Entity::OnGpu(gpu, id) = entity else { continue };
            let share: GpuShare = table.get(row);
            let (sum, name) = match role(id) {
                Role::Main(name) => (&mut main, name),
                Role::Descendant(name) => (&mut others, name),
                Role::Other => continue,
            };
            match share.memory {
                Some(bytes) => *sum += bytes as f64,
                None => self.some_unknown = true,
            }
            is_any |= share.memory.is_some();
            self.of(*gpu).users.entry(*id).or_default().see(name, &share);
        }
        if is_whole || is_any {
            for (peak, bytes) in self.of_run.iter_mut().zip([main, others, main + others]) {
                peak.see(bytes, at);
            }
        }
    }

    /// The GPUs that the run could have kept busy.
    fn expected(&self) -> impl Iterator<Item = &Followed> {
        self.each.iter().map(|(_, gpu)| gpu).filter(|gpu| is_expected(&gpu.is))
    }

    /// How many those are.
    pub(super) fn expected_count(&self) -> usize {
        self.expected().count()
    }

    /// Whether there is any GPU.
    pub(super) fn is_any(&self) -> bool {
        !self.each.is_empty()
    }

    /// How many were busy on average, of those that say how busy they are.
    pub(super) fn busy_mean(&self, end: f64) -> Option<f64> {
        let means: Vec<f64> = self.expected().filter_map(|gpu| gpu.utilization(end)).collect();
        (!means.is_empty()).then(|| means.iter().sum())
    }

    /// How many say how busy they are: Intel's do not.
    pub(super) fn telling(&self, end: f64) -> usize {
        self.expected().filter(|gpu| gpu.utilization(end).is_some()).count()
    }

    /// The energy of all whose energy is known.
    pub(super) fn energy(&self) -> Option<Energy> {
        let known: Vec<(f64, bool)> = self.expected().filter_map(Followed::energy).collect();
        (!known.is_empty()).then(|| Energy {
            joules: known.iter().map(|(joules, _)| joules).sum(),
            is_counted: known.iter().all(|(_, is_counted)| *is_counted),
            is_of_all: known.len() == self.expected_count(),
        })
    }

    /// Each of them.
    pub(super) fn finish(self, end: f64) -> Vec<Gpu> {
        self.each.into_iter().map(|(_, gpu)| gpu.finish(end)).collect()
    }
}

/// What the whole ones are called.
pub(super) fn names(gpus: &[Gpu]) -> Vec<String> {
    let whole = gpus.iter().map(|gpu| &gpu.is).filter(|is| is_whole(&is.name));
    whole.map(|is| is.model.as_ref().unwrap_or(&is.name).clone()).collect()
}

/// Whether a table has parts of this GPU, too.
fn is_divided(table: &sample::Table, name: Name) -> bool {
    let is_part = |entity: &Entity| match entity {
        Entity::Named(part) => part.as_str().split(':').next() == Some(name.as_str()),
        _ => false,
    };
    table.entities().iter().any(|entity| *entity != Entity::Named(name) && is_part(entity))
}

fn add(sum: &mut Option<f64>, value: Option<f64>) {
    if let Some(value) = value {
        *sum = Some(sum.unwrap_or(0.0) + value);
    }
}

impl Followed {
    fn see(
        &mut self,
        at: f64,
        entity: Entity,
        activity: &GpuActivity,
        memory: &GpuMemory,
        power: &GpuPower,
    ) {
        if let Some(used) = memory.used {
            self.memory.see(used as f64, at);
        }
        if let Some(share) = activity.utilization {
            self.utilization.see(share, at);
            self.utilization_mean.see(share, at);
        }
        if let Some(now) = activity.busy.zip(activity.observed) {
            let first = self.sampled.map_or(now, |[first, _]| first);
            self.sampled = Some([first, now]);
        }
        if let Some(watts) = power.draw {
            self.power.see(watts, at);
            self.power_mean.see(watts, at);
        }
        if let Some(degrees) = power.temperature {
            self.temperature.see(degrees, at);
        }
        if power.energy.or(power.energy_sampled).is_some() {
            self.counts_energy = power.energy.is_some();
        }
        self.energy.see([(entity, power.energy)].into_iter());
        self.energy_sampled.see([(entity, power.energy_sampled)].into_iter());
    }

    /// The share of the time in which it was busy: by all samples of the driver, or else by
    /// those that were seen.
    fn utilization(&self, end: f64) -> Option<f64> {
        let sampled = self.sampled.and_then(|[first, last]| {
            let observed = last.1 - first.1;
            (observed > 0.0).then(|| (last.0 - first.0) / observed)
        });
        sampled.or_else(|| self.utilization_mean.until(end))
    }

    /// Its energy, and whether it counted that itself.
    fn energy(&self) -> Option<(f64, bool)> {
        let sampled = self.energy_sampled.total();
        // A counter that was found to be wrong is not told any more, and one that never moved
        // while power was taken would be.
        let is_whole = |joules: f64| {
            sampled.is_none_or(|sampled| self.counts_energy && (joules > 0.0 || sampled <= 0.0))
        };
        let counted = self.energy.total().filter(|joules| is_whole(*joules));
        counted.map(|joules| (joules, true)).or(sampled.map(|joules| (joules, false)))
    }

    fn finish(self, end: f64) -> Gpu {
        let (utilization, energy) = (self.utilization(end), self.energy());
        let mut users: Vec<(ProcessId, User)> = self.users.into_iter().collect();
        users.sort_by_key(|(id, user)| (std::cmp::Reverse(user.memory), *id));
        let listed = users.into_iter().take(LISTED).map(|(id, user)| GpuUser {
            pid: id.pid,
            name: user.name,
            memory_peak_bytes: user.memory,
            utilization_mean_ratio: match user.utilization {
                (_, 0) => None,
                (sum, count) => Some(sum / f64::from(count)),
            },
        });
        Gpu {
            is: self.is,
            memory_peak_bytes: self.memory.value,
            utilization_mean_ratio: utilization,
            utilization_peak_ratio: self.utilization.value,
            power_mean_watts: self.power_mean.until(end),
            power_peak_watts: self.power.value,
            energy_joules: energy.map(|(joules, _)| joules),
            temperature_peak_celsius: self.temperature.value,
            processes: listed.collect(),
        }
    }
}

impl User {
    fn see(&mut self, name: String, share: &GpuShare) {
        self.name = name;
        self.memory = self.memory.max(share.memory).max(share.memory_peak);
        if let Some(ratio) = share.utilization {
            self.utilization.0 += ratio;
            self.utilization.1 += 1;
        }
    }
}
