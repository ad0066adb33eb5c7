//! Rows of GPUs: those of all recordings at once, and each GPU told by one at a time.
//!
//! Readers take whoever has no row in a tick for gone, and add up what is in one. So the GPUs of
//! all are written together: when everybody has looked, and before one looks again. Where
//! several watchers saw one GPU, the first tells of it until it has ended. What a watcher counts
//! itself (the time a GPU was busy) begins at zero with it; the next goes on where the last was.

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
    looks: Vec<MemberGpuSample>,
    counts: HashMap<Entity, Counts>,
    /// When they were last written.
    written: Option<Duration>,
}

/// The last look of one recording at its GPUs and at who is on them; empty before the first.
struct MemberGpuSample {
    at: Duration,
    is_written: bool,
    gpus: Table,
    users: Table,
}

/// The counters of one GPU, a place for each column.
#[derive(Default)]
struct Counts {
    told_by: Option<usize>,
    last: Vec<Option<Value>>,
    /// How far that is ahead of what others count, by recording.
    ahead: HashMap<usize, Vec<Option<Value>>>,
}

impl MergedGpus {
    /// Before anybody has looked.
    pub(super) fn new(recordings: &[Recording], groups: &[&'static [Metric]]) -> MergedGpus {
        let look = |_: &Recording| MemberGpuSample {
            at: Duration::ZERO,
            is_written: true,
            gpus: Table::new(Scope::Gpu, groups),
            users: Table::new(Scope::GpuProcess, groups),
        };
        MergedGpus {
            gpu_names: GpuNames::of(recordings),
            looks: recordings.iter().map(look).collect(),
            counts: HashMap::new(),
            written: None,
        }
    }

    /// A GPU as it is told of among all; `None` when it has been told.
    pub(super) fn told(&mut self, one: usize, gpu: &Gpu) -> Option<Gpu> {
        self.gpu_names.told(one, gpu)
    }

    /// The moment to write at, when there is a look of this recording that is not written.
    pub(super) fn due(&self, one: usize) -> Option<Duration> {
        // Rows of one moment are of one look.
        let next = self.written.map(|written| written + Duration::from_nanos(1));
        let latest = self.looks.iter().map(|look| look.at).max().max(next);
        latest.filter(|_| !self.looks[one].is_written)
    }

    /// Takes in the rows of one of the recordings, if it has any.
    pub(super) fn look(&mut self, one: usize, tick: &Tick, place: &Place) {
        let Some(table) = tick.table(Scope::Gpu).filter(|table| !table.is_empty()) else { return };
        let look = &mut self.looks[one];
        (look.at, look.is_written) = (tick.at + place.offset, false);
        for (ours, theirs) in
            [(&mut look.gpus, Some(table)), (&mut look.users, tick.table(Scope::GpuProcess))]
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
                ours.append_row_as(theirs, row, look.at, entity);
            }
        }
    }

    /// Nobody looks for one of the recordings any longer.
    pub(super) fn leaves(&mut self, one: usize) {
        let look = &mut self.looks[one];
        (look.at, look.is_written) = (Duration::ZERO, true);
        look.gpus.clear();
        look.users.clear();
    }

    /// Puts the GPUs of all into a tick, unless some of this moment have been written.
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
            for look in &self.looks {
                for (row, entity) in look.users.entities().iter().enumerate() {
                    if seen.insert(*entity) {
                        table.append_row_as(&look.users, row, at, *entity);
                    }
                }
            }
        }
        self.looks.iter_mut().for_each(|look| look.is_written = true);
    }

    fn put_gpus(&mut self, at: Duration, table: &mut Table) {
        let looks = &self.looks;
        let has = |one: usize, gpu: &Entity| looks[one].gpus.entities().contains(gpu);
        let mut others = Vec::new();
        for (one, look) in looks.iter().enumerate() {
            for (row, gpu) in look.gpus.entities().iter().enumerate() {
                let counts = self.counts.entry(*gpu).or_default();
                if counts.told_by.is_some_and(|by| by != one && has(by, gpu)) {
                    others.push((one, row));
                    continue;
                }
                table.append_row_as(&look.gpus, row, at, *gpu);
                for (column, value) in counts.of(one, &look.gpus, row) {
                    table.set_last(column, value);
                }
                let age = look.gpus.get::<GpuActivity>(row).age;
                let age = age.map(|age| age + at.saturating_sub(look.at).as_secs_f64());
                table.put(at, *gpu, &GpuActivity { age, ..GpuActivity::default() });
            }
        }
        for (one, row) in others {
            let look = &looks[one];
            let counts = self.counts.entry(look.gpus.entities()[row]).or_default();
            // What was counted before the other looked is not to be counted once more.
            if counts.told_by.is_some_and(|by| look.at >= looks[by].at) {
                counts.note(one, &look.gpus, row);
            }
        }
    }
}

impl Counts {
    /// The counters of a row, as they go on where they were.
    fn of(&mut self, one: usize, table: &Table, row: usize) -> Vec<(usize, Value)> {
        if self.told_by.replace(one).is_some_and(|by| by != one) && !self.ahead.contains_key(&one) {
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

    /// Notes how far the counters are ahead of those of somebody who does not tell.
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

/// The difference; that of whole numbers may go around, and comes back when it is added.
fn less(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::U64(one), Value::U64(other)) => Value::U64(one.wrapping_sub(other)),
        (Value::F64(one), Value::F64(other)) => Value::F64(one - other),
        _ => one,
    }
}
