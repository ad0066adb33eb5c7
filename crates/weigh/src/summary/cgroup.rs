//! The monitored cgroup, as the summary keeps it.

use super::counter_delta::CounterDelta;
use super::curve::{Mean, Peak};
use crate::catalog::metrics::{
    GroupCpu, GroupIo, GroupMemory, GroupPressure, GroupTasks, GroupThrottling,
};
use crate::model::Table;

/// What the kernel reports of the cgroup.
#[derive(Debug, Default, Clone)]
pub(super) struct CgroupUsage {
    /// Whether it was made for the run: then all its counters are the run's.
    is_own: bool,
    /// Its counters as last sampled.
    pub(super) cpu: GroupCpu,
    pub(super) throttling: GroupThrottling,
    pub(super) io: GroupIo,
    pub(super) oom_kills: Option<u64>,
    /// Pressure stall time of its tasks.
    pub(super) waiting: PressureTime,
    /// The largest samples: all its memory, that of programs, and of the page cache.
    pub(super) current: Peak,
    pub(super) anonymous: Peak,
    pub(super) cache: Peak,
    pub(super) swap: Peak,
    pub(super) mean: Mean,
    /// The kernel's own high-water mark at the first sample: it may be from before weigh attached.
    mark_before: Option<f64>,
    mark: Peak,
    /// When it was last sampled.
    pub(super) sampled_at: Option<f64>,
}

/// Pressure stall time: some tasks for a CPU, all for memory, all for storage.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PressureTime {
    pub(super) cpu: CounterDelta,
    pub(super) memory: CounterDelta,
    pub(super) io: CounterDelta,
}

impl CgroupUsage {
    /// Of a run that has a cgroup of its own, or monitors an existing one.
    pub(super) fn of(is_own: bool) -> CgroupUsage {
        CgroupUsage { is_own, mark_before: is_own.then_some(0.0), ..CgroupUsage::default() }
    }

    /// Whether it was made for the run.
    pub(super) fn is_own(&self) -> bool {
        self.is_own
    }

    /// Adds the row of a tick.
    pub(super) fn add(&mut self, table: &Table, at: f64) {
        let cpu: GroupCpu = table.get(0);
        let io: GroupIo = table.get(0);
        let throttling: GroupThrottling = table.get(0);
        let memory: GroupMemory = table.get(0);
        // A value that could not be read this time is carried forward.
        self.cpu = GroupCpu {
            usage: cpu.usage.or(self.cpu.usage),
            user: cpu.user.or(self.cpu.user),
            system: cpu.system.or(self.cpu.system),
        };
        self.io = GroupIo {
            read: io.read.or(self.io.read),
            written: io.written.or(self.io.written),
            reads: io.reads.or(self.io.reads),
            writes: io.writes.or(self.io.writes),
        };
        self.throttling = GroupThrottling {
            periods: throttling.periods.or(self.throttling.periods),
            throttled_periods: throttling.throttled_periods.or(self.throttling.throttled_periods),
            throttled: throttling.throttled.or(self.throttling.throttled),
        };
        let pressure: GroupPressure = table.get(0);
        self.waiting.cpu.add(pressure.cpu_some, at);
        self.waiting.memory.add(pressure.memory_full, at);
        self.waiting.io.add(pressure.io_full, at);
        self.oom_kills = table.get::<GroupTasks>(0).oom_kills.or(self.oom_kills);
        let levels = [
            (&mut self.current, memory.current),
            (&mut self.anonymous, memory.anonymous),
            (&mut self.cache, memory.file),
            (&mut self.swap, memory.swap),
            (&mut self.mark, memory.peak),
        ];
        for (peak, level) in levels {
            if let Some(level) = level {
                peak.add(level as f64, at);
            }
        }
        if let Some(current) = memory.current {
            self.mean.add(current as f64, at);
        }
        self.mark_before = self.mark_before.or(self.mark.value);
        self.sampled_at = Some(at);
    }

    /// The kernel's high-water mark, if it rose since the first sample: then it is of this run.
    pub(super) fn risen(&self) -> Option<Peak> {
        let before = self.mark_before?;
        Some(self.mark).filter(|mark| mark.value.is_some_and(|value| value > before))
    }

    /// The kernel's high-water mark from before the first sample: an upper bound of what was
    /// after, unless it rose.
    pub(super) fn mark_before(&self) -> Option<f64> {
        self.mark_before
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Figure, Method, Summary};
    use super::*;
    use crate::model::Entity;
    use crate::model::settings::Settings;
    use crate::record::StopReason;
    use crate::record::{Event, Target};
    use crate::testing::{FakeRun, MIB};

    /// CPU time, and memory now and its peak in MiB; `None` when the cgroup was removed.
    type Look = Option<(f64, u64, u64)>;

    fn summary(samples: &[Look], faults: &[(&str, &str)]) -> Summary {
        let mut run = FakeRun::with(&Settings { cgroup: true, ..Settings::default() });
        run.manifest.target = Some(Target::Cgroup { path: "/job".to_owned() });
        for (second, sample) in samples.iter().enumerate() {
            run.sample(second as f64, |tick| {
                let Some((usage, current, peak)) = sample else { return };
                let cpu = GroupCpu { usage: Some(*usage), ..GroupCpu::default() };
                let (current, peak) = (Some(current * MIB), Some(peak * MIB));
                let memory = GroupMemory { current, peak, ..GroupMemory::default() };
                let io = GroupIo { read: Some(4096), written: Some(0), ..GroupIo::default() };
                tick.put(Entity::Single, &cpu);
                tick.put(Entity::Single, &memory);
                tick.put(Entity::Single, &io);
            });
        }
        for (source, why) in faults {
            let (source, why) = ((*source).to_owned(), (*why).to_owned());
            run.event(2.0, Event::Fault { source, why });
        }
        run.stops(2.0, |end| (end.why, end.may_miss_processes) = (Some(StopReason::Ended), true));
        run.summary()
    }

    fn figure(summary: &Summary, name: &str) -> Figure {
        summary.figures[name].clone()
    }

    #[test]
    fn high_water_mark_that_rose_while_monitored_is_the_exact_peak() {
        let samples = [Some((0.0, 10, 100)), Some((1.5, 20, 300)), Some((2.0, 0, 300))];
        let summary = summary(&samples, &[]);
        let peak = figure(&summary, "memory_peak_bytes");
        assert_eq!((peak.value, peak.method), (Some((300 * MIB) as f64), Some(Method::Exact)));
        assert_eq!(peak.at_seconds, Some(1.0));
        let cpu = figure(&summary, "cpu_time_seconds");
        assert_eq!((cpu.value, cpu.method), (Some(2.0), Some(Method::Exact)));
        assert_eq!(figure(&summary, "cpu_cores_peak").value, Some(1.5));
    }

    #[test]
    fn high_water_mark_that_did_not_rise_is_only_an_upper_bound() {
        let summary =
            summary(&[Some((0.0, 10, 100)), Some((0.0, 20, 100)), Some((0.0, 0, 100))], &[]);
        let peak = figure(&summary, "memory_peak_bytes");
        assert_eq!((peak.value, peak.method), (Some((20 * MIB) as f64), Some(Method::Sampled)));
        assert_eq!((peak.lower, peak.upper), (peak.value, Some((100 * MIB) as f64)));
    }

    #[test]
    fn cgroup_removed_before_the_last_sample_is_known_until_then() {
        let samples = [Some((0.0, 10, 100)), Some((1.0, 20, 300)), None];
        let summary = summary(&samples, &[("cgroup", "the cgroup was removed")]);
        for name in ["cpu_time_seconds", "memory_peak_bytes"] {
            let figure = figure(&summary, name);
            assert_eq!((figure.method, figure.upper), (Some(Method::Sampled), None), "{name}");
            assert_eq!(figure.reason.as_deref(), Some("the cgroup was removed"));
        }
    }

    #[test]
    fn io_is_exact_unless_the_cgroup_misses_some_of_it() {
        let sample = Some((0.0, 10, 100));
        let whole = figure(&summary(&[sample, sample], &[]), "io_storage_read_bytes");
        assert_eq!((whole.value, whole.method), (Some(4096.0), Some(Method::Exact)));
        let blind = ("cgroup.io", "version 1 does not count all");
        let part = figure(&summary(&[sample, sample], &[blind]), "io_storage_read_bytes");
        assert_eq!((part.value, part.method), (Some(4096.0), Some(Method::Sampled)));
        assert_eq!(part.reason.as_deref(), Some("version 1 does not count all"));
    }

    #[test]
    fn values_the_kernel_does_not_report_are_null_with_a_reason() {
        let refused = ("cgroup.memory", "memory.stat: no such file");
        let summary = summary(&[Some((0.0, 10, 100))], &[refused]);
        let cache = figure(&summary, "memory_cache_peak_bytes");
        assert_eq!(
            (cache.value, cache.reason.as_deref()),
            (None, Some("memory.stat: no such file"))
        );
        assert!(figure(&summary, "cpu_throttled_seconds").reason.is_some());
    }
}
