//! Power meters of the machine: its board, its power supplies, its processors.
//!
//! Source: `/sys/class/hwmon/hwmonN/power*_input`, `power*_average` and `energy*_input`
//! (Documentation/hwmon/sysfs-interface.rst, in microwatts and microjoules), the ACPI power meter
//! among them. Most are readable by every user.
//!
//! What surprised us: the ACPI power meter has an average only, and reading it may wait for the
//! board's management controller, so it is read at most once a second. Nothing but its name says
//! what a meter measures, so meters are never summed.

use std::ffi::{CStr, CString};
use std::time::Duration;

use super::min_interval::MinInterval;
use super::{Collector, Context, Fault, Probe, Provider};
use crate::catalog::SourceId;
use crate::catalog::metrics::MeterPower;
use crate::host::{self, CachedPath, Descriptors, Host};
use crate::model::{Entity, Name, Tick};
use crate::parse::attribute;

pub(super) const PROVIDER: Provider = Provider {
    id: SourceId::PowerMeter,
    probe,
    collector: Some(|_| Box::new(PowerMeterCollector::new())),
    descriptors: CACHED_FILES,
};

/// Cached files; further meters are opened each time.
const CACHED_FILES: usize = 24;

/// Chips of GPUs: the source `gpu` reads these, because a read may take long or wake a card.
const OF_GPUS: [&[u8]; 3] = [b"amdgpu", b"i915", b"xe"];

const READ_INTERVAL: Duration = Duration::from_secs(1);

fn probe(host: &Host) -> Probe {
    let (mut meters, mut buffer) = (PowerMeter::all(host), Vec::new());
    let (mut refused, mut closed) = (None, String::new());
    for meter in &mut meters {
        match meter.file.read(&host.sys, &mut buffer) {
            // One is enough: reading them may be slow, and the command waits.
            Ok(_) => return Probe::Ready,
            Err(error) => {
                if error.is_denied() {
                    closed += &format!(" {}", host.sys.path(meter.file.path()).display());
                }
                refused = Some(error);
            }
        }
    }
    match refused {
        Some(error) if !closed.is_empty() => {
            Probe::Denied { why: error.to_string(), hint: format!("sudo chmod a+r{closed}") }
        }
        Some(error) => Probe::Absent { why: error.to_string() },
        None => Probe::Absent { why: "there is no power meter in /sys/class/hwmon".to_owned() },
    }
}

/// The quantity that a meter measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MeterQuantity {
    Power,
    Energy,
}

struct PowerMeter {
    name: Name,
    quantity: MeterQuantity,
    file: CachedPath,
    last: MeterPower,
}

impl PowerMeter {
    fn all(host: &Host) -> Vec<PowerMeter> {
        let allowance = Descriptors::at_most(CACHED_FILES);
        let mut meters: Vec<PowerMeter> = Vec::new();
        for chip in host.sys.names(c"class/hwmon").unwrap_or_default() {
            let directory = [b"class/hwmon/", chip.to_bytes()].concat();
            let Ok(directory) = CString::new(directory) else { continue };
            let files = host.sys.names(&directory).unwrap_or_default();
            let owner = text(host, &directory, "name").unwrap_or_else(|| chip.to_bytes().to_vec());
            if OF_GPUS.contains(&&*owner) {
                continue;
            }
            for (channel, quantity, file) in channels(&files) {
                let label = text(host, &directory, &format!("{channel}_label"));
                let label = label.unwrap_or_else(|| channel.as_bytes().to_vec());
                let mut name = Name::joined(&[&owner, b"/", &label]);
                if meters.iter().any(|meter| meter.name == name) {
                    name = Name::joined(&[&owner, b"-", chip.to_bytes(), b"/", &label]);
                }
                let file = CachedPath::new(path(&directory, file), &allowance);
                meters.push(PowerMeter { name, quantity, file, last: MeterPower::default() });
            }
        }
        meters
    }

    fn read(&mut self, host: &Host, buffer: &mut Vec<u8>) -> Result<(), host::Error> {
        self.last = MeterPower::default();
        let bytes = self.file.read(&host.sys, buffer)?;
        let millionths = attribute::number(bytes).map_err(|source| host::Error::Parse {
            path: host.sys.path(self.file.path()),
            source,
        })?;
        let value = Some(millionths as f64 / 1e6);
        match self.quantity {
            MeterQuantity::Power => self.last.power = value,
            MeterQuantity::Energy => self.last.used = value,
        }
        Ok(())
    }
}

fn path(directory: &CStr, file: &str) -> CString {
    CString::new([directory.to_bytes(), b"/", file.as_bytes()].concat()).unwrap_or_default()
}

fn text(host: &Host, directory: &CStr, file: &str) -> Option<Vec<u8>> {
    let mut buffer = Vec::new();
    let bytes = host.sys.read(&path(directory, file), &mut buffer).ok()?;
    attribute::text(bytes).ok().map(<[u8]>::to_vec)
}

/// The channels among the files of a chip: name, quantity and file.
fn channels(files: &[CString]) -> Vec<(&str, MeterQuantity, &str)> {
    let files: Vec<&str> = files.iter().filter_map(|file| file.to_str().ok()).collect();
    let mut channels = Vec::new();
    for &file in &files {
        let Some((channel, kind)) = file.split_once('_') else { continue };
        let is = |kind| channel.strip_prefix(kind).is_some_and(|n: &str| n.parse::<u32>().is_ok());
        let quantity = match kind {
            "input" if is("power") => MeterQuantity::Power,
            "input" if is("energy") => MeterQuantity::Energy,
            // Only where there is no `input`.
            "average" if is("power") && !files.contains(&&*format!("{channel}_input")) => {
                MeterQuantity::Power
            }
            _ => continue,
        };
        channels.push((channel, quantity, file));
    }
    channels
}

struct PowerMeterCollector {
    meters: Option<Vec<PowerMeter>>,
    interval: MinInterval,
    buffer: Vec<u8>,
}

impl PowerMeterCollector {
    fn new() -> PowerMeterCollector {
        PowerMeterCollector {
            meters: None,
            interval: MinInterval::of(READ_INTERVAL),
            buffer: Vec::new(),
        }
    }
}

impl Collector for PowerMeterCollector {
    fn sample(&mut self, context: &Context<'_>, tick: &mut Tick) -> Result<(), Fault> {
        let host = context.host;
        let meters = self.meters.get_or_insert_with(|| PowerMeter::all(host));
        let is_due = self.interval.is_due(tick.at);
        let mut outcome = Ok(());
        meters.retain_mut(|meter| {
            let read = if is_due { meter.read(host, &mut self.buffer) } else { Ok(()) };
            match read {
                Ok(()) => {}
                Err(error) if error.is_gone() || error.is_denied() => return false,
                Err(error) => outcome = Err(Fault::Skip(error.to_string())),
            }
            tick.put(Entity::Named(meter.name), &meter.last);
            true
        });
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Row, Scope};
    use crate::host::fake::{FakeHost, as_unprivileged};

    fn sampled(
        meters: &mut PowerMeterCollector,
        host: &Host,
    ) -> (Vec<(String, MeterPower)>, Result<(), Fault>) {
        let mut tick = Tick::new(&[MeterPower::METRICS]);
        let outcome = meters.sample(&Context::of(host), &mut tick);
        let table = tick.table(Scope::Energy).unwrap();
        let rows = table.entities().iter().enumerate().map(|(row, entity)| match entity {
            Entity::Named(name) => (name.to_string(), table.get::<MeterPower>(row)),
            other => panic!("{other:?}"),
        });
        (rows.collect(), outcome)
    }

    fn machine() -> FakeHost {
        FakeHost::new()
            .sys("class/hwmon/hwmon0/name", "power_meter\n")
            .sys("class/hwmon/hwmon0/power1_average", "215000000\n")
            .sys("class/hwmon/hwmon0/power1_average_interval", "1000\n")
            .sys("class/hwmon/hwmon1/name", "amd_energy\n")
            .sys("class/hwmon/hwmon1/energy1_input", "1500000\n")
            .sys("class/hwmon/hwmon1/energy1_label", "Esocket0\n")
            .sys("class/hwmon/hwmon2/name", "power_meter\n")
            .sys("class/hwmon/hwmon2/power1_input", "90000000\n")
            .sys("class/hwmon/hwmon2/power1_average", "80000000\n")
            .sys("class/hwmon/hwmon3/temp1_input", "45000\n")
    }

    #[test]
    fn meters_are_named_by_chip_and_channel() {
        let (rows, outcome) = sampled(&mut PowerMeterCollector::new(), &machine().host());
        outcome.unwrap();
        let expected = [
            ("power_meter/power1", Some(215.0), None),
            ("amd_energy/Esocket0", None, Some(1.5)),
            ("power_meter-hwmon2/power1", Some(90.0), None),
        ];
        let found: Vec<_> =
            rows.iter().map(|(name, row)| (name.as_str(), row.power, row.used)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn meter_of_a_gpu_is_left_to_the_gpu_source() {
        let fake = FakeHost::new()
            .sys("class/hwmon/hwmon0/name", "amdgpu\n")
            .sys("class/hwmon/hwmon0/power1_average", "215000000\n");
        assert!(matches!(probe(&fake.host()), Probe::Absent { .. }));
    }

    #[test]
    fn malformed_value_is_missing_and_reported() {
        let fake = machine();
        fake.set_sys("class/hwmon/hwmon0/power1_average", "-1\n");
        let (rows, outcome) = sampled(&mut PowerMeterCollector::new(), &fake.host());
        assert_eq!((rows[0].1.power, rows[1].1.used), (None, Some(1.5)));
        assert!(matches!(outcome, Err(Fault::Skip(why)) if why.contains("power1_average")));
    }

    #[test]
    fn unreadable_meters_are_denied_and_missing_ones_absent() {
        let fake = FakeHost::new().sys("class/hwmon/hwmon0/energy1_input", "1\n");
        fake.deny_sys("class/hwmon/hwmon0/energy1_input");
        let host = fake.host();
        let Probe::Denied { hint, .. } = as_unprivileged(|| probe(&host)) else {
            panic!("not denied")
        };
        assert!(hint.starts_with("sudo chmod a+r /") && hint.ends_with("/energy1_input"), "{hint}");
        assert_eq!(as_unprivileged(|| sampled(&mut PowerMeterCollector::new(), &host)).0, []);
        assert!(matches!(probe(&FakeHost::new().host()), Probe::Absent { .. }));
    }
}
