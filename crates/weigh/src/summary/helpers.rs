//! `weigh mark` and `weigh phase` inside a run: what they used is subtracted from the counters it
//! is in.
//!
//! The kernel adds what a process used to its parent when that reaps it, and an inherited task
//! clock counts it, too. Each helper reports in its last message what it has used until then. Its
//! exit comes after that, so CPU time, page faults and context switches keep a small rest, and have
//! bounds; I/O is exact, because an exit reads and writes nothing.

use super::figure::{Figure, Method};
use crate::model::{Io, Usage};
use crate::record::events::HelperUsage;

const REASON: &str =
    "the usage of weigh mark and weigh phase is subtracted, except for that of their exit";

/// What the helpers of a run, or of one phase, have used.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Helpers {
    used: HelperUsage,
}

impl Helpers {
    pub(super) fn of(used: HelperUsage) -> Helpers {
        Helpers { used }
    }

    pub(super) fn add(&mut self, used: &HelperUsage) {
        self.used.add(used);
    }

    /// CPU time of the run without theirs.
    pub(super) fn cpu_without_helpers(&self, seconds: f64) -> f64 {
        (seconds - self.used.all().cpu_seconds()).max(0.0)
    }

    /// What `wait4` reported, without theirs.
    pub(super) fn usage_without_helpers(&self, usage: &Usage) -> Usage {
        usage.less(&self.used.all())
    }

    /// One count of page faults or context switches, without theirs.
    pub(super) fn count_without_helpers(&self, count: f64, of: fn(&Usage) -> u64) -> f64 {
        (count - of(&self.used.all()) as f64).max(0.0)
    }

    /// What they have read and written.
    pub(super) fn io(&self) -> &Io {
        &self.used.io
    }

    /// A figure of CPU time whose value is without theirs.
    pub(super) fn bound_cpu(&self, figure: Figure) -> Figure {
        let (usage, startup) = (self.used.usage.cpu_seconds(), self.used.startup.cpu_seconds());
        bound(figure, usage, startup)
    }

    /// A figure of page faults or context switches whose value is without theirs.
    pub(super) fn bound_count(&self, figure: Figure, of: fn(&Usage) -> u64) -> Figure {
        bound(figure, of(&self.used.usage) as f64, of(&self.used.startup) as f64)
    }
}

/// No exit takes more than all that the process did before it. What was before its exec may have
/// been the work of a shell.
fn bound(figure: Figure, usage: f64, startup: f64) -> Figure {
    let Some(value) = figure.value.filter(|_| usage + startup > 0.0) else { return figure };
    let method = figure.method.map(|method| match method {
        Method::Exact => Method::Estimated,
        other => other,
    });
    let lower = figure.lower.map(|lower| (lower - usage - startup).clamp(0.0, value));
    let upper = figure.upper.map(|upper| upper + startup);
    let reason = match &figure.reason {
        Some(reason) => format!("{reason}; {REASON}"),
        None => REASON.to_owned(),
    };
    Figure { method, lower, upper, reason: Some(reason), ..figure }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helper_widens_the_bounds_by_its_exit_and_its_startup() {
        let usage = |user_seconds| Usage { user_seconds, ..Usage::default() };
        let mut helpers = Helpers::default();
        let exact = Figure::exact(1.0, "wait4");
        assert_eq!(helpers.bound_cpu(exact.clone()), exact, "without helpers nothing changes");
        for _ in 0..2 {
            let io = Io { written_bytes: 50, ..Io::default() };
            helpers.add(&HelperUsage { usage: usage(0.02), startup: usage(0.01), io });
        }
        let without = helpers.cpu_without_helpers(1.06);
        let figure = helpers.bound_cpu(Figure::exact(without, "wait4"));
        let near = |value: Option<f64>, truth: f64| (value.unwrap() - truth).abs() < 1e-9;
        assert!(near(figure.value, 1.0) && near(figure.lower, 0.94), "{figure:?}");
        assert!(near(figure.upper, 1.02) && figure.method == Some(Method::Estimated), "{figure:?}");
        assert_eq!(helpers.io().written_bytes, 100);
    }
}
