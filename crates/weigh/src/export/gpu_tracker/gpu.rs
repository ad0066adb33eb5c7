//! What the GPUs of a run did, as gpu-tracker tells it: in bytes, and in GPUs that were busy.
//!
//! Where a number is not known it is that of a machine without GPUs, because gpu-tracker has no
//! word for "unknown" there. Memory is in bytes, not in MiB taken for MB.

use crate::catalog::Scope;
use crate::collect::gpu::{GpuActivity, GpuMemory, GpuShare, is_expected, is_whole, name_there};
use crate::record::{Entry, Event};
use crate::sample::{Entity, ProcessId, Tick};
use crate::summary::{Part, Summary};

/// GPUs over the whole run.
#[derive(Debug, Clone, Copy, Default)]
pub struct OfRun {
    /// GPUs there are.
    pub count: u64,
    /// GPUs that were to be looked at.
    pub expected: u64,
    /// Their memory, in bytes.
    pub capacity: f64,
    /// The most memory that was used at once, by whomever, in bytes.
    pub system: f64,
    /// The most memory of the main process, of the others, and of all together.
    pub processes: [f64; 3],
    /// The most GPUs that were busy at once.
    pub busy_peak: f64,
    /// GPUs that were busy on average.
    pub busy_mean: f64,
}

impl OfRun {
    /// What GPUs are, before anything is said of what they did.
    pub fn known_before(entries: &[Entry]) -> OfRun {
        let mut known = OfRun::default();
        for entry in entries {
            if let Event::Gpu(gpu) = &entry.event
                && is_theirs(&gpu.name)
            {
                known.count += 1;
                known.expected += u64::from(is_expected(gpu));
                known.capacity += gpu.memory_bytes.unwrap_or(0) as f64;
            }
        }
        known
    }
}

/// Whether gpu-tracker would count it: it does not know Intel's, and nearly every laptop has one.
fn is_theirs(gpu: &str) -> bool {
    is_whole(gpu) && !name_there(gpu).starts_with("intel")
}

/// GPUs at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub struct AtTick {
    /// Memory of the main process, of the others, of all together, and of everybody, in bytes.
    pub memory: [f64; 4],
    /// GPUs that were busy.
    pub busy: f64,
}

/// Whose a process of the run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// It is the main one.
    Main,
    /// The main one, or one of its own, started it.
    Descendant,
}

/// What the GPUs did during a run.
pub fn of_run(summary: &Summary) -> OfRun {
    let memory = |part: &Part| part.figures.get("gpu_memory_peak_bytes").and_then(|f| f.value);
    let figure = |name: &str| summary.figures.get(name).and_then(|figure| figure.value);
    let whole = || summary.gpus.iter().filter(|gpu| is_theirs(&gpu.is.name));
    let parts = &summary.parts;
    OfRun {
        count: whole().count() as u64,
        expected: whole().filter(|gpu| is_expected(&gpu.is)).count() as u64,
        capacity: whole().filter_map(|gpu| gpu.is.memory_bytes).sum::<u64>() as f64,
        system: memory(&parts.system).unwrap_or(0.0),
        processes: [&parts.main, &parts.descendants, &parts.combined]
            .map(|part| memory(part).unwrap_or(0.0)),
        busy_peak: figure("gpus_busy_peak").unwrap_or(0.0),
        busy_mean: figure("gpus_busy_mean").unwrap_or(0.0),
    }
}

/// What the GPUs did at one moment; those that the run could not use are not busy for it.
pub fn at_tick(
    tick: &Tick,
    unusable: &[String],
    whose: impl Fn(&ProcessId) -> Option<Whose>,
) -> AtTick {
    let mut at = AtTick::default();
    let [main, descendants, combined, system] = &mut at.memory;
    if let Some(table) = tick.table(Scope::Gpu) {
        for (row, entity) in table.entities().iter().enumerate() {
            let Entity::Named(name) = entity else { continue };
            if is_whole(name.as_str()) {
                *system += table.get::<GpuMemory>(row).used.unwrap_or(0) as f64;
                let is_unusable = unusable.iter().any(|unusable| unusable == name.as_str());
                let busy = table.get::<GpuActivity>(row).utilization.filter(|_| !is_unusable);
                at.busy += busy.unwrap_or(0.0);
            }
        }
    }
    if let Some(table) = tick.table(Scope::GpuProcess) {
        for (row, entity) in table.entities().iter().enumerate() {
            let Entity::OnGpu(_, id) = entity else { continue };
            let bytes = table.get::<GpuShare>(row).memory.unwrap_or(0) as f64;
            match whose(id) {
                Some(Whose::Main) => *main += bytes,
                Some(Whose::Descendant) => *descendants += bytes,
                None => {}
            }
        }
    }
    *combined = *main + *descendants;
    at
}
