//! Energy of processors and memory, one row for each RAPL domain.
//!
//! Source: `/sys/class/powercap`, whose counters only root may read since 2020 (CVE-2020-8694);
//! where permission is denied, the perf PMU `power` has the same for users who may count
//! system-wide.
//!
//! What surprised us: the memory (`dram`) of servers is not part of its package, but `core` and
//! `uncore` are, and `psys` is the whole board including all of them. So sums are over packages and
//! their memory. Hypervisors expose RAPL counters that never change (KVM, Hyper-V); those of a real
//! machine always do, even when idle.

mod pmu;
mod zones;

use pmu::PmuEnergy;
use zones::Zone;

use super::{Collector, Context, Fault, Probe, Provider};
use crate::catalog::SourceId;
use crate::catalog::metrics::DomainEnergy;
use crate::catalog::metrics::energy::STAND_STILL;
use crate::host::Host;
use crate::model::{Entity, Name, Tick};

pub(super) const PROVIDER: Provider = Provider {
    id: SourceId::Energy,
    probe,
    collector: Some(|_| Box::new(EnergyCollector::default())),
    descriptors: zones::CACHED_FILES,
};

const SYSCTL: &str = "sudo sysctl kernel.perf_event_paranoid=0";

fn probe(host: &Host) -> Probe {
    let (mut zones, mut buffer) = (Zone::all(host), Vec::new());
    let mut refused = None;
    for zone in &mut zones {
        match zone.read(host, &mut buffer) {
            Ok(_) => return Probe::Ready,
            Err(error) => refused = Some(error),
        }
    }
    let pmu = PmuEnergy::all(host);
    match (refused, pmu) {
        (_, Some(Ok(_))) => Probe::Ready,
        (Some(error), _) if error.is_denied() => {
            let zones = host.sys.path(c"class/powercap");
            let hint = format!("sudo chmod a+r {}/*/energy_uj", zones.display());
            Probe::Denied { why: error.to_string(), hint }
        }
        (_, Some(Err(error))) => Probe::Denied {
            why: format!("perf_event_open of the energy counters: {error}"),
            hint: SYSCTL.to_owned(),
        },
        (Some(error), None) => Probe::Absent { why: error.to_string() },
        (None, None) => Probe::Absent {
            why: "neither /sys/class/powercap nor perf has energy counters; virtual machines have \
                  none"
                .to_owned(),
        },
    }
}

/// The probe of `weigh doctor`: it also waits to see whether the counters change.
pub(super) fn examine(host: &Host) -> Probe {
    // The files of a captured machine never change.
    if !host.sys.path(c"class").starts_with("/sys") {
        return probe(host);
    }
    // They are updated every millisecond, and an idle processor uses energy, too.
    examine_after(host, || std::thread::sleep(std::time::Duration::from_millis(100)))
}

fn examine_after(host: &Host, pause: impl FnOnce()) -> Probe {
    let probed = probe(host);
    if !matches!(probed, Probe::Ready) {
        return probed;
    }
    let (mut meters, mut buffer) = (EnergyMeter::all(host), Vec::new());
    let mut read = || -> Vec<Option<f64>> {
        meters.iter_mut().map(|meter| meter.read(host, &mut buffer).ok()).collect()
    };
    let before = read();
    pause();
    if read() == before { Probe::Absent { why: STAND_STILL.to_owned() } } else { probed }
}

/// A meter, and whether its counter changes.
struct Domain {
    meter: EnergyMeter,
    /// Its first value.
    first: Option<f64>,
    has_moved: bool,
}

impl Domain {
    fn new(meter: EnergyMeter) -> Domain {
        Domain { meter, first: None, has_moved: false }
    }

    /// Joules since some moment before the run; `None` while it equals its first value: no powered
    /// device uses 0 J.
    fn read(&mut self, host: &Host, buffer: &mut Vec<u8>) -> Result<Option<f64>, Fault> {
        let joules = self.meter.read(host, buffer)?;
        let is_first = self.first.is_none();
        self.has_moved |= *self.first.get_or_insert(joules) != joules;
        Ok((is_first || self.has_moved).then_some(joules))
    }
}

/// The source of an energy counter.
enum EnergyMeter {
    Zone(Zone),
    Pmu(PmuEnergy),
}

impl EnergyMeter {
    fn all(host: &Host) -> Vec<EnergyMeter> {
        let (mut zones, mut buffer) = (Zone::all(host), Vec::new());
        zones.retain_mut(|zone| zone.read(host, &mut buffer).is_ok());
        if !zones.is_empty() {
            return zones.into_iter().map(EnergyMeter::Zone).collect();
        }
        let pmu = PmuEnergy::all(host).and_then(Result::ok).unwrap_or_default();
        pmu.into_iter().map(EnergyMeter::Pmu).collect()
    }

    fn name(&self) -> Name {
        match self {
            EnergyMeter::Zone(zone) => zone.name,
            EnergyMeter::Pmu(pmu) => pmu.name,
        }
    }

    /// Joules since some moment before the run.
    fn read(&mut self, host: &Host, buffer: &mut Vec<u8>) -> Result<f64, Fault> {
        match self {
            EnergyMeter::Zone(zone) => Ok(zone.read(host, buffer)?),
            EnergyMeter::Pmu(pmu) => pmu.read(),
        }
    }
}

#[derive(Default)]
struct EnergyCollector {
    domains: Option<Vec<Domain>>,
    buffer: Vec<u8>,
}

impl Collector for EnergyCollector {
    fn sample(&mut self, context: &Context<'_>, tick: &mut Tick) -> Result<(), Fault> {
        let host = context.host;
        let all = || EnergyMeter::all(host).into_iter().map(Domain::new).collect();
        let domains: &mut Vec<Domain> = self.domains.get_or_insert_with(all);
        let mut outcome = Ok(());
        domains.retain_mut(|domain| {
            let entity = Entity::Named(domain.meter.name());
            match domain.read(host, &mut self.buffer) {
                Ok(used) => tick.put(entity, &DomainEnergy { used }),
                Err(Fault::Skip(why)) => {
                    tick.put(entity, &DomainEnergy { used: None });
                    outcome = Err(Fault::Skip(why));
                }
                // It was removed, and has no row any more.
                Err(Fault::Retire(_)) => return false,
            }
            true
        });
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::metrics::energy::is_summed;
    use crate::catalog::{Row, Scope};
    use crate::host::fake::{FakeHost, as_unprivileged};

    type EnergyRows = Vec<(String, Option<f64>)>;

    const PACKAGE: &str = "class/powercap/intel-rapl:0";

    fn zone(fake: FakeHost, zone: &str, name: &str, energy: u64) -> FakeHost {
        let at = |file: &str| format!("class/powercap/{zone}/{file}");
        fake.sys(&at("name"), &format!("{name}\n"))
            .sys(&at("energy_uj"), &format!("{energy}\n"))
            .sys(&at("max_energy_range_uj"), "262143328850\n")
    }

    fn machine() -> FakeHost {
        let fake = zone(FakeHost::new(), "intel-rapl:0", "package-0", 5_000_000);
        let fake = zone(fake, "intel-rapl:0:0", "dram", 1_000_000);
        let fake = zone(fake, "intel-rapl:1", "psys", 9_000_000);
        zone(fake, "intel-rapl-mmio:0", "package-0", 5_000_001)
    }

    fn sampled(energy: &mut EnergyCollector, host: &Host) -> (EnergyRows, Result<(), Fault>) {
        let mut tick = Tick::new(&[DomainEnergy::METRICS]);
        let outcome = energy.sample(&Context::of(host), &mut tick);
        let table = tick.table(Scope::Energy).unwrap();
        let rows = table.entities().iter().enumerate().map(|(row, entity)| match entity {
            Entity::Named(name) => (name.to_string(), table.get::<DomainEnergy>(row).used),
            other => panic!("{other:?}"),
        });
        (rows.collect(), outcome)
    }

    fn rows(rows: &[(&str, Option<f64>)]) -> EnergyRows {
        rows.iter().map(|(name, joules)| ((*name).to_owned(), *joules)).collect()
    }

    #[test]
    fn domains_are_named_by_package_and_listed_once() {
        let (found, outcome) = sampled(&mut EnergyCollector::default(), &machine().host());
        outcome.unwrap();
        let expected =
            [("package-0", Some(5.0)), ("package-0/dram", Some(1.0)), ("psys", Some(9.0))];
        assert_eq!(found, rows(&expected));
    }

    #[test]
    fn sums_are_over_packages_and_their_memory() {
        let summed = ["package-0", "package-1-die-0", "package-0/dram"];
        let others = ["package-0/core", "package-0/uncore", "psys", "dram"];
        assert!(summed.into_iter().all(is_summed) && !others.into_iter().any(is_summed));
    }

    #[test]
    fn wrapped_energy_counter_goes_on() {
        let fake = machine();
        let (host, mut energy) = (fake.host(), EnergyCollector::default());
        fake.set_sys("class/powercap/intel-rapl:0/energy_uj", "262143000000\n");
        sampled(&mut energy, &host).1.unwrap();
        fake.set_sys("class/powercap/intel-rapl:0/energy_uj", "671150\n");
        let (found, _) = sampled(&mut energy, &host);
        assert_eq!(found[0].1, Some(262_144.0));
    }

    #[test]
    fn malformed_value_is_missing_and_reported() {
        let fake = machine();
        let (host, mut energy) = (fake.host(), EnergyCollector::default());
        sampled(&mut energy, &host).1.unwrap();
        fake.set_sys("class/powercap/intel-rapl:0:0/energy_uj", "much\n");
        let (found, outcome) = sampled(&mut energy, &host);
        assert_eq!(found[1], ("package-0/dram".to_owned(), None));
        assert!(matches!(outcome, Err(Fault::Skip(why)) if why.contains("energy_uj")));
    }

    #[test]
    fn permission_denied_has_a_hint_and_no_zero_rows() {
        let fake = machine();
        let host = fake.host();
        for zone in ["intel-rapl:0", "intel-rapl:0:0", "intel-rapl:1", "intel-rapl-mmio:0"] {
            fake.deny_sys(&format!("class/powercap/{zone}/energy_uj"));
        }
        let Probe::Denied { why, hint } = as_unprivileged(|| probe(&host)) else {
            panic!("not denied")
        };
        assert!(why.contains("energy_uj: Permission denied"), "{why}");
        assert!(hint.starts_with("sudo chmod a+r /"), "{hint}");
        assert!(hint.ends_with("/sys/class/powercap/*/energy_uj"), "{hint}");
        let (found, _) = as_unprivileged(|| sampled(&mut EnergyCollector::default(), &host));
        assert_eq!(found, []);
    }

    #[test]
    fn perf_is_used_where_powercap_is_denied() {
        let at = |file: &str| format!("bus/event_source/devices/power/{file}");
        let fake = zone(FakeHost::new(), "intel-rapl:0", "package-0", 5_000_000)
            .sys(&at("type"), "20\n")
            .sys(&at("cpumask"), "0,2\n")
            .sys(&at("events/energy-pkg"), "event=0x02\n")
            .sys(&at("events/energy-pkg.scale"), "2.3283064365386962890625e-10\n")
            .sys(&at("events/energy-ram"), "event=0x03\n")
            .sys(&at("events/energy-ram.scale"), "2.3283064365386962890625e-10\n")
            .sys("devices/system/cpu/cpu0/topology/physical_package_id", "0\n")
            .sys("devices/system/cpu/cpu2/topology/physical_package_id", "1\n");
        fake.deny_sys(&format!("{PACKAGE}/energy_uj"));
        let host = fake.host();
        let Probe::Denied { .. } = as_unprivileged(|| probe(&host)) else { panic!("not denied") };
        for (event, cpu, joules) in [(2, 0, 3), (2, 2, 4), (3, 0, 1), (3, 2, 2)] {
            fake.set_count(event, cpu, joules << 32);
        }
        let mut energy = EnergyCollector::default();
        let (found, outcome) = as_unprivileged(|| {
            assert!(matches!(probe(&host), Probe::Ready));
            sampled(&mut energy, &host)
        });
        outcome.unwrap();
        let expected = [
            ("package-0", Some(3.0)),
            ("package-1", Some(4.0)),
            ("package-0/dram", Some(1.0)),
            ("package-1/dram", Some(2.0)),
        ];
        assert_eq!(found, rows(&expected));
        for (event, cpu, joules) in [(2, 0, 5), (2, 2, 6), (3, 0, 2)] {
            fake.set_count(event, cpu, joules << 32);
        }
        fake.forget_count(3, 2);
        let (found, outcome) = sampled(&mut energy, &host);
        outcome.unwrap();
        let expected =
            [("package-0", Some(5.0)), ("package-1", Some(6.0)), ("package-0/dram", Some(2.0))];
        assert_eq!(found, rows(&expected), "a removed counter has no row");
    }

    #[test]
    fn counter_that_never_changes_has_null_rows() {
        let fake = machine();
        let (host, mut energy) = (fake.host(), EnergyCollector::default());
        sampled(&mut energy, &host).1.unwrap();
        fake.set_sys("class/powercap/intel-rapl:0/energy_uj", "6000000\n");
        for _ in 0..2 {
            let expected = [("package-0", Some(6.0)), ("package-0/dram", None), ("psys", None)];
            assert_eq!(sampled(&mut energy, &host).0, rows(&expected));
        }
        fake.set_sys("class/powercap/intel-rapl:0:0/energy_uj", "1500000\n");
        assert_eq!(sampled(&mut energy, &host).0[1].1, Some(1.5), "it counts after all");
    }

    #[test]
    fn doctor_reports_energy_counters_that_never_change() {
        let fake = machine();
        let host = fake.host();
        assert!(matches!(probe(&host), Probe::Ready), "a run cannot wait for it");
        let Probe::Absent { why } = examine_after(&host, || ()) else { panic!("not absent") };
        assert!(why.contains("do not move"), "{why}");
        let moves = || fake.set_sys("class/powercap/intel-rapl:0/energy_uj", "5000001\n");
        assert!(matches!(examine_after(&host, moves), Probe::Ready));
    }

    #[test]
    fn machine_without_energy_counters_is_absent() {
        assert!(matches!(probe(&FakeHost::new().host()), Probe::Absent { .. }));
    }
}
