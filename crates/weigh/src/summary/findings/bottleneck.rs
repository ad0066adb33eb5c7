//! What limited a run, from its figures alone.
//!
//! The time between two ticks is counted by the cores that were used in it
//! (`summary::core_time`): all that the run may use, one of several, or none. Time spent waiting is
//! the kernel's pressure stall information, while *everything* that had work waited: that of the
//! run's cgroup where one was monitored, else that of the machine. The first row that holds decides:
//!
//! | evidence | bottleneck |
//! |---|---|
//! | measured for less than [`SHORTEST`] | too short |
//! | its CPU time is not known | unknown |
//! | all waited for memory, [`WAITED`] of the time | memory |
//! | the GPUs that it used were busy, [`GPU_BUSY`] of the time | GPU |
//! | all cores were used, [`MOST`] of the time | CPU |
//! | the machine's CPUs were busy, others had a part of them, and some task waited for one, [`WAITED`] of the time | contended |
//! | one core was used, [`MOST`] of the time | one core |
//! | all waited for storage, [`WAITED`] of the time, and the run used storage | storage |
//! | the machine swapped, and its memory pressure is not known | memory |
//! | no core was used, [`MOST`] of the time | waiting |
//! | anything else | undecided |
//!
//! A GPU comes before the cores: a program that waits for it often keeps a core busy meanwhile.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::super::cgroup::CgroupUsage;
use super::super::core_time::CoreShares;
use super::super::figure::Method;
use super::super::node::Node;
use super::super::{Summary, Tool};
use super::gpus::{UsedGpus, used_gpus};
use super::pressure::{BUSY, CPU_PRESSURE, IO_PRESSURE, MEMORY_PRESSURE, OWN_SHARE, has_swapped};
use super::value;
use crate::catalog::FigureId;
use crate::quantity;
use crate::record::Manifest;

/// What limited a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bottleneck {
    /// What it was.
    pub kind: BottleneckKind,
    /// How that was found; null when it was not.
    pub method: Option<Method>,
    /// In a sentence, with the numbers.
    pub sentence: String,
    /// The numbers behind it; shares are of the time.
    pub evidence: Map<String, Value>,
}

/// What a run is limited by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BottleneckKind {
    /// It used all of its cores.
    Cpu,
    /// It used one of its cores at a time.
    OneCore,
    /// It shared its cores with other processes.
    Contended,
    /// The GPUs that it used were busy.
    Gpu,
    /// It waited for storage.
    Storage,
    /// It waited for memory.
    Memory,
    /// It used no core, and what it waited for is not known.
    Waiting,
    /// Nothing of that for most of the time.
    Undecided,
    /// It was too short to say.
    TooShort,
    /// Its CPU time is not known.
    Unknown,
}

impl BottleneckKind {
    /// The code of the finding that says the same.
    pub(in crate::summary) fn finding(self) -> Option<&'static str> {
        match self {
            BottleneckKind::Contended => Some(CPU_PRESSURE),
            BottleneckKind::Storage => Some(IO_PRESSURE),
            BottleneckKind::Memory => Some(MEMORY_PRESSURE),
            _ => None,
        }
    }
}

/// Shorter runs are mostly start-up.
const SHORTEST: f64 = 1.0;

/// Most of the time.
const MOST: f64 = 0.5;

/// While everything waits nothing is done: less than most of the time matters. Two programs that
/// have a CPU each wait for less, too.
const WAITED: f64 = 0.2;

/// GPUs are idle between two kernels also where they are the limit.
const GPU_BUSY: f64 = 0.7;

/// A run that has moved fewer bytes from or to storage did not wait for it: others did.
const STORAGE_BYTES: f64 = (1u64 << 20) as f64;

/// A program with a smaller part of the CPU time is not worth naming.
const NAMED_SHARE: f64 = 0.3;

/// Less waiting is not worth a word.
const SAID_SHARE: f64 = 0.01;

/// What decides.
#[derive(Debug, Clone, Default)]
struct BottleneckEvidence {
    seconds: f64,
    /// Cores used on average, and those that it may use.
    cores_mean: Option<f64>,
    cores: f64,
    shares: Option<CoreShares>,
    /// Utilization of the machine's CPUs, and the run's part of the CPU time there.
    machine_busy: Option<f64>,
    own_share: Option<f64>,
    /// Shares of the time in which some tasks waited for a CPU, all for memory, all for storage.
    cpu_waited: Option<f64>,
    memory_waited: Option<f64>,
    storage_waited: Option<f64>,
    /// Bytes from and to storage; `None` where that is not known.
    storage_bytes: Option<f64>,
    has_swapped: bool,
    gpus: Option<UsedGpus>,
    /// Whether the time spent waiting is that of its own cgroup.
    is_of_cgroup: bool,
}

impl BottleneckEvidence {
    fn decide(&self) -> BottleneckKind {
        let (Some(_), Some(shares)) = (self.cores_mean, self.shares) else {
            let is_short = self.seconds < SHORTEST;
            return if is_short { BottleneckKind::TooShort } else { BottleneckKind::Unknown };
        };
        let used_storage = self.storage_bytes.is_none_or(|bytes| bytes >= STORAGE_BYTES);
        let rows = [
            (self.seconds < SHORTEST, BottleneckKind::TooShort),
            (self.memory_waited >= Some(WAITED), BottleneckKind::Memory),
            (self.gpus.as_ref().is_some_and(|gpus| gpus.busy >= GPU_BUSY), BottleneckKind::Gpu),
            (shares.all >= MOST, BottleneckKind::Cpu),
            (self.is_contended(shares), BottleneckKind::Contended),
            (shares.one >= MOST, BottleneckKind::OneCore),
            (self.storage_waited >= Some(WAITED) && used_storage, BottleneckKind::Storage),
            (self.has_swapped && self.memory_waited.is_none(), BottleneckKind::Memory),
            (shares.none >= MOST, BottleneckKind::Waiting),
        ];
        let first = rows.into_iter().find(|(holds, _)| *holds);
        first.map_or(BottleneckKind::Undecided, |(_, kind)| kind)
    }

    /// Whether it worked most of the time, on CPUs that were all busy and not only its own.
    fn is_contended(&self, shares: CoreShares) -> bool {
        shares.none < MOST
            && self.machine_busy >= Some(BUSY)
            && self.cpu_waited >= Some(WAITED)
            && self.own_share.is_some_and(|share| share < OWN_SHARE)
    }

    fn everything(&self) -> &'static str {
        if self.is_of_cgroup {
            "everything in its cgroup that had work"
        } else {
            "everything on the machine that had work"
        }
    }

    fn used(&self) -> String {
        let mean = self.cores_mean.unwrap_or(0.0);
        let plural = if self.cores == 1.0 { "" } else { "s" };
        format!("it used {mean:.2} of {} core{plural}", quantity::count(self.cores))
    }

    /// The sentence, without what is added to any of them.
    fn clauses(&self, kind: BottleneckKind) -> Vec<String> {
        let shares = self.shares.unwrap_or_default();
        let percent = |share: Option<f64>| quantity::ratio(share.unwrap_or(0.0));
        let all = quantity::ratio(shares.all);
        match kind {
            BottleneckKind::Cpu => {
                let which = if self.cores == 1.0 { "it was busy" } else { "all of them were busy" };
                vec![format!("CPU-bound: {}", self.used()), format!("{which} {all} of the time")]
            }
            BottleneckKind::OneCore => vec![
                format!("Bound by one core: {}", self.used()),
                format!("one at a time for {} of the time", quantity::ratio(shares.one)),
            ],
            BottleneckKind::Contended => vec![format!(
                "CPUs shared with other processes: {}, while the machine was {} busy and tasks \
                 waited for a CPU {} of the time",
                self.used(),
                percent(self.machine_busy),
                percent(self.cpu_waited)
            )],
            BottleneckKind::Gpu => {
                let gpus = self.gpus.as_ref();
                let named = gpus.map_or("its GPUs", |gpus| gpus.named.as_str());
                let were = if gpus.is_some_and(|gpus| gpus.count == 1) { "was" } else { "were" };
                let busy = percent(gpus.map(|gpus| gpus.busy));
                vec![format!("GPU-bound: {named} {were} busy {busy} of the time"), self.used()]
            }
            BottleneckKind::Storage => vec![
                format!(
                    "Bound by storage: {} waited for it {} of the time",
                    self.everything(),
                    percent(self.storage_waited)
                ),
                self.used(),
            ],
            BottleneckKind::Memory => {
                let waited = self.memory_waited.map(|share| {
                    format!(
                        "{} waited for it {} of the time",
                        self.everything(),
                        quantity::ratio(share)
                    )
                });
                let swapped = self.has_swapped.then(|| "the machine swapped".to_owned());
                let why: Vec<String> = [waited, swapped].into_iter().flatten().collect();
                vec![format!("Bound by memory: {}", why.join(", ")), self.used()]
            }
            BottleneckKind::Waiting => {
                let why = match self.storage_waited {
                    Some(_) => {
                        "neither storage nor memory explains it: input, the network, a timer or \
                         another process"
                    }
                    None => "what for is not known",
                };
                vec![
                    format!(
                        "It mostly waited: it used no core {} of the time",
                        quantity::ratio(shares.none)
                    ),
                    why.to_owned(),
                ]
            }
            BottleneckKind::Undecided => {
                let several = (1.0 - shares.all - shares.one - shares.none).max(0.0);
                let several_of = match self.cores {
                    cores if cores <= 1.0 => "a part of it",
                    cores if cores <= 2.0 => "a part of them",
                    _ => "several cores",
                };
                let mut parts = [
                    (shares.all, "all cores"),
                    (several, several_of),
                    (shares.one, "one core"),
                    (shares.none, "none"),
                ];
                parts.sort_by(|(one, _), (other, _)| other.total_cmp(one));
                let known = parts.into_iter().filter(|(share, _)| *share >= SAID_SHARE);
                let parts: Vec<String> = known
                    .map(|(share, what)| format!("{what} {} of the time", quantity::ratio(share)))
                    .collect();
                vec![format!("No single bottleneck: {}", self.used()), parts.join(", ")]
            }
            BottleneckKind::TooShort => vec!["Too short to say what limited it".to_owned()],
            BottleneckKind::Unknown => vec!["What limited it is not known".to_owned()],
        }
    }

    /// Waiting that did not decide.
    fn also_waited(&self, kind: BottleneckKind) -> Option<String> {
        let is_said = !matches!(kind, BottleneckKind::Storage | BottleneckKind::Waiting);
        let share = self.storage_waited.filter(|share| is_said && *share >= SAID_SHARE)?;
        Some(format!("{} waited for storage {}", self.everything(), quantity::ratio(share)))
    }

    fn numbers(&self) -> Map<String, Value> {
        let numbers = json!({
            "cores_mean": self.cores_mean,
            "cores": self.cores,
            "all_cores_share": self.shares.map(|shares| shares.all),
            "one_core_share": self.shares.map(|shares| shares.one),
            "no_core_share": self.shares.map(|shares| shares.none),
            "machine_busy_ratio": self.machine_busy,
            "cpu_waited_share": self.cpu_waited,
            "memory_waited_share": self.memory_waited,
            "storage_waited_share": self.storage_waited,
            "waited_of": if self.is_of_cgroup { "cgroup" } else { "machine" },
            "gpu_busy_ratio": self.gpus.as_ref().map(|gpus| gpus.busy),
        });
        if let Value::Object(numbers) = numbers { numbers } else { Map::new() }
    }
}

/// What limited the run. The parts of a merged recording have several machines.
pub(in crate::summary) fn of(
    summary: &Summary,
    manifest: &Manifest,
    shares: Option<CoreShares>,
    node: &Node,
    cgroup: &CgroupUsage,
) -> Option<Bottleneck> {
    if manifest.is_merged() {
        return None;
    }
    let evidence = evidence(summary, manifest, shares, node, cgroup);
    let kind = evidence.decide();
    let mut clauses = evidence.clauses(kind);
    let is_known = !matches!(kind, BottleneckKind::TooShort | BottleneckKind::Unknown);
    let mean = summary.figures.get(FigureId::CpuCoresMean);
    if is_known {
        clauses.extend(most_cpu(summary).filter(|_| !matches!(kind, BottleneckKind::Waiting)));
        clauses.extend(evidence.also_waited(kind));
    } else if kind == BottleneckKind::Unknown {
        clauses.extend(mean.and_then(|mean| mean.reason.clone()));
    }
    // Ticks decide, however exact the CPU time is.
    let is_estimated = mean.is_some_and(|mean| mean.method == Some(Method::Estimated));
    let method = if is_estimated { Method::Estimated } else { Method::Sampled };
    Some(Bottleneck {
        kind,
        method: is_known.then_some(method),
        sentence: format!("{}.", clauses.join("; ")),
        evidence: evidence.numbers(),
    })
}

fn evidence(
    summary: &Summary,
    manifest: &Manifest,
    shares: Option<CoreShares>,
    node: &Node,
    cgroup: &CgroupUsage,
) -> BottleneckEvidence {
    let machine = &summary.parts.system.figures;
    let own = value(summary, FigureId::CpuTime).zip(machine.value(FigureId::CpuTime));
    let is_of_cgroup = cgroup.waiting.io.share().is_some();
    let waiting = if is_of_cgroup { &cgroup.waiting } else { &node.waiting };
    let (read, written) = (FigureId::IoStorageRead, FigureId::IoStorageWritten);
    let storage = value(summary, read).zip(value(summary, written));
    BottleneckEvidence {
        seconds: summary.run.measured(),
        cores_mean: value(summary, FigureId::CpuCoresMean),
        cores: manifest.cores(),
        shares,
        machine_busy: machine.value(FigureId::CpuUtilizationMean),
        own_share: own.filter(|(_, all)| *all > 0.0).map(|(own, all)| own / all),
        cpu_waited: waiting.cpu.share(),
        memory_waited: waiting.memory.share(),
        storage_waited: waiting.io.share(),
        storage_bytes: storage.map(|(read, written)| read + written),
        has_swapped: has_swapped(node).is_some(),
        gpus: used_gpus(summary),
        is_of_cgroup,
    }
}

/// The program with the most CPU time, where it is a large part of that of the run.
fn most_cpu(summary: &Summary) -> Option<String> {
    let all = value(summary, FigureId::CpuTime).filter(|all| *all > 0.0)?;
    let named = summary.tools.iter().filter(|tool| !tool.is_others());
    let timed = named.filter_map(|tool| Some((tool, tool.cpu_time_seconds?)));
    let (tool, time): (&Tool, f64) = timed.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let share = (time / all).min(1.0);
    if share < NAMED_SHARE || summary.processes.total == 1 {
        return None;
    }
    let at_least = if tool.cpu_time_method == Some(Method::Exact) { "" } else { "at least " };
    let several = match tool.instances {
        1 => String::new(),
        instances => format!(" ({} processes)", quantity::count(instances as f64)),
    };
    let share = quantity::ratio(share);
    Some(format!("{}{several} had {at_least}{share} of its CPU time", tool.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::metrics::{NodeCpu, NodePressure};
    use crate::model::{Entity, Tick};
    use crate::testing::{CHILD, FakeRun, MAIN, cpu, usage};

    /// Ten seconds on four cores, of which it used so many, for these shares of the time.
    fn evidence(cores: f64, [all, one, none]: [f64; 3]) -> BottleneckEvidence {
        BottleneckEvidence {
            seconds: 10.0,
            cores_mean: Some(cores),
            cores: 4.0,
            shares: Some(CoreShares { all, one, none }),
            machine_busy: Some(cores / 4.0),
            own_share: Some(1.0),
            cpu_waited: Some(0.0),
            memory_waited: Some(0.0),
            storage_waited: Some(0.0),
            storage_bytes: Some(1e9),
            ..BottleneckEvidence::default()
        }
    }

    fn gpus(busy: f64) -> Option<UsedGpus> {
        Some(UsedGpus { busy, count: 1, named: "nvidia0".to_owned() })
    }

    #[test]
    fn bottleneck_is_decided_by_the_first_row_that_holds() {
        use BottleneckKind::{
            Contended, Cpu, Gpu, Memory, OneCore, Storage, TooShort, Undecided, Unknown, Waiting,
        };
        let full = evidence(3.9, [0.95, 0.0, 0.0]);
        let serial = evidence(1.0, [0.0, 0.97, 0.0]);
        let idle = evidence(0.01, [0.0, 0.0, 0.99]);
        let mixed = evidence(1.6, [0.3, 0.3, 0.3]);
        let busy = |one: BottleneckEvidence| BottleneckEvidence {
            machine_busy: Some(0.98),
            cpu_waited: Some(0.2),
            own_share: Some(0.4),
            ..one
        };
        let stored = |one: &BottleneckEvidence, share| BottleneckEvidence {
            storage_waited: Some(share),
            ..one.clone()
        };
        let pressed = BottleneckEvidence { memory_waited: Some(0.2), ..full.clone() };
        let on_gpu = BottleneckEvidence { gpus: gpus(0.7), ..serial.clone() };
        let rows = [
            (full.clone(), Cpu),
            (BottleneckEvidence { seconds: 0.9, ..full.clone() }, TooShort),
            (BottleneckEvidence { cores_mean: None, ..full.clone() }, Unknown),
            (BottleneckEvidence { shares: None, ..full.clone() }, Unknown),
            (BottleneckEvidence { shares: None, seconds: 0.1, ..full.clone() }, TooShort),
            (pressed.clone(), Memory),
            (BottleneckEvidence { memory_waited: Some(0.19), ..full.clone() }, Cpu),
            (on_gpu.clone(), Gpu),
            (BottleneckEvidence { gpus: gpus(0.69), ..serial.clone() }, OneCore),
            (BottleneckEvidence { memory_waited: Some(0.3), ..on_gpu }, Memory),
            (serial.clone(), OneCore),
            // Others had the rest of the machine: it may have wanted more than one core.
            (busy(serial.clone()), Contended),
            (busy(mixed.clone()), Contended),
            (busy(full.clone()), Cpu),
            (busy(idle.clone()), Waiting),
            // No task waited for a CPU: the other program has its own core.
            (BottleneckEvidence { cpu_waited: Some(0.1), ..busy(serial.clone()) }, OneCore),
            (stored(&mixed, 0.2), Storage),
            (stored(&idle, 0.9), Storage),
            (stored(&idle, 0.19), Waiting),
            (stored(&full, 0.3), Cpu),
            (BottleneckEvidence { storage_bytes: Some(4096.0), ..stored(&idle, 0.9) }, Waiting),
            (BottleneckEvidence { storage_bytes: None, ..stored(&idle, 0.9) }, Storage),
            (BottleneckEvidence { has_swapped: true, ..idle.clone() }, Waiting),
            (BottleneckEvidence { has_swapped: true, memory_waited: None, ..idle.clone() }, Memory),
            (idle, Waiting),
            (mixed, Undecided),
        ];
        for (place, (evidence, kind)) in rows.into_iter().enumerate() {
            assert_eq!(evidence.decide(), kind, "row {place}: {evidence:?}");
        }
    }

    #[test]
    fn each_bottleneck_is_said_with_its_numbers() {
        let said = |evidence: &BottleneckEvidence| evidence.clauses(evidence.decide()).join("; ");
        let full = evidence(3.9, [0.95, 0.0, 0.0]);
        assert_eq!(
            said(&full),
            "CPU-bound: it used 3.90 of 4 cores; all of them were busy 95 % of the time"
        );
        assert_eq!(
            said(&evidence(1.0, [0.0, 0.97, 0.0])),
            "Bound by one core: it used 1.00 of 4 cores; one at a time for 97 % of the time"
        );
        let on_gpu = BottleneckEvidence { gpus: gpus(0.93), ..evidence(1.0, [0.0, 1.0, 0.0]) };
        assert_eq!(
            said(&on_gpu),
            "GPU-bound: nvidia0 was busy 93 % of the time; it used 1.00 of 4 cores"
        );
        let pressed = BottleneckEvidence {
            memory_waited: Some(0.4),
            has_swapped: true,
            is_of_cgroup: true,
            ..full
        };
        assert_eq!(
            said(&pressed),
            "Bound by memory: everything in its cgroup that had work waited for it 40 % of the \
             time, the machine swapped; it used 3.90 of 4 cores"
        );
        assert_eq!(
            said(&evidence(1.6, [0.3, 0.4, 0.2])),
            "No single bottleneck: it used 1.60 of 4 cores; one core 40 % of the time, all cores \
             30 % of the time, none 20 % of the time, several cores 10 % of the time"
        );
        let idle = evidence(0.0, [0.0, 0.0, 1.0]);
        assert_eq!(
            said(&idle),
            "It mostly waited: it used no core 100 % of the time; neither storage nor memory \
             explains it: input, the network, a timer or another process"
        );
        let blind = BottleneckEvidence { storage_waited: None, ..idle };
        assert!(said(&blind).ends_with("; what for is not known"), "{}", said(&blind));
    }

    /// A run of so many seconds that uses so many cores, mostly in its child.
    fn run(seconds: u32, cores: f64, fill: impl Fn(&mut Tick, f64)) -> Bottleneck {
        let mut run = FakeRun::new();
        run.starts(0.0, MAIN, "make").starts_under(0.0, CHILD, MAIN.pid, "cc1");
        for second in 0..=seconds {
            let at = f64::from(second);
            run.sample(at, |tick| {
                cpu(tick, MAIN, 0.1 * cores * at, 0.0);
                cpu(tick, CHILD, 0.9 * cores * at, 0.0);
                fill(tick, at);
            });
        }
        let end = f64::from(seconds);
        run.exits(end, CHILD).reaped(end, MAIN, usage(cores * end, 0));
        run.ends(end, |end| end.task_clock_seconds = Some(cores * end.duration_seconds));
        run.summary().bottleneck.unwrap()
    }

    #[test]
    fn program_with_most_of_the_cpu_time_is_named() {
        let found = run(10, 4.0, |_, _| {});
        assert_eq!(
            found.sentence,
            "CPU-bound: it used 4.00 of 4 cores; all of them were busy 100 % of the time; cc1 had \
             at least 90 % of its CPU time."
        );
        assert_eq!((found.kind, found.method), (BottleneckKind::Cpu, Some(Method::Sampled)));
        assert_eq!(found.evidence["all_cores_share"], 1.0);
        assert_eq!(found.evidence["storage_waited_share"], Value::Null);
    }

    #[test]
    fn waiting_for_storage_is_said_beside_another_bottleneck() {
        let found = run(10, 1.0, |tick, at| {
            let io = Some(0.1 * at);
            tick.put(Entity::Single, &NodePressure { io_full: io, ..NodePressure::default() });
            let user = Some(at);
            let (nice, system, idle) = (Some(0.0), Some(0.0), Some(3.0 * at));
            tick.put(Entity::Single, &NodeCpu { user, nice, system, idle, ..NodeCpu::default() });
        });
        assert_eq!(found.kind, BottleneckKind::OneCore);
        let end = "; everything on the machine that had work waited for storage 10 %.";
        assert!(found.sentence.ends_with(end), "{}", found.sentence);
    }

    #[test]
    fn run_that_is_too_short_or_not_sampled_says_so() {
        let mut short = FakeRun::new();
        short.starts(0.0, MAIN, "true").reaped(0.2, MAIN, usage(0.1, 0)).ends(0.2, |_| {});
        let found = short.summary().bottleneck.unwrap();
        assert_eq!((found.kind, found.method), (BottleneckKind::TooShort, None));
        assert_eq!(found.sentence, "Too short to say what limited it.");
        let mut unknown = FakeRun::new();
        unknown.stops(9.0, |_| {});
        let found = unknown.summary().bottleneck.unwrap();
        assert_eq!(found.kind, BottleneckKind::Unknown, "{found:?}");
        assert_eq!(FakeRun::merged().summary().bottleneck, None);
    }
}
