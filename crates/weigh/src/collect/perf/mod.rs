//! Hardware and software events of the run, counted by perf.
//!
//! Source: inherited counters in user mode, opened on the waiting child before exec, or on every
//! thread of processes that run already. They count every process of the run, also those that start
//! and exit between two ticks. Needs `kernel.perf_event_paranoid` of 2 or less, or CAP_PERFMON.
//!
//! Events that do not fit the counters together are counted in turns ([`packing`]): at each tick the
//! next round is enabled. Processes that are forked inherit which one that is, so also a run of many
//! short processes is counted in all rounds. Left to itself, the kernel would give each process its
//! first groups, and processes of less than a few milliseconds nothing else.

mod absence;
mod capacity;
pub mod packing;
pub mod plan;
mod prepare;
#[cfg(test)]
mod tests;

use super::existing_threads::ExistingThreads;
use super::{Collector, Context, Fault, Probe, Provider};
use crate::catalog::SourceId;
use crate::catalog::metrics::EventCount;
use crate::counters::{CounterEvent, EventScope};
use crate::host::Host;
use crate::host::perf::MachineCounter;
use crate::host::perf::events::{CountedTask, EventCode, EventCounter, EventReading};
use crate::model::{Entity, Name, ProcessId, Tick};
use plan::{Plan, code};
pub use prepare::{PreparedCounters, prepare};

pub(super) const PROVIDER: Provider =
    Provider { id: SourceId::Perf, probe, collector: None, descriptors: MOST_EVENTS };

/// The most events of a command: each takes a descriptor, and a read at every tick.
const MOST_EVENTS: usize = 16;

/// The most counters on the threads of attached processes.
const MOST_COUNTERS: usize = 4000;

/// Whether a core counts instructions for us: without that there is no default set.
fn probe(host: &Host) -> Probe {
    match host.perf.count_event(EventCode::INSTRUCTIONS, CountedTask::Trial, None, false) {
        Ok(_) => Probe::Ready,
        Err(error) => absence::of(host, &error),
    }
}

/// The same with the cause of a missing PMU.
pub(super) fn examine(host: &Host) -> Probe {
    match host.perf.count_event(EventCode::INSTRUCTIONS, CountedTask::Trial, None, false) {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
            Probe::Absent { why: absence::cause(host) }
        }
        Err(error) => absence::of(host, &error),
        Ok(_) => Probe::Ready,
    }
}

/// The counters of a run, read once a tick.
pub struct RunCounters {
    plan: Plan,
    /// The rows: events of one name are parts of one count.
    rows: Vec<EventRow>,
    tasks: Vec<TaskCounters>,
    machine: Vec<(usize, MachineCounter)>,
    /// The round that is enabled.
    active: usize,
    attached: ExistingThreads,
    /// Whether processes that are found later are counted, too: they are not children of others.
    pub follows: bool,
}

/// The row of an event.
struct EventRow {
    event: String,
    /// Its name in the row, which may be shorter.
    name: Name,
    counted: CountedBy,
    total: EventReading,
}

/// What counts an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CountedBy {
    /// A core, in rounds.
    Core,
    /// The kernel.
    Kernel,
    /// A part of the machine, whatever runs on it.
    Machine,
}

/// The counters of the command, or of one thread.
struct TaskCounters {
    software: Vec<TaskCounter>,
    rounds: Vec<Vec<TaskCounter>>,
}

/// One counter, and the row that it counts for.
struct TaskCounter {
    row: usize,
    counter: EventCounter,
    read: EventReading,
    /// What the counter lost by wrapping around.
    wrapped: u64,
}

/// A hardware counter has 48 bits.
const WRAPS_AT: u64 = 1 << 48;

impl TaskCounter {
    fn update(&mut self) -> std::io::Result<EventReading> {
        let before = self.read.count;
        self.read = self.counter.read()?;
        // The kernel extends its counters to 64 bits, unless a hypervisor loses an overflow.
        if before < WRAPS_AT && before.saturating_sub(self.read.count) > WRAPS_AT / 2 {
            self.wrapped += WRAPS_AT;
        }
        let count = self.read.count.saturating_add(self.wrapped);
        Ok(EventReading { count, ..self.read })
    }
}

/// The rows of a plan.
fn rows(plan: &Plan) -> Vec<EventRow> {
    let of_core = plan.rounds.iter().flat_map(|round| &round.events);
    let of_core = of_core.map(|event| (event, CountedBy::Core));
    let software = plan.software.iter().map(|event| (event, CountedBy::Kernel));
    let machine = plan.machine.iter().map(|event| (event, CountedBy::Machine));
    let mut rows: Vec<EventRow> = Vec::new();
    for (event, counted) in of_core.chain(software).chain(machine) {
        if !rows.iter().any(|row| row.event == event.name) {
            let name = row_name(&event.name, &rows);
            let total = EventReading::default();
            rows.push(EventRow { event: event.name.clone(), name, counted, total });
        }
    }
    rows
}

/// The name of an event, cut where it is too long, and then unlike the others.
fn row_name(event: &str, others: &[EventRow]) -> Name {
    let is_taken = |name: &Name| others.iter().any(|row| row.name == *name);
    let whole = Name::new(event.as_bytes());
    let numbered = (2..).map(|number| {
        let end = format!("~{number}");
        let longest = Name::LONGEST - end.len();
        let cut = (0..=longest).rev().find(|place| event.is_char_boundary(*place)).unwrap_or(0);
        Name::joined(&[&event.as_bytes()[..cut], end.as_bytes()])
    });
    std::iter::once(whole).chain(numbered).find(|name| !is_taken(name)).unwrap_or(whole)
}

impl TaskCounters {
    fn open(
        host: &Host,
        plan: &Plan,
        rows: &[EventRow],
        task: CountedTask,
        active: usize,
    ) -> std::io::Result<TaskCounters> {
        let open = |event: &CounterEvent, leader: Option<&TaskCounter>, begins| {
            let leader = leader.map(|leader| &leader.counter);
            let counter = host.perf.count_event(code(event), task, leader, begins)?;
            let row = rows.iter().position(|row| row.event == event.name).unwrap_or_default();
            Ok(TaskCounter { row, counter, read: EventReading::default(), wrapped: 0 })
        };
        let software = plan.software.iter().map(|event| open(event, None, true));
        let software = software.collect::<std::io::Result<_>>()?;
        let mut rounds = Vec::new();
        for (number, round) in plan.rounds.iter().enumerate() {
            let mut group: Vec<TaskCounter> = Vec::new();
            for event in &round.events {
                group.push(open(event, group.first(), number == active)?);
            }
            rounds.push(group);
        }
        Ok(TaskCounters { software, rounds })
    }
}

fn failed(error: &std::io::Error) -> String {
    format!("perf_event_open: {error}")
}

impl RunCounters {
    /// Counts what is planned, so far of the machine alone.
    pub fn new(host: &Host, plan: Plan) -> Result<RunCounters, String> {
        let rows = rows(&plan);
        let mut machine = Vec::new();
        for event in &plan.machine {
            let EventScope::Machine { cpus } = &event.scope else { continue };
            let row = rows.iter().position(|row| row.event == event.name).unwrap_or_default();
            for cpu in cpus {
                let counter = host.perf.count(event.kind, event.config, *cpu);
                machine.push((row, counter.map_err(|error| failed(&error))?));
            }
        }
        let (tasks, active, attached) = (Vec::new(), 0, ExistingThreads::default());
        Ok(RunCounters { plan, rows, tasks, machine, active, attached, follows: false })
    }

    /// Counts a command from its exec on, and all it starts.
    pub fn starting_at_exec(mut self, host: &Host, pid: u32) -> Result<RunCounters, String> {
        let task = CountedTask::FromExec(pid);
        let opened = TaskCounters::open(host, &self.plan, &self.rows, task, self.active);
        self.tasks.push(opened.map_err(|error| failed(&error))?);
        Ok(self)
    }

    /// Counts a running process from now on, and all it starts; parents first.
    pub fn count(&mut self, host: &Host, pid: u32) -> Result<(), String> {
        let (plan, rows, active) = (&self.plan, &self.rows, self.active);
        let most = MOST_COUNTERS / self.rows.len().max(1);
        let opened = self.attached.count(host, pid, most, &mut |tid| {
            TaskCounters::open(host, plan, rows, CountedTask::FromNow(tid), active)
        })?;
        self.tasks.extend(opened);
        Ok(())
    }

    /// Counts processes that were just found, and all that they start.
    pub fn follow(
        &mut self,
        host: &Host,
        alive: impl Iterator<Item = ProcessId>,
    ) -> Result<(), String> {
        for id in alive {
            if !self.attached.has(id) {
                self.count(host, id.pid)?;
            }
        }
        Ok(())
    }

    /// How many attached processes are counted.
    pub fn processes(&self) -> usize {
        self.attached.processes()
    }

    /// The name of each event, and that of its row, where it is shorter.
    pub fn shortened_names(&self) -> impl Iterator<Item = (&str, &str)> {
        let names = self.rows.iter().map(|row| (row.event.as_str(), row.name.as_str()));
        names.filter(|(event, row)| event != row)
    }

    fn read(&mut self) -> std::io::Result<()> {
        self.rows.iter_mut().for_each(|row| row.total = EventReading::default());
        // What is counted in turns should have been counted in all of this time.
        let mut enabled = 0;
        for TaskCounters { software, rounds } in &mut self.tasks {
            for counter in software.iter_mut().chain(rounds.iter_mut().flatten()) {
                let read = counter.update()?;
                let total = &mut self.rows[counter.row].total;
                total.count = total.count.saturating_add(read.count);
                total.enabled += read.enabled;
                total.running += read.running;
            }
            let leaders = rounds.iter().filter_map(|round| round.first());
            enabled += leaders.map(|leader| leader.read.enabled).sum::<u64>();
        }
        for row in self.rows.iter_mut().filter(|row| row.counted == CountedBy::Core) {
            row.total.enabled = enabled;
        }
        for (row, counter) in &mut self.machine {
            self.rows[*row].total.count += counter.read()?;
        }
        Ok(())
    }

    /// Enables the next round.
    fn take_turns(&mut self) -> std::io::Result<()> {
        let next = (self.active + 1) % self.plan.rounds.len().max(1);
        if next == self.active {
            return Ok(());
        }
        for task in &self.tasks {
            let leader = |round: usize| task.rounds[round].first().map(|leader| &leader.counter);
            leader(self.active).map_or(Ok(()), EventCounter::disable)?;
            leader(next).map_or(Ok(()), EventCounter::enable)?;
        }
        self.active = next;
        Ok(())
    }
}

impl Collector for RunCounters {
    fn sample(&mut self, _context: &Context<'_>, tick: &mut Tick) -> Result<(), Fault> {
        let retired = |error| Fault::Retire(format!("perf: {error}"));
        self.read().map_err(retired)?;
        for row in &self.rows {
            // Counters of the machine have no CPU time of the run.
            let is_of_run = row.counted != CountedBy::Machine;
            let seconds = |nanoseconds: u64| is_of_run.then_some(nanoseconds as f64 / 1e9);
            let count = EventCount {
                count: Some(row.total.count),
                running: seconds(row.total.running),
                enabled: seconds(row.total.enabled),
            };
            tick.put(Entity::Named(row.name), &count);
        }
        self.take_turns().map_err(retired)
    }
}
