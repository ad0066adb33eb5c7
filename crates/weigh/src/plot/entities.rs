//! A metric of many things of one kind (CPUs, GPUs, network devices): a line for each, or
//! a heat map of time and thing when they are too many for lines.

use super::catalogued::is_drawn;
use super::chart::{Chart, Form, Scale, Series, Timeline};
use super::crowd::number;
use super::curve::Curve;
use super::heat::Grid;
use super::steps::Steps;
use super::thin::Thinned;
use super::window::Window;
use crate::catalog::{Kind, Metric};
use crate::sample::{Entity, Table, numbering};
use crate::words::within_a_line;

/// More lines than these nobody tells apart; a heat map takes any number of rows.
const MOST_LINES: usize = 6;

/// A metric of each of many things, being filled.
#[derive(Debug)]
pub struct Entities {
    metric: &'static Metric,
    column: usize,
    entities: Vec<Entity>,
    /// Their values as last seen.
    values: Vec<f64>,
    curve: Curve,
    grid: Grid,
    /// Rates for the grid, whose pieces of time are not the curve's.
    window: Window,
}

impl Entities {
    /// The charts of a scope with these columns.
    pub fn of(columns: &[&'static Metric]) -> Vec<Entities> {
        let drawn = columns.iter().copied().enumerate().filter(|(_, metric)| is_drawn(metric));
        drawn
            .map(|(column, metric)| Entities {
                metric,
                column,
                entities: Vec::new(),
                values: Vec::new(),
                curve: match metric.kind {
                    Kind::Gauge => Curve::Levels(Thinned::lines(0)),
                    Kind::Counter => Curve::Rates(Window::of_things(), Steps::lines()),
                },
                grid: Grid::default(),
                window: Window::of_things(),
            })
            .collect()
    }

    /// Takes in the rows of a tick.
    pub fn see(&mut self, at: f64, table: &Table) {
        let Some(cells) = table.columns().get(self.column) else { return };
        // Who has no row is not there, and whoever comes back begins anew.
        self.values.fill(f64::NAN);
        for (row, entity) in table.entities().iter().enumerate() {
            let place = self.entities.iter().position(|known| known == entity);
            let place = place.unwrap_or_else(|| {
                self.entities.push(*entity);
                self.values.push(f64::NAN);
                self.entities.len() - 1
            });
            self.values[place] = number(cells, row).unwrap_or(f64::NAN);
        }
        match self.metric.kind {
            Kind::Gauge => self.grid.push(at, &self.values),
            Kind::Counter => {
                if let Some((_, rates)) = self.window.rates(at, &self.values) {
                    self.grid.push(at, rates);
                }
            }
        }
        if self.entities.len() <= MOST_LINES {
            self.curve.push(at, &self.values);
        }
    }

    /// The chart; of what never was anything there is none.
    pub fn chart(self, timeline: &Timeline) -> Option<Chart> {
        let is_heat = self.entities.len() > MOST_LINES;
        let (times, columns) = if is_heat { self.grid.finish() } else { self.curve.finish() };
        if !columns.iter().flatten().any(|value| *value != 0.0 && !value.is_nan()) {
            return None;
        }
        let mut named: Vec<(Entity, Vec<f64>)> = self.entities.into_iter().zip(columns).collect();
        named.sort_by(|(one, _), (other, _)| order(one).cmp(&order(other)));
        let series = named.into_iter().enumerate().map(|(colour, (entity, values))| Series {
            name: name(entity),
            colour,
            values,
        });
        let metric = self.metric;
        let (form, note) = match metric.kind {
            _ if is_heat => (Form::Heat, "Each cell shows its highest value."),
            Kind::Counter => (Form::Rates, metric.help),
            Kind::Gauge => (Form::Lines, metric.help),
        };
        Some(Chart {
            name: metric.name(),
            title: format!("{}: {}", metric.family, within_a_line(metric.label)),
            note: note.to_owned(),
            scale: Scale::of(metric),
            form,
            times,
            series: series.collect(),
            limits: Vec::new(),
            peak: None,
            timeline: timeline.clone(),
        })
    }
}

fn name(entity: Entity) -> String {
    match entity {
        Entity::Single => String::new(),
        Entity::Cpu(number) => format!("CPU {number}"),
        Entity::Process(id) => format!("process {}", numbering::shown(id.pid)),
        Entity::Named(name) => name.to_string(),
        Entity::OnGpu(gpu, id) => format!("process {} on {gpu}", numbering::shown(id.pid)),
    }
}

fn order(entity: &Entity) -> (u64, &str) {
    match entity {
        Entity::Single => (0, ""),
        Entity::Cpu(number) => (u64::from(*number), ""),
        Entity::Process(id) => (id.started, ""),
        Entity::Named(name) => (0, name.as_str()),
        Entity::OnGpu(gpu, id) => (id.started, gpu.as_str()),
    }
}
