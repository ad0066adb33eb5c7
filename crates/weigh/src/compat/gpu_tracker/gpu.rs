//! What the GPUs of a run did, as gpu-tracker tells it: in bytes, and in GPUs that were busy.
//!
//! A machine without GPUs has the zeros that gpu-tracker writes there. Whatever else is not known
//! is missing: a driver that does not answer, a container that hides whose memory it is, a card
//! that does not say how busy it is. Memory is in bytes, not in MiB taken for MB.

use std::collections::BTreeMap;

use super::follow::Peaks;
use crate::catalog::metrics::gpu::{is_whole, name_there, whole_of};
use crate::catalog::metrics::{GpuActivity, GpuMemory, GpuShare};
use crate::catalog::{FigureId, Scope};
use crate::model::{self, Entity, ProcessId, Table, Tick};
use crate::record::{Event, Manifest, Recording};
use crate::summary::{Gpu, Part, Summary};

/// What is known of which GPUs a machine has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Presence {
    /// Whether nobody could be asked, or somebody has told of a GPU.
    is_settled: bool,
    /// Whether the machine has one that gpu-tracker would count.
    has_theirs: bool,
}

impl Presence {
    /// What is known before a run.
    pub(super) fn before(manifest: &Manifest) -> Presence {
        let is_theirs = |vendor: &str| matches!(vendor, "NVIDIA" | "AMD");
        let plugged_in = manifest.hardware.iter().flat_map(|hardware| &hardware.gpus);
        let mut vendors = plugged_in.filter_map(|gpu| gpu.vendor.as_deref());
        Presence {
            is_settled: manifest.absent.contains_key("gpu"),
            has_theirs: vendors.any(is_theirs),
        }
    }

    /// What is known of a run that is over.
    pub(super) fn of(recording: &Recording) -> Presence {
        let mut presence = Presence::before(recording.manifest());
        recording.entries().iter().for_each(|entry| presence.event(&entry.event));
        presence
    }

    /// Takes in something that happened.
    pub(super) fn event(&mut self, event: &Event) {
        if let Event::Gpu(gpu) = event {
            self.is_settled = true;
            self.has_theirs |= is_theirs(whole_of(&gpu.name));
        }
    }

    /// Whether it is known that there is none.
    pub(super) fn is_none(self) -> bool {
        self.is_settled && !self.has_theirs
    }
}

/// How many GPUs there are.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct GpuCounts {
    /// GPUs there are.
    pub count: Option<u64>,
    /// GPUs that were to be looked at.
    pub expected: Option<u64>,
    /// Their memory, in bytes.
    pub capacity: Option<f64>,
}

impl GpuCounts {
    fn of<'g>(
        gpus: impl Iterator<Item = &'g model::Gpu>,
        is_none: bool,
        uuids: Option<&[String]>,
    ) -> GpuCounts {
        // One that is told of again is no other.
        let theirs: BTreeMap<&str, &model::Gpu> =
            gpus.filter(|gpu| is_theirs(&gpu.name)).map(|gpu| (gpu.name.as_str(), gpu)).collect();
        if theirs.is_empty() && !is_none {
            return GpuCounts::default();
        }
        let capacity: Option<u64> = theirs.values().map(|gpu| gpu.memory_bytes).sum();
        GpuCounts {
            count: Some(theirs.len() as u64),
            expected: Some(theirs.values().filter(|gpu| is_chosen(gpu, uuids)).count() as u64),
            capacity: capacity.map(|bytes| bytes as f64),
        }
    }

    /// The GPUs of a run that is over.
    pub(super) fn in_recording(recording: &Recording, uuids: Option<&[String]>) -> GpuCounts {
        let gpus = recording.entries().iter().filter_map(|entry| match &entry.event {
            Event::Gpu(gpu) => Some(&**gpu),
            _ => None,
        });
        GpuCounts::of(gpus, Presence::of(recording).is_none(), uuids)
    }

    /// How busy those were that were to be looked at: none of them is not busy.
    fn busy(&self, told: Option<f64>) -> Option<f64> {
        told.or((self.expected == Some(0)).then_some(0.0))
    }
}

/// GPUs over the whole run.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunGpuUsage {
    /// How many there are.
    pub counted: GpuCounts,
    /// The most memory that was used at once, by whomever, in bytes.
    pub system: Option<f64>,
    /// The most memory of the main process, of the others, and of all together.
    pub processes: [Option<f64>; 3],
    /// The most GPUs that were busy at once.
    pub busy_peak: Option<f64>,
    /// GPUs that were busy on average.
    pub busy_mean: Option<f64>,
}

/// Whether the utilization of a GPU counts: it has one of these UUIDs, where some were named, and
/// else the run could use it.
pub(super) fn is_chosen(gpu: &model::Gpu, uuids: Option<&[String]>) -> bool {
    match uuids {
        Some(uuids) => gpu.uuid.as_ref().is_some_and(|uuid| uuids.contains(uuid)),
        None => gpu.is_expected(),
    }
}

/// Whether gpu-tracker would count it: it does not know Intel's, and nearly every laptop has one.
fn is_theirs(gpu: &str) -> bool {
    is_whole(gpu) && !name_there(gpu).starts_with("intel")
}

/// GPUs at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AtTick {
    /// Memory of the main process, of the others, of all together, and of everybody, in bytes.
    pub memory: [Option<f64>; 4],
    /// GPUs that were busy.
    pub busy: Option<f64>,
}

/// GpuProcessRole a process of the run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GpuProcessRole {
    /// It is the main one.
    Main,
    /// The main one, or one of its own, started it.
    Descendant,
}

/// What the GPUs did during a run, by its summary and by what the ticks told beside it.
pub(super) fn of_run(summary: &Summary, peaks: &Peaks, uuids: Option<&[String]>) -> RunGpuUsage {
    let none = peaks.no_gpu.then_some(0.0);
    let memory = |part: &Part| part.figures.value(FigureId::GpuMemoryPeak);
    let counted = GpuCounts::of(summary.gpus.iter().map(|gpu| &gpu.is), peaks.no_gpu, uuids);
    let [busy_peak, busy_mean] = match uuids {
        Some(uuids) => busy_of(summary, peaks, uuids),
        None => busy_of_usable(summary),
    };
    let parts = &summary.parts;
    RunGpuUsage {
        counted,
        system: memory(&parts.system).or(none),
        processes: [&parts.main, &parts.descendants, &parts.combined]
            .map(|part| memory(part).or(none)),
        busy_peak: counted.busy(busy_peak),
        busy_mean: counted.busy(busy_mean),
    }
}

/// The most GPUs that were busy at once, and on average, of those that the run could use.
fn busy_of_usable(summary: &Summary) -> [Option<f64>; 2] {
    let mut expected =
        summary.gpus.iter().filter(|gpu| is_theirs(&gpu.is.name) && gpu.is.is_expected());
    // A share of all of them is not known where one does not say it.
    let all_say = expected.all(Gpu::says_how_busy);
    [FigureId::GpusBusyPeak, FigureId::GpusBusyMean]
        .map(|id| summary.figures.value(id).filter(|_| all_say))
}

/// The same of those that have these UUIDs.
fn busy_of(summary: &Summary, peaks: &Peaks, uuids: &[String]) -> [Option<f64>; 2] {
    let chosen = || {
        let gpus = summary.gpus.iter();
        gpus.filter(|gpu| is_theirs(&gpu.is.name) && is_chosen(&gpu.is, Some(uuids)))
    };
    // A sum is not known where one does not say it.
    let mean: Option<f64> = chosen().map(|gpu| gpu.utilization_mean_ratio).sum();
    let are_known = mean.is_some() && chosen().next().is_some();
    // All of them together were at least as busy as the busiest of them.
    let busiest = chosen().filter_map(|gpu| gpu.utilization_peak_ratio).reduce(f64::max);
    let peak = peaks.gpus_busy.into_iter().chain(busiest).reduce(f64::max);
    [peak, mean].map(|busy| busy.filter(|_| are_known))
}

/// What the GPUs did at one moment; those that the run could not use are not busy for it.
pub(super) fn at_tick(
    tick: &Tick,
    presence: Presence,
    unusable: &[String],
    whose: impl Fn(&ProcessId) -> Option<GpuProcessRole>,
) -> AtTick {
    let none = presence.is_none().then_some(0.0);
    let Some(table) = tick.table(Scope::Gpu).filter(|table| !table.is_empty()) else {
        return AtTick { memory: [none; 4], busy: none };
    };
    let (mut system, mut busy, mut are_known) = (none, none, true);
    let (mut any_whole, mut any_usable, mut all_say) = (false, false, true);
    for (row, name) in named(table) {
        let activity: GpuActivity = table.get(row);
        // What a part has is in its whole, where that may be looked at.
        if is_whole(name) || !named(table).any(|(_, other)| other == whole_of(name)) {
            add(&mut system, table.get::<GpuMemory>(row).used.map(|bytes| bytes as f64));
        }
        any_whole |= is_theirs(name);
        if is_theirs(name) && !unusable.iter().any(|unusable| unusable == name) {
            any_usable = true;
            all_say &= activity.utilization.is_some();
            add(&mut busy, activity.utilization);
        }
        // A divided one does not list its processes; its parts do.
        let is_divided = || named(table).any(|(_, part)| part != name && whole_of(part) == name);
        are_known &= activity.processes_unknown.unwrap_or(0) == 0;
        are_known &= activity.processes.is_some() || is_divided();
    }
    let [main, descendants] = held(tick, none, whose);
    let mut combined = main.0;
    add(&mut combined, descendants.0);
    // Where some are told of, the others are not there.
    are_known |= combined.is_some();
    let nobody = |is_hidden: bool| (are_known && !is_hidden).then_some(0.0);
    AtTick {
        memory: [
            main.0.or(nobody(main.1)),
            descendants.0.or(nobody(descendants.1)),
            combined.or(nobody(main.1 || descendants.1)),
            system,
        ],
        busy: busy.filter(|_| all_say).or((any_whole && !any_usable).then_some(0.0)),
    }
}

/// What the main process and the others have of GPUs, as far as it is known, and whether the driver
/// does not tell it of somebody.
fn held(
    tick: &Tick,
    none: Option<f64>,
    whose: impl Fn(&ProcessId) -> Option<GpuProcessRole>,
) -> [(Option<f64>, bool); 2] {
    let (mut main, mut descendants) = ((none, false), (none, false));
    if let Some(table) = tick.table(Scope::GpuProcess) {
        for (row, entity) in table.entities().iter().enumerate() {
            let Entity::OnGpu(_, id) = entity else { continue };
            let held = match whose(id) {
                Some(GpuProcessRole::Main) => &mut main,
                Some(GpuProcessRole::Descendant) => &mut descendants,
                None => continue,
            };
            let bytes = table.get::<GpuShare>(row).memory.map(|bytes| bytes as f64);
            add(&mut held.0, bytes);
            held.1 |= bytes.is_none();
        }
    }
    [main, descendants]
}

/// The GPUs of a table, and parts of them, by their rows.
fn named(table: &Table) -> impl Iterator<Item = (usize, &str)> {
    table.entities().iter().enumerate().filter_map(|(row, entity)| match entity {
        Entity::Named(name) => Some((row, name.as_str())),
        _ => None,
    })
}

fn add(sum: &mut Option<f64>, value: Option<f64>) {
    if let Some(value) = value {
        *sum = Some(sum.unwrap_or(0.0) + value);
    }
}
