//! The charts of a batch job: cores and memory of all its nodes together, and of each over time.

use super::chart::{Chart, ChartForm, ChartLimit, ChartSeries, Scale, Timeline};
use crate::catalog::Unit;
use crate::quantity::Units;
use crate::summary::job::{JobReading, NodeCurve};

/// With more nodes each is a row of a heat map, not a line.
const MOST_LINES: usize = 15;

/// Colours for lines.
const COLOURS: usize = 8;

/// The names of the charts.
const CORES: (&str, &str) = ("nodes-cpu", "CPU by node");
const MEMORY: (&str, &str) = ("nodes-memory", "Memory by node");
const ALL_CORES: (&str, &str) = ("job-cpu", "CPU of all nodes");
const ALL_MEMORY: (&str, &str) = ("job-memory", "Memory of all nodes");

/// Cores and memory of all nodes together, then of each. Empty when nothing was recorded.
pub fn of_job(job: &JobReading, units: Units) -> Vec<Chart> {
    let rows = job.summary.nodes.iter().zip(&job.curves);
    let recorded: Vec<(&str, &NodeCurve)> = rows
        .filter(|(node, _)| node.duration_seconds.is_some())
        .map(|(node, curve)| (node.name.as_str(), curve))
        .collect();
    let width = recorded.iter().map(|(_, curve)| curve.width()).fold(0.0, f64::max);
    if width == 0.0 {
        return Vec::new();
    }
    let wide: Vec<(&str, NodeCurve)> =
        recorded.into_iter().map(|(name, curve)| (name, curve.clone().widened(width))).collect();
    let of = |values: fn(&NodeCurve) -> Vec<f64>| NodeRows {
        width,
        end: job.summary.duration_seconds,
        rows: wide.iter().map(|(name, curve)| ((*name).to_owned(), values(curve))).collect(),
        units,
    };
    let cores = of(|curve| curve.cores().collect());
    let memory = of(|curve| curve.memory().collect());
    let reserved = job.summary.nodes.iter().map(|node| node.cores()).sum();
    let (cores_scale, memory_scale) = (Scale::rate(Unit::Seconds), Scale::level(Unit::Bytes));
    let together = [
        cores.sum(ALL_CORES, cores_scale, "reserved", reserved),
        memory.sum(ALL_MEMORY, memory_scale, "", None),
    ];
    if wide.len() < 2 {
        return together.into();
    }
    let each = [cores.each(CORES, cores_scale), memory.each(MEMORY, memory_scale)];
    together.into_iter().chain(each).collect()
}

/// Values of nodes in intervals.
struct NodeRows {
    /// Seconds in an interval.
    width: f64,
    end: f64,
    rows: Vec<(String, Vec<f64>)>,
    units: Units,
}

impl NodeRows {
    fn len(&self) -> usize {
        self.rows.iter().map(|(_, values)| values.len()).max().unwrap_or(0)
    }

    /// A value for each interval; NaN at the end of a node that ended before others.
    fn padded(&self, values: &[f64]) -> Vec<f64> {
        let unknown = std::iter::repeat_n(f64::NAN, self.len() - values.len());
        values.iter().copied().chain(unknown).collect()
    }

    /// The sum over nodes. A rate is drawn up to its time, a gauge from its time on.
    fn sum(
        &self,
        (name, title): (&str, &str),
        scale: Scale,
        limit: &str,
        at: Option<f64>,
    ) -> Chart {
        let sum = |place: usize| {
            let values = self.rows.iter().filter_map(|(_, values)| values.get(place).copied());
            values.filter(|value| value.is_finite()).reduce(|a, b| a + b).unwrap_or(f64::NAN)
        };
        let values = (0..self.len()).map(sum).collect();
        let series = vec![ChartSeries { name: "all nodes".to_owned(), colour: 0, values }];
        let at = at.filter(|at| *at > 0.0);
        let limits =
            at.map(|value| ChartLimit { name: limit.to_owned(), value }).into_iter().collect();
        let form = if scale.per_second { ChartForm::StackedRates } else { ChartForm::Stack };
        let note = "Summed over the nodes that were recorded at the time.";
        let chart = self.chart((name, title), scale, form, note, series);
        Chart { limits, peak: chart.highest(), ..chart }
    }

    /// A line or a row of cells for each node.
    fn each(&self, (name, title): (&str, &str), scale: Scale) -> Chart {
        let is_heatmap = self.rows.len() > MOST_LINES;
        let form = match (is_heatmap, scale.per_second) {
            (true, _) => ChartForm::Heatmap,
            (false, true) => ChartForm::Rates,
            (false, false) => ChartForm::Lines,
        };
        let note = match is_heatmap {
            true => {
                "A row for each node, in the scheduler's order; empty where there is no sample. \
                     The bars are the means of the rows."
            }
            false => "",
        };
        let rows = self.rows.iter().enumerate();
        let series = rows.map(|(place, (name, values))| ChartSeries {
            name: name.clone(),
            colour: place % COLOURS,
            values: self.padded(values),
        });
        self.chart((name, title), scale, form, note, series.collect())
    }

    fn chart(
        &self,
        (name, title): (&str, &str),
        scale: Scale,
        form: ChartForm,
        note: &str,
        series: Vec<ChartSeries>,
    ) -> Chart {
        let later = if form.is_rate() { 1.0 } else { 0.0 };
        let time = |place: usize| (place as f64 + later) * self.width;
        Chart {
            name: name.to_owned(),
            title: title.to_owned(),
            note: note.to_owned(),
            scale: Scale { units: self.units, ..scale },
            form,
            times: (0..self.len()).map(|place| time(place).min(self.end.max(self.width))).collect(),
            series,
            limits: Vec::new(),
            peak: None,
            timeline: Timeline { end: self.end, ..Timeline::default() },
        }
    }
}
