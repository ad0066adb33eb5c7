//! Memory and utilization of the GPUs of a run, as gpu-tracker reports them: in bytes, and in busy
//! GPUs.
//!
//! A machine without GPUs has the zeros that gpu-tracker writes there. Everything else that is not
//! known is missing: a driver that does not answer, a container that hides the owners of memory, a
//! card that does not report its utilization. Memory is in bytes, not in MiB taken for MB.

use std::collections::BTreeMap;

use super::timepoints::Peaks;
use crate::catalog::metrics::gpu::{is_whole, name_there, whole_of};
use crate::catalog::metrics::{GpuActivity, GpuMemory, GpuProcessUsage};
use crate::catalog::{FigureId, Scope};
use crate::model::{self, Entity, ProcessId, Table, Tick};
use crate::record::{Event, Manifest, Recording};
use crate::summary::{GpuSummary, Part, Summary};

/// What is known about the GPUs of a machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Presence {
    /// Whether there is no driver, or a driver has reported a GPU.
    is_settled: bool,
    /// Whether the machine has one that gpu-tracker would count.
    has_counted: bool,
}

impl Presence {
    /// What is known before a run.
    pub(super) fn before(manifest: &Manifest) -> Presence {
        let is_counted = |vendor: &str| matches!(vendor, "NVIDIA" | "AMD");
        let plugged_in = manifest.hardware.iter().flat_map(|hardware| &hardware.gpus);
        let mut vendors = plugged_in.filter_map(|gpu| gpu.vendor.as_deref());
        Presence {
            is_settled: manifest.absent.contains_key("gpu"),
            has_counted: vendors.any(is_counted),
        }
    }

    /// What is known after a run.
    pub(super) fn of(recording: &Recording) -> Presence {
        let mut presence = Presence::before(recording.manifest());
        recording.entries().iter().for_each(|entry| presence.event(&entry.event));
        presence
    }

    /// Takes in an event.
    pub(super) fn event(&mut self, event: &Event) {
        if let Event::Gpu(gpu) = event {
            self.is_settled = true;
            self.has_counted |= is_counted(whole_of(&gpu.name));
        }
    }

    /// Whether it is known that there is none.
    pub(super) fn is_none(self) -> bool {
        self.is_settled && !self.has_counted
    }
}

/// How many GPUs there are.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct GpuCounts {
    /// GPUs there are.
    pub count: Option<u64>,
    /// GPUs whose utilization counts.
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
        // A GPU may be reported more than once.
        let counted: BTreeMap<&str, &model::Gpu> =
            gpus.filter(|gpu| is_counted(&gpu.name)).map(|gpu| (gpu.name.as_str(), gpu)).collect();
        if counted.is_empty() && !is_none {
            return GpuCounts::default();
        }
        let capacity: Option<u64> = counted.values().map(|gpu| gpu.memory_bytes).sum();
        GpuCounts {
            count: Some(counted.len() as u64),
            expected: Some(counted.values().filter(|gpu| is_chosen(gpu, uuids)).count() as u64),
            capacity: capacity.map(|bytes| bytes as f64),
        }
    }

    /// The GPUs of a recorded run.
    pub(super) fn in_recording(recording: &Recording, uuids: Option<&[String]>) -> GpuCounts {
        let gpus = recording.entries().iter().filter_map(|entry| match &entry.event {
            Event::Gpu(gpu) => Some(&**gpu),
            _ => None,
        });
        GpuCounts::of(gpus, Presence::of(recording).is_none(), uuids)
    }

    /// How busy the expected GPUs were: where there are none, zero.
    fn busy(&self, reported: Option<f64>) -> Option<f64> {
        reported.or((self.expected == Some(0)).then_some(0.0))
    }
}

/// GPUs over the whole run.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunGpuUsage {
    /// How many there are.
    pub counted: GpuCounts,
    /// The most memory that was used at once, by any process, in bytes.
    pub system: Option<f64>,
    /// The most memory of the main process, of the others, and of all together.
    pub processes: [Option<f64>; 3],
    /// The most GPUs that were busy at once.
    pub busy_peak: Option<f64>,
    /// GPUs that were busy on average.
    pub busy_mean: Option<f64>,
}

/// Whether the utilization of a GPU counts: it has one of these UUIDs or, where none are given, the
/// run could use it.
pub(super) fn is_chosen(gpu: &model::Gpu, uuids: Option<&[String]>) -> bool {
    match uuids {
        Some(uuids) => gpu.uuid.as_ref().is_some_and(|uuid| uuids.contains(uuid)),
        None => gpu.is_expected(),
    }
}

/// Whether gpu-tracker would count it: it does not know Intel GPUs, which nearly every laptop has.
fn is_counted(gpu: &str) -> bool {
    is_whole(gpu) && !name_there(gpu).starts_with("intel")
}

/// GPUs at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AtTick {
    /// Memory of the main process, of its descendants, of both, and of all processes, in bytes.
    pub memory: [Option<f64>; 4],
    /// GPUs that were busy.
    pub busy: Option<f64>,
}

/// What a process on a GPU is to the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GpuProcessRole {
    /// The main process.
    Main,
    /// One of its descendants.
    Descendant,
}

/// Memory and utilization over a run, from its summary and the peaks over its ticks.
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
        summary.gpus.iter().filter(|gpu| is_counted(&gpu.is.name) && gpu.is.is_expected());
    // The share of all is not known where one GPU does not report it.
    let all_report = expected.all(GpuSummary::has_utilization);
    [FigureId::GpusBusyPeak, FigureId::GpusBusyMean]
        .map(|id| summary.figures.value(id).filter(|_| all_report))
}

/// The same of those that have these UUIDs.
fn busy_of(summary: &Summary, peaks: &Peaks, uuids: &[String]) -> [Option<f64>; 2] {
    let chosen = || {
        let gpus = summary.gpus.iter();
        gpus.filter(|gpu| is_counted(&gpu.is.name) && is_chosen(&gpu.is, Some(uuids)))
    };
    // A sum is not known where one GPU does not report it.
    let mean: Option<f64> = chosen().map(|gpu| gpu.utilization_mean_ratio).sum();
    let are_known = mean.is_some() && chosen().next().is_some();
    // All of them together were at least as busy as the busiest of them.
    let busiest = chosen().filter_map(|gpu| gpu.utilization_peak_ratio).reduce(f64::max);
    let peak = peaks.gpus_busy.into_iter().chain(busiest).reduce(f64::max);
    [peak, mean].map(|busy| busy.filter(|_| are_known))
}

/// Memory and utilization at one tick; the utilization of GPUs that the run could not use does not
/// count.
pub(super) fn at_tick(
    tick: &Tick,
    presence: Presence,
    unusable: &[String],
    role_of: impl Fn(&ProcessId) -> Option<GpuProcessRole>,
) -> AtTick {
    let none = presence.is_none().then_some(0.0);
    let Some(table) = tick.table(Scope::Gpu).filter(|table| !table.is_empty()) else {
        return AtTick { memory: [none; 4], busy: none };
    };
    let (mut system, mut busy, mut are_known) = (none, none, true);
    let (mut any_whole, mut any_usable, mut all_report) = (false, false, true);
    for (row, name) in named(table) {
        let activity: GpuActivity = table.get(row);
        // Memory of a MIG instance is included in its GPU, where that may be read.
        if is_whole(name) || !named(table).any(|(_, other)| other == whole_of(name)) {
            add(&mut system, table.get::<GpuMemory>(row).used.map(|bytes| bytes as f64));
        }
        any_whole |= is_counted(name);
        if is_counted(name) && !unusable.iter().any(|unusable| unusable == name) {
            any_usable = true;
            all_report &= activity.utilization.is_some();
            add(&mut busy, activity.utilization);
        }
        // A GPU divided by MIG does not list its processes; its instances do.
        let is_divided = || named(table).any(|(_, part)| part != name && whole_of(part) == name);
        are_known &= activity.processes_unknown.unwrap_or(0) == 0;
        are_known &= activity.processes.is_some() || is_divided();
    }
    let [main, descendants] = process_memory(tick, none, role_of);
    let mut combined = main.0;
    add(&mut combined, descendants.0);
    // Where some processes are reported, no others are on the GPU.
    are_known |= combined.is_some();
    let zero = |is_hidden: bool| (are_known && !is_hidden).then_some(0.0);
    AtTick {
        memory: [
            main.0.or(zero(main.1)),
            descendants.0.or(zero(descendants.1)),
            combined.or(zero(main.1 || descendants.1)),
            system,
        ],
        busy: busy.filter(|_| all_report).or((any_whole && !any_usable).then_some(0.0)),
    }
}

/// GPU memory of the main process and of its descendants, as far as it is known, and whether the
/// driver does not report it for one of them.
fn process_memory(
    tick: &Tick,
    none: Option<f64>,
    role_of: impl Fn(&ProcessId) -> Option<GpuProcessRole>,
) -> [(Option<f64>, bool); 2] {
    let (mut main, mut descendants) = ((none, false), (none, false));
    if let Some(table) = tick.table(Scope::GpuProcess) {
        for (row, entity) in table.entities().iter().enumerate() {
            let Entity::OnGpu(_, id) = entity else { continue };
            let part = match role_of(id) {
                Some(GpuProcessRole::Main) => &mut main,
                Some(GpuProcessRole::Descendant) => &mut descendants,
                None => continue,
            };
            let bytes = table.get::<GpuProcessUsage>(row).memory.map(|bytes| bytes as f64);
            add(&mut part.0, bytes);
            part.1 |= bytes.is_none();
        }
    }
    [main, descendants]
}

/// The GPUs and MIG instances of a table, by their rows.
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
