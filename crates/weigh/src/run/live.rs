//! The values of a run while it runs: about once a second for whoever shows them, or on request.

use std::time::Duration;

use crate::model::live::LiveProcesses;
use crate::summary::{Accumulator, RunTotals};

/// The values of a run at a tick.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveValues {
    /// How long it has been measured.
    pub elapsed: Duration,
    /// Cores used since the values before.
    pub cores: Option<f64>,
    /// Memory in use; an upper bound where shares (PSS) are not known.
    pub memory: Option<LiveMemory>,
    /// The sum of resident memory, which counts shared pages for each process.
    pub memory_rss_bytes: Option<u64>,
    /// Live processes.
    pub processes: Option<u64>,
    /// Their threads.
    pub threads: Option<u64>,
    /// GPUs in use: the sum of their utilization.
    pub gpus: Option<f64>,
    /// GPU memory of its processes.
    pub gpu_memory_bytes: Option<u64>,
    /// The phase that started last and is not over.
    pub phase: Option<String>,
}

/// Memory in use at a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveMemory {
    /// In bytes.
    pub bytes: u64,
    /// Whether it is a sum of resident memory, which counts shared pages for each process.
    pub is_upper_bound: bool,
}

impl LiveValues {
    fn of(at: Duration, cores: Option<f64>, totals: &RunTotals, phase: Option<&str>) -> LiveValues {
        let exact = totals.memory.used.map(|bytes| LiveMemory { bytes, is_upper_bound: false });
        let sum = totals.memory.rss.map(|bytes| LiveMemory { bytes, is_upper_bound: true });
        LiveValues {
            elapsed: at,
            cores,
            memory: exact.or(sum),
            memory_rss_bytes: totals.memory.rss,
            processes: totals.processes.alive,
            threads: totals.processes.threads,
            gpus: totals.gpu.busy,
            gpu_memory_bytes: totals.gpu.memory,
            phase: phase.map(str::to_owned),
        }
    }
}

/// What an observer is told.
#[derive(Debug)]
pub enum LiveEvent<'a> {
    /// New values.
    Values(&'a LiveValues),
    /// The terminal has another size.
    Resized,
    /// The run is about to be stopped by Ctrl-Z, and the terminal is another job's.
    Suspended,
}

/// Called with the values of a run while it runs; dropped when it has ended, before its summary.
pub type LiveObserver = Box<dyn FnMut(LiveEvent<'_>)>;

/// The time between two values, slightly less than a second so that none of the ticks that are a
/// second apart is left out.
const BETWEEN: Duration = Duration::from_millis(900);

/// An observer, and when it gets its next values.
pub(super) struct Observed {
    observer: LiveObserver,
    due: Duration,
    /// The CPU time at the values before, and when.
    before: (f64, Duration),
}

impl Observed {
    /// Values from the first second on: shorter runs have none.
    pub(super) fn new(observer: LiveObserver) -> Observed {
        Observed { observer, due: BETWEEN, before: (0.0, Duration::ZERO) }
    }

    /// A complete tick was added.
    pub(super) fn tick(&mut self, at: Duration, all: &Accumulator, live: &LiveProcesses) {
        if at < self.due {
            return;
        }
        self.due = at + BETWEEN;
        let totals = all.totals(live);
        let (before, then) = self.before;
        let seconds = at.saturating_sub(then).as_secs_f64();
        let cores = totals.cpu.cpu.map(|cpu| ((cpu - before) / seconds).max(0.0));
        self.before = totals.cpu.cpu.map_or(self.before, |cpu| (cpu, at));
        let values = LiveValues::of(at, cores, &totals, all.open_phase());
        (self.observer)(LiveEvent::Values(&values));
    }

    /// Passes on what concerns the terminal.
    pub(super) fn tell(&mut self, event: LiveEvent<'_>) {
        (self.observer)(event);
    }
}

/// The shortest time over which requested values have a rate: the kernel counts the CPU time of
/// some processes in steps of 10 ms, which two requests in a row would show as 0 or many cores.
const SHORTEST_WINDOW: Duration = Duration::from_secs(1);

/// The CPU time at earlier requests, for the cores of the next one.
///
/// Cores are a mean since the last request that is at least a second ago, so that a caller that
/// asks every ten seconds misses nothing in between.
#[derive(Debug, Default)]
pub(super) struct RequestedValues {
    /// The CPU time and moment of the last two requests that were a second apart or more; at first
    /// the start of the run.
    before: [(f64, Duration); 2],
}

impl RequestedValues {
    /// The values now, which is the time of the last tick.
    pub(super) fn now(
        &mut self,
        at: Duration,
        all: &Accumulator,
        live: &LiveProcesses,
    ) -> LiveValues {
        let totals = all.totals(live);
        let cores = totals.cpu.cpu.and_then(|cpu| self.cores(cpu, at));
        LiveValues::of(at, cores, &totals, all.open_phase())
    }

    fn cores(&mut self, cpu: f64, at: Duration) -> Option<f64> {
        let [older, newer] = self.before;
        let is_long = at.saturating_sub(newer.1) >= SHORTEST_WINDOW;
        let (before, then) = if is_long { newer } else { older };
        if is_long {
            self.before = [newer, (cpu, at)];
        }
        let seconds = at.saturating_sub(then).as_secs_f64();
        (seconds > 0.0).then(|| ((cpu - before) / seconds).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::record::Moment;
    use crate::testing::{CHILD, FakeRun, MAIN, MIB, cpu, memory};

    /// The values that an observer gets.
    fn values(run: &FakeRun) -> Vec<LiveValues> {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let observer = {
            let seen = Rc::clone(&seen);
            Box::new(move |event: LiveEvent<'_>| {
                if let LiveEvent::Values(values) = event {
                    seen.borrow_mut().push(values.clone());
                }
            })
        };
        let (mut live, mut accumulator) =
            (Observed::new(observer), Accumulator::new(&run.manifest));
        run.replay(|frame| {
            accumulator.frame(frame);
            if let Moment::Tick(tick) = frame.moment {
                live.tick(tick.at, &accumulator, frame.live);
            }
        });
        seen.take()
    }

    #[test]
    fn values_come_once_a_second_with_the_cores_since_the_last_ones() {
        let mut run = FakeRun::new();
        run.starts(0.0, MAIN, "work");
        for tenth in 0..=30 {
            let at = f64::from(tenth) / 10.0;
            run.sample(at, |tick| {
                cpu(tick, MAIN, at * 0.5, 0.0);
                memory(tick, MAIN, 10 * MIB, 10 * MIB, Some(8 * MIB));
            });
        }
        let values = values(&run);
        let times: Vec<_> = values.iter().map(|one| one.elapsed.as_millis()).collect();
        assert_eq!(times, [900, 1800, 2700]);
        assert!(values.iter().all(|one| (one.cores.unwrap() - 0.5).abs() < 1e-9), "{values:?}");
        let expected = LiveMemory { bytes: 10 * MIB, is_upper_bound: false };
        assert_eq!(values[0].memory, Some(expected));
        assert_eq!((values[0].processes, values[0].gpus), (Some(1), None));
    }

    #[test]
    fn sum_of_resident_memory_is_an_upper_bound_where_shares_are_not_known() {
        let mut run = FakeRun::new();
        run.starts(0.0, MAIN, "work").starts_under(0.0, CHILD, MAIN.pid, "child");
        run.sample(1.0, |tick| {
            memory(tick, MAIN, 10 * MIB, 10 * MIB, None);
            memory(tick, CHILD, 5 * MIB, 5 * MIB, None);
        });
        let expected = LiveMemory { bytes: 15 * MIB, is_upper_bound: true };
        assert_eq!(values(&run)[0].memory, Some(expected));
    }

    #[test]
    fn requested_cores_are_a_mean_over_a_second_or_more() {
        let mut requested = RequestedValues::default();
        let mut cores = |cpu, milliseconds| {
            requested.cores(cpu, Duration::from_millis(milliseconds)).map(|c| (c * 1e3).round())
        };
        assert_eq!(cores(0.0, 0), None, "no time has passed");
        assert_eq!(cores(0.05, 100), Some(500.0), "since the start");
        assert_eq!(cores(1.0, 2000), Some(500.0));
        // Ten milliseconds after the one before: still since the start.
        assert_eq!(cores(1.01, 2010), Some(502.0));
        assert_eq!(cores(3.0, 3000), Some(2000.0), "since the request at two seconds");
        assert_eq!(cores(3.0, 13_000), Some(0.0));
    }

    #[test]
    fn requested_values_are_those_of_the_last_tick() {
        let mut run = FakeRun::new();
        run.starts(0.0, MAIN, "work").starts_under(0.0, CHILD, MAIN.pid, "child");
        run.sample(2.0, |tick| {
            cpu(tick, MAIN, 1.0, 0.0);
            memory(tick, MAIN, 10 * MIB, 10 * MIB, None);
            memory(tick, CHILD, 5 * MIB, 5 * MIB, None);
        });
        let (mut requested, mut seen) = (RequestedValues::default(), None);
        let mut accumulator = Accumulator::new(&run.manifest);
        run.replay(|frame| {
            accumulator.frame(frame);
            if let Moment::Tick(tick) = frame.moment {
                seen = Some(requested.now(tick.at, &accumulator, frame.live));
            }
        });
        let seen = seen.unwrap();
        assert_eq!((seen.processes, seen.memory_rss_bytes), (Some(2), Some(15 * MIB)));
        assert!(seen.memory.unwrap().is_upper_bound, "no shares are known");
        assert_eq!((seen.threads, seen.gpus), (None, None), "missing is not 0");
        assert!((seen.cores.unwrap() - 0.5).abs() < 1e-9);
    }
}
