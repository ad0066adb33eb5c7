//! The live processes of a run, each with its last known values.
//!
//! A process that did not run since the last tick has no row, and its PSS and USS are read less
//! often still: every value is carried forward until the next one is read. Which values there are
//! follows from the declarations in `catalog::metrics::process`. This is the only place where
//! values are carried forward; readers keep no values of their own, but may keep what they derive
//! from them ([`PerProcess`]).

use std::collections::BTreeMap;

use super::own_cpu::{CpuTimes, OwnCpu};
use crate::catalog::metrics::{
    AddressSpace, ProcessCpu, ProcessEvents, ProcessIo, ProcessMemory, ProcessState, TaskState,
};
use crate::catalog::{Metric, Row, Value};
use crate::model::{CLOCK_TICKS, Entity, ProcessId, Table};

/// The last known values of a process.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessValues {
    /// CPU time.
    pub cpu: ProcessCpu,
    /// Memory.
    pub memory: ProcessMemory,
    /// I/O.
    pub io: ProcessIo,
    /// Page faults and context switches.
    pub events: ProcessEvents,
    /// Threads, open files, state.
    pub state: ProcessState,
    /// When its high-water mark of memory was last read, in seconds since the run began.
    pub high_water_read: Option<f64>,
}

impl ProcessValues {
    /// Takes the values of a row; what the row does not have is carried forward.
    fn update(&mut self, table: &Table, row: usize, at: f64) {
        update(&mut self.cpu, table, row);
        update(&mut self.io, table, row);
        update(&mut self.events, table, row);
        update(&mut self.state, table, row);
        let memory: ProcessMemory = table.get(row);
        if memory.peak.is_some() {
            self.high_water_read = Some(at);
        }
        match memory.address_space {
            // Its memory is that of another process, and counted there.
            Some(AddressSpace::Shared) => self.memory = memory,
            _ => update(&mut self.memory, table, row),
        }
    }

    /// CPU time of its own, without its children.
    pub fn own_cpu_ticks(&self) -> Option<f64> {
        Some(self.cpu.user? + self.cpu.system?)
    }

    /// The same in nanoseconds, where the kernel has it: clock ticks are truncated.
    pub fn own_cpu_finer(&self) -> Option<f64> {
        self.own_cpu_ticks().map(|ticks| self.cpu.run_time.map_or(ticks, |ran| ran.max(ticks)))
    }

    /// CPU time of the children it has reaped.
    pub fn children_cpu(&self) -> Option<f64> {
        Some(self.cpu.children_user? + self.cpu.children_system?)
    }

    /// I/O with that of its reaped children: bytes read and written, read and write calls, bytes
    /// from and to storage.
    pub fn all_io(&self) -> Option<[f64; 6]> {
        let io = &self.io;
        let all = [
            io.read?,
            io.written?,
            io.read_calls?,
            io.write_calls?,
            io.storage_read?,
            io.storage_written?,
        ];
        Some(all.map(|count| count as f64))
    }

    /// CPU time with that of its reaped children.
    pub fn cpu_with_children(&self) -> Option<f64> {
        Some(self.own_cpu_ticks()? + self.children_cpu()?)
    }

    /// The largest known size of this process so far.
    pub fn peak_rss(&self) -> Option<u64> {
        self.memory.peak.max(self.memory.rss)
    }

    /// The same as an upper bound, without huge pages: those have no high-water mark.
    pub fn peak_rss_without_hugetlb(&self) -> Option<u64> {
        let hugetlb = self.memory.hugetlb.unwrap_or(0);
        self.memory.peak.max(self.memory.rss.map(|rss| rss.saturating_sub(hugetlb)))
    }

    /// Whether its peak so far is its current size.
    pub fn is_at_its_peak(&self) -> bool {
        let now = self.memory.rss.unwrap_or(0);
        self.memory.peak.is_none_or(|peak| is_near(peak, now))
    }

    /// Its proportional memory (PSS), if it was ever sampled.
    ///
    /// The sample may be old, so it is capped by the current resident memory.
    pub fn pss_capped(&self) -> Option<u64> {
        self.memory.pss.map(|pss| self.memory.rss.map_or(pss, |rss| pss.min(rss)))
    }

    /// The part of it that is no page cache, in the same way.
    pub fn without_cache_capped(&self) -> Option<u64> {
        let memory = &self.memory;
        memory.without_cache.map(|bytes| memory.rss.map_or(bytes, |rss| bytes.min(rss)))
    }

    /// Whether it has exited and was not reaped yet.
    pub fn has_exited(&self) -> bool {
        self.state.doing == Some(TaskState::ZOMBIE)
    }

    /// Calls `put` with each metric and its value as a number; symbols have none.
    pub fn each_number(&self, mut put: impl FnMut(&'static Metric, Option<f64>)) {
        numbers(&self.cpu, &mut put);
        // What is counted for the process whose address space it uses is not unknown, but zero.
        let otherwise = (self.memory.address_space == Some(AddressSpace::Shared)).then_some(0.0);
        numbers(&self.memory, &mut |metric, value| put(metric, value.or(otherwise)));
        numbers(&self.io, &mut put);
        numbers(&self.events, &mut put);
        numbers(&self.state, &mut put);
    }
}

/// Whether a high-water mark equals the sample, within the error of two files that are read one
/// after the other.
pub fn is_near(mark: u64, sampled: u64) -> bool {
    mark <= sampled.saturating_add(sampled / 64)
}

fn update<R: Row>(last: &mut R, table: &Table, row: usize) {
    let mut now = table.get::<R>(row);
    now.carry_forward(last);
    *last = now;
}

fn numbers<R: Row>(row: &R, put: &mut impl FnMut(&'static Metric, Option<f64>)) {
    row.put_each(|column, value| put(&R::METRICS[column], value.and_then(Value::number)));
}

/// What a process of a program is known to have had while it was running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LastKnownMemory {
    /// Resident memory.
    pub rss: Option<u64>,
    pss: Option<u64>,
    uss: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
}

impl LastKnownMemory {
    /// That of a process that has exited.
    pub const RELEASED: LastKnownMemory =
        LastKnownMemory { rss: Some(0), pss: Some(0), uss: Some(0), threads: Some(0) };

    /// Takes the memory of a row.
    ///
    /// A zombie has a resident size of 0, and so has a process in the middle of an exec: its memory
    /// is gone, which says nothing of what it had.
    fn update(&mut self, table: &Table, row: usize) {
        let memory = table.get::<ProcessMemory>(row);
        if memory.rss != Some(0) {
            self.rss = memory.rss.or(self.rss);
            self.pss = memory.pss.or(self.pss);
            self.uss = memory.uss.or(self.uss);
            self.threads = table.get::<ProcessState>(row).threads.or(self.threads);
        }
    }

    /// Proportional memory. It may be older than the resident size, and is never above that.
    pub fn pss(&self) -> Option<u64> {
        self.pss.map(|pss| self.rss.map_or(pss, |rss| pss.min(rss)))
    }

    /// Private memory, in the same way.
    pub fn uss(&self) -> Option<u64> {
        self.uss.map(|uss| self.rss.map_or(uss, |rss| uss.min(rss)))
    }
}

/// A process that is alive, or was not reaped yet.
#[derive(Debug)]
pub struct LiveProcess {
    /// Which one.
    pub id: ProcessId,
    /// The process that started it, or to which it was reparented; `None` where its start event is
    /// lost.
    pub parent: Option<u32>,
    /// The kernel's name for it; `?` where its start event is lost.
    pub name: String,
    /// The program or script that it runs, in the same way.
    pub program: String,
    /// Its values, carried forward.
    pub values: ProcessValues,
    /// The same before its last row.
    pub previous: ProcessValues,
    /// The memory that its program had when that was last known.
    pub program_memory: LastKnownMemory,
    /// CPU time of its own, without its children, and whether that is exact.
    pub own_cpu: OwnCpu,
    /// What it has used since the row before the last one, if that is known.
    pub used: Option<CpuTimes>,
    /// Whether it has had a row.
    pub is_sampled: bool,
    /// Whether its last row was its first one.
    pub is_new: bool,
    slot: usize,
    /// The number of the tick of its last row.
    tick: u64,
}

const UNNAMED: &str = "?";

impl LiveProcess {
    fn new(id: ProcessId, slot: usize) -> LiveProcess {
        LiveProcess {
            id,
            parent: None,
            name: UNNAMED.to_owned(),
            program: UNNAMED.to_owned(),
            values: ProcessValues::default(),
            previous: ProcessValues::default(),
            program_memory: LastKnownMemory::default(),
            own_cpu: OwnCpu::default(),
            used: None,
            is_sampled: false,
            is_new: false,
            slot,
            tick: 0,
        }
    }

    fn update(&mut self, table: &Table, row: usize, at: f64) {
        self.is_new = !std::mem::replace(&mut self.is_sampled, true);
        self.previous = self.values;
        self.values.update(table, row, at);
        self.program_memory.update(table, row);
        self.used = self.own_cpu.row(table, row, at);
    }
}

/// The live processes of a run.
#[derive(Debug, Default)]
pub struct LiveProcesses {
    /// Ordered, so that the same recording always gives the same last digit of a sum.
    index: BTreeMap<ProcessId, usize>,
    /// Slots are used again: what readers keep is found without another search.
    slots: Vec<Option<LiveProcess>>,
    free: Vec<usize>,
    /// The slots of the rows of the last tick.
    rows: Vec<Option<usize>>,
    ticks: u64,
    total: u64,
    sampled: usize,
}

impl LiveProcesses {
    /// A process has started; its parent and its program are known.
    pub fn start(&mut self, id: ProcessId, parent: u32, name: &str, program: String) {
        self.exec(id, name, program);
        self.at(id).parent = Some(parent);
    }

    /// A process has replaced its program.
    pub fn exec(&mut self, id: ProcessId, name: &str, program: String) {
        let process = self.at(id);
        name.clone_into(&mut process.name);
        process.program = program;
        // The memory of the last program is not this one's.
        process.program_memory = LastKnownMemory::default();
    }

    /// A process has exited: it is forgotten.
    pub fn exit(&mut self, id: ProcessId) {
        let Some(slot) = self.index.remove(&id) else { return };
        let process = self.slots[slot].take();
        self.sampled -= usize::from(process.is_some_and(|process| process.is_sampled));
        self.free.push(slot);
    }

    /// Takes the rows of a tick.
    pub fn rows(&mut self, table: Option<&Table>, at: f64) {
        let mut rows = std::mem::take(&mut self.rows);
        rows.clear();
        self.ticks += 1;
        if let Some(table) = table {
            for (row, entity) in table.entities().iter().enumerate() {
                let Entity::Process(id) = entity else {
                    rows.push(None);
                    continue;
                };
                let tick = self.ticks;
                let process = self.at(*id);
                // Only a corrupt recording has two rows of a process in one tick.
                if std::mem::replace(&mut process.tick, tick) == tick {
                    rows.push(None);
                    continue;
                }
                process.update(table, row, at);
                rows.push(Some(process.slot));
                let is_new = process.is_new;
                self.sampled += usize::from(is_new);
            }
        }
        self.rows = rows;
    }

    /// The process of this identity, which is a new one where it is not known.
    fn at(&mut self, id: ProcessId) -> &mut LiveProcess {
        let slot = *self.index.entry(id).or_insert_with(|| {
            self.total += 1;
            self.free.pop().unwrap_or_else(|| {
                self.slots.push(None);
                self.slots.len() - 1
            })
        });
        self.slots[slot].get_or_insert_with(|| LiveProcess::new(id, slot))
    }

    /// A live process.
    pub fn get(&self, id: &ProcessId) -> Option<&LiveProcess> {
        self.slots[*self.index.get(id)?].as_ref()
    }

    /// The live process of this pid.
    pub fn with_pid(&self, pid: u32) -> Option<&LiveProcess> {
        let first = ProcessId { pid, started: 0 };
        let last = ProcessId { pid, started: u64::MAX };
        let (_, slot) = self.index.range(first..=last).next_back()?;
        self.slots[*slot].as_ref()
    }

    /// All of them, whether they were sampled or not.
    pub fn iter(&self) -> impl Iterator<Item = &LiveProcess> {
        self.index.values().filter_map(|slot| self.slots[*slot].as_ref())
    }

    /// Those that have had a row.
    pub fn sampled(&self) -> impl Iterator<Item = &LiveProcess> {
        self.iter().filter(|process| process.is_sampled)
    }

    /// The rows of the last tick, and their processes.
    pub fn in_rows(&self) -> impl Iterator<Item = (usize, &LiveProcess)> {
        let process = |slot: Option<usize>| self.slots[slot?].as_ref();
        let rows = self.rows.iter().enumerate();
        rows.filter_map(move |(row, slot)| Some((row, process(*slot)?)))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// How many of them have had a row.
    pub fn sampled_len(&self) -> usize {
        self.sampled
    }

    /// How many processes there have been so far.
    pub fn total(&self) -> u64 {
        self.total
    }
}

/// What a reader keeps of each live process; it removes the entry when the process exits.
#[derive(Debug, Clone)]
pub struct PerProcess<T>(Vec<Option<T>>);

impl<T> Default for PerProcess<T> {
    fn default() -> PerProcess<T> {
        PerProcess(Vec::new())
    }
}

impl<T> PerProcess<T> {
    /// What is kept of a process.
    pub fn get_mut(&mut self, process: &LiveProcess) -> Option<&mut T> {
        self.0.get_mut(process.slot)?.as_mut()
    }

    /// The same, made where there is none yet.
    pub fn get_or_insert_with(
        &mut self,
        process: &LiveProcess,
        make: impl FnOnce() -> T,
    ) -> &mut T {
        if self.0.len() <= process.slot {
            self.0.resize_with(process.slot + 1, || None);
        }
        self.0[process.slot].get_or_insert_with(make)
    }

    /// Removes what is kept of a process that exits.
    pub fn remove(&mut self, process: &LiveProcess) -> Option<T> {
        self.0.get_mut(process.slot)?.take()
    }

    /// All that is kept.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().flatten()
    }
}

/// When a process was started, in seconds since the run began at this clock tick, as near as the
/// kernel says.
pub fn start_seconds(id: ProcessId, zero: u64) -> f64 {
    (id.started as f64 - zero as f64) / CLOCK_TICKS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Scope;
    use crate::model::Tick;

    const ID: ProcessId = ProcessId { pid: 7, started: 250 };

    fn sample(live: &mut LiveProcesses, memory: ProcessMemory) {
        let mut tick = Tick::new(&[ProcessMemory::METRICS, ProcessCpu::METRICS]);
        tick.put(Entity::Process(ID), &memory);
        live.rows(tick.table(Scope::Process), 1.0);
    }

    fn sizes(rss: Option<u64>, pss: Option<u64>) -> ProcessMemory {
        ProcessMemory { rss, pss, ..ProcessMemory::default() }
    }

    #[test]
    fn value_without_a_cell_is_carried_forward() {
        let mut live = LiveProcesses::default();
        sample(&mut live, sizes(Some(9), Some(7)));
        sample(&mut live, sizes(Some(8), None));
        let memory = live.get(&ID).unwrap().values.memory;
        assert_eq!((memory.rss, memory.pss, memory.uss), (Some(8), Some(7), None));
        assert_eq!(live.get(&ID).unwrap().previous.memory.rss, Some(9));
    }

    #[test]
    fn zombie_keeps_the_memory_it_had_and_a_share_is_never_above_the_resident_size() {
        let mut live = LiveProcesses::default();
        sample(&mut live, sizes(Some(9), Some(7)));
        sample(&mut live, sizes(Some(5), None));
        sample(&mut live, sizes(Some(0), None));
        let memory = live.get(&ID).unwrap().program_memory;
        assert_eq!((memory.rss, memory.pss()), (Some(5), Some(5)));
    }

    #[test]
    fn memory_of_the_last_program_is_not_that_of_the_next_one() {
        let mut live = LiveProcesses::default();
        live.start(ID, 1, "sh", "sh".to_owned());
        sample(&mut live, sizes(Some(9), Some(7)));
        live.exec(ID, "work", "work".to_owned());
        let process = live.get(&ID).unwrap();
        assert_eq!((process.program_memory.rss, &process.name[..]), (None, "work"));
        assert_eq!(process.values.memory.rss, Some(9), "it is still the same process");
    }

    #[test]
    fn memory_is_not_carried_forward_while_the_address_space_is_that_of_another() {
        let mut live = LiveProcesses::default();
        sample(&mut live, sizes(Some(9), Some(7)));
        let address_space = Some(AddressSpace::Shared);
        sample(&mut live, ProcessMemory { address_space, ..ProcessMemory::default() });
        let values = live.get(&ID).unwrap().values;
        assert_eq!(values.memory.rss, None);
        let mut rss = None;
        values.each_number(|metric, value| {
            if Some(metric) == ProcessMemory::metric(|row| &mut row.rss) {
                rss = value;
            }
        });
        assert_eq!(rss, Some(0.0), "it is counted for the other process");
    }

    #[test]
    fn slot_of_an_exited_process_is_used_again_without_what_was_kept_of_it() {
        let (mut live, mut kept) = (LiveProcesses::default(), PerProcess::default());
        let next = ProcessId { pid: 7, started: 300 };
        live.start(ID, 1, "a", "a".to_owned());
        kept.get_or_insert_with(live.get(&ID).unwrap(), || "a");
        assert_eq!(kept.remove(live.get(&ID).unwrap()), Some("a"));
        live.exit(ID);
        live.start(next, 1, "b", "b".to_owned());
        assert_eq!(kept.get_mut(live.get(&next).unwrap()), None);
        assert_eq!(
            (live.len(), live.total(), live.with_pid(7).map(|one| one.id)),
            (1, 2, Some(next))
        );
        assert!(live.get(&ID).is_none());
    }

    #[test]
    fn start_is_relative_to_the_beginning_of_the_run() {
        assert_eq!(start_seconds(ID, 200), 0.5);
    }
}
