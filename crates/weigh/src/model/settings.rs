//! What to measure and how: the only configuration type.
//!
//! Flags, the configuration file and (later) Python keywords all fill it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::catalog::{SOURCES, Source, SourceId};
use crate::model::gpu::{GpuSelector, Visible};

/// The shortest interval between two ticks.
pub const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);

/// The longest interval between two ticks.
pub const LONGEST_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// Why settings do not fit.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// The interval is too short or too long.
    #[error("an interval of {0:?} is not between 1ms and 1d")]
    Interval(Duration),
    /// The budget is not a share.
    #[error("a budget of {0} is not a share of one core; write it like 0.5%, up to 100%")]
    Budget(f64),
    /// There is no such collector.
    #[error("there is no collector \"{name}\"; there are {}", known())]
    Collector {
        /// As it was written.
        name: String,
    },
    /// It is no valid GPU selector.
    #[error("\"{word}\" is neither the number, nor the name, nor the UUID of a GPU")]
    GpuWord {
        /// As it was written.
        word: String,
    },
    /// There is no such GPU.
    #[error("there is no GPU \"{word}\": this machine has {}", listed(there))]
    NoGpu {
        /// As it was written.
        word: String,
        /// Which there are.
        there: Vec<String>,
    },
    /// There is no such event of perf, or group of events.
    #[error("{what}{}", meant(nearest))]
    PerfEvent {
        /// What was written, and what is wrong with it.
        what: String,
        /// What may have been meant, best first.
        nearest: Vec<String>,
    },
    /// The number of cores is not one.
    #[error("{0} is not a number of cores")]
    ExpectedCores(f64),
}

fn listed(there: &[String]) -> String {
    if there.is_empty() { "none that a driver has".to_owned() } else { there.join(", ") }
}

/// The most similar names.
fn meant(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        [name] => format!("; the nearest is {name}"),
        names => format!("; the nearest are {}", names.join(", ")),
    }
}

fn known() -> String {
    SOURCES.iter().map(|source| source.name).collect::<Vec<_>>().join(", ")
}

/// Where a run is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Destination {
    /// A new directory under `weigh-runs/` here.
    #[default]
    Here,
    /// This directory, which must be new or empty.
    Directory(PathBuf),
    /// Nowhere.
    Nowhere,
}

/// Whether a command gets a cgroup of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OwnCgroup {
    /// No.
    #[default]
    Never,
    /// Where it can be made and changes nothing for the command.
    Auto,
    /// It must, or the run does not begin.
    Always,
}

/// What to measure and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Time between two ticks.
    pub interval: Duration,
    /// Where the run is recorded.
    pub destination: Destination,
    /// What the run is called; the program's name when there is none.
    pub name: Option<String>,
    /// Labels that distinguish this run from others.
    pub labels: BTreeMap<String, String>,
    /// Collectors to use, when not all that are on by default.
    pub collect: Option<Vec<String>>,
    /// Collectors to leave out.
    pub skip: Vec<String>,
    /// Share of one core that expensive reads may take.
    pub budget: f64,
    /// Cores the run should have used, when not all it may use.
    pub expected_cores: Option<f64>,
    /// Whether to wait for descendants that outlive the command.
    pub wait_all: bool,
    /// Whether a program is a child subreaper while its session measures a command
    /// ([`Session::spawn`](crate::Session::spawn) says what that means); `weigh run` always is.
    pub subreaper: bool,
    /// Whether each CPU of the machine is recorded, too.
    pub per_cpu: bool,
    /// Whether a command gets a cgroup of its own.
    pub own_cgroup: OwnCgroup,
    /// Whether there is a cgroup whose own counters are read: set when attached to one.
    pub cgroup: bool,
    /// Groups of perf events that are counted; without it none is.
    pub perf: Option<Vec<String>>,
    /// More events that are counted, as users write them.
    pub events: Vec<String>,
    /// GPUs that count, by UUID or number, when not all of them.
    pub gpus: Option<Vec<String>>,
    /// The GPUs that are visible to the run's process: set when it is started or attached to.
    pub visible_gpus: Option<Visible>,
    /// Whether command lines are recorded.
    pub command_lines: bool,
    /// Whether the limits of the run are recorded, to repeat it.
    pub surroundings: bool,
    /// Where the machine's `/proc` and `/sys` are.
    pub host_root: PathBuf,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            interval: Duration::from_secs(1),
            destination: Destination::default(),
            name: None,
            labels: BTreeMap::new(),
            collect: None,
            skip: Vec::new(),
            budget: 0.005,
            expected_cores: None,
            wait_all: false,
            subreaper: false,
            per_cpu: false,
            own_cgroup: OwnCgroup::default(),
            cgroup: false,
            perf: None,
            events: Vec::new(),
            gpus: None,
            visible_gpus: None,
            command_lines: true,
            surroundings: false,
            host_root: PathBuf::from("/"),
        }
    }
}

impl Settings {
    /// Checks what can be checked without touching the machine.
    pub fn check(&self) -> Result<(), Error> {
        if !(SHORTEST_INTERVAL..=LONGEST_INTERVAL).contains(&self.interval) {
            return Err(Error::Interval(self.interval));
        }
        if !(0.0..=1.0).contains(&self.budget) {
            return Err(Error::Budget(self.budget));
        }
        if let Some(cores) = self.expected_cores
            && !(cores > 0.0 && cores.is_finite())
        {
            return Err(Error::ExpectedCores(cores));
        }
        let named = self.collect.iter().flatten().chain(&self.skip);
        for name in named {
            if !SOURCES.iter().any(|source| source.name == name) {
                return Err(Error::Collector { name: name.clone() });
            }
        }
        match self.gpus.iter().flatten().find(|word| GpuSelector::parse(word).is_none()) {
            Some(word) => Err(Error::GpuWord { word: word.clone() }),
            None => Ok(()),
        }
    }

    /// Whether events of perf are asked for by name.
    pub fn requests_events(&self) -> bool {
        self.perf.is_some() || !self.events.is_empty()
    }

    /// The sources these settings ask for.
    ///
    /// What weigh itself uses is always among them: no figure without its cost.
    pub fn sources(&self) -> Vec<&'static Source> {
        SOURCES.iter().filter(|source| source.id == SourceId::Own || self.wants(source)).collect()
    }

    fn wants(&self, source: &Source) -> bool {
        if self.skip.iter().any(|name| name == source.name) {
            return false;
        }
        let requested = match source.id {
            SourceId::PerCpu => self.per_cpu,
            SourceId::Cgroup => self.cgroup,
            // No BPF program is attached to a cgroup that is not ours.
            SourceId::Packets => self.cgroup && self.own_cgroup != OwnCgroup::Never,
            _ => false,
        };
        match &self.collect {
            Some(names) => requested || names.iter().any(|name| name == source.name),
            None => requested || !source.on_request,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(settings: &Settings) -> Vec<&str> {
        settings.sources().iter().map(|source| source.name).collect()
    }

    #[test]
    fn per_cpu_is_only_collected_on_request() {
        assert!(!names(&Settings::default()).contains(&"percpu"));
        let each = Settings { per_cpu: true, ..Settings::default() };
        assert!(names(&each).contains(&"percpu"));
        let group = Settings { cgroup: true, collect: Some(Vec::new()), ..Settings::default() };
        assert_eq!(names(&group), ["cgroup", "own"]);
        let own = Settings { own_cgroup: OwnCgroup::Auto, ..group };
        assert_eq!(names(&own), ["cgroup", "packets", "own"]);
    }

    #[test]
    fn collect_and_skip_choose_by_name_and_own_cost_stays() {
        let only = Settings { collect: Some(vec!["cpu".into()]), ..Settings::default() };
        assert_eq!(names(&only), ["cpu", "own"]);
        let without = Settings { skip: vec!["memory".into(), "own".into()], ..Settings::default() };
        let all = Settings::default();
        let left: Vec<_> = names(&all).into_iter().filter(|name| *name != "memory").collect();
        assert_eq!(names(&without), left);
    }

    #[test]
    fn an_unknown_collector_is_refused_with_the_known_ones() {
        let wrong = Settings { skip: vec!["gpus".into()], ..Settings::default() };
        let error = wrong.check().unwrap_err().to_string();
        assert!(error.contains("\"gpus\"") && error.contains("task-clock"), "{error}");
    }

    #[test]
    fn invalid_numbers_are_refused() {
        for wrong in [
            Settings { interval: Duration::from_micros(10), ..Settings::default() },
            Settings { interval: Duration::from_secs(100_000), ..Settings::default() },
            Settings { budget: 1.5, ..Settings::default() },
            Settings { budget: f64::NAN, ..Settings::default() },
            Settings { expected_cores: Some(0.0), ..Settings::default() },
            Settings { gpus: Some(vec!["first".into()]), ..Settings::default() },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
