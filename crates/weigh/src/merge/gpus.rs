//! Rows of GPUs: those of all recordings at once, and each GPU from one recording at a time.
//!
//! Readers take a GPU without a row in a tick as gone, and sum the rows of a tick. So the GPUs of
//! all are written together: at the end of a round, and before one is sampled again. Where several
//! recordings have one GPU, the first supplies its rows until it has ended. What each weigh counts
//! itself (the busy time of a GPU) starts at zero; the next recording continues from the last
//! value.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::gpu_names::GpuNames;
use super::layout::Place;
use crate::catalog::metrics::GpuActivity;
use crate::catalog::{Kind, Metric, Scope, Value};
use crate::model::{Entity, Gpu, Table, Tick};
use crate::record::Recording;

/// The GPUs of all recordings.
pub(super) struct MergedGpus {
    gpu_names: GpuNames,
    samples: Vec<MemberGpuSample>,
    counts: HashMap<Entity, Counts>,
    /// When they were last written.
    written: Option<Duration>,
}

/// The last sample of GPUs and GPU processes in one recording; empty before the first.
struct MemberGpuSample {
    at: Duration,
    is_written: bool,
    gpus: Table,
    users: Table,
}

/// The counters of one GPU, a slot for each column.
#[derive(Default)]
struct Counts {
    source: Option<usize>,
    last: Vec<Option<Value>>,
    /// How far that is ahead of the counters of other recordings.
    ahead: HashMap<usize, Vec<Option<Value>>>,
}

impl MergedGpus {
    /// Before the first sample.
    pub(super) fn new(recordings: &[Recording], groups: &[&'static [Metric]]) -> MergedGpus {
        let sample = |_: &Recording| MemberGpuSample {
            at: Duration::ZERO,
            is_written: true,
            gpus: Table::new(Scope::Gpu, groups),
            users: Table::new(Scope::GpuProcess, groups),
        };
        MergedGpus {
            gpu_names: GpuNames::of(recordings),
            samples: recordings.iter().map(sample).collect(),
            counts: HashMap::new(),
            written: None,
        }
    }

    /// A GPU as the merged recording reports it; `None` when it was reported before.
    pub(super) fn merge(&mut self, one: usize, gpu: &Gpu) -> Option<Gpu> {
        self.gpu_names.merge(one, gpu)
    }

    /// The moment to write at, when there is a sample of this recording that is not written.
    pub(super) fn due(&self, one: usize) -> Option<Duration> {
        // Rows of one moment are of one sample.
        let next = self.written.map(|written| written + Duration::from_nanos(1));
        let latest = self.samples.iter().map(|sample| sample.at).max().max(next);
        latest.filter(|_| !self.samples[one].is_written)
    }

    /// Adds the rows of one of the recordings, if it has any.
    pub(super) fn sample(&mut self, one: usize, tick: &Tick, place: &Place) {
        let Some(table) = tick.table(Scope::Gpu).filter(|table| !table.is_empty()) else { return };
        let sample = &mut self.samples[one];
        (sample.at, sample.is_written) = (tick.at + place.offset, false);
        for (ours, theirs) in
            [(&mut sample.gpus, Some(table)), (&mut sample.users, tick.table(Scope::GpuProcess))]
        {
            ours.clear();
            let Some(theirs) = theirs else { continue };
            for (row, entity) in theirs.entities().iter().enumerate() {
                let entity = match entity {
                    Entity::Named(gpu) => Entity::Named(self.gpu_names.name(one, *gpu)),
                    Entity::OnGpu(gpu, id) => Entity::OnGpu(
                        self.gpu_names.name(one, *gpu),
                        id.moved(place.namespace, place.ahead),
                    ),
                    other => *other,
                };
                ours.append_row_as(theirs, row, sample.at, entity);
            }
        }
    }

    /// One of the recordings has ended.
    pub(super) fn leaves(&mut self, one: usize) {
        let sample = &mut self.samples[one];
        (sample.at, sample.is_written) = (Duration::ZERO, true);
        sample.gpus.clear();
        sample.users.clear();
    }

    /// Writes the GPUs of all into a tick, unless some of this moment have been written.
    pub(super) fn put(&mut self, tick: &mut Tick) {
        let at = tick.at;
        if self.written >= Some(at) {
            return;
        }
        self.written = Some(at);
        if let Some(table) = tick.table_mut(Scope::Gpu) {
            self.put_gpus(at, table);
        }
        if let Some(table) = tick.table_mut(Scope::GpuProcess) {
            let mut seen = HashSet::new();
            for sample in &self.samples {
                for (row, entity) in sample.users.entities().iter().enumerate() {
                    if seen.insert(*entity) {
                        table.append_row_as(&sample.users, row, at, *entity);
                    }
                }
            }
        }
        self.samples.iter_mut().for_each(|sample| sample.is_written = true);
    }

    fn put_gpus(&mut self, at: Duration, table: &mut Table) {
        let samples = &self.samples;
        let has = |one: usize, gpu: &Entity| samples[one].gpus.entities().contains(gpu);
        let mut others = Vec::new();
        for (one, sample) in samples.iter().enumerate() {
            for (row, gpu) in sample.gpus.entities().iter().enumerate() {
                let counts = self.counts.entry(*gpu).or_default();
                if counts.source.is_some_and(|by| by != one && has(by, gpu)) {
                    others.push((one, row));
                    continue;
                }
                table.append_row_as(&sample.gpus, row, at, *gpu);
                for (column, value) in counts.of(one, &sample.gpus, row) {
                    table.set_last(column, value);
                }
                let age = sample.gpus.get::<GpuActivity>(row).age;
                let age = age.map(|age| age + at.saturating_sub(sample.at).as_secs_f64());
                table.put(at, *gpu, &GpuActivity { age, ..GpuActivity::default() });
            }
        }
        for (one, row) in others {
            let sample = &samples[one];
            let counts = self.counts.entry(sample.gpus.entities()[row]).or_default();
            // What was counted before the other sampled must not be counted twice.
            if counts.source.is_some_and(|by| sample.at >= samples[by].at) {
                counts.note(one, &sample.gpus, row);
            }
        }
    }
}

impl Counts {
    /// The counters of a row, continued from their last value.
    fn of(&mut self, one: usize, table: &Table, row: usize) -> Vec<(usize, Value)> {
        if self.source.replace(one).is_some_and(|by| by != one) && !self.ahead.contains_key(&one) {
            self.note(one, table, row);
        }
        let ahead = self.ahead.get(&one);
        let now: Vec<(usize, Value)> = counters(table, row)
            .map(|(column, value)| {
                let ahead = ahead.and_then(|ahead| *ahead.get(column)?);
                (column, ahead.map_or(value, |ahead| plus(value, ahead)))
            })
            .collect();
        self.last.resize(table.columns().len(), None);
        now.iter().for_each(|(column, value)| self.last[*column] = Some(*value));
        now
    }

    /// Notes how far the counters are ahead of those of a recording that does not supply the rows.
    fn note(&mut self, one: usize, table: &Table, row: usize) {
        let mut ahead = vec![None; table.columns().len()];
        for (column, value) in counters(table, row) {
            let last = self.last.get(column).copied().flatten();
            ahead[column] = last.map(|last| less(last, value));
        }
        self.ahead.insert(one, ahead);
    }
}

/// The counters that a row has, by column.
fn counters(table: &Table, row: usize) -> impl Iterator<Item = (usize, Value)> {
    let columns = table.metrics().iter().zip(table.columns()).enumerate();
    columns
        .filter(|(_, (metric, _))| metric.kind == Kind::Counter)
        .filter_map(move |(place, (_, column))| Some((place, column.get(row)?)))
}

fn plus(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::U64(one), Value::U64(other)) => Value::U64(one.wrapping_add(other)),
        (Value::F64(one), Value::F64(other)) => Value::F64(one + other),
        _ => one,
    }
}

/// The difference; for integers it may wrap around, and wraps back when it is added.
fn less(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::U64(one), Value::U64(other)) => Value::U64(one.wrapping_sub(other)),
        (Value::F64(one), Value::F64(other)) => Value::F64(one - other),
        _ => one,
    }
}
