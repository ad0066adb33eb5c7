//! A metric of many entities (CPUs, GPUs, network devices): a line for each, or a heat map when
//! they are too many for lines.

use super::catalogued::is_drawn;
use super::chart::{Chart, ChartForm, ChartLimit, ChartSeries, Scale, Timeline};
use super::entity_labels::EntityLabels;
use super::heatmap::HeatmapGrid;
use super::processes::number;
use super::readings::Readings;
use super::steps::RateSteps;
use super::thin::Thinned;
use crate::catalog::{Kind, Metric, MetricRelation, RateDenominator};
use crate::model::{CounterReading, Entity, Table};
use crate::text::lowercase_label;

/// More lines cannot be told apart; a heat map takes any number of rows.
const MAX_LINES: usize = 6;

/// More different limits than these are not drawn.
const MAX_LIMITS: usize = 3;

/// A chart of one metric of many entities, being filled.
#[derive(Debug)]
pub(super) struct Entities {
    metric: &'static Metric,
    column: usize,
    /// Whether the user requested it by name.
    is_requested: bool,
    entities: Vec<ChartEntity>,
    /// The capacity metric and its column.
    bound: Option<(usize, &'static Metric)>,
    curve: EntityCurve,
    grid: HeatmapGrid,
    levels: Vec<f64>,
}

/// One entity of the chart.
#[derive(Debug)]
struct ChartEntity {
    entity: Entity,
    first: f64,
    has_changed: bool,
    /// Its capacity.
    bound: Option<f64>,
}

#[derive(Debug)]
enum EntityCurve {
    Gauges(Thinned),
    Rates {
        basis: RateDenominator,
        counters: Vec<Option<CounterReading>>,
        readings: Readings,
        steps: RateSteps,
    },
}

impl Entities {
    /// The charts of a scope with these columns, including those requested by name.
    pub(super) fn of(columns: &[&'static Metric], requested: &[&'static Metric]) -> Vec<Entities> {
        let known: Vec<Option<&'static Metric>> = columns.iter().copied().map(Some).collect();
        let all = columns.iter().copied().enumerate();
        let drawn = all.filter(|(_, metric)| {
            is_drawn(metric) && (metric.is_a_quantity() || requested.contains(metric))
        });
        let curve = |metric: &Metric| match metric.kind {
            Kind::Gauge => EntityCurve::Gauges(Thinned::lines(0)),
            Kind::Counter => {
                let basis = RateDenominator::for_counter(metric, &known);
                let (readings, steps) = (Readings::over(basis), RateSteps::lines());
                EntityCurve::Rates { basis, counters: Vec::new(), readings, steps }
            }
        };
        drawn
            .map(|(column, metric)| Entities {
                metric,
                column,
                is_requested: requested.contains(&metric),
                entities: Vec::new(),
                bound: columns
                    .iter()
                    .copied()
                    .enumerate()
                    .find(|(_, one)| one.is_capacity_of(metric)),
                curve: curve(metric),
                grid: HeatmapGrid::default(),
                levels: Vec::new(),
            })
            .collect()
    }

    /// Adds the rows of a tick.
    pub(super) fn push(&mut self, at: f64, table: &Table) {
        let Some(cells) = table.columns().get(self.column) else { return };
        let cell = |column: usize, row: usize| number(table.columns().get(column)?, row);
        // An entity without a row is absent; one that returns starts a new baseline.
        self.levels.fill(f64::NAN);
        if let EntityCurve::Rates { counters, .. } = &mut self.curve {
            counters.fill(None);
        }
        for (row, entity) in table.entities().iter().enumerate() {
            let place = self.place(*entity);
            let value = number(cells, row);
            self.entities[place].push(value, self.bound.and_then(|(column, _)| cell(column, row)));
            self.levels[place] = value.unwrap_or(f64::NAN);
            if let (EntityCurve::Rates { basis, counters, .. }, Some(value)) =
                (&mut self.curve, value)
            {
                let tick = (at * 1e9) as i64;
                counters[place] =
                    Some(CounterReading::from_row(tick, value, *basis, |column| cell(column, row)));
            }
        }
        let are_lines = self.entities.len() <= MAX_LINES;
        match &mut self.curve {
            EntityCurve::Gauges(levels) => {
                self.grid.push(at, &self.levels);
                if are_lines {
                    levels.push(at, &self.levels);
                }
            }
            EntityCurve::Rates { counters, readings, steps, .. } => {
                if let Some(interval) = readings.push(at, counters) {
                    self.grid.push(interval.from, interval.rates);
                    if are_lines {
                        steps.push(interval.from, interval.to, interval.rates);
                    }
                }
            }
        }
    }

    /// The index of an entity, which may be new.
    fn place(&mut self, entity: Entity) -> usize {
        let place = self.entities.iter().position(|known| known.entity == entity);
        place.unwrap_or_else(|| {
            let one = ChartEntity { entity, first: f64::NAN, has_changed: false, bound: None };
            self.entities.push(one);
            self.levels.push(f64::NAN);
            if let EntityCurve::Rates { counters, .. } = &mut self.curve {
                counters.push(None);
            }
            self.entities.len() - 1
        })
    }

    /// The chart. None if all values are zero, nor for a capacity that never changed: it is a limit
    /// line in the chart of what it bounds.
    pub(super) fn chart(self, timeline: &Timeline, labels: &EntityLabels) -> Option<Chart> {
        let metric = self.metric;
        let is_bound = matches!(metric.relation, MetricRelation::CapacityOf(_));
        if is_bound && !self.is_requested && !self.entities.iter().any(|one| one.has_changed) {
            return None;
        }
        let limits = self.limits();
        let is_heatmap = self.entities.len() > MAX_LINES;
        let (times, columns) = match (is_heatmap, self.curve) {
            (true, _) => self.grid.finish(),
            (false, EntityCurve::Gauges(levels)) => levels.finish(),
            (false, EntityCurve::Rates { steps, .. }) => steps.finish(),
        };
        if !columns.iter().flatten().any(|value| *value != 0.0 && !value.is_nan()) {
            return None;
        }
        let entities = self.entities.into_iter().map(|one| one.entity);
        let mut named: Vec<(Entity, Vec<f64>)> = entities.zip(columns).collect();
        // Entities without any value are not drawn.
        named.retain(|(_, values)| values.iter().any(|value| !value.is_nan()));
        named.sort_by_cached_key(|(entity, _)| labels.order(entity));
        let series = named.into_iter().enumerate().map(|(colour, (entity, values))| ChartSeries {
            name: labels.name(entity),
            colour,
            values,
        });
        let (form, more) = match metric.kind {
            _ if is_heatmap => (ChartForm::Heatmap, " Each cell shows its highest value."),
            Kind::Counter => (ChartForm::Rates, ""),
            Kind::Gauge => (ChartForm::Lines, ""),
        };
        Some(Chart {
            name: metric.name(),
            title: format!("{}: {}", metric.family, lowercase_label(metric.label)),
            note: metric.caption() + more,
            scale: Scale::of(metric),
            form,
            times,
            series: series.collect(),
            limits,
            peak: None,
            timeline: timeline.clone(),
        })
    }

    /// Its metric.
    pub(super) fn metric(&self) -> &'static Metric {
        self.metric
    }

    /// Whether it was requested by name.
    pub(super) fn is_requested(&self) -> bool {
        self.is_requested
    }

    /// The capacities as limit lines, each value once; none if there are too many.
    fn limits(&self) -> Vec<ChartLimit> {
        let Some((_, bound)) = self.bound else { return Vec::new() };
        let mut levels: Vec<f64> = self.entities.iter().filter_map(|one| one.bound).collect();
        levels.sort_by(f64::total_cmp);
        levels.dedup();
        levels.truncate(if levels.len() > MAX_LIMITS { 0 } else { MAX_LIMITS });
        let name = lowercase_label(bound.label);
        levels.into_iter().map(|value| ChartLimit { name: name.clone(), value }).collect()
    }
}

impl ChartEntity {
    fn push(&mut self, value: Option<f64>, bound: Option<f64>) {
        if let Some(value) = value {
            self.has_changed |= !self.first.is_nan() && value != self.first;
            self.first = if self.first.is_nan() { value } else { self.first };
        }
        self.bound = [self.bound, bound].into_iter().flatten().reduce(f64::max);
    }
}
