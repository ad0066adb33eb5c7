//! GPUs, as the summary follows them: each for itself, all together, and who uses them.
//!
//! What a divided GPU's parts have is in the whole, so sums are of whole ones. Processes are
//! told of where they are, which on a divided one is in its parts.

mod busy;
mod followed;
mod gpu;
mod held;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use followed::Followed;

use super::curve::Peak;
use crate::catalog::Scope;
use crate::catalog::metrics::gpu::{is_whole, whole_of};
use crate::catalog::metrics::{GpuActivity, GpuMemory, GpuShare};
use crate::model::{self, Entity, Name, ProcessId, Tick};
pub use gpu::{Gpu, GpuUser};
use held::Held;

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
    /// Whether several recordings are looked at as one: whoever has no row then is not of the run
    /// yet, or not any more.
    is_merged: bool,
    /// For how long any of them had a row.
    together: f64,
    /// Memory in use on all of them, whoever uses it.
    pub(super) used: Peak,
    /// Memory of the main process, of the others of the run, and of both.
    pub(super) of_run: [Peak; 3],
    /// The most that one of them had by itself, by the driver's account: the main process, one of
    /// the others, one of both.
    pub(super) accounts: [Peak; 3],
    /// How many are busy at once: the sum of their shares.
    pub(super) busy: Peak,
    /// Who of the run has ended since GPUs were last told of: what is told next is of them, too.
    pub(super) went: HashMap<ProcessId, String>,
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
    /// The seconds that it is of, for the GPU that told it for the shortest time.
    pub(super) seconds: f64,
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
    pub(super) fn new(interval: f64, is_merged: bool) -> Gpus {
        Gpus { gap: (3.0 * interval).max(SHORTEST_GAP), is_merged, ..Gpus::default() }
    }

    /// A GPU was told of.
    pub(super) fn meet(&mut self, gpu: &model::Gpu) {
        self.of(Name::new(gpu.name.as_bytes())).is = gpu.clone();
    }

    fn of(&mut self, name: Name) -> &mut Followed {
        let place = self.each.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            let is = model::Gpu { name: name.to_string(), ..model::Gpu::default() };
            let lost = if self.is_merged { self.together } else { 0.0 };
            self.each.push((name, Followed::new(is, lost)));
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
            unknown += activity.processes_unknown.unwrap_or(0);
            // A divided one does not list its processes; its parts do.
            are_listed &= activity.processes.is_some() || is_divided(table, *name);
            let gap = self.gap;
            let gpu = self.of(*name);
            let share = gpu.see(at, gap, *entity, &activity, &memory, &table.get(row));
            gpu.see_trouble(at, &table.get(row), &table.get(row));
            add(&mut busy, share.filter(|_| gpu.is.is_expected()));
        }
        self.see_missing(table, if passed <= self.gap { passed } else { 0.0 });
        used.into_iter().for_each(|used| self.used.see(used, at));
        busy.into_iter().for_each(|busy| self.busy.see(busy, at));
        self.users(tick, role, are_listed && unknown == 0, passed);
        self.some_unknown |= unknown > 0;
    }

    /// Takes in who has no row in a tick, so many seconds after the one before. One that was not
    /// told of yet may be at work: its driver takes its time.
    fn see_missing(&mut self, table: &model::Table, passed: f64) {
        self.together += passed;
        for (name, gpu) in &mut self.each {
            if table.entities().contains(&Entity::Named(*name)) {
                gpu.was_there = true;
            } else if gpu.was_there || self.is_merged {
                gpu.lost += passed;
            }
        }
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
            let (held, part, name) = match role(id) {
                Role::Main(name) => (&mut main, 0, name),
                Role::Descendant(name) => (&mut others, 1, name),
                Role::Other => continue,
            };
            held.add(share.memory);
            if let Some(most) = share.memory_peak {
                self.accounts[part].see(most as f64, at);
                self.accounts[2].see(most as f64, at);
            }
            if share.is_use() {
                // Whatever its variables say: it does.
                self.uses(*gpu);
            }
            if !share.is_merely_open() {
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
        self.each.iter().map(|(_, gpu)| gpu).filter(|gpu| gpu.is.is_expected())
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

    /// How many were busy on average, of those that say how busy they are. What one did while
    /// nobody heard of it, because its driver was silent or not yet asked, is as what it did while
    /// somebody did; one that was lost did nothing afterwards, and of several recordings one that
    /// had its time before or after others did nothing in theirs.
    pub(super) fn busy_mean(&self, end: f64) -> Option<f64> {
        let means = self.expected().filter_map(|gpu| Some(gpu.busy(end)? * gpu.share_of_time()));
        let means: Vec<f64> = means.collect();
        (!means.is_empty()).then(|| means.iter().sum())
    }

    /// The seconds in which it is known how busy they were, for the one of which least is known.
    pub(super) fn known_seconds(&self, end: f64) -> Option<f64> {
        let telling = self.expected().filter(|gpu| gpu.busy(end).is_some());
        telling.map(Followed::known_seconds).min_by(f64::total_cmp)
    }

    /// Whether how busy they were was told, and only of a time that began before the run.
    pub(super) fn told_of_before(&self) -> bool {
        self.expected().any(|gpu| gpu.utilization.is_of_before())
    }

    /// How many say how busy they are: Intel's do not.
    pub(super) fn telling(&self, end: f64) -> usize {
        self.expected().filter(|gpu| gpu.busy(end).is_some()).count()
    }

    /// The energy of all whose energy is known.
    pub(super) fn energy(&self) -> Option<Energy> {
        let known: Vec<(f64, bool)> = self.expected().filter_map(Followed::energy).collect();
        let telling = self.expected().filter(|gpu| gpu.energy().is_some());
        let seconds = telling.map(Followed::energy_seconds).min_by(f64::total_cmp)?;
        Some(Energy {
            joules: known.iter().map(|(joules, _)| joules).sum(),
            is_counted: known.iter().all(|(_, is_counted)| *is_counted),
            is_of_all: known.len() == self.expected_count(),
            seconds,
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
fn is_divided(table: &model::Table, name: Name) -> bool {
    let is_part = |entity: &Entity| match entity {
        Entity::Named(part) => whole_of(part.as_str()) == name.as_str(),
        _ => false,
    };
    table.entities().iter().any(|entity| *entity != Entity::Named(name) && is_part(entity))
}

/// Whether a table has the GPU that this is a part of.
fn has_whole(table: &model::Table, part: Name) -> bool {
    let whole = Entity::Named(Name::new(whole_of(part.as_str()).as_bytes()));
    table.entities().contains(&whole)
}

fn add(sum: &mut Option<f64>, value: Option<f64>) {
    if let Some(value) = value {
        *sum = Some(sum.unwrap_or(0.0) + value);
    }
}
