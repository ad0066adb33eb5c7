//! Energy counters of the perf PMU `power`.
//!
//! `/sys/bus/event_source/devices/power` names its events (`energy-pkg`), what a count is worth
//! (`energy-pkg.scale`) and one CPU of each package (`cpumask`). Counting system-wide needs
//! `kernel.perf_event_paranoid` of 0 or less, or CAP_PERFMON.

use std::ffi::CString;

use crate::collect::Fault;
use crate::host::Host;
use crate::host::perf::MachineCounter;
use crate::model::Name;
use crate::parse::{attribute, cpulist};

/// Events, and the part of a package they count; `None` for the whole board.
const EVENTS: [(&str, Option<&str>); 5] = [
    ("energy-pkg", Some("")),
    ("energy-ram", Some("/dram")),
    ("energy-cores", Some("/core")),
    ("energy-gpu", Some("/uncore")),
    ("energy-psys", None),
];

/// An energy counter of perf.
pub(super) struct PmuEnergy {
    /// Its name, as that of the powercap zone.
    pub name: Name,
    counter: MachineCounter,
    joules: f64,
}

impl PmuEnergy {
    /// Every energy counter of the machine; `None` when there is none, an error when permission is
    /// denied.
    pub(super) fn all(host: &Host) -> Option<std::io::Result<Vec<PmuEnergy>>> {
        let read = |file: &str| {
            let path = CString::new(format!("bus/event_source/devices/power/{file}")).ok()?;
            let mut buffer = Vec::new();
            host.sys.read(&path, &mut buffer).ok().map(<[u8]>::to_vec)
        };
        let pmu = attribute::number(&read("type")?).ok()? as u32;
        let cpus: Vec<u32> = cpulist::iter(&read("cpumask")?).ok()?.collect();
        let mut all = Vec::new();
        for (event, part) in EVENTS {
            let Some(number) = read(&format!("events/{event}")) else { continue };
            let Some(joules) = read(&format!("events/{event}.scale")) else { continue };
            let (number, joules) =
                (attribute::event(&number).ok()?, attribute::scale(&joules).ok()?);
            for cpu in &cpus {
                let name = match part {
                    Some(part) => {
                        Name::new(format!("package-{}{part}", package(host, *cpu)?).as_bytes())
                    }
                    None => Name::new(b"psys"),
                };
                match host.perf.count(pmu, number, *cpu) {
                    Ok(counter) => all.push(PmuEnergy { name, counter, joules }),
                    Err(error) => return Some(Err(error)),
                }
                if part.is_none() {
                    break;
                }
            }
        }
        (!all.is_empty()).then_some(Ok(all))
    }

    /// Joules since it was opened.
    pub(super) fn read(&mut self) -> Result<f64, Fault> {
        let count = self.counter.read().map_err(|error| Fault::Retire(error.to_string()))?;
        Ok(count as f64 * self.joules)
    }
}

fn package(host: &Host, cpu: u32) -> Option<u64> {
    let path = format!("devices/system/cpu/cpu{cpu}/topology/physical_package_id");
    let mut buffer = Vec::new();
    let bytes = host.sys.read(&CString::new(path).ok()?, &mut buffer).ok()?;
    attribute::number(bytes).ok()
}
