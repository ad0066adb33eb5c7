//! Charts made from the catalogue alone: every declared metric is drawn.
//!
//! Of scopes with one entity (the machine, the run, weigh) and of the sums over processes, metrics
//! of one family and one unit share a chart, a line for each. A new collector needs no code here.

use super::chart::{Chart, ChartSeries, MAX_SERIES, Scale, Timeline};
use super::curve::ChartCurve;
use super::steps::RateSteps;
use super::thin::Thinned;
use super::window::ChartWindow;
use crate::catalog::{ChildAccounting, Kind, Metric, Scope, Type};
use crate::text::lowercase_label;

/// A chart of some metrics, being filled.
#[derive(Debug)]
pub(super) struct Catalogued {
    /// The scope of its rows.
    pub scope: Scope,
    /// The chart's name.
    pub name: String,
    title: String,
    note: String,
    metrics: Vec<(usize, &'static Metric)>,
    row: Vec<f64>,
    curve: ChartCurve,
}

impl Catalogued {
    /// The charts of a scope with these columns.
    pub(super) fn of(scope: Scope, columns: &[&'static Metric]) -> Vec<Catalogued> {
        let mut charts: Vec<Vec<(usize, &'static Metric)>> = Vec::new();
        for (column, metric) in columns.iter().copied().enumerate() {
            let is_superseded = columns.iter().any(|other| metric.is_superseded_by(other));
            if !is_drawn(metric) || !metric.is_a_quantity() || is_superseded {
                continue;
            }
            let shared = charts.iter_mut().find(|chart| shares(chart[0].1, metric));
            match shared.filter(|chart| chart.len() < MAX_SERIES) {
                Some(chart) => chart.push((column, metric)),
                None => charts.push(vec![(column, metric)]),
            }
        }
        let alone = |chart: &[(usize, &Metric)]| {
            columns
                .iter()
                .filter(|metric| is_drawn(metric))
                .all(|metric| metric.group != chart[0].1.group || shares(chart[0].1, metric))
        };
        let title = |chart: &[(usize, &'static Metric)]| {
            let family = chart[0].1.family;
            if alone(chart) {
                return family.to_owned();
            }
            let labels: Vec<String> =
                chart.iter().map(|(_, metric)| lowercase_label(metric.label)).collect();
            format!("{family}: {}", labels.join(", "))
        };
        let named = |chart: &[(usize, &'static Metric)]| {
            let metric = chart[0].1;
            let scale = Scale::of(metric).name().replace("/s", "-rate");
            format!("{}-{}-{scale}", scope.name(), metric.group)
        };
        let new = |metrics: Vec<_>| {
            Catalogued::new(scope, named(&metrics), title(&metrics), String::new(), metrics)
        };
        charts.into_iter().map(new).collect()
    }

    /// A chart of one metric.
    pub(super) fn only(metric: &'static Metric, column: usize) -> Catalogued {
        let title = format!("{}: {}", metric.family, lowercase_label(metric.label));
        let note = metric.caption();
        Catalogued::new(metric.scope, metric.name(), title, note, vec![(column, metric)])
    }

    fn new(
        scope: Scope,
        name: String,
        title: String,
        note: String,
        metrics: Vec<(usize, &'static Metric)>,
    ) -> Catalogued {
        // Counters of the run begin at zero with it; those of the machine are older.
        let window = match scope {
            Scope::Run | Scope::Process => ChartWindow::from_start(),
            _ => ChartWindow::default(),
        };
        let curve = match metrics[0].1.kind {
            Kind::Gauge => ChartCurve::Gauges(Thinned::lines(metrics.len())),
            Kind::Counter => ChartCurve::Rates(window, RateSteps::lines()),
        };
        Catalogued { scope, name, title, note, metrics, row: Vec::new(), curve }
    }

    /// Adds the values of all columns of the scope at a time.
    pub(super) fn push(&mut self, at: f64, values: &[f64]) {
        self.row.clear();
        self.row.extend(self.metrics.iter().map(|(column, _)| values[*column]));
        self.curve.push(at, &self.row);
    }

    /// The chart; none if all values are zero.
    pub(super) fn chart(self, timeline: &Timeline) -> Option<Chart> {
        let form = self.curve.form(false);
        let (times, columns) = self.curve.finish();
        let series: Vec<ChartSeries> = self
            .metrics
            .iter()
            .zip(columns)
            .enumerate()
            .filter(|(_, (_, values))| values.iter().any(|value| *value != 0.0 && !value.is_nan()))
            .map(|(colour, ((_, metric), values))| ChartSeries {
                name: metric.label.to_owned(),
                colour,
                values,
            })
            .collect();
        let first = self.metrics[0].1;
        (!series.is_empty()).then(|| Chart {
            name: self.name,
            title: self.title,
            note: self.note,
            scale: Scale::of(first),
            form,
            times,
            series,
            limits: Vec::new(),
            peak: None,
            timeline: timeline.clone(),
        })
    }
}

/// Symbols cannot be drawn, and counters of reaped children are in the children's own rows already.
pub(super) fn is_drawn(metric: &Metric) -> bool {
    !matches!(metric.stored, Type::Symbol(_))
        && !matches!(metric.children, ChildAccounting::ReapedOnly(_))
}

fn shares(one: &Metric, other: &Metric) -> bool {
    (one.group, one.unit, one.kind) == (other.group, other.unit, other.kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Row, metrics};
    use crate::plot::ChartForm;

    metrics! {
        /// A new collector.
        struct TestTraffic in Node / "network", "Network" {
            /// In.
            received: Counter u64 Bytes, "Received", from "here";
            /// Out.
            sent: Counter u64 Bytes, "Sent", from "here";
            /// Always zero.
            dropped: Counter u64 Bytes, "Dropped", from "here";
            /// Open.
            connections: Gauge u64 One, "Connections", from "here";
        }
    }

    #[test]
    fn metrics_of_a_new_collector_are_drawn() {
        let metrics: Vec<_> = TestTraffic::METRICS.iter().collect();
        let mut charts = Catalogued::of(Scope::Node, &metrics);
        for at in 0..5 {
            let totals = [f64::from(at) * 100.0, f64::from(at) * 7.0, 0.0, 3.0];
            charts.iter_mut().for_each(|chart| chart.push(f64::from(at), &totals));
        }
        let timeline = Timeline::default();
        let charts: Vec<_> = charts.into_iter().map(|c| c.chart(&timeline).unwrap()).collect();
        let [traffic, connections] = &charts[..] else { panic!("{charts:?}") };
        assert_eq!(traffic.title, "Network: received, sent, dropped");
        assert_eq!(traffic.name, "node-network-bytes-rate");
        assert_eq!((traffic.form, traffic.scale.name()), (ChartForm::Rates, "bytes/s"));
        // A line that is always zero is not drawn.
        let names: Vec<_> = traffic.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["Received", "Sent"]);
        assert_eq!((&traffic.times[..], &traffic.series[0].values[..]), (&[4.0][..], &[100.0][..]));
        assert_eq!(connections.series[0].values, [3.0; 5]);
    }
}
