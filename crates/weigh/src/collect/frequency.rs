//! Frequency of the CPUs, and how often they were throttled by temperature.
//!
//! Source: `/sys/devices/system/cpu/cpuN/cpufreq/scaling_cur_freq` and (x86)
//! `thermal_throttle/{core,package}_throttle_count`, readable by every user. Virtual machines have
//! neither.
//!
//! What surprised us: each CPU has a count for its core and one for its package, and all CPUs of a
//! core or package have the same count, so only the first of each is read. Reading the frequency
//! may interrupt the CPU, so it is read at most ten times a second.

use std::collections::HashSet;
use std::ffi::CString;
use std::time::Duration;

use super::min_interval::MinInterval;
use super::{Collector, Context, Fault, Probe, Provider};
use crate::catalog::SourceId;
use crate::catalog::metrics::{NodeFrequency, NodeThrottle};
use crate::host::{CachedPath, Descriptors, Host};
use crate::model::{Entity, Tick};
use crate::parse::{attribute, cpulist};

pub(super) const PROVIDER: Provider = Provider {
    id: SourceId::Frequency,
    probe,
    collector: Some(|_| Box::new(FrequencyCollector::new())),
    descriptors: CACHED_FILES,
};

/// Cached files; on larger machines the others are opened each time.
const CACHED_FILES: usize = 256;

const READ_INTERVAL: Duration = Duration::from_millis(100);

fn probe(host: &Host) -> Probe {
    // One CPU is enough, and the command waits.
    let files = FrequencyFiles::find(host, 1);
    let mut buffer = Vec::new();
    let mut all = files.frequencies.into_iter().chain(files.cores).chain(files.packages);
    if all.any(|mut file| file.read(&host.sys, &mut buffer).is_ok()) {
        Probe::Ready
    } else {
        Probe::Absent { why: "the CPUs do not report their frequency here".to_owned() }
    }
}

/// The files that are read.
#[derive(Default)]
struct FrequencyFiles {
    frequencies: Vec<CachedPath>,
    cores: Vec<CachedPath>,
    packages: Vec<CachedPath>,
}

impl FrequencyFiles {
    /// The files of at most so many CPUs.
    fn find(host: &Host, most: usize) -> FrequencyFiles {
        let allowance = Descriptors::at_most(CACHED_FILES);
        let (mut files, mut packages) = (FrequencyFiles::default(), HashSet::new());
        let mut buffer = Vec::new();
        let online = host.sys.read(c"devices/system/cpu/online", &mut buffer).ok();
        let online: Vec<u32> =
            online.and_then(|list| cpulist::iter(list).ok()).into_iter().flatten().collect();
        for cpu in online.into_iter().take(most) {
            let at = |file: &str| {
                CString::new(format!("devices/system/cpu/cpu{cpu}/{file}")).unwrap_or_default()
            };
            let add = |to: &mut Vec<CachedPath>, file: &str| {
                if host.sys.has(&at(file)) {
                    to.push(CachedPath::new(at(file), &allowance));
                }
            };
            add(&mut files.frequencies, "cpufreq/scaling_cur_freq");
            let siblings = host.sys.read(&at("topology/thread_siblings_list"), &mut buffer).ok();
            let first = siblings.and_then(|list| cpulist::iter(list).ok()?.next());
            if first.is_none_or(|first| first == cpu) {
                add(&mut files.cores, "thermal_throttle/core_throttle_count");
            }
            let package = host.sys.read(&at("topology/physical_package_id"), &mut buffer).ok();
            let package = package.and_then(|bytes| attribute::number(bytes).ok());
            if packages.insert(package) {
                add(&mut files.packages, "thermal_throttle/package_throttle_count");
            }
        }
        files
    }
}

struct FrequencyCollector {
    files: Option<FrequencyFiles>,
    interval: MinInterval,
    buffer: Vec<u8>,
    last: (NodeFrequency, NodeThrottle),
}

impl FrequencyCollector {
    fn new() -> FrequencyCollector {
        FrequencyCollector {
            files: None,
            interval: MinInterval::of(READ_INTERVAL),
            buffer: Vec::new(),
            last: Default::default(),
        }
    }
}

impl Collector for FrequencyCollector {
    fn sample(&mut self, context: &Context<'_>, tick: &mut Tick) -> Result<(), Fault> {
        let host = context.host;
        let mut outcome = Ok(());
        if self.interval.is_due(tick.at) {
            let files = self.files.get_or_insert_with(|| FrequencyFiles::find(host, usize::MAX));
            let mut reader = FrequencyReader { host, buffer: &mut self.buffer, fault: None };
            self.last = (
                reader.frequency(&mut files.frequencies),
                NodeThrottle {
                    cores: reader.sum(&mut files.cores),
                    packages: reader.sum(&mut files.packages),
                },
            );
            outcome = reader.fault.map_or(Ok(()), |why| Err(Fault::Skip(why)));
        }
        tick.put(Entity::Single, &self.last.0);
        tick.put(Entity::Single, &self.last.1);
        outcome
    }
}

struct FrequencyReader<'a> {
    host: &'a Host,
    buffer: &'a mut Vec<u8>,
    /// The first parse error.
    fault: Option<String>,
}

impl FrequencyReader<'_> {
    /// The number in a file; an offline CPU has none, which is no fault.
    fn number(&mut self, file: &mut CachedPath) -> Option<u64> {
        let bytes = file.read(&self.host.sys, self.buffer).ok()?;
        match attribute::number(bytes) {
            Ok(number) => Some(number),
            Err(wrong) => {
                let path = self.host.sys.path(file.path());
                self.fault.get_or_insert_with(|| format!("{}: {wrong}", path.display()));
                None
            }
        }
    }

    fn frequency(&mut self, files: &mut [CachedPath]) -> NodeFrequency {
        let (mut sum, mut count) = (0.0, 0u32);
        let (mut lowest, mut highest) = (f64::INFINITY, 0.0f64);
        for kilohertz in files.iter_mut().filter_map(|file| self.number(file)) {
            let hertz = kilohertz as f64 * 1e3;
            (sum, count) = (sum + hertz, count + 1);
            (lowest, highest) = (lowest.min(hertz), highest.max(hertz));
        }
        let known = |value: f64| (count > 0).then_some(value);
        NodeFrequency {
            mean: known(sum / f64::from(count)),
            lowest: known(lowest),
            highest: known(highest),
        }
    }

    /// The sum of all counts; unknown when one of them is.
    fn sum(&mut self, files: &mut [CachedPath]) -> Option<u64> {
        let counts = files.iter_mut().map(|file| self.number(file));
        let sum = counts.reduce(|sum, count| sum?.checked_add(count?));
        sum.flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Row, Scope};
    use crate::host::fake::FakeHost;

    /// Two packages with one core of two threads each.
    fn machine() -> FakeHost {
        let mut fake = FakeHost::new().sys("devices/system/cpu/online", "0-3\n");
        for (cpu, package, siblings, khz) in [
            (0, 0, "0,2", 2_000_000),
            (1, 1, "1,3", 3_000_000),
            (2, 0, "0,2", 1_000_000),
            (3, 1, "1,3", 2_400_000),
        ] {
            let at = |file: &str| format!("devices/system/cpu/cpu{cpu}/{file}");
            fake = fake
                .sys(&at("cpufreq/scaling_cur_freq"), &format!("{khz}\n"))
                .sys(&at("topology/physical_package_id"), &format!("{package}\n"))
                .sys(&at("topology/thread_siblings_list"), &format!("{siblings}\n"))
                .sys(&at("thermal_throttle/core_throttle_count"), &format!("{}\n", 10 + cpu % 2))
                .sys(&at("thermal_throttle/package_throttle_count"), "5\n");
        }
        fake
    }

    fn sampled(
        collector: &mut FrequencyCollector,
        host: &Host,
        at: u64,
    ) -> (NodeFrequency, NodeThrottle, Result<(), Fault>) {
        let mut tick = Tick::new(&[NodeFrequency::METRICS, NodeThrottle::METRICS]);
        tick.begin(Duration::from_millis(at));
        let outcome = collector.sample(&Context::of(host), &mut tick);
        let table = tick.table(Scope::Node).unwrap();
        (table.get(0), table.get(0), outcome)
    }

    #[test]
    fn counts_of_each_core_and_package_are_summed_once() {
        let fake = machine();
        let (frequency, throttle, outcome) =
            sampled(&mut FrequencyCollector::new(), &fake.host(), 0);
        outcome.unwrap();
        let expected = NodeFrequency {
            mean: Some(2.1e9),
            lowest: Some(1e9),
            highest: Some(3e9),
            ..NodeFrequency::default()
        };
        assert_eq!(frequency, expected);
        assert_eq!(
            throttle,
            NodeThrottle { cores: Some(21), packages: Some(10), ..NodeThrottle::default() }
        );
        assert!(matches!(probe(&fake.host()), Probe::Ready));
    }

    #[test]
    fn values_are_carried_forward_between_reads() {
        let fake = machine();
        let (host, mut collector) = (fake.host(), FrequencyCollector::new());
        sampled(&mut collector, &host, 0).2.unwrap();
        fake.set_sys("devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "4000000\n");
        assert_eq!(sampled(&mut collector, &host, 50).0.highest, Some(3e9));
        assert_eq!(sampled(&mut collector, &host, 100).0.highest, Some(4e9));
    }

    #[test]
    fn malformed_file_loses_its_value_and_is_reported() {
        let fake = machine();
        fake.set_sys("devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "<unknown>\n");
        fake.set_sys("devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "\n");
        let (frequency, throttle, outcome) =
            sampled(&mut FrequencyCollector::new(), &fake.host(), 0);
        assert_eq!(frequency.highest, Some(2.4e9));
        assert_eq!(throttle, NodeThrottle { packages: Some(10), ..NodeThrottle::default() });
        assert!(matches!(outcome, Err(Fault::Skip(why)) if why.contains("cpu1/cpufreq")));
    }

    #[test]
    fn machine_without_frequencies_is_absent() {
        let fake = FakeHost::new().sys("devices/system/cpu/online", "0-1\n");
        assert!(matches!(probe(&fake.host()), Probe::Absent { .. }));
        let (frequency, throttle, outcome) =
            sampled(&mut FrequencyCollector::new(), &fake.host(), 0);
        outcome.unwrap();
        assert_eq!((frequency, throttle), Default::default());
    }
}
