//! The attach baseline: what processes used before weigh attached to them, subtracted.
//!
//! The recording holds counters as the kernel gives them, from the start of each process. A run
//! that was attached to begins when weigh attached. So the first row of a process that is older
//! than that is its baseline, and it is subtracted from every later row: for the summary, for
//! charts and for exported tables alike. The start time says which processes are older.
//!
//! What surprised us: when such a process exits and its parent reaps it, all it ever used moves
//! into the parent's counters of reaped children at once, its baseline included. That part is
//! subtracted where it arrives, which may be a tick after the exit was detected.

use std::collections::HashMap;
use std::ops::Range;

use super::{Entry, Event};
use crate::catalog::{ChildAccounting, Kind, Metric, MetricRelation, Scope, Unit, Value};
use crate::model::{Entity, ProcessId, Table, Tick};

/// Scopes whose counters are older than weigh.
pub(super) const BASED: [Scope; 2] = [Scope::Process, Scope::Cgroup];

/// Subtracts what was used before weigh attached.
#[derive(Debug)]
pub(crate) struct AttachBaseline {
    /// Clock ticks from boot to when weigh attached.
    attached: u64,
    /// Processes that have had a row, and parents that are to reap one.
    processes: HashMap<ProcessId, ProcessBaseline>,
    parents: HashMap<ProcessId, u32>,
    /// The first values of the cgroup's counters, column by column.
    group: Vec<Option<f64>>,
}

/// What is subtracted from the counters of a process, column by column.
#[derive(Debug, Clone, Default)]
struct ProcessBaseline {
    /// Empty when it started after weigh attached.
    zero: Vec<f64>,
    /// Whether it has had a row.
    is_sampled: bool,
    /// Its high-water mark before weigh attached: one that is not above it says nothing of the run.
    high_water: Option<f64>,
    /// CPU time of its reaped children at its last row, as the kernel gives it.
    reaped: f64,
    /// Baselines of its children that have exited and are not in its counters yet.
    expected: Vec<Vec<f64>>,
}

/// Clock ticks that a child's CPU time may lose when it is added to its parent's.
const ROUNDING: f64 = 0.05;

impl AttachBaseline {
    /// Of a weigh that attached at this moment, in clock ticks since boot.
    pub(crate) fn new(attached: u64) -> AttachBaseline {
        let (processes, parents) = (HashMap::new(), HashMap::new());
        AttachBaseline { attached, processes, parents, group: Vec::new() }
    }

    /// The next rows are of a weigh that attached at this moment: of several recordings with the
    /// same process, the first that has a row of it decides.
    pub(crate) fn attached_at(&mut self, attached: u64) {
        self.attached = attached;
    }

    /// Notes which processes start and exit.
    pub(crate) fn event(&mut self, entry: &Entry) {
        match &entry.event {
            Event::ProcessStart { pid, started, parent, .. } => {
                self.parents.insert(ProcessId { pid: *pid, started: *started }, *parent);
            }
            Event::ProcessExit { pid, started, .. } => {
                let id = ProcessId { pid: *pid, started: *started };
                let parent = self.parents.remove(&id);
                let Some(exited) =
                    self.processes.remove(&id).filter(|exited| !exited.zero.is_empty())
                else {
                    return;
                };
                let reaper = self.parents.keys().find(|one| Some(one.pid) == parent);
                if let Some(parent) = reaper {
                    self.processes.entry(*parent).or_default().expected.push(exited.zero);
                }
            }
            _ => {}
        }
    }

    /// Subtracts the baseline from the rows of a tick.
    pub(crate) fn tick(&mut self, tick: &mut Tick) {
        for scope in BASED {
            if let Some(table) = tick.table_mut(scope) {
                self.rows(table, 0..table.len());
            }
        }
    }

    /// Subtracts the baseline from some rows of a table, those of one moment.
    pub(super) fn rows(&mut self, table: &mut Table, rows: Range<usize>) {
        match table.scope() {
            Scope::Cgroup => self.group(table, rows),
            Scope::Process => self.process_rows(table, rows),
            _ => {}
        }
    }

    fn process_rows(&mut self, table: &mut Table, rows: Range<usize>) {
        let columns = ProcessColumns::of(table.metrics());
        for row in rows {
            let Entity::Process(id) = table.entities()[row] else { continue };
            let process = self.processes.entry(id).or_default();
            if !std::mem::replace(&mut process.is_sampled, true) && id.started < self.attached {
                let zero = (0..table.columns().len()).map(|c| columns.counted(table, c, row));
                process.zero = zero.collect();
                process.high_water =
                    columns.high_water.and_then(|column| number(table, column, row));
            }
            process.add_reaped(&columns, table, row);
            process.subtract(&columns, table, row);
        }
    }
}

impl AttachBaseline {
    /// Subtracts what the cgroup had counted at its first row.
    fn group(&mut self, table: &mut Table, rows: Range<usize>) {
        self.group.resize(table.columns().len(), None);
        for row in rows {
            for column in 0..self.group.len() {
                let is_counter = table.metrics()[column].kind == Kind::Counter;
                let Some(now) = number(table, column, row).filter(|_| is_counter) else { continue };
                let zero = *self.group[column].get_or_insert(now);
                subtract(zero, column, table, row);
            }
        }
    }
}

impl ProcessBaseline {
    /// Adds the baselines of children that are in its counters since this row.
    fn add_reaped(&mut self, columns: &ProcessColumns, table: &Table, row: usize) {
        let reaped: f64 = columns.reaped.iter().filter_map(|c| number(table, *c, row)).sum();
        let mut risen = reaped - self.reaped;
        self.reaped = reaped;
        let mut arrived = Vec::new();
        self.expected.retain(|child| {
            let all: f64 = columns.own.iter().chain(&columns.reaped).map(|c| child[*c]).sum();
            let is_here = risen + ROUNDING >= all;
            if is_here {
                risen -= all;
                arrived.push(child.clone());
            }
            !is_here
        });
        for child in arrived {
            self.zero.resize(child.len(), 0.0);
            for (into, from) in &columns.moves {
                self.zero[*into] += from.iter().map(|column| child[*column]).sum::<f64>();
            }
        }
    }

    fn subtract(&self, columns: &ProcessColumns, table: &mut Table, row: usize) {
        for (column, zero) in self.zero.iter().enumerate().filter(|(_, zero)| **zero > 0.0) {
            subtract(*zero, column, table, row);
        }
        if let Some(column) = columns.high_water
            && let Some(now) = number(table, column, row)
            && self.high_water.is_some_and(|before| now <= before)
        {
            table.replace(column, row, None);
        }
    }
}

/// The columns of a process that the baseline is about.
struct ProcessColumns {
    is_counter: Vec<bool>,
    /// CPU time of its own, and of its reaped children.
    own: Vec<usize>,
    reaped: Vec<usize>,
    high_water: Option<usize>,
    /// Where counts move when a process is reaped, and from where.
    moves: Vec<(usize, Vec<usize>)>,
}

impl ProcessColumns {
    /// By what the metrics declare of each other: a renamed one is found under its new name.
    fn of(metrics: &[&'static Metric]) -> ProcessColumns {
        let place = |of: &Metric, field: &str| {
            metrics.iter().position(|one| (one.group, one.field) == (of.group, field))
        };
        let mut columns = ProcessColumns {
            is_counter: metrics.iter().map(|metric| metric.kind == Kind::Counter).collect(),
            own: Vec::new(),
            reaped: Vec::new(),
            high_water: metrics
                .iter()
                .position(|one| matches!(one.relation, MetricRelation::HighWaterMarkOf(_))),
            moves: Vec::new(),
        };
        for (column, metric) in metrics.iter().enumerate() {
            match metric.children {
                ChildAccounting::SelfOnly => {}
                ChildAccounting::SelfAndReaped => columns.moves.push((column, vec![column])),
                ChildAccounting::ReapedOnly(fields) => {
                    let own: Vec<_> =
                        fields.iter().filter_map(|field| place(metric, field)).collect();
                    if metric.unit == Unit::Seconds {
                        columns.own.extend(&own);
                        columns.reaped.push(column);
                    }
                    columns.moves.push((column, [&own[..], &[column]].concat()));
                }
            }
        }
        columns
    }

    /// The value of a counter; a gauge has no baseline.
    fn counted(&self, table: &Table, column: usize, row: usize) -> f64 {
        let value = number(table, column, row).filter(|_| self.is_counter[column]);
        value.unwrap_or(0.0)
    }
}

fn subtract(zero: f64, column: usize, table: &mut Table, row: usize) {
    let value = match table.columns()[column].get(row) {
        Some(Value::U64(value)) => Value::U64(value.saturating_sub(zero as u64)),
        Some(Value::F64(value)) => Value::F64((value - zero).max(0.0)),
        _ => return,
    };
    table.replace(column, row, Some(value));
}

fn number(table: &Table, column: usize, row: usize) -> Option<f64> {
    table.columns()[column].get(row)?.number()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::catalog::all_groups;
    use crate::catalog::metrics::{
        GroupCpu, GroupIo, GroupMemory, ProcessCpu, ProcessIo, ProcessMemory,
    };

    /// The row of a process: CPU time of its own and of its reaped children, bytes read, peak.
    type SampledRow = (u32, f64, f64, u64, u64);

    fn tick(
        baseline: &mut AttachBaseline,
        seconds: u64,
        rows: &[SampledRow],
    ) -> Vec<(f64, f64, u64, Option<u64>)> {
        let mut tick = Tick::new(&all_groups());
        tick.begin(Duration::from_secs(seconds));
        for (pid, user, children, read, peak) in rows {
            let id = Entity::Process(id(*pid));
            let cpu = ProcessCpu { user: Some(*user), system: Some(0.0), ..ProcessCpu::default() };
            let waited = (Some(*children), Some(0.0));
            let cpu = ProcessCpu { children_user: waited.0, children_system: waited.1, ..cpu };
            tick.put(id, &cpu);
            tick.put(id, &ProcessIo { read: Some(*read), ..ProcessIo::default() });
            tick.put(id, &ProcessMemory { peak: Some(*peak), ..ProcessMemory::default() });
        }
        baseline.tick(&mut tick);
        let table = tick.table(Scope::Process).unwrap();
        let shown = |row: usize| {
            let cpu = table.get::<ProcessCpu>(row);
            let io = table.get::<ProcessIo>(row).read.unwrap();
            let peak = table.get::<ProcessMemory>(row).peak;
            (cpu.user.unwrap(), cpu.children_user.unwrap(), io, peak)
        };
        (0..table.len()).map(shown).collect()
    }

    fn id(pid: u32) -> ProcessId {
        ProcessId { pid, started: u64::from(pid) }
    }

    fn starts(baseline: &mut AttachBaseline, pid: u32, parent: u32) {
        let (started, name) = (u64::from(pid), "work".to_owned());
        let event = Event::ProcessStart { pid, started, parent, name, command: None, tool: None };
        baseline.event(&Entry::new(Duration::ZERO, event));
    }

    fn exits(baseline: &mut AttachBaseline, pid: u32) {
        let event = Event::ended(ProcessId { pid, started: u64::from(pid) }, None, None);
        baseline.event(&Entry::new(Duration::ZERO, event));
    }

    #[test]
    fn usage_before_the_attach_is_not_counted() {
        let mut baseline = AttachBaseline::new(50);
        starts(&mut baseline, 10, 1);
        assert_eq!(tick(&mut baseline, 0, &[(10, 100.0, 50.0, 900, 7)]), [(0.0, 0.0, 0, None)]);
        assert_eq!(tick(&mut baseline, 1, &[(10, 101.5, 50.0, 950, 7)]), [(1.5, 0.0, 50, None)]);
        assert_eq!(
            tick(&mut baseline, 2, &[(10, 102.0, 50.0, 950, 9)])[0].3,
            Some(9),
            "a new peak"
        );
        // A process that starts later has a baseline of zero.
        starts(&mut baseline, 61, 10);
        assert_eq!(tick(&mut baseline, 3, &[(61, 0.5, 0.0, 3, 4)]), [(0.5, 0.0, 3, Some(4))]);
    }

    #[test]
    fn cgroup_counts_from_the_first_row_of_each_counter() {
        let mut baseline = AttachBaseline::new(50);
        let mut seen = |usage: Option<f64>, read: u64, peak: u64| {
            let mut tick = Tick::new(&all_groups());
            tick.put(Entity::Single, &GroupCpu { usage, ..GroupCpu::default() });
            tick.put(Entity::Single, &GroupIo { read: Some(read), ..GroupIo::default() });
            tick.put(Entity::Single, &GroupMemory { peak: Some(peak), ..GroupMemory::default() });
            baseline.tick(&mut tick);
            let table = tick.table(Scope::Cgroup).unwrap();
            let (cpu, io) = (table.get::<GroupCpu>(0), table.get::<GroupIo>(0));
            (cpu.usage, io.read, table.get::<GroupMemory>(0).peak)
        };
        assert_eq!(seen(None, 900, 7), (None, Some(0), Some(7)));
        assert_eq!(seen(Some(40.0), 950, 7), (Some(0.0), Some(50), Some(7)), "levels have no zero");
        assert_eq!(seen(Some(41.5), 960, 9), (Some(1.5), Some(60), Some(9)));
    }

    #[test]
    fn baseline_of_a_child_does_not_count_when_it_is_reaped() {
        let mut baseline = AttachBaseline::new(50);
        starts(&mut baseline, 10, 1);
        starts(&mut baseline, 11, 10);
        tick(&mut baseline, 0, &[(10, 5.0, 0.0, 10, 1), (11, 40.0, 2.0, 600, 1)]);
        tick(&mut baseline, 1, &[(11, 41.0, 2.0, 700, 1)]);
        exits(&mut baseline, 11);
        // Its exit was detected, and it is not reaped yet.
        assert_eq!(tick(&mut baseline, 2, &[(10, 5.0, 0.0, 10, 1)]), [(0.0, 0.0, 0, None)]);
        // 41.3 of its own and 2 of its children move; 42 of them are baseline.
        let arrived = tick(&mut baseline, 3, &[(10, 5.0, 43.3, 720, 1)])[0];
        assert!((arrived.1 - 1.3).abs() < 1e-9, "{arrived:?}");
        assert_eq!(arrived.2, 110, "710 bytes moved, 600 of them before us");
    }
}
