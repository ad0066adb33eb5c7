//! The CPU time of one process alone: as last sampled, or exact where its exit reported it.
//!
//! What surprised us: `wait4` includes the reaped children of a process, too, and what they used
//! cannot be subtracted: `/proc/PID/stat` truncates it to clock ticks of 10 ms, and the rest of
//! each tick would count as the parent's. A process that weigh reaps is sampled once more while it
//! is a zombie. That sample is exact where the kernel gives nanoseconds, as it does for a single
//! thread; of others `wait4` is exact where no child can be in it.

use super::{Table, Usage};
use crate::catalog::metrics::{ProcessCpu, ProcessEvents, ProcessState, TaskState};

/// CPU time in user mode, in the kernel, and together.
pub type CpuTimes = [f64; 3];

/// The own CPU time of a process.
#[derive(Debug, Clone, Copy, Default)]
pub struct OwnCpu {
    /// When it was last sampled.
    sampled: Option<CpuTimes>,
    /// When that was.
    at: f64,
    /// Whether it had exited by then; `None` where its state was not read.
    had_exited: Option<bool>,
    /// Whether that was in nanoseconds, and not truncated to clock ticks.
    is_to_the_nanosecond: bool,
    /// Whether it certainly had reaped no child by then.
    is_without_children: bool,
}

/// What a process used in all, as its exit reported it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FinalCpu {
    /// What it used.
    pub times: CpuTimes,
    /// Whether that is all of it, and of no other process.
    pub is_exact: bool,
}

/// The last sample of a process that weigh reaps is just before the record of its exit; where its
/// state is not known, an earlier one is not taken for it.
const LAST_SAMPLE: f64 = 1e-3;

impl OwnCpu {
    /// Adds a row of it; returns what it used since the last one.
    pub fn row(&mut self, table: &Table, row: usize, at: f64) -> Option<CpuTimes> {
        let cpu = table.get::<ProcessCpu>(row);
        let (user, system) = cpu.user.zip(cpu.system)?;
        let before = self.sampled.unwrap_or_default();
        let together = cpu.run_time.map_or(user + system, |ran| ran.max(user + system));
        let now = larger([user, system, together], before);
        let state: ProcessState = table.get(row);
        // The first thread may have exited before others.
        self.had_exited =
            state.doing.map(|doing| doing == TaskState::ZOMBIE && state.threads == Some(1));
        self.is_to_the_nanosecond = cpu.run_time.is_some();
        // A child that used less than a clock tick has had page faults all the same.
        let children = [cpu.children_user, cpu.children_system];
        self.is_without_children = children.iter().all(|time| time.unwrap_or(0.0) == 0.0)
            && table.get::<ProcessEvents>(row).children_faults == Some(0);
        (self.sampled, self.at) = (Some(now), at);
        Some(difference(now, before))
    }

    /// As it was last sampled.
    pub fn sampled(&self) -> Option<CpuTimes> {
        self.sampled
    }

    /// What it used in all when it exited at this time: with what `wait4` reported of it and its
    /// children, and a clock that outlived it. `None` when nothing is known.
    pub fn ended(&self, usage: Option<&Usage>, clock: Option<f64>, at: f64) -> Option<FinalCpu> {
        let sampled = self.sampled.unwrap_or_default();
        if let Some(clock) = clock {
            // What was not sampled counts as user mode.
            let unsampled = (clock - sampled[2]).max(0.0);
            let times = [sampled[0] + unsampled, sampled[1], sampled[2] + unsampled];
            return Some(FinalCpu { times, is_exact: true });
        }
        let is_last = self.had_exited.unwrap_or(at - self.at < LAST_SAMPLE);
        match (usage, self.sampled) {
            (Some(usage), Some(_)) if is_last && self.is_without_children => {
                let own = usage.cpu_seconds();
                // It may be below the sample: what was before exec is subtracted.
                let user = (sampled[0] + own - sampled[2]).max(0.0);
                Some(FinalCpu { times: [user, sampled[1], own], is_exact: true })
            }
            (Some(_), Some(times)) if is_last => {
                Some(FinalCpu { times, is_exact: self.is_to_the_nanosecond })
            }
            // Never sampled: what its children used may be in it.
            (Some(usage), None) => Some(FinalCpu {
                times: [usage.user_seconds, usage.system_seconds, usage.cpu_seconds()],
                is_exact: false,
            }),
            (_, Some(times)) => Some(FinalCpu { times, is_exact: false }),
            (None, None) => None,
        }
    }
}

/// By how much one exceeds the other.
pub fn difference(now: CpuTimes, before: CpuTimes) -> CpuTimes {
    std::array::from_fn(|which| now[which] - before[which])
}

fn larger(now: CpuTimes, before: CpuTimes) -> CpuTimes {
    std::array::from_fn(|which| now[which].max(before[which]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Row, Scope, Stored, Value};
    use crate::model::{Entity, ProcessId, Tick};

    fn sampled(own: f64, at: f64) -> OwnCpu {
        OwnCpu { sampled: Some([own, 0.0, own]), at, ..OwnCpu::default() }
    }

    fn usage(seconds: f64) -> Usage {
        Usage { user_seconds: seconds, ..Usage::default() }
    }

    /// A zombie that is reaped just after its last sample: what `wait4` reports of it, its run time
    /// in nanoseconds if it had one thread, and the page faults of its children.
    fn reaped(wait: f64, run_time: Option<f64>, children_faults: Option<u64>) -> FinalCpu {
        let mut tick = Tick::new(&[ProcessCpu::METRICS, ProcessEvents::METRICS]);
        let entity = Entity::Process(ProcessId { pid: 10, started: 100 });
        let times = ProcessCpu { user: Some(1.0), system: Some(0.0), ..ProcessCpu::default() };
        tick.put(entity, &ProcessCpu { run_time, ..times });
        tick.put(entity, &ProcessEvents { children_faults, ..ProcessEvents::default() });
        let mut cpu = OwnCpu::default();
        cpu.row(tick.table(Scope::Process).unwrap(), 0, 5.0);
        cpu.ended(Some(&usage(wait)), None, 5.000_001).unwrap()
    }

    #[test]
    fn exact_cpu_time_of_a_reaped_process_has_nothing_of_its_children() {
        // Six children of 2 ms each are below a clock tick, and so are those of its own time.
        let cpu = reaped(1.018, Some(1.006), Some(500));
        assert_eq!(cpu, FinalCpu { times: [1.0, 0.0, 1.006], is_exact: true });
        let cpu = reaped(1.018, None, Some(500));
        assert_eq!(cpu, FinalCpu { times: [1.0, 0.0, 1.0], is_exact: false });
        let cpu = reaped(1.018, None, None);
        assert!(!cpu.is_exact, "nothing says that it had no child: {cpu:?}");
    }

    #[test]
    fn last_sample_of_a_zombie_is_final_however_long_ago() {
        let ended = |doing: TaskState, threads: u64| {
            let groups = [ProcessCpu::METRICS, ProcessEvents::METRICS, ProcessState::METRICS];
            let mut tick = Tick::new(&groups);
            let entity = Entity::Process(ProcessId { pid: 10, started: 100 });
            let (user, system, run_time) = (Some(1.0), Some(0.0), Some(1.006));
            tick.put(entity, &ProcessCpu { user, system, run_time, ..ProcessCpu::default() });
            let (threads, doing) = (Some(threads), Some(doing));
            tick.put(entity, &ProcessState { threads, doing, ..ProcessState::default() });
            let mut cpu = OwnCpu::default();
            cpu.row(tick.table(Scope::Process).unwrap(), 0, 5.0);
            // On a busy machine weigh may be delayed between the two, or not at all.
            [5.000_001, 6.0].map(|at| cpu.ended(Some(&usage(2.0)), None, at).unwrap().is_exact)
        };
        let running = TaskState::from_value(Value::Symbol(0)).unwrap();
        assert_eq!(ended(TaskState::ZOMBIE, 1), [true, true]);
        assert_eq!(ended(TaskState::ZOMBIE, 2), [false, false], "another thread goes on");
        assert_eq!(ended(running, 1), [false, false]);
    }

    #[test]
    fn wait4_is_exact_of_a_process_without_children() {
        for run_time in [None, Some(1.0187)] {
            let cpu = reaped(1.018, run_time, Some(0));
            assert!(cpu.is_exact && cpu.times[2] == 1.018, "{cpu:?}");
        }
    }

    #[test]
    fn cpu_time_that_was_last_sampled_before_the_end_is_not_exact() {
        let cpu = sampled(1.0, 4.0).ended(None, None, 5.0).unwrap();
        assert_eq!(cpu, FinalCpu { times: [1.0, 0.0, 1.0], is_exact: false });
        let cpu = sampled(1.0, 4.0).ended(Some(&usage(9.0)), None, 5.0).unwrap();
        assert_eq!(cpu, FinalCpu { times: [1.0, 0.0, 1.0], is_exact: false });
        let cpu = OwnCpu::default().ended(Some(&usage(2.0)), None, 5.0).unwrap();
        assert_eq!(cpu, FinalCpu { times: [2.0, 0.0, 2.0], is_exact: false });
        assert_eq!(OwnCpu::default().ended(None, None, 5.0), None);
    }

    #[test]
    fn task_clock_that_outlived_a_process_is_exact() {
        let cpu = sampled(1.0, 4.0).ended(None, Some(1.5), 5.0).unwrap();
        assert_eq!(cpu, FinalCpu { times: [1.5, 0.0, 1.5], is_exact: true });
    }
}
