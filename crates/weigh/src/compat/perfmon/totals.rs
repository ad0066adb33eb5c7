//! The sum over all devices of the machine, as one line: for perfmon's plots.
//!
//! Nothing is counted twice: only hardware network devices, and each energy domain by itself. A
//! device that appears late or whose counter is reset adds nothing until it was sampled twice.

use crate::catalog::metrics::{DomainEnergy, NetworkTraffic, PortTraffic};
use crate::catalog::{Scope, Unit, all_groups};
use crate::model::devices::summed_nics;
use crate::model::{Entity, Table};
use crate::plot::chart::{Chart, ChartForm, ChartSeries, Scale, Timeline};
use crate::plot::steps::RateSteps;
use crate::plot::timeline::TimelineBuilder;
use crate::plot::window::ChartWindow;
use crate::record::{Error, Moment, Recording};

/// A counter of the devices of a tick.
type DeviceCounters = fn(&Table) -> Vec<(Entity, Option<f64>)>;

/// What is summed.
pub(super) struct SummedCounter {
    /// What it is called.
    pub name: &'static str,
    scope: Scope,
    unit: Unit,
    counters: DeviceCounters,
}

const fn summed(
    name: &'static str,
    scope: Scope,
    unit: Unit,
    counters: DeviceCounters,
) -> SummedCounter {
    SummedCounter { name, scope, unit, counters }
}

/// Everything that is summed, under perfmon's names.
pub(super) const SUMMED: [SummedCounter; 12] = [
    summed("Output Traffic", Scope::Nic, Unit::Bytes, |t| nics(t, |row| row.sent)),
    summed("Input Traffic", Scope::Nic, Unit::Bytes, |t| nics(t, |row| row.received)),
    summed("Packets Output", Scope::Nic, Unit::One, |t| nics(t, |row| row.packets_sent)),
    summed("Packets Input", Scope::Nic, Unit::One, |t| nics(t, |row| row.packets_received)),
    summed("Interconnect Output Traffic", Scope::IbPort, Unit::Bytes, |t| ports(t, |r| r.sent)),
    summed("Interconnect Input Traffic", Scope::IbPort, Unit::Bytes, |t| ports(t, |r| r.received)),
    summed("Interconnect Packets Output", Scope::IbPort, Unit::One, |t| {
        ports(t, |row| row.packets_sent)
    }),
    summed("Interconnect Packets Input", Scope::IbPort, Unit::One, |t| {
        ports(t, |row| row.packets_received)
    }),
    summed("RAPL Package Power", Scope::Energy, Unit::Joules, |t| {
        domains(t, |name| name.starts_with("package-") && !name.contains('/'))
    }),
    summed("RAPL DRAM Power", Scope::Energy, Unit::Joules, |t| {
        domains(t, |name| name.ends_with("/dram"))
    }),
    summed("RAPL Core Power", Scope::Energy, Unit::Joules, |t| {
        domains(t, |name| name.ends_with("/core"))
    }),
    summed("RAPL Uncore Power", Scope::Energy, Unit::Joules, |t| {
        domains(t, |name| name.ends_with("/uncore"))
    }),
];

fn nics(table: &Table, of: fn(&NetworkTraffic) -> Option<u64>) -> Vec<(Entity, Option<f64>)> {
    summed_nics(table).map(|(entity, row)| (entity, of(&row).map(|count| count as f64))).collect()
}

fn ports(table: &Table, of: fn(&PortTraffic) -> Option<u64>) -> Vec<(Entity, Option<f64>)> {
    let entities = table.entities().iter().enumerate();
    let count = |row| of(&table.get(row)).map(|count| count as f64);
    entities.map(|(row, entity)| (*entity, count(row))).collect()
}

fn domains(table: &Table, is_wanted: fn(&str) -> bool) -> Vec<(Entity, Option<f64>)> {
    let entities = table.entities().iter().enumerate();
    let these = entities
        .filter(|(_, entity)| matches!(entity, Entity::Named(name) if is_wanted(name.as_str())));
    these.map(|(row, entity)| (*entity, table.get::<DomainEnergy>(row).used)).collect()
}

/// A running sum.
struct DeviceTotal {
    counter: &'static SummedCounter,
    entities: Vec<Entity>,
    values: Vec<f64>,
    window: ChartWindow,
    steps: RateSteps,
}

impl DeviceTotal {
    fn of(counter: &'static SummedCounter) -> DeviceTotal {
        let (window, steps) = (ChartWindow::of_entities(), RateSteps::lines());
        DeviceTotal { counter, entities: Vec::new(), values: Vec::new(), window, steps }
    }

    fn add(&mut self, at: f64, table: &Table) {
        self.values.fill(f64::NAN);
        for (entity, now) in (self.counter.counters)(table) {
            let place = self.entities.iter().position(|known| *known == entity);
            let place = place.unwrap_or_else(|| {
                self.entities.push(entity);
                self.values.push(f64::NAN);
                self.entities.len() - 1
            });
            self.values[place] = now.unwrap_or(f64::NAN);
        }
        if let Some((from, rates)) = self.window.rates(at, &self.values) {
            let known = rates.iter().copied().filter(|rate| !rate.is_nan());
            let sum = known.reduce(|one, other| one + other).unwrap_or(f64::NAN);
            self.steps.push(from, at, &[sum]);
        }
    }

    fn chart(self, timeline: &Timeline) -> Option<Chart> {
        let (times, columns) = self.steps.finish();
        let values = columns.into_iter().next()?;
        let is_known = values.iter().any(|value| !value.is_nan());
        is_known.then(|| Chart {
            name: self.counter.name.to_owned(),
            title: self.counter.name.to_owned(),
            note: String::new(),
            scale: Scale::rate(self.counter.unit),
            form: ChartForm::Rates,
            times,
            series: vec![ChartSeries { name: self.counter.name.to_owned(), colour: 0, values }],
            limits: Vec::new(),
            peak: None,
            timeline: timeline.clone(),
        })
    }
}

/// The charts of the sums of a recording, without those it has no data for.
pub(super) fn charts(recording: &Recording) -> Result<Vec<Chart>, Error> {
    let mut totals: Vec<DeviceTotal> = SUMMED.iter().map(DeviceTotal::of).collect();
    let mut times = TimelineBuilder::default();
    recording.replay(&all_groups(), |frame| match frame.moment {
        Moment::Event(entry) => times.event(entry),
        Moment::Tick(tick) => {
            let at = tick.at.as_secs_f64();
            times.extend_to(at);
            for total in &mut totals {
                let table = tick.table(total.counter.scope).filter(|table| !table.is_empty());
                if let Some(table) = table {
                    total.add(at, table);
                }
            }
        }
    })?;
    let timeline = times.finish();
    Ok(totals.into_iter().filter_map(|total| total.chart(&timeline)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Row;
    use crate::model::{Name, Tick};

    #[test]
    fn domains_of_one_kind_are_summed_and_a_late_domain_adds_no_burst() {
        let package = SUMMED.iter().find(|one| one.name == "RAPL Package Power").unwrap();
        let mut total = DeviceTotal::of(package);
        let mut tick = Tick::new(&[DomainEnergy::METRICS]);
        for second in 0..4 {
            tick.begin(std::time::Duration::from_secs(second));
            let mut put = |name: &str, joules: f64| {
                let row = DomainEnergy { used: Some(joules), ..DomainEnergy::default() };
                tick.put(Entity::Named(Name::new(name.as_bytes())), &row);
            };
            put("package-0", 100.0 + 30.0 * second as f64);
            put("package-0/dram", 7.0 * second as f64);
            put("psys", 1e6 * second as f64);
            if second > 1 {
                put("package-1", 5e5 + 20.0 * second as f64);
            }
            total.add(second as f64, tick.table(Scope::Energy).unwrap());
        }
        let chart = total.chart(&Timeline::default()).unwrap();
        assert_eq!((chart.times, chart.scale.name()), (vec![2.0, 3.0], "watts"));
        assert_eq!(chart.series[0].values, [30.0, 50.0]);
    }
}
