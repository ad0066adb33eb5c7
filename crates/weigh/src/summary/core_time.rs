//! How long a run used all of its cores, one of them, or none.

use super::curve::SHORTEST_WINDOW;

/// From this share of its cores a run uses all of them: the kernel, weigh and the end of a parallel
/// part take the rest.
const ALL: f64 = 0.85;

/// One core, within the error of a window: a program that does one thing at a time.
const ONE: std::ops::RangeInclusive<f64> = 0.85..=1.15;

/// Less of a core is no work.
const NONE: f64 = 0.15;

/// The time of a run by how many cores it used between two ticks.
#[derive(Debug, Clone, Copy)]
pub(super) struct CoreTime {
    /// The cores that it may use.
    allowed: f64,
    /// The CPU time at the last window, and when.
    last: (f64, f64),
    /// Seconds in which it used all cores, exactly one of several, none, and all seconds.
    all: f64,
    one: f64,
    none: f64,
    total: f64,
}

/// Shares of the time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct CoreShares {
    /// All cores were used.
    pub(super) all: f64,
    /// One of several cores was used.
    pub(super) one: f64,
    /// No core was used.
    pub(super) none: f64,
}

impl CoreTime {
    /// Of a run that may use so many cores, from its beginning.
    pub(super) fn of(allowed: f64) -> CoreTime {
        CoreTime { allowed, last: (0.0, 0.0), all: 0.0, one: 0.0, none: 0.0, total: 0.0 }
    }

    /// Adds the CPU time of the run until now.
    pub(super) fn add(&mut self, cpu: f64, at: f64) {
        let (before, then) = self.last;
        let seconds = at - then;
        if seconds < SHORTEST_WINDOW {
            return;
        }
        self.last = (cpu, at);
        self.total += seconds;
        let cores = (cpu - before).max(0.0) / seconds;
        if cores >= self.allowed * ALL {
            self.all += seconds;
        } else if ONE.contains(&cores) {
            self.one += seconds;
        } else if cores < NONE {
            self.none += seconds;
        }
    }

    /// The shares of the time; `None` before the first window.
    pub(super) fn shares(&self) -> Option<CoreShares> {
        let share = |seconds: f64| seconds / self.total;
        let (all, one, none) = (share(self.all), share(self.one), share(self.none));
        (self.total > 0.0).then_some(CoreShares { all, one, none })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shares of a run that used so many of its cores in each second.
    fn shares(allowed: f64, seconds: &[f64]) -> CoreShares {
        let mut time = CoreTime::of(allowed);
        let mut cpu = 0.0;
        for (second, cores) in seconds.iter().enumerate() {
            cpu += cores;
            time.add(cpu, second as f64 + 1.0);
        }
        time.shares().unwrap()
    }

    #[test]
    fn time_is_divided_by_the_cores_that_were_used() {
        let mixed = shares(4.0, &[3.9, 3.5, 1.0, 0.0, 2.0]);
        assert_eq!(mixed, CoreShares { all: 0.4, one: 0.2, none: 0.2 });
        assert_eq!(CoreTime::of(4.0).shares(), None);
    }

    #[test]
    fn one_core_is_all_where_there_is_one() {
        assert_eq!(shares(1.0, &[1.0, 0.9]), CoreShares { all: 1.0, one: 0.0, none: 0.0 });
    }

    #[test]
    fn windows_shorter_than_a_clock_tick_can_tell_are_joined() {
        let mut time = CoreTime::of(2.0);
        for (cpu, at) in [(0.02, 0.01), (0.02, 0.05), (0.1, 0.1)] {
            time.add(cpu, at);
        }
        assert_eq!(time.shares(), Some(CoreShares { all: 0.0, one: 1.0, none: 0.0 }));
    }
}
