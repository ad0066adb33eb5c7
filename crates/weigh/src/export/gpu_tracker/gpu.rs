//! What the GPUs of a run did: nothing yet.
//!
//! weigh measures no GPU so far. Until it does, the numbers here are those that
//! gpu-tracker writes on a machine without one. Whoever adds a GPU collector fills
//! these two functions, in bytes (not in MiB taken for MB) and in ratios.

use crate::sample::Tick;
use crate::summary::Summary;

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

/// GPUs at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub struct AtTick {
    /// Memory of the main process, of the others, of all together, and of everybody, in bytes.
    pub memory: [f64; 4],
    /// GPUs that were busy.
    pub busy: f64,
}

/// What the GPUs did during a run.
pub fn of_run(_summary: &Summary) -> OfRun {
    OfRun::default()
}

/// What the GPUs did at one moment.
pub fn at_tick(_tick: &Tick) -> AtTick {
    AtTick::default()
}
