//! GPUs, as the summary follows them: each for itself, all together, and who uses them.
//!
//! What a divided GPU's parts have is in the whole, so sums are of whole ones. Processes are
//! told of where they are, which on a divided one is in its parts.

mod busy;
mod followed;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::curve::Peak;
use super::figure::whole_when_whole;
use crate::catalog::Scope;
use crate::collect::gpu::{
    GpuActivity, GpuMemory, GpuShare, is_expected, is_merely_open, is_use, is_whole, whole_of,
};
use crate::sample::{self, Entity, Name, ProcessId, Tick};
use followed::{Followed, looked};

/// What one GPU did during the run, whoever used it. What is not known is null.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Gpu {
    /// What it is.
    #[serde(flatten)]
    pub is: sample::Gpu,
    /// The most memory that was in use at once.
    #[serde(serialize_with = "whole_when_whole")]
    pub memory_peak_bytes: Option<f64>,
    /// When that was, since the run began.
    pub memory_peak_at_seconds: Option<f64>,
    /// The least memory that was free. The driver keeps some for itself, so this and what is in
    /// use need not be all there is.
    pub memory_free_least_bytes: Option<u64>,
    /// Share of the time in which something was computed.
    pub utilization_mean_ratio: Option<f64>,
    /// The highest share that was seen.
    pub utilization_peak_ratio: Option<f64>,
    /// Share of the time in which memory was read or written.
    #[serde(default)]
    pub memory_utilization_mean_ratio: Option<f64>,
    /// The highest share that was seen.
    #[serde(default)]
    pub memory_utilization_peak_ratio: Option<f64>,
    /// Power on average.
    pub power_mean_watts: Option<f64>,
    /// The most power that was seen.
    pub power_peak_watts: Option<f64>,
    /// Energy.
    pub energy_joules: Option<f64>,
    /// The highest temperature that was seen.
    pub temperature_peak_celsius: Option<f64>,
    /// Time it was held back by its heat, between the first look and the last.
    pub throttled_by_heat_seconds: Option<f64>,
    /// Time it was held back by the power it may take.
    pub throttled_by_power_seconds: Option<f64>,
    /// Time between the first look and the last.
    pub observed_seconds: Option<f64>,
    /// Errors of its memory that could not be corrected, between those looks.
    #[serde(serialize_with = "whole_when_whole")]
    pub memory_errors_uncorrected: Option<f64>,
    /// The most processes that were on it at once, of whomever.
    pub processes_peak: Option<u64>,
    /// The same, of those who are not to be found in `/proc`: a container hides them.
    pub processes_unknown_peak: Option<u64>,
    /// The processes of the run on it, those with most memory first.
    pub processes: Vec<GpuUser>,
}

impl Gpu {
    /// Whether it is one of those that `gpus_busy_mean` is of: the run could use it, and it said
    /// how busy it was.
    pub fn says_how_busy(&self) -> bool {
        is_expected(&self.is) && self.utilization_mean_ratio.is_some()
    }
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
    /// Share of the multiprocessors' time that was its own, on average while it was on it.
    pub utilization_mean_ratio: Option<f64>,
}

/// As long as a driver may be silent before its last answer is too old to count.
const SHORTEST_GAP: f64 = 2.0;

/// All GPUs.
#[derive(Debug, Default)]
pub(super) struct Gpus {
    each: Vec<(Name, Followed)>,
    /// After more seconds than these without an answer, what was in between is not known.
    gap: f64,
    /// When the last tick with GPUs was.
    ticked: Option<f64>,
    /// When any was first and last looked at.
    seen: Option<(f64, f64)>,
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
    /// None yet, of a run that is looked at in intervals of so many seconds.
    pub(super) fn new(interval: f64) -> Gpus {
        Gpus { gap: (3.0 * interval).max(SHORTEST_GAP), ..Gpus::default() }
    }

    /// A GPU was told of.
    pub(super) fn meet(&mut self, gpu: &sample::Gpu) {
        self.of(Name::new(gpu.name.as_bytes())).is = gpu.clone();
    }

    fn of(&mut self, name: Name) -> &mut Followed {
        let place = self.each.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            let is = sample::Gpu { name: name.to_string(), ..sample::Gpu::default() };
            self.each.push((name, Followed::new(is)));
            self.each.len() - 1
        });
        &mut self.each[place].1
    }

    /// Takes in the GPUs of a tick, and says who somebody is.
    pub(super) fn see(&mut self, tick: &Tick, role: impl Fn(&ProcessId) -> Role) {
        let at = tick.at.as_secs_f64();
        let Some(table) = tick.table(Scope::Gpu).filter(|table| !table.is_empty()) else { return };
        let passed = self.ticked.replace(at).map_or(0.0, |before| at - before);
        let (mut used, mut busy, mut unknown) = (None, None, 0);
        let mut are_listed = true;
        for (row, entity) in table.entities().iter().enumerate() {
            let Entity::Named(name) = entity else { continue };
            let activity: GpuActivity = table.get(row);
            let memory: GpuMemory = table.get(row);
            if is_whole(name.as_str()) || !has_whole(table, *name) {
                add(&mut used, memory.used.map(|bytes| bytes as f64));
            }
            if is_expected(&self.of(*name).is) {
                add(&mut busy, activity.utilization);
            }
            unknown += activity.processes_unknown.unwrap_or(0);
            // A divided one does not list its processes; its parts do.
            are_listed &= activity.processes.is_some() || is_divided(table, *name);
            let (gap, looked) = (self.gap, looked(at, &activity));
            let (first, last) = self.seen.unwrap_or((looked, looked));
            self.seen = Some((first.min(looked), last.max(looked)));
            let gpu = self.of(*name);
            gpu.see(at, gap, *entity, &activity, &memory, &table.get(row));
            gpu.see_trouble(at, &table.get(row), &table.get(row));
        }
        used.into_iter().for_each(|used| self.used.see(used, at));
        busy.into_iter().for_each(|busy| self.busy.see(busy, at));
        self.users(tick, role, are_listed && unknown == 0, passed);
        self.some_unknown |= unknown > 0;
    }

    /// Takes in the processes of a tick; whether all there are, are known; so many seconds after
    /// the tick before.
    fn users(
        &mut self,
        tick: &Tick,
        role: impl Fn(&ProcessId) -> Role,
        is_whole: bool,
        passed: f64,
    ) {
        let at = tick.at.as_secs_f64();
        let (mut main, mut others) = (Held::default(), Held::default());
        let Some(table) = tick.table(Scope::GpuProcess) else { return };
        for (row, entity) in table.entities().iter().enumerate() {
            let Entity::OnGpu(gpu, id) = entity else { continue };
            let share: GpuShare = table.get(row);
            let (held, name) = match role(id) {
                Role::Main(name) => (&mut main, name),
                Role::Descendant(name) => (&mut others, name),
                Role::Other => continue,
            };
            held.add(share.memory);
            if is_use(&share) {
                // Whatever its variables say: it does.
                self.uses(*gpu);
            }
            if !is_merely_open(&share) {
                self.of(*gpu).users.entry(*id).or_default();
            }
            if let Some(user) = self.of(*gpu).users.get_mut(id) {
                user.see(name, &share, passed);
            }
        }
        let all = main.and(others);
        self.some_unknown |= all.some_untold;
        for (peak, held) in self.of_run.iter_mut().zip([main, others, all]) {
            held.known(is_whole || all.some_told).into_iter().for_each(|bytes| peak.see(bytes, at));
        }
    }

    /// A process of the run uses a GPU, and so its whole.
    fn uses(&mut self, gpu: Name) {
        let whole = Name::new(whole_of(gpu.as_str()).as_bytes());
        for (name, followed) in &mut self.each {
            if *name == gpu || *name == whole {
                followed.is.usable = Some(true);
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

    /// Whether only parts of divided ones were looked at.
    pub(super) fn are_parts(&self) -> bool {
        self.each.iter().all(|(name, _)| !is_whole(name.as_str()))
    }

    /// Whether all samples of their drivers are in how busy those were.
    pub(super) fn are_sampled(&self) -> bool {
        self.expected().all(|gpu| gpu.utilization.is_sampled())
    }

    /// Whether there is any GPU.
    pub(super) fn is_any(&self) -> bool {
        !self.each.is_empty()
    }

    /// How many were busy on average, of those that say how busy they are. One that was lost, or
    /// that came late, was busy for its own time only.
    pub(super) fn busy_mean(&self, end: f64) -> Option<f64> {
        let all = self.seen.map(|(first, last)| last - first).filter(|all| *all > 0.0);
        let share_of_time = |gpu: &Followed| all.map_or(1.0, |all| (gpu.covered / all).min(1.0));
        let means = self.expected().filter_map(|gpu| Some(gpu.busy(end)? * share_of_time(gpu)));
        let means: Vec<f64> = means.collect();
        (!means.is_empty()).then(|| means.iter().sum())
    }

    /// How many say how busy they are: Intel's do not.
    pub(super) fn telling(&self, end: f64) -> usize {
        self.expected().filter(|gpu| gpu.busy(end).is_some()).count()
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

/// Memory of GPUs that some processes have.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    bytes: f64,
    some_told: bool,
    /// Whether there is one of whom the driver does not tell.
    some_untold: bool,
}

impl Held {
    fn add(&mut self, memory: Option<u64>) {
        self.bytes += memory.unwrap_or(0) as f64;
        self.some_told |= memory.is_some();
        self.some_untold |= memory.is_none();
    }

    fn and(self, other: Held) -> Held {
        Held {
            bytes: self.bytes + other.bytes,
            some_told: self.some_told || other.some_told,
            some_untold: self.some_untold || other.some_untold,
        }
    }

    /// How much it is, or at least: that nobody has any is told when users are told at all.
    fn known(self, are_told: bool) -> Option<f64> {
        (self.some_told || (are_told && !self.some_untold)).then_some(self.bytes)
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
        Entity::Named(part) => whole_of(part.as_str()) == name.as_str(),
        _ => false,
    };
    table.entities().iter().any(|entity| *entity != Entity::Named(name) && is_part(entity))
}

/// Whether a table has the GPU that this is a part of.
fn has_whole(table: &sample::Table, part: Name) -> bool {
    let whole = Entity::Named(Name::new(whole_of(part.as_str()).as_bytes()));
    table.entities().contains(&whole)
}

fn add(sum: &mut Option<f64>, value: Option<f64>) {
    if let Some(value) = value {
        *sum = Some(sum.unwrap_or(0.0) + value);
    }
}
