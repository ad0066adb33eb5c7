//! What slowed a run down: waiting for CPUs, memory and storage, swapping, temperature and quotas.
//!
//! Time spent waiting is the kernel's own (pressure stall information): that of the run's cgroup
//! where one was monitored, else that of the machine, which includes other users. Runs of a few
//! seconds give no finding here.

use serde_json::json;

use super::super::cgroup::{CgroupUsage, PressureTime};
use super::super::counter_delta::CounterDelta;
use super::super::node::Node;
use super::super::{Finding, Severity, Summary};
use super::{LONG_ENOUGH, finding, value, with_slurm};
use crate::catalog::FigureId;
use crate::quantity::{self, Units};

/// The codes of the findings about waiting.
pub(super) const CPU_PRESSURE: &str = "cpu.pressure";
pub(super) const IO_PRESSURE: &str = "io.pressure";
pub(super) const MEMORY_PRESSURE: &str = "memory.pressure";

/// Shares of the time from which waiting is reported. While all tasks wait ("full"), no work is
/// done at all; that some task waits for a CPU is normal where all of them are used.
const MEMORY_FULL: f64 = 0.05;
pub(super) const IO_FULL: f64 = 0.2;
const CPU_SOME: f64 = 0.5;

/// On a machine that is less busy, a task that waits is bound to a CPU, and others are free.
pub(super) const BUSY: f64 = 0.9;

/// Shares of the machine's CPU time from which it is the run that kept its CPUs busy, and below
/// which it is other processes.
pub(super) const OWN_SHARE: f64 = 0.9;
const OTHERS_SHARE: f64 = 0.5;

/// Pages that are swapped back in were needed; those that are only swapped out were not.
const SWAPPED_IN: f64 = 16.0 * MIB;
const SWAPPED: f64 = 64.0 * MIB;
const MIB: f64 = (1u64 << 20) as f64;

/// Some thermal throttling of a CPU is harmless.
const TIMES_TOO_HOT: f64 = 10.0;

/// A quota is used up in some periods.
const THROTTLED_PERIODS: f64 = 0.1;
const THROTTLED_SECONDS: f64 = 1.0;

/// Everything that slowed the run down.
pub(super) fn of(summary: &Summary, node: &Node, cgroup: &CgroupUsage) -> Vec<Finding> {
    if summary.run.measured() < LONG_ENOUGH {
        return Vec::new();
    }
    let pressed = Pressed { summary, node: &node.waiting, cgroup: &cgroup.waiting };
    [pressed.memory(), swapping(node), pressed.io(), pressed.cpu(), quota(cgroup), too_hot(node)]
        .into_iter()
        .flatten()
        .collect()
}

struct Pressed<'a> {
    summary: &'a Summary,
    node: &'a PressureTime,
    cgroup: &'a PressureTime,
}

/// How long some task waited, what part of the time that is, and where.
struct Waited {
    seconds: f64,
    share: f64,
    is_of_cgroup: bool,
}

impl Waited {
    fn time(&self) -> String {
        format!(
            "For {}, {} of the time,",
            quantity::seconds(self.seconds),
            quantity::ratio(self.share)
        )
    }

    fn place(&self) -> &'static str {
        if self.is_of_cgroup { "in its cgroup" } else { "on the machine" }
    }

    fn evidence(&self) -> serde_json::Value {
        let of = if self.is_of_cgroup { "cgroup" } else { "machine" };
        json!({"waited_seconds": self.seconds, "share": self.share, "of": of})
    }
}

impl Pressed<'_> {
    fn waited(&self, of: fn(&PressureTime) -> &CounterDelta, least: f64) -> Option<Waited> {
        let known = |waiting, is_of_cgroup| {
            let rise = of(waiting);
            Some(Waited { seconds: rise.total()?, share: rise.share()?, is_of_cgroup })
        };
        let waited = known(self.cgroup, true).or_else(|| known(self.node, false))?;
        Some(waited).filter(|waited| waited.share >= least)
    }

    fn memory(&self) -> Option<Finding> {
        let waited = self.waited(|waiting| &waiting.memory, MEMORY_FULL)?;
        finding(
            MEMORY_PRESSURE,
            Severity::Warning,
            format!(
                "{} everything {} that had work waited for memory.",
                waited.time(),
                waited.place()
            ),
            waited.evidence(),
            &with_slurm(
                self.summary,
                "Run it where there is more memory, or with less at once",
                "#SBATCH --mem=…",
            ),
        )
    }

    fn io(&self) -> Option<Finding> {
        let waited = self.waited(|waiting| &waiting.io, IO_FULL)?;
        finding(
            IO_PRESSURE,
            Severity::Warning,
            format!(
                "{} everything {} that had work waited for storage.",
                waited.time(),
                waited.place()
            ),
            waited.evidence(),
            &with_slurm(
                self.summary,
                "Work on a faster file system, or read and write in larger pieces",
                "TMPDIR=$SLURM_TMPDIR",
            ),
        )
    }

    fn cpu(&self) -> Option<Finding> {
        let waited = self.waited(|waiting| &waiting.cpu, CPU_SOME)?;
        let machine = &self.summary.parts.system.figures;
        let busy = machine.get(FigureId::CpuUtilizationMean).and_then(|share| share.value);
        if !waited.is_of_cgroup && busy.is_none_or(|busy| busy < BUSY) {
            return None;
        }
        let used = value(self.summary, FigureId::CpuCoresMean)?;
        let cores = self.summary.host.cores_allowed;
        let cause = self.cause(&waited, used);
        let advice = match cause {
            PressureCause::Own => self.fewer_threads(cores),
            PressureCause::Shared => String::new(),
            PressureCause::Others => {
                let advice = "Others keep the CPUs busy: run it where it is alone";
                with_slurm(self.summary, advice, "#SBATCH --exclusive")
            }
        };
        let mut evidence = waited.evidence();
        evidence["cores_mean"] = used.into();
        evidence["cores"] = cores.into();
        finding(
            CPU_PRESSURE,
            if cause == PressureCause::Others { Severity::Warning } else { Severity::Note },
            format!(
                "{} tasks {} waited for a CPU; this run used {used:.2} of {cores} cores.",
                waited.time(),
                waited.place()
            ),
            evidence,
            &advice,
        )
    }

    /// Which processes made tasks wait: the pressure of a cgroup is the run's own; on the machine
    /// the run's share of its CPU time decides.
    fn cause(&self, waited: &Waited, used: f64) -> PressureCause {
        let machine = self.summary.parts.system.figures.get(FigureId::CpuTime);
        let of_machine = machine.and_then(|time| time.value).filter(|time| *time > 0.0);
        let share = value(self.summary, FigureId::CpuTime).zip(of_machine);
        let share = share.map(|(own, all)| own / all);
        let has_its_cores = used >= OWN_SHARE * self.summary.host.cores_allowed;
        match share {
            _ if waited.is_of_cgroup && has_its_cores => PressureCause::Own,
            Some(share) if share >= OWN_SHARE && !waited.is_of_cgroup => PressureCause::Own,
            Some(share) if share < OTHERS_SHARE => PressureCause::Others,
            _ => PressureCause::Shared,
        }
    }

    /// What to do about more threads than cores, where one process has them: whether it uses
    /// OpenMP is not known.
    fn fewer_threads(&self, cores: f64) -> String {
        let threads = self.summary.parts.main.figures.get(FigureId::ThreadsPeak);
        let threads = threads.and_then(|threads| threads.value).filter(|threads| *threads > cores);
        let Some(threads) = threads else { return String::new() };
        let most = cores.max(1.0).floor();
        format!(
            "It has {} threads for {cores} cores; if it uses OpenMP: OMP_NUM_THREADS={most}",
            quantity::count(threads)
        )
    }
}

/// Which processes kept the CPUs busy that tasks waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PressureCause {
    Own,
    Shared,
    Others,
}

/// Bytes that the machine has swapped in and out, where so many were that it matters.
pub(super) fn has_swapped(node: &Node) -> Option<(f64, f64)> {
    let (swapped_in, swapped_out) = (node.swapped_in.total()?, node.swapped_out.total()?);
    let matters = swapped_in >= SWAPPED_IN && swapped_in + swapped_out >= SWAPPED;
    matters.then_some((swapped_in, swapped_out))
}

fn swapping(node: &Node) -> Option<Finding> {
    let (swapped_in, swapped_out) = has_swapped(node)?;
    let bytes = |value: f64| quantity::bytes(value, Units::Binary);
    finding(
        "memory.swapping",
        Severity::Warning,
        format!(
            "The machine swapped {} out and {} back in.",
            bytes(swapped_out),
            bytes(swapped_in)
        ),
        json!({"swapped_in_bytes": swapped_in, "swapped_out_bytes": swapped_out}),
        "Run it where there is more memory, or with less at once; who is swapped out: smem -s swap",
    )
}

fn quota(cgroup: &CgroupUsage) -> Option<Finding> {
    let throttling = &cgroup.throttling;
    let (periods, throttled) = (throttling.periods?, throttling.throttled_periods?);
    let waited = throttling.throttled?;
    let share = throttled as f64 / periods.max(1) as f64;
    if share < THROTTLED_PERIODS || waited < THROTTLED_SECONDS {
        return None;
    }
    finding(
        "cpu.throttled",
        Severity::Warning,
        format!(
            "Its cgroup was throttled by its CPU quota in {throttled} of {periods} periods, for {} in \
             total.",
            quantity::seconds(waited)
        ),
        json!({"periods": periods, "throttled_periods": throttled, "throttled_seconds": waited}),
        "Give it more CPU time or fewer threads: docker run --cpus …, resources.limits.cpu, CPUQuota=",
    )
}

fn too_hot(node: &Node) -> Option<Finding> {
    let times = node.thermal_throttles.total().filter(|times| *times >= TIMES_TOO_HOT)?;
    finding(
        "cpu.too_hot",
        Severity::Warning,
        format!(
            "CPU cores or packages of the machine were thermally throttled {} times.",
            quantity::count(times)
        ),
        json!({"times": times}),
        "Times of this run do not compare with others; look at the cooling: sensors",
    )
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::found;
    use super::super::bottleneck::BottleneckKind;
    use super::*;
    use crate::catalog::Row;
    use crate::catalog::metrics::{
        GroupPressure, GroupThrottling, NodeCpu, NodePaging, NodePressure, NodeThrottle,
        ProcessState,
    };
    use crate::model::Entity;
    use crate::model::batch_job::{BatchJob, Scheduler};
    use crate::model::settings::Settings;
    use crate::testing::{FakeRun, MAIN, usage};

    /// A run of ten seconds on four cores that used so many of them, with one row at its beginning
    /// and one at its end.
    fn ended<R: Row>(mut run: FakeRun, cores: f64, rows: [R; 2]) -> Summary {
        // All cores of the machine are busy.
        let busy = |second: f64| NodeCpu {
            user: Some(4.0 * second),
            nice: Some(0.0),
            system: Some(0.0),
            idle: Some(0.0),
            ..NodeCpu::default()
        };
        for (second, row) in [0.0, 10.0].into_iter().zip(rows) {
            run.sample(second, |tick| {
                tick.put(Entity::Single, &busy(second));
                tick.put(Entity::Single, &row);
            });
        }
        run.reaped(10.0, MAIN, usage(cores * 10.0, 0));
        run.ends(10.0, |end| end.task_clock_seconds = Some(cores * 10.0)).summary()
    }

    fn pressure(cpu: f64, memory: f64, io: f64) -> NodePressure {
        NodePressure {
            cpu_some: Some(1e6 + cpu),
            memory_some: Some(2e6 + memory),
            memory_full: Some(2e6 + memory),
            io_some: Some(3e6 + io),
            io_full: Some(3e6 + io),
            ..NodePressure::default()
        }
    }

    fn pressed(cores: f64, cpu: f64, memory: f64, io: f64) -> Summary {
        ended(FakeRun::new(), cores, [pressure(0.0, 0.0, 0.0), pressure(cpu, memory, io)])
    }

    fn codes(summary: &Summary) -> Vec<&str> {
        summary.findings.iter().map(|finding| finding.code.as_str()).collect()
    }

    #[test]
    fn memory_and_storage_pressure_is_reported_as_a_share_of_the_time() {
        let summary = pressed(3.0, 0.0, 2.5, 4.0);
        assert_eq!(codes(&summary), ["memory.pressure", "io.pressure"]);
        assert_eq!(
            found(&summary, "memory.pressure").unwrap().sentence,
            "For 2.50 s, 25 % of the time, everything on the machine that had work waited for memory."
        );
        let io = found(&summary, "io.pressure").unwrap();
        assert_eq!((&io.evidence["share"], &io.evidence["of"]), (&0.4.into(), &"machine".into()));
        assert!(codes(&pressed(3.0, 4.0, 0.4, 1.9)).is_empty(), "a little is ordinary");
    }

    /// A run whose main process has so many threads, on a machine that other users may share.
    fn crowded(cores: f64, threads: u64, change: impl FnOnce(&mut FakeRun)) -> Finding {
        let mut run = FakeRun::new();
        change(&mut run);
        run.sample(0.0, |tick| {
            let state = ProcessState { threads: Some(threads), ..ProcessState::default() };
            tick.put(Entity::Process(MAIN), &state);
        });
        let rows = [pressure(0.0, 0.0, 0.0), pressure(8.0, 0.0, 0.0)];
        found(&ended(run, cores, rows), "cpu.pressure").unwrap()
    }

    #[test]
    fn cpu_pressure_reports_whether_the_run_or_others_kept_the_cpus_busy() {
        let own = crowded(3.9, 16, |_| {});
        assert_eq!(
            own.sentence,
            "For 8.00 s, 80 % of the time, tasks on the machine waited for a CPU; this run used \
             3.90 of 4 cores."
        );
        assert_eq!(own.severity, Severity::Note);
        assert_eq!(
            own.advice,
            "It has 16 threads for 4 cores; if it uses OpenMP: OMP_NUM_THREADS=4"
        );
        let others = crowded(1.0, 16, |_| {});
        assert_eq!(others.severity, Severity::Warning);
        assert_eq!(others.advice, "Others keep the CPUs busy: run it where it is alone.");
    }

    #[test]
    fn note_that_the_bottleneck_says_already_is_not_repeated() {
        let mut summary = pressed(3.0, 8.0, 0.0, 0.0);
        assert_eq!(codes(&summary), ["cpu.pressure"]);
        let bottleneck = summary.bottleneck.as_mut().unwrap();
        bottleneck.kind = BottleneckKind::Contended;
        assert_eq!(summary.findings_beside_bottleneck().count(), 0);
        summary.findings[0].advice = "Fewer threads.".to_owned();
        assert_eq!(summary.findings_beside_bottleneck().count(), 1, "advice is said nowhere else");
    }

    #[test]
    fn fewer_threads_are_advised_only_for_a_process_that_has_too_many() {
        assert_eq!(crowded(3.9, 1, |_| {}).advice, "", "one thread each");
        let shared = crowded(3.0, 16, |_| {});
        assert_eq!((shared.advice.as_str(), shared.severity), ("", Severity::Note), "75 % of it");
    }

    #[test]
    fn slurm_options_are_named_only_inside_slurm_jobs() {
        let inside = |scheduler: Scheduler| {
            crowded(1.0, 1, |run| {
                run.manifest.job = Some(BatchJob::of(scheduler));
            })
        };
        assert!(inside(Scheduler::Slurm).advice.ends_with(": #SBATCH --exclusive"));
        assert!(!inside(Scheduler::Pbs).advice.contains("SBATCH"));
        for summary in [pressed(3.0, 8.0, 2.5, 4.0), pressed(1.0, 8.0, 2.5, 4.0)] {
            let advice = summary.findings.iter().map(|finding| &finding.advice);
            let named = advice.filter(|advice| advice.to_uppercase().contains("SLURM"));
            assert_eq!(named.count(), 0, "{:?}", summary.findings);
        }
    }

    #[test]
    fn short_run_gives_no_finding_on_the_machine() {
        let mut run = FakeRun::new();
        run.sample(0.0, |tick| tick.put(Entity::Single, &pressure(0.0, 0.0, 0.0)));
        run.sample(2.0, |tick| tick.put(Entity::Single, &pressure(2.0, 2.0, 2.0)));
        assert!(codes(&run.ends(2.0, |_| {}).summary()).is_empty());
    }

    fn of_group() -> FakeRun {
        FakeRun::with(&Settings { cgroup: true, ..Settings::default() })
    }

    #[test]
    fn pressure_of_the_cgroup_is_preferred_to_that_of_the_machine() {
        let waited = |memory| GroupPressure {
            cpu_some: Some(0.0),
            memory_full: Some(memory),
            io_full: Some(0.0),
            ..GroupPressure::default()
        };
        let mut run = of_group();
        run.sample(0.0, |tick| tick.put(Entity::Single, &pressure(0.0, 0.0, 0.0)));
        run.sample(9.0, |tick| tick.put(Entity::Single, &pressure(9.0, 9.0, 9.0)));
        let summary = ended(run, 3.0, [waited(0.0), waited(1.0)]);
        assert_eq!(codes(&summary), ["memory.pressure"], "the rest was others' waiting");
        assert_eq!(
            summary.findings[0].sentence,
            "For 1.00 s, 10 % of the time, everything in its cgroup that had work waited for \
             memory."
        );
    }

    #[test]
    fn used_up_quota_is_reported_with_its_periods() {
        let throttling_row = |periods, throttled_periods, throttled| GroupThrottling {
            periods: Some(periods),
            throttled_periods: Some(throttled_periods),
            throttled: Some(throttled),
            ..GroupThrottling::default()
        };
        let end = |row| ended(of_group(), 3.0, [throttling_row(0, 0, 0.0), row]);
        let summary = end(throttling_row(100, 47, 12.5));
        assert_eq!(
            found(&summary, "cpu.throttled").unwrap().sentence,
            "Its cgroup was throttled by its CPU quota in 47 of 100 periods, for 12.50 s in total."
        );
        assert!(codes(&end(throttling_row(100, 5, 12.5))).is_empty());
        assert!(codes(&end(throttling_row(100, 47, 0.5))).is_empty());
    }

    #[test]
    fn swapping_counts_when_pages_are_swapped_back_in() {
        let swapped = |swapped_in: u64, swapped_out: u64| {
            let row = |swapped_in, swapped_out| NodePaging {
                swapped_in: Some(swapped_in << 20),
                swapped_out: Some(swapped_out << 20),
                ..NodePaging::default()
            };
            ended(
                FakeRun::new(),
                3.0,
                [row(1000, 1000), row(1000 + swapped_in, 1000 + swapped_out)],
            )
        };
        assert_eq!(
            found(&swapped(48, 100), "memory.swapping").unwrap().sentence,
            "The machine swapped 100 MiB out and 48.0 MiB back in."
        );
        assert!(codes(&swapped(0, 4000)).is_empty(), "what is not needed may go");
        assert!(codes(&swapped(20, 20)).is_empty());
    }

    #[test]
    fn repeated_thermal_throttling_of_cpus_is_reported() {
        let throttled = |cores: u64, packages| {
            let row = |cores, packages| NodeThrottle {
                cores: Some(cores),
                packages,
                ..NodeThrottle::default()
            };
            ended(FakeRun::new(), 3.0, [row(7, packages), row(7 + cores, packages)])
        };
        let finding = found(&throttled(57, Some(3)), "cpu.too_hot").unwrap();
        assert_eq!(
            finding.sentence,
            "CPU cores or packages of the machine were thermally throttled 57 times."
        );
        assert!(codes(&throttled(9, None)).is_empty());
    }
}
