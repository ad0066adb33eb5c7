//! What processes that have ended leave behind, when weigh is not the one who waits for them.
//!
//! What a process used moves into the account of the parent that waits for it. If that
//! parent is followed, too, what was seen is owed by it until the account of its children
//! rises; so nothing is missing in between, and nothing is counted twice. If nobody who is
//! followed waits, what was last seen is kept for good.

use std::collections::{BTreeMap, HashMap};

use super::alive::TrackedProcess;
use crate::model::{ProcessId, Usage, numbering};

/// What one process used, with the children it had waited for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ExitedCounts {
    /// CPU time in user mode and in the kernel.
    pub cpu: [f64; 2],
    /// I/O, in the order of [`TrackedProcess::all_io`]; `None` when it could not be read.
    pub io: Option<[f64; 6]>,
    /// Page faults, minor and major, of its own; and of the children it had waited for.
    pub faults: [u64; 3],
    /// Context switches, voluntary and involuntary.
    pub switches: [u64; 2],
}

impl ExitedCounts {
    /// Of a process as it was last seen; of its own alone, or with its children's.
    fn of(process: &TrackedProcess, with_children: bool) -> ExitedCounts {
        let (cpu, events) = (&process.last.cpu, &process.last.events);
        let children = if with_children {
            [cpu.children_user.unwrap_or(0.0), cpu.children_system.unwrap_or(0.0)]
        } else {
            [0.0; 2]
        };
        ExitedCounts {
            cpu: [cpu.user.unwrap_or(0.0) + children[0], cpu.system.unwrap_or(0.0) + children[1]],
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
        }
    }

    /// Takes what `wait4` said, which is with the children it had waited for.
    fn told(&mut self, usage: &Usage) {
        self.cpu = [usage.user_seconds, usage.system_seconds];
        self.faults = [usage.minor_faults, usage.major_faults, 0];
        self.switches = [usage.voluntary_switches, usage.involuntary_switches];
    }

    /// Takes what a clock of the kernel's says that it used in all, if that is more.
    ///
    /// The clock does not say in which mode: it is split as far as it was seen.
    fn raise_cpu(&mut self, seconds: f64) {
        let seen = self.cpu[0] + self.cpu[1];
        if seconds > seen {
            let user = if seen > 0.0 { self.cpu[0] / seen } else { 1.0 };
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

/// Everything that was left behind.
#[derive(Debug)]
pub(super) struct ExitedUsage {
    /// Namespaces of pids in which every process counts for itself alone; in the others its CPU
    /// time moves to whoever waits.
    alone: Vec<usize>,
    parents: HashMap<ProcessId, u32>,
    /// Parents of those who went since everybody was looked at: a child that is noticed after
    /// its parent is in the account of whoever waited for that.
    gone: HashMap<u32, u32>,
    kept: ExitedCounts,
    /// In an order, so that the same recording always gives the same last digit.
    pending: BTreeMap<ProcessId, Vec<PendingTransfer>>,
}

/// What will be in the account of whoever waits.
#[derive(Debug, Clone, Copy)]
struct PendingTransfer {
    account: ExitedCounts,
    /// CPU time and page faults by which the account of its children rises then, at least.
    cpu: f64,
    faults: u64,
}

/// Clock ticks that may be lost when times are added up on their way.
const ROUNDING: f64 = 0.05;

impl ExitedUsage {
    /// Of processes with all they start, but each for itself in these namespaces of pids.
    pub(super) fn new(alone: Vec<usize>) -> ExitedUsage {
        ExitedUsage {
            alone,
            parents: HashMap::new(),
            gone: HashMap::new(),
            kept: ExitedCounts::default(),
            pending: BTreeMap::new(),
        }
    }

    /// Whether what children used belongs to this process, if it waited for them.
    pub(super) fn with_children(&self, id: ProcessId) -> bool {
        self.alone.is_empty() || !self.alone.contains(&numbering::original(id.pid).0)
    }

    /// A process has this parent.
    pub(super) fn starts(&mut self, id: ProcessId, parent: u32) {
        self.parents.insert(id, parent);
    }

    /// A process was looked at: what it owed is paid if its children's account rose by as much.
    pub(super) fn sampled(&mut self, id: ProcessId, before: &TrackedProcess, now: &TrackedProcess) {
        let Some(pending) = self.pending.get_mut(&id) else { return };
        let waited = |alive: &TrackedProcess| {
            let cpu = &alive.last.cpu;
            cpu.children_user.unwrap_or(0.0) + cpu.children_system.unwrap_or(0.0)
        };
        let faulted = |alive: &TrackedProcess| alive.last.events.children_faults.unwrap_or(0);
        let mut cpu = waited(now) - waited(before) + ROUNDING;
        let mut faults = faulted(now).saturating_sub(faulted(before));
        pending.retain(|one| {
            let is_paid = cpu >= one.cpu && faults >= one.faults;
            if is_paid {
                cpu -= one.cpu;
                faults -= one.faults;
            }
            !is_paid
        });
    }

    /// A process is gone that had this, as it was last seen and as `wait4` said if it did.
    pub(super) fn on_exit(
        &mut self,
        id: ProcessId,
        gone: &TrackedProcess,
        usage: Option<&Usage>,
        cpu_seconds: Option<f64>,
    ) {
        let moves = self.with_children(id);
        let parent = self.parents.remove(&id);
        let mut debts = self.pending.remove(&id).unwrap_or_default();
        let all = ExitedCounts::of(gone, true);
        let (cpu, faults) = (all.cpu.iter().sum(), all.faults.iter().sum());
        let mut account = ExitedCounts::of(gone, moves);
        if let Some(usage) = usage.filter(|_| moves) {
            account.told(usage);
            // Those it owed for are in it.
            debts.clear();
        }
        account.raise_cpu(cpu_seconds.unwrap_or(0.0));
        // Where faults and switches of children go, minor and major are not told apart any
        // more; so they are kept as they were seen.
        self.kept.add(&ExitedCounts { cpu: [0.0; 2], io: None, ..account });
        (account.faults, account.switches) = Default::default();
        if !moves {
            // I/O moves all the same: the kernel does not keep it apart.
            self.kept.add(&ExitedCounts { io: None, ..account });
            account.cpu = [0.0; 2];
        }
        debts.push(PendingTransfer { account, cpu, faults });
        if let Some(parent) = parent {
            self.gone.insert(id.pid, parent);
        }
        let reaper_of = parent.and_then(|pid| self.reaper_of(pid));
        match reaper_of {
            Some(reaper_of) => self.pending.entry(reaper_of).or_default().extend(debts),
            None => debts.iter().for_each(|one| self.kept.add(&one.account)),
        }
    }

    /// Who has the account of a child of this process, or will have it.
    fn reaper_of(&self, mut pid: u32) -> Option<ProcessId> {
        // Nobody has more ancestors who went between two looks; a loop is no family.
        for _ in 0..=self.gone.len() {
            if let Some(reaper_of) = self.parents.keys().find(|one| one.pid == pid) {
                return Some(*reaper_of);
            }
            pid = *self.gone.get(&pid)?;
        }
        None
    }

    /// Everybody was looked at: who went before is not noticed any more.
    pub(super) fn sample_completed(&mut self) {
        self.gone.clear();
    }

    /// What is in nobody's account now.
    pub(super) fn total(&self) -> ExitedCounts {
        let mut total = self.kept;
        self.pending.values().flatten().for_each(|one| total.add(&one.account));
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::metrics::{ProcessCpu, ProcessEvents};

    const PARENT: ProcessId = ProcessId { pid: 10, started: 1 };
    const CHILD: ProcessId = ProcessId { pid: 11, started: 2 };

    /// Somebody with CPU time of its own and of the children it waited for, and their faults.
    fn somebody(own: f64, children: f64, faults: u64, children_faults: u64) -> TrackedProcess {
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
        let mut alive = TrackedProcess::default();
        (alive.last.cpu, alive.last.events) = (cpu, events);
        alive
    }

    fn family(alone: Vec<usize>) -> ExitedUsage {
        let mut exited_usage = ExitedUsage::new(alone);
        exited_usage.starts(PARENT, 1);
        exited_usage.starts(CHILD, PARENT.pid);
        exited_usage
    }

    fn cpu(exited_usage: &ExitedUsage) -> f64 {
        exited_usage.total().cpu.iter().sum()
    }

    #[test]
    fn what_a_child_used_is_owed_until_its_parent_has_it() {
        let mut exited_usage = family(Vec::new());
        exited_usage.on_exit(CHILD, &somebody(2.0, 0.0, 30, 0), None, None);
        assert_eq!(cpu(&exited_usage), 2.0);
        let (before, not_yet) = (somebody(1.0, 0.0, 5, 0), somebody(1.5, 0.0, 5, 0));
        exited_usage.sampled(PARENT, &before, &not_yet);
        assert_eq!(cpu(&exited_usage), 2.0, "it is not waited for yet");
        exited_usage.sampled(PARENT, &not_yet, &somebody(1.5, 2.3, 5, 40));
        assert_eq!(cpu(&exited_usage), 0.0, "the parent has it");
        assert_eq!(exited_usage.total().faults[0], 30, "nobody else has these");
    }

    #[test]
    fn what_nobody_waits_for_is_kept() {
        let mut exited_usage = family(Vec::new());
        exited_usage.on_exit(CHILD, &somebody(2.0, 0.0, 30, 0), None, None);
        exited_usage.on_exit(PARENT, &somebody(1.0, 0.0, 5, 0), None, None);
        assert_eq!(cpu(&exited_usage), 3.0, "the child was never in the parent's account");
    }

    #[test]
    fn a_child_that_is_noticed_after_its_parent_is_owed_by_its_grandparent() {
        let mut exited_usage = family(Vec::new());
        let grandchild = ProcessId { pid: 12, started: 3 };
        exited_usage.starts(grandchild, CHILD.pid);
        exited_usage.on_exit(CHILD, &somebody(0.1, 0.0, 9, 0), None, None);
        exited_usage.on_exit(grandchild, &somebody(2.0, 0.0, 30, 0), None, None);
        assert_eq!(cpu(&exited_usage), 2.1);
        exited_usage.sampled(PARENT, &somebody(1.0, 0.0, 5, 0), &somebody(1.0, 2.2, 5, 50));
        assert_eq!(
            cpu(&exited_usage),
            0.0,
            "both are in the account of whoever waited for the parent"
        );
    }

    #[test]
    fn where_each_counts_for_itself_nothing_moves() {
        let mut exited_usage = family(vec![0]);
        exited_usage.on_exit(CHILD, &somebody(2.0, 0.5, 30, 0), None, None);
        exited_usage.sampled(PARENT, &somebody(1.0, 0.0, 5, 0), &somebody(1.0, 2.5, 5, 40));
        assert_eq!(cpu(&exited_usage), 2.0, "its own, and not what its children used");
    }

    #[test]
    fn a_clock_that_outlived_a_process_knows_better() {
        let mut exited_usage = family(vec![0]);
        exited_usage.on_exit(CHILD, &somebody(0.0, 0.0, 0, 0), None, Some(0.25));
        assert_eq!(cpu(&exited_usage), 0.25);
    }
}
