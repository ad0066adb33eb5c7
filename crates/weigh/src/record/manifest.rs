//! `run.json`: what runs, where, and how it is measured.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::FORMAT;
use crate::catalog::Metric;
use crate::host::facts::Facts;
use crate::settings::Settings;

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
    /// Tells this run from every other.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// The command; null when command lines are not recorded.
    pub command: Option<Vec<String>>,
    /// Who ran it; null when the user has no name.
    #[serde(default)]
    pub user: Option<String>,
    /// Processes that ran before weigh came and were followed; none when weigh started a command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<u32>,
    /// The command's process.
    pub pid: u32,
    /// Clock ticks from boot to its start.
    pub process_started: u64,
    /// When it began, by the wall clock; all other times are counted from here.
    pub started: Timestamp,
    /// Words that tell it from others.
    pub labels: BTreeMap<String, String>,
    /// Seconds between two ticks.
    pub interval_seconds: f64,
    /// Share of one core for expensive reads.
    pub budget_ratio: f64,
    /// Cores the run was expected to keep busy.
    pub expected_cores: Option<f64>,
    /// Collectors that were asked for.
    pub collectors: Vec<String>,
    /// Collectors that would have been used and could not be, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub absent: BTreeMap<String, String>,
    /// The machine.
    pub host: Facts,
    /// The batch job it is part of.
    pub job: Option<serde_json::Value>,
    /// What the columns mean.
    pub catalogue: Vec<Described>,
}

/// A metric as a recording describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// The column it is in.
    pub column: String,
    /// Its unit.
    pub unit: String,
    /// Level or running total.
    pub kind: String,
    /// A few words.
    pub label: String,
    /// A sentence.
    pub help: String,
    /// Where it comes from.
    pub source: String,
}

impl From<&Metric> for Described {
    fn from(metric: &Metric) -> Described {
        Described {
            name: metric.name(),
            column: metric.column(),
            unit: metric.unit.name().to_owned(),
            kind: metric.kind.name().to_owned(),
            label: metric.label.to_owned(),
            help: metric.help.to_owned(),
            source: metric.source.to_owned(),
        }
    }
}

impl Manifest {
    /// What is known of a run that is about to begin.
    pub fn new(settings: &Settings, command: &[String], host: Facts, wall: Duration) -> Manifest {
        let started = Timestamp::from_nanosecond(wall.as_nanos() as i128).unwrap_or_default();
        let program = command.first().map_or("run", |program| base_name(program));
        let sources = settings.sources();
        Manifest {
            weigh: Origin::default(),
            id: format!("{}-{:08x}", started.strftime("%Y%m%dT%H%M%S"), noise(wall)),
            name: settings.name.clone().unwrap_or_else(|| program.to_owned()),
            command: settings.command_lines.then(|| command.to_vec()),
            user: None,
            attached: Vec::new(),
            pid: 0,
            process_started: 0,
            started,
            labels: settings.labels.clone(),
            interval_seconds: settings.interval.as_secs_f64(),
            budget_ratio: settings.budget,
            expected_cores: settings.expected_cores,
            collectors: sources.iter().map(|source| source.name.to_owned()).collect(),
            absent: BTreeMap::new(),
            host,
            job: None,
            catalogue: sources
                .iter()
                .flat_map(|source| source.groups)
                .copied()
                .flatten()
                .map(Described::from)
                .collect(),
        }
    }

    /// Leaves out a collector that this machine cannot have, and the metrics that are its own.
    pub fn leave_out(&mut self, collector: &str, groups: &[&[Metric]], why: &str) {
        self.collectors.retain(|name| name != collector);
        let own: Vec<String> = groups.iter().copied().flatten().map(Metric::name).collect();
        self.catalogue.retain(|metric| !own.contains(&metric.name));
        self.absent.insert(collector.to_owned(), why.to_owned());
    }
}

/// A number that two runs which begin in the same second do not share.
fn noise(wall: Duration) -> u32 {
    wall.subsec_nanos() ^ std::process::id().rotate_left(12)
}

/// The last part of a path.
pub fn base_name(path: &str) -> &str {
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path)
}
