//! `run.json`: what runs, where, and how it is measured.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::clock::ClockReading;
use super::{FORMAT, Member, Target, secrets};
use crate::catalog::{Metric, SourceId};
use crate::model::batch_job::BatchJob;
use crate::model::counted_events::CountedEvents;
use crate::model::hardware::{Hardware, HardwareGpu, Surroundings};
use crate::model::settings::Settings;
use crate::model::{Facts, ProcessId, base_name};

/// Which weigh wrote something, in which format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// The version of weigh.
    pub version: String,
    /// The version of the format.
    pub format: u32,
}

impl Default for Origin {
    fn default() -> Origin {
        Origin { version: env!("CARGO_PKG_VERSION").to_owned(), format: FORMAT }
    }
}

/// What is known when a run begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Which weigh recorded it.
    pub weigh: Origin,
    /// Identifies this run.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// The command; null when command lines are not recorded.
    pub command: Option<Vec<String>>,
    /// Who ran it; null when the user has no name.
    #[serde(default)]
    pub user: Option<String>,
    /// What was monitored; null when weigh started a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// Clock ticks from boot to when weigh attached: what a process used before is not the run's.
    /// Null when weigh started it.
    #[serde(rename = "came", default, skip_serializing_if = "Option::is_none")]
    pub attach_clock_ticks: Option<u64>,
    /// From when the recorded counters of processes and cgroups count.
    #[serde(default)]
    pub counters: CounterOrigin,
    /// The command's process, or the attached one; 0 when there are several, or none.
    pub pid: u32,
    /// Clock ticks from boot to its start.
    pub process_started: u64,
    /// When it began, by the wall clock; all other times are counted from here.
    pub started: Timestamp,
    /// Labels that distinguish it from others.
    pub labels: BTreeMap<String, String>,
    /// Seconds between two ticks.
    pub interval_seconds: f64,
    /// Share of one core for expensive reads.
    pub budget_ratio: f64,
    /// Cores the run was expected to use.
    pub expected_cores: Option<f64>,
    /// Collectors that were requested.
    pub collectors: Vec<String>,
    /// Collectors that would have been used and could not be, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub absent: BTreeMap<String, String>,
    /// The events of perf that are counted; null when none are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<CountedEvents>,
    /// The machine.
    pub host: Facts,
    /// The hardware of the machine. It is read while the run is already going, so a run that was
    /// cut off at once has none; merged machines have none in common.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<Hardware>,
    /// The limits of the run, to repeat it; null when not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surroundings: Option<Surroundings>,
    /// The batch job it is part of.
    pub job: Option<BatchJob>,
    /// What is known of the wall clock of its machine; null where nothing was asked, as on one
    /// machine alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockReading>,
    /// What the columns mean.
    pub catalogue: Vec<Described>,
    /// Whether `integrity.json` says what the recording holds; earlier ones have none.
    #[serde(default)]
    pub sealed: bool,
}

/// A metric as a recording describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// The column it is in.
    pub column: String,
    /// Its unit.
    pub unit: Cow<'static, str>,
    /// Gauge or counter.
    pub kind: Cow<'static, str>,
    /// A few words.
    pub label: Cow<'static, str>,
    /// A sentence.
    pub help: Cow<'static, str>,
    /// Where it comes from.
    pub source: Cow<'static, str>,
}

impl From<&Metric> for Described {
    fn from(metric: &Metric) -> Described {
        Described {
            name: metric.name(),
            column: metric.column(),
            unit: metric.unit.name().into(),
            kind: metric.kind.name().into(),
            label: metric.label.into(),
            help: metric.help.into(),
            source: metric.source.into(),
        }
    }
}

/// From when the recorded counters of processes and cgroups count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CounterOrigin {
    /// As the kernel gives them: from the start of each process. Readers subtract what was before
    /// weigh attached.
    #[default]
    SinceStart,
    /// From when weigh attached, or the process started: of recordings that were merged, each had
    /// its own baseline.
    SinceAttach,
}

impl Manifest {
    /// The same, when it is known what the machine is made of.
    pub fn with_hardware(mut self, hardware: Hardware) -> Manifest {
        self.host.gpus = hardware.gpus.iter().map(HardwareGpu::called).collect();
        self.hardware = Some(hardware);
        self
    }

    /// What is known of a run that is about to begin.
    pub fn new(settings: &Settings, command: &[String], host: Facts, wall: Duration) -> Manifest {
        let started = Timestamp::from_nanosecond(wall.as_nanos() as i128).unwrap_or_default();
        let program = command.first().map_or("run", |program| base_name(program));
        let sources = settings.sources();
        Manifest {
            weigh: Origin::default(),
            id: new_id(started, wall),
            name: settings.name.as_deref().map_or_else(|| program.to_owned(), secrets::remark),
            command: settings.command_lines.then(|| command.to_vec()),
            user: None,
            target: None,
            attach_clock_ticks: None,
            counters: CounterOrigin::default(),
            pid: 0,
            process_started: 0,
            started,
            labels: masked(&settings.labels),
            interval_seconds: settings.interval.as_secs_f64(),
            budget_ratio: settings.budget,
            expected_cores: settings.expected_cores,
            collectors: sources.iter().map(|source| source.name.to_owned()).collect(),
            absent: BTreeMap::new(),
            events: None,
            host,
            hardware: None,
            surroundings: None,
            job: None,
            clock: None,
            catalogue: sources
                .iter()
                .flat_map(|source| source.groups)
                .copied()
                .flatten()
                .map(Described::from)
                .collect(),
            sealed: true,
        }
    }

    /// The cores that the run should use: those expected, or all that it may use.
    pub fn cores(&self) -> f64 {
        self.expected_cores.unwrap_or(self.host.cores_allowed)
    }

    /// Leaves out a collector that this machine cannot have, and the metrics that are its own.
    pub fn leave_out(&mut self, collector: &str, groups: &[&[Metric]], why: &str) {
        self.collectors.retain(|name| name != collector);
        let first = groups.iter().filter_map(|group| group.first());
        let own: Vec<String> = first.map(Metric::name_of_group).collect();
        self.catalogue.retain(|metric| !own.iter().any(|group| metric.name.starts_with(group)));
        self.absent.insert(collector.to_owned(), why.to_owned());
    }
}

/// Labels without the secrets in them.
fn masked(labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let masked = |(name, value): (&String, &String)| (name.clone(), secrets::label(name, value));
    labels.iter().map(masked).collect()
}

impl Manifest {
    /// Whether a source was collected.
    pub fn collects(&self, source: SourceId) -> bool {
        self.collectors.iter().any(|name| name == source.name())
    }

    /// The command's process, or the attached one.
    pub fn main(&self) -> ProcessId {
        ProcessId { pid: self.pid, started: self.process_started }
    }

    /// The main processes: one, or one for each merged recording.
    pub fn mains(&self) -> Vec<ProcessId> {
        match &self.target {
            Some(Target::Merged { members, .. }) => members.iter().map(Member::main).collect(),
            _ => vec![self.main()],
        }
    }

    /// Whether there are no final counters, so that the samples of the processes are all that is
    /// known.
    pub fn is_attached(&self) -> bool {
        !matches!(self.target, None | Some(Target::Merged { exact: true, .. }))
    }

    /// Whether processes are found while it is monitored that are not children of known ones.
    pub fn finds_processes_later(&self) -> bool {
        matches!(
            self.target,
            Some(Target::Cgroup { .. } | Target::Programs { .. } | Target::Job { .. })
        )
    }

    /// Whether this is a merge of several recordings.
    pub fn is_merged(&self) -> bool {
        matches!(self.target, Some(Target::Merged { .. }))
    }

    /// Clock ticks from boot to the run's zero.
    pub fn zero(&self) -> u64 {
        self.attach_clock_ticks.unwrap_or(self.process_started)
    }
}

/// The id of a run that began then; two that begin in the same second do not share it.
///
/// Time and pid are not enough: two containers may start a run in the same moment, with the same
/// pid.
pub(crate) fn new_id(started: Timestamp, wall: Duration) -> String {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u128(wall.as_nanos());
    hasher.write_u32(std::process::id());
    let random = hasher.finish() as u32;
    format!("{}-{random:08x}", started.strftime("%Y%m%dT%H%M%S"))
}
