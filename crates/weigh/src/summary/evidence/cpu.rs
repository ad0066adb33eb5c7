//! Which count of CPU time is used for a run, an attached run and the command of a phase. A phase
//! without a command is computed in `summary::phases::figures`.
//!
//! In order of trust:
//!
//! | evidence | value | method | lower bound | upper bound |
//! |---|---|---|---|---|
//! | cgroup, read after the end | its count | exact | the same | the same |
//! | cgroup, last read before the end | its count | sampled | the same | none |
//! | `wait4`, and the task clock agrees | `wait4` | exact | `wait4` | the larger of both |
//! | task clock ahead of `wait4`: children were auto-reaped | task clock | exact | task clock less interrupts and steal, at least `wait4` | the larger of both |
//! | `wait4` alone, orphans reparented to weigh | `wait4` | exact | `wait4` | none |
//! | `wait4` alone, orphans reparented elsewhere | `wait4` | sampled | `wait4` | none |
//! | `wait4` alone, and samples have more | samples | sampled | samples | none |
//! | task clock since the attach | task clock | exact | task clock less interrupts and steal, at least what both have | the larger of both, and all cores until it was opened |
//! | samples | their sum | sampled | their sum | what all cores can have done between the last sample of a process and its exit |
//! | nothing | null | | | |
//!
//! `wait4` does not count auto-reaped children (SIGCHLD ignored). The task clock does, but it runs
//! on while an interrupt or another guest of the hypervisor has the CPU: that time is `irq_and_steal`.

use crate::summary::figure::{Figure, Method};

/// What was counted of the CPU time of a run or a phase, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::summary) enum CpuEvidence {
    /// A cgroup that has all of its processes.
    Cgroup {
        seconds: f64,
        /// Whether it was read after everything else.
        is_final: bool,
    },
    /// What was reaped, and an inherited task clock.
    Wait4AndClock { reaped: f64, clock: f64, irq_and_steal: f64, has_auto_reaped_children: bool },
    /// What was reaped alone.
    Wait4 {
        reaped: f64,
        /// Whether orphaned descendants are reparented to another process than weigh.
        orphans_are_lost: bool,
        /// What was sampled of all processes, when that is certainly more.
        sampled_more: Option<f64>,
    },
    /// Task clocks that were opened on running processes.
    AttachedClock {
        clock: f64,
        sampled: f64,
        irq_and_steal: f64,
        /// What all cores can have done before the clocks were opened.
        before_clock_opened: f64,
    },
    /// The sum of what was sampled of each process.
    Sampled {
        seconds: f64,
        /// What can have been used after the last samples; `None` where processes were missed.
        unsampled: Option<f64>,
    },
}

impl CpuEvidence {
    /// The figure that this evidence gives.
    pub(in crate::summary) fn figure(self, source: &str) -> Figure {
        let (value, method, lower, upper) = self.decide();
        Figure::between(value, method, lower, upper, source)
    }

    /// Value, method, lower and upper bound.
    fn decide(self) -> (f64, Method, f64, Option<f64>) {
        match self {
            CpuEvidence::Cgroup { seconds, is_final: true } => {
                (seconds, Method::Exact, seconds, Some(seconds))
            }
            CpuEvidence::Cgroup { seconds, is_final: false } => {
                (seconds, Method::Sampled, seconds, None)
            }
            CpuEvidence::Wait4AndClock {
                reaped,
                clock,
                irq_and_steal,
                has_auto_reaped_children,
            } => {
                let upper = Some(clock.max(reaped));
                match has_auto_reaped_children {
                    true => (clock, Method::Exact, reaped.max(clock - irq_and_steal), upper),
                    false => (reaped, Method::Exact, reaped, upper),
                }
            }
            CpuEvidence::Wait4 { sampled_more: Some(seconds), .. } => {
                (seconds, Method::Sampled, seconds, None)
            }
            CpuEvidence::Wait4 { reaped, orphans_are_lost, sampled_more: None } => {
                let method = if orphans_are_lost { Method::Sampled } else { Method::Exact };
                (reaped, method, reaped, None)
            }
            CpuEvidence::AttachedClock { clock, sampled, irq_and_steal, before_clock_opened } => {
                let lower = sampled.min(clock).max(clock - irq_and_steal);
                (clock, Method::Exact, lower, Some(clock.max(sampled) + before_clock_opened))
            }
            CpuEvidence::Sampled { seconds, unsampled } => {
                let upper = unsampled.map(|unsampled| seconds + unsampled);
                (seconds, Method::Sampled, seconds, upper)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXACT: Method = Method::Exact;
    const SAMPLED: Method = Method::Sampled;

    #[test]
    fn every_row_of_the_table_gives_its_value_method_and_bounds() {
        let clocks = |has_auto_reaped_children| CpuEvidence::Wait4AndClock {
            reaped: 4.0,
            clock: 5.0,
            irq_and_steal: 0.25,
            has_auto_reaped_children,
        };
        let wait4 = |orphans_are_lost, sampled_more| CpuEvidence::Wait4 {
            reaped: 4.0,
            orphans_are_lost,
            sampled_more,
        };
        let attached = CpuEvidence::AttachedClock {
            clock: 5.0,
            sampled: 4.5,
            irq_and_steal: 0.25,
            before_clock_opened: 0.5,
        };
        let table = [
            (CpuEvidence::Cgroup { seconds: 3.0, is_final: true }, (3.0, EXACT, 3.0, Some(3.0))),
            (CpuEvidence::Cgroup { seconds: 3.0, is_final: false }, (3.0, SAMPLED, 3.0, None)),
            (clocks(false), (4.0, EXACT, 4.0, Some(5.0))),
            (clocks(true), (5.0, EXACT, 4.75, Some(5.0))),
            (wait4(false, None), (4.0, EXACT, 4.0, None)),
            (wait4(true, None), (4.0, SAMPLED, 4.0, None)),
            (wait4(false, Some(4.5)), (4.5, SAMPLED, 4.5, None)),
            (attached, (5.0, EXACT, 4.75, Some(5.5))),
            (
                CpuEvidence::Sampled { seconds: 2.0, unsampled: Some(0.5) },
                (2.0, SAMPLED, 2.0, Some(2.5)),
            ),
            (CpuEvidence::Sampled { seconds: 2.0, unsampled: None }, (2.0, SAMPLED, 2.0, None)),
        ];
        for (evidence, expected) in table {
            assert_eq!(evidence.decide(), expected, "{evidence:?}");
        }
    }

    #[test]
    fn lower_bound_of_a_clock_is_never_below_what_was_reaped_or_above_it() {
        let clock = CpuEvidence::Wait4AndClock {
            reaped: 4.9,
            clock: 5.0,
            irq_and_steal: 3.0,
            has_auto_reaped_children: true,
        };
        assert_eq!(clock.decide().2, 4.9);
        // The clocks were opened late: less was clocked than sampled.
        let late = CpuEvidence::AttachedClock {
            clock: 1.0,
            sampled: 4.0,
            irq_and_steal: 0.0,
            before_clock_opened: 0.0,
        };
        assert_eq!(late.decide(), (1.0, EXACT, 1.0, Some(4.0)));
    }
}
