//! Ticks of processes that ran before weigh came, as if they had begun when it did.
//!
//! The recording holds counters as the kernel gives them, from the start of each process.
//! Whoever asks what a run used means: since we came. So the first look at a process that
//! was there already is its zero, and everybody who reads ticks reads them through here. Who
//! was there is told by the start times.
//!
//! What surprised us: when such a process ends and its parent waits for it, all it ever used
//! moves into its parent's account at once, what was before us included. That part is taken
//! off where it arrives, which may be a tick after the process was seen to be gone.

use std::collections::HashMap;

use super::{Entry, Event};
use crate::catalog::{ChildAccounting, Kind, Metric, Scope, Sense, Unit, Value};
use crate::model::{Entity, ProcessId, Table, Tick};

/// Takes off what was before weigh came.
#[derive(Debug)]
pub(crate) struct Since {
    /// Clock ticks from boot to when weigh came.
    came: u64,
    /// Everybody who has been looked at, and those who wait for others.
    known: HashMap<ProcessId, Known>,
    parents: HashMap<ProcessId, u32>,
    /// Where the counters of the control group began for us, column by column.
    group: Vec<Option<f64>>,
}

/// What is taken off the counters of a process, column by column.
#[derive(Debug, Clone, Default)]
struct Known {
    /// Empty when it came after us.
    zero: Vec<f64>,
    /// Whether it has been looked at.
    is_met: bool,
    /// The most memory it ever had before us; what is not above says nothing of our time.
    peak: Option<f64>,
    /// CPU time of the children it has waited for, at its last row, as the kernel gives it.
    waited: f64,
    /// Children who were there before us and are gone: what of theirs will move here.
    expected: Vec<Vec<f64>>,
}

/// The clock ticks that a move may lose on the way.
const ROUNDING: f64 = 0.05;

impl Since {
    /// Nothing that was before this moment counts, in clock ticks since boot.
    pub(crate) fn new(came: u64) -> Since {
        Since { came, known: HashMap::new(), parents: HashMap::new(), group: Vec::new() }
    }

    /// The next rows are by somebody who came at this moment: of several who follow the same
    /// processes, the first to look at one says what of it counts.
    pub(crate) fn seen_by(&mut self, came: u64) {
        self.came = came;
    }

    /// Takes in something that happened.
    pub(crate) fn event(&mut self, entry: &Entry) {
        match &entry.event {
            Event::ProcessStart { pid, started, parent, .. } => {
                self.parents.insert(ProcessId { pid: *pid, started: *started }, *parent);
            }
            Event::ProcessExit { pid, started, .. } => {
                let id = ProcessId { pid: *pid, started: *started };
                let parent = self.parents.remove(&id);
                let Some(gone) = self.known.remove(&id).filter(|gone| !gone.zero.is_empty()) else {
                    return;
                };
                let waits = self.parents.keys().find(|one| Some(one.pid) == parent);
                if let Some(parent) = waits {
                    self.known.entry(*parent).or_default().expected.push(gone.zero);
                }
            }
            _ => {}
        }
    }

    /// Takes off what was before from the rows of a tick.
    pub(crate) fn tick(&mut self, tick: &mut Tick) {
        if let Some(table) = tick.table_mut(Scope::Cgroup) {
            self.group(table);
        }
        let Some(table) = tick.table_mut(Scope::Process) else { return };
        let columns = Columns::of(table.metrics());
        for row in 0..table.len() {
            let Entity::Process(id) = table.entities()[row] else { continue };
            let known = self.known.entry(id).or_default();
            if !std::mem::replace(&mut known.is_met, true) && id.started < self.came {
                let zero = (0..table.columns().len()).map(|c| columns.counted(table, c, row));
                known.zero = zero.collect();
                known.peak = columns.peak.and_then(|peak| number(table, peak, row));
            }
            known.adopt(&columns, table, row);
            known.take_off(&columns, table, row);
        }
    }
}

impl Since {
    /// Takes off what the control group had counted when it was first seen.
    fn group(&mut self, table: &mut Table) {
        self.group.resize(table.columns().len(), None);
        for row in 0..table.len() {
            for column in 0..self.group.len() {
                let is_counter = table.metrics()[column].kind == Kind::Counter;
                let Some(now) = number(table, column, row).filter(|_| is_counter) else { continue };
                let zero = *self.group[column].get_or_insert(now);
                take_off(zero, column, table, row);
            }
        }
    }
}

impl Known {
    /// Expects no longer what has arrived with this row.
    fn adopt(&mut self, columns: &Columns, table: &Table, row: usize) {
        let waited: f64 = columns.waited.iter().filter_map(|c| number(table, *c, row)).sum();
        let mut risen = waited - self.waited;
        self.waited = waited;
        let mut arrived = Vec::new();
        self.expected.retain(|gone| {
            let all: f64 = columns.own.iter().chain(&columns.waited).map(|c| gone[*c]).sum();
            let is_here = risen + ROUNDING >= all;
            if is_here {
                risen -= all;
                arrived.push(gone.clone());
            }
            !is_here
        });
        for gone in arrived {
            self.zero.resize(gone.len(), 0.0);
            for (into, from) in &columns.moves {
                self.zero[*into] += from.iter().map(|column| gone[*column]).sum::<f64>();
            }
        }
    }

    fn take_off(&self, columns: &Columns, table: &mut Table, row: usize) {
        for (column, zero) in self.zero.iter().enumerate().filter(|(_, zero)| **zero > 0.0) {
            take_off(*zero, column, table, row);
        }
        if let Some(peak) = columns.peak
            && number(table, peak, row).is_some_and(|now| self.peak.is_some_and(|was| now <= was))
        {
            table.replace(peak, row, None);
        }
    }
}

/// Where in a row of a process things are.
struct Columns {
    is_counter: Vec<bool>,
    /// CPU time of its own, and of the children it has waited for.
    own: Vec<usize>,
    waited: Vec<usize>,
    peak: Option<usize>,
    /// Where counts go when a process is waited for, and from where.
    moves: Vec<(usize, Vec<usize>)>,
}

impl Columns {
    /// By what the metrics declare of each other: a renamed one is found under its new name.
    fn of(metrics: &[&'static Metric]) -> Columns {
        let place = |of: &Metric, field: &str| {
            metrics.iter().position(|one| (one.group, one.field) == (of.group, field))
        };
        let mut columns = Columns {
            is_counter: metrics.iter().map(|metric| metric.kind == Kind::Counter).collect(),
            own: Vec::new(),
            waited: Vec::new(),
            peak: metrics.iter().position(|one| matches!(one.sense, Sense::HighWater(_))),
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
                        columns.waited.push(column);
                    }
                    columns.moves.push((column, [&own[..], &[column]].concat()));
                }
            }
        }
        columns
    }

    /// What a counter has; a level has no zero.
    fn counted(&self, table: &Table, column: usize, row: usize) -> f64 {
        let value = number(table, column, row).filter(|_| self.is_counter[column]);
        value.unwrap_or(0.0)
    }
}

fn take_off(zero: f64, column: usize, table: &mut Table, row: usize) {
    let value = match table.columns()[column].get(row) {
        Some(Value::U64(value)) => Value::U64(value.saturating_sub(zero as u64)),
        Some(Value::F64(value)) => Value::F64((value - zero).max(0.0)),
        _ => return,
    };
    table.replace(column, row, Some(value));
}

fn number(table: &Table, column: usize, row: usize) -> Option<f64> {
    match table.columns()[column].get(row)? {
        Value::U64(value) => Some(value as f64),
        Value::F64(value) => Some(value),
        Value::Symbol(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::catalog::all_groups;
    use crate::catalog::metrics::{
        GroupCpu, GroupIo, GroupMemory, ProcessCpu, ProcessIo, ProcessMemory,
    };

    /// The row of somebody: CPU time of its own and of waited-for children, bytes read, peak.
    type Told = (u32, f64, f64, u64, u64);

    fn tick(since: &mut Since, seconds: u64, rows: &[Told]) -> Vec<(f64, f64, u64, Option<u64>)> {
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
        since.tick(&mut tick);
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

    fn comes(since: &mut Since, pid: u32, parent: u32) {
        let (started, name) = (u64::from(pid), "work".to_owned());
        let event = Event::ProcessStart { pid, started, parent, name, command: None, tool: None };
        since.event(&Entry { seconds: 0.0, event });
    }

    fn goes(since: &mut Since, pid: u32) {
        let event = Event::ended(ProcessId { pid, started: u64::from(pid) }, None, None);
        since.event(&Entry { seconds: 0.0, event });
    }

    #[test]
    fn what_was_before_we_came_is_not_counted() {
        let mut since = Since::new(50);
        comes(&mut since, 10, 1);
        assert_eq!(tick(&mut since, 0, &[(10, 100.0, 50.0, 900, 7)]), [(0.0, 0.0, 0, None)]);
        assert_eq!(tick(&mut since, 1, &[(10, 101.5, 50.0, 950, 7)]), [(1.5, 0.0, 50, None)]);
        assert_eq!(tick(&mut since, 2, &[(10, 102.0, 50.0, 950, 9)])[0].3, Some(9), "a new peak");
        // Who comes later begins at nothing.
        comes(&mut since, 61, 10);
        assert_eq!(tick(&mut since, 3, &[(61, 0.5, 0.0, 3, 4)]), [(0.5, 0.0, 3, Some(4))]);
    }

    #[test]
    fn a_control_group_counts_from_our_first_look_at_each_of_its_counters() {
        let mut since = Since::new(50);
        let mut seen = |usage: Option<f64>, read: u64, peak: u64| {
            let mut tick = Tick::new(&all_groups());
            tick.put(Entity::Single, &GroupCpu { usage, ..GroupCpu::default() });
            tick.put(Entity::Single, &GroupIo { read: Some(read), ..GroupIo::default() });
            tick.put(Entity::Single, &GroupMemory { peak: Some(peak), ..GroupMemory::default() });
            since.tick(&mut tick);
            let table = tick.table(Scope::Cgroup).unwrap();
            let (cpu, io) = (table.get::<GroupCpu>(0), table.get::<GroupIo>(0));
            (cpu.usage, io.read, table.get::<GroupMemory>(0).peak)
        };
        assert_eq!(seen(None, 900, 7), (None, Some(0), Some(7)));
        assert_eq!(seen(Some(40.0), 950, 7), (Some(0.0), Some(50), Some(7)), "levels have no zero");
        assert_eq!(seen(Some(41.5), 960, 9), (Some(1.5), Some(60), Some(9)));
    }

    #[test]
    fn a_child_s_past_does_not_arrive_with_its_end() {
        let mut since = Since::new(50);
        comes(&mut since, 10, 1);
        comes(&mut since, 11, 10);
        tick(&mut since, 0, &[(10, 5.0, 0.0, 10, 1), (11, 40.0, 2.0, 600, 1)]);
        tick(&mut since, 1, &[(11, 41.0, 2.0, 700, 1)]);
        goes(&mut since, 11);
        // Seen to be gone, and not yet waited for.
        assert_eq!(tick(&mut since, 2, &[(10, 5.0, 0.0, 10, 1)]), [(0.0, 0.0, 0, None)]);
        // 41.3 of its own and 2 of its children move; 42 of them were before us.
        let arrived = tick(&mut since, 3, &[(10, 5.0, 43.3, 720, 1)])[0];
        assert!((arrived.1 - 1.3).abs() < 1e-9, "{arrived:?}");
        assert_eq!(arrived.2, 110, "710 bytes moved, 600 of them before us");
    }
}
