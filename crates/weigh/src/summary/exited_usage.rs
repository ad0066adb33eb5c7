//! What exited processes used, when weigh does not reap them.
//!
//! The counters of a process are added to those of the parent that reaps it. If that parent is
//! tracked, too, the last sample is pending at it until its counters of children rise; so nothing
//! is missing in between, and nothing is counted twice. If no tracked process reaps it, the last
//! sample is kept for good.

use std::collections::{BTreeMap, HashMap};

use crate::model::live::ProcessValues;
use crate::model::{ProcessId, Usage, numbering};

/// What one process used, with its reaped children.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ExitedCounts {
    /// CPU time in user mode and in the kernel.
    pub cpu: [f64; 2],
    /// I/O, in the order of [`ProcessValues::all_io`]; `None` when it could not be read.
    pub io: Option<[f64; 6]>,
    /// Page faults, minor and major, of its own; and of its reaped children.
    pub faults: [u64; 3],
    /// Context switches, voluntary and involuntary.
    pub switches: [u64; 2],
}

impl ExitedCounts {
    /// Of a process as it was last sampled; its own alone, or with its children's.
    fn of(process: &ProcessValues, with_children: bool) -> ExitedCounts {
        let (cpu, events) = (&process.cpu, &process.events);
        let mut counts = ExitedCounts {
            cpu: [cpu.user.unwrap_or(0.0), cpu.system.unwrap_or(0.0)],
            io: process.all_io(),
            faults: [
                events.faults_minor.unwrap_or(0),
                events.faults_major.unwrap_or(0),
                events.children_faults.unwrap_or(0),
            ],
            switches: [
                events.switches_voluntary.unwrap_or(0),
                events.switches_involuntary.unwrap_or(0),
            ],
        };
        if with_children {
            counts.add_children_cpu(process);
        }
        counts
    }

    /// Adds the CPU time of its reaped children, as last sampled.
    fn add_children_cpu(&mut self, process: &ProcessValues) {
        self.cpu[0] += process.cpu.children_user.unwrap_or(0.0);
        self.cpu[1] += process.cpu.children_system.unwrap_or(0.0);
    }

    /// Sets what `wait4` reported, which includes its reaped children.
    fn set_wait4(&mut self, usage: &Usage) {
        self.cpu = [usage.user_seconds, usage.system_seconds];
        self.faults = [usage.minor_faults, usage.major_faults, 0];
        self.switches = [usage.voluntary_switches, usage.involuntary_switches];
    }

    /// Sets the total of a kernel clock, if that is larger.
    ///
    /// The clock has no modes: it is split as the samples are.
    fn raise_cpu(&mut self, seconds: f64) {
        let sampled = self.cpu[0] + self.cpu[1];
        if seconds > sampled {
            let user = if sampled > 0.0 { self.cpu[0] / sampled } else { 1.0 };
            self.cpu = [seconds * user, seconds * (1.0 - user)];
        }
    }

    fn add(&mut self, other: &ExitedCounts) {
        self.cpu = [self.cpu[0] + other.cpu[0], self.cpu[1] + other.cpu[1]];
        if let Some(io) = other.io {
            let sum = self.io.unwrap_or_default();
            self.io = Some(std::array::from_fn(|which| sum[which] + io[which]));
        }
        self.faults = std::array::from_fn(|which| self.faults[which] + other.faults[which]);
        self.switches = std::array::from_fn(|which| self.switches[which] + other.switches[which]);
    }
}

/// Everything that exited processes used.
#[derive(Debug, Clone)]
pub(super) struct ExitedUsage {
    /// PID namespaces in which every process counts for itself alone; in the others its CPU time
    /// moves to the process that reaps it.
    alone: Vec<usize>,
    parents: HashMap<ProcessId, u32>,
    /// Parents of the processes that exited since the last complete tick: a child whose exit is
    /// noticed after its parent's is in the counters of the process that reaped the parent.
    exited_parents: HashMap<u32, u32>,
    kept: ExitedCounts,
    /// Ordered, so that the same recording always gives the same last digit.
    pending: BTreeMap<ProcessId, Vec<PendingTransfer>>,
}

/// What will be in the counters of the process that reaps it.
#[derive(Debug, Clone, Copy)]
struct PendingTransfer {
    counts: ExitedCounts,
    /// CPU time and page faults by which its counters of children rise then, at least.
    cpu: f64,
    faults: u64,
}

/// Clock ticks that may be lost when times are summed on their way.
const ROUNDING: f64 = 0.05;

impl ExitedUsage {
    /// Of processes with all they start, but each for itself in these PID namespaces.
    pub(super) fn new(alone: Vec<usize>) -> ExitedUsage {
        ExitedUsage {
            alone,
            parents: HashMap::new(),
            exited_parents: HashMap::new(),
            kept: ExitedCounts::default(),
            pending: BTreeMap::new(),
        }
    }

    /// Whether what children used belongs to this process, if it reaped them.
    pub(super) fn with_children(&self, id: ProcessId) -> bool {
        self.alone.is_empty() || !self.alone.contains(&numbering::original(id.pid).0)
    }

    /// A process has this parent.
    pub(super) fn starts(&mut self, id: ProcessId, parent: u32) {
        self.parents.insert(id, parent);
    }

    /// A process was sampled: what is pending at it is cleared if its counters of children rose by
    /// as much.
    pub(super) fn sampled(&mut self, id: ProcessId, before: &ProcessValues, now: &ProcessValues) {
        let Some(pending) = self.pending.get_mut(&id) else { return };
        let children_cpu = |alive: &ProcessValues| {
            let cpu = &alive.cpu;
            cpu.children_user.unwrap_or(0.0) + cpu.children_system.unwrap_or(0.0)
        };
        let faulted = |alive: &ProcessValues| alive.events.children_faults.unwrap_or(0);
        let mut cpu = children_cpu(now) - children_cpu(before) + ROUNDING;
        let mut faults = faulted(now).saturating_sub(faulted(before));
        pending.retain(|one| {
            let is_transferred = cpu >= one.cpu && faults >= one.faults;
            if is_transferred {
                cpu -= one.cpu;
                faults -= one.faults;
            }
            !is_transferred
        });
    }

    /// A process exited that had this, as last sampled and as `wait4` reported if it did.
    pub(super) fn on_exit(
        &mut self,
        id: ProcessId,
        process: &ProcessValues,
        usage: Option<&Usage>,
        cpu_seconds: Option<f64>,
    ) {
        let moves = self.with_children(id);
        let parent = self.parents.remove(&id);
        let mut transfers = self.pending.remove(&id).unwrap_or_default();
        let all = ExitedCounts::of(process, true);
        let (cpu, faults) = (all.cpu.iter().sum(), all.faults.iter().sum());
        let mut counts = ExitedCounts::of(process, false);
        // The clock counts the process alone.
        counts.raise_cpu(cpu_seconds.unwrap_or(0.0));
        if moves {
            counts.add_children_cpu(process);
        }
        if let Some(usage) = usage.filter(|_| moves) {
            counts.set_wait4(usage);
            // What was pending at it is in it.
            transfers.clear();
        }
        // In the counters of children, minor and major faults are no longer separate; so they are
        // kept as they were sampled.
        self.kept.add(&ExitedCounts { cpu: [0.0; 2], io: None, ..counts });
        (counts.faults, counts.switches) = Default::default();
        if !moves {
            // I/O moves all the same: the kernel does not separate it.
            self.kept.add(&ExitedCounts { io: None, ..counts });
            counts.cpu = [0.0; 2];
        }
        transfers.push(PendingTransfer { counts, cpu, faults });
        if let Some(parent) = parent {
            self.exited_parents.insert(id.pid, parent);
        }
        let reaper = parent.and_then(|pid| self.reaper_of(pid));
        match reaper {
            Some(reaper) => self.pending.entry(reaper).or_default().extend(transfers),
            None => transfers.iter().for_each(|one| self.kept.add(&one.counts)),
        }
    }

    /// The process that has the counters of a child of this process, or will have them.
    fn reaper_of(&self, mut pid: u32) -> Option<ProcessId> {
        // No process has more ancestors that exited between two ticks; a loop is not a process
        // tree.
        for _ in 0..=self.exited_parents.len() {
            if let Some(reaper) = self.parents.keys().find(|one| one.pid == pid) {
                return Some(*reaper);
            }
            pid = *self.exited_parents.get(&pid)?;
        }
        None
    }

    /// All processes were sampled: earlier exits are not noticed any more.
    pub(super) fn sample_completed(&mut self) {
        self.exited_parents.clear();
    }

    /// What is not in any parent's counters now.
    pub(super) fn total(&self) -> ExitedCounts {
        let mut total = self.kept;
        self.pending.values().flatten().for_each(|one| total.add(&one.counts));
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::metrics::{ProcessCpu, ProcessEvents};

    const PARENT: ProcessId = ProcessId { pid: 10, started: 1 };
    const CHILD: ProcessId = ProcessId { pid: 11, started: 2 };

    /// A process with CPU time of its own and of its reaped children, and their faults.
    fn process(own: f64, children: f64, faults: u64, children_faults: u64) -> ProcessValues {
        let cpu = ProcessCpu {
            user: Some(own),
            system: Some(0.0),
            children_user: Some(children),
            children_system: Some(0.0),
            ..ProcessCpu::default()
        };
        let events = ProcessEvents {
            faults_minor: Some(faults),
            children_faults: Some(children_faults),
            ..ProcessEvents::default()
        };
        let mut alive = ProcessValues::default();
        (alive.cpu, alive.events) = (cpu, events);
        alive
    }

    fn parent_and_child(alone: Vec<usize>) -> ExitedUsage {
        let mut exited_usage = ExitedUsage::new(alone);
        exited_usage.starts(PARENT, 1);
        exited_usage.starts(CHILD, PARENT.pid);
        exited_usage
    }

    fn cpu(exited_usage: &ExitedUsage) -> f64 {
        exited_usage.total().cpu.iter().sum()
    }

    #[test]
    fn usage_of_a_child_is_pending_until_its_parent_has_reaped_it() {
        let mut exited_usage = parent_and_child(Vec::new());
        exited_usage.on_exit(CHILD, &process(2.0, 0.0, 30, 0), None, None);
        assert_eq!(cpu(&exited_usage), 2.0);
        let (before, not_yet) = (process(1.0, 0.0, 5, 0), process(1.5, 0.0, 5, 0));
        exited_usage.sampled(PARENT, &before, &not_yet);
        assert_eq!(cpu(&exited_usage), 2.0, "it is not waited for yet");
        exited_usage.sampled(PARENT, &not_yet, &process(1.5, 2.3, 5, 40));
        assert_eq!(cpu(&exited_usage), 0.0, "the parent has it");
        assert_eq!(exited_usage.total().faults[0], 30, "nobody else has these");
    }

    #[test]
    fn usage_of_an_unreaped_process_is_kept() {
        let mut exited_usage = parent_and_child(Vec::new());
        exited_usage.on_exit(CHILD, &process(2.0, 0.0, 30, 0), None, None);
        exited_usage.on_exit(PARENT, &process(1.0, 0.0, 5, 0), None, None);
        assert_eq!(cpu(&exited_usage), 3.0, "the child was never in the parent's account");
    }

    #[test]
    fn child_noticed_after_its_parent_is_pending_at_its_grandparent() {
        let mut exited_usage = parent_and_child(Vec::new());
        let grandchild = ProcessId { pid: 12, started: 3 };
        exited_usage.starts(grandchild, CHILD.pid);
        exited_usage.on_exit(CHILD, &process(0.1, 0.0, 9, 0), None, None);
        exited_usage.on_exit(grandchild, &process(2.0, 0.0, 30, 0), None, None);
        assert_eq!(cpu(&exited_usage), 2.1);
        exited_usage.sampled(PARENT, &process(1.0, 0.0, 5, 0), &process(1.0, 2.2, 5, 50));
        assert_eq!(
            cpu(&exited_usage),
            0.0,
            "both are in the account of whoever waited for the parent"
        );
    }

    #[test]
    fn processes_that_count_alone_transfer_nothing() {
        let mut exited_usage = parent_and_child(vec![0]);
        exited_usage.on_exit(CHILD, &process(2.0, 0.5, 30, 0), None, None);
        exited_usage.sampled(PARENT, &process(1.0, 0.0, 5, 0), &process(1.0, 2.5, 5, 40));
        assert_eq!(cpu(&exited_usage), 2.0, "its own, and not what its children used");
    }

    #[test]
    fn task_clock_that_outlived_a_process_is_used() {
        let mut exited_usage = parent_and_child(vec![0]);
        exited_usage.on_exit(CHILD, &process(0.0, 0.0, 0, 0), None, Some(0.25));
        assert_eq!(cpu(&exited_usage), 0.25);
        let mut exited_usage = parent_and_child(Vec::new());
        exited_usage.on_exit(CHILD, &process(1.0, 3.0, 0, 0), None, Some(1.5));
        assert_eq!(cpu(&exited_usage), 4.5, "it counts the process alone, not its children");
    }
}
