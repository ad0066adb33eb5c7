//! The chart model, shared by all renderers.
//!
//! The SVG, the PNG, the page's script and the PDF are all made from this.

use super::axis;
use crate::catalog::{Kind, Metric, Unit};
use crate::quantity::{self, Units};

/// A chart over the time of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// A short lower-case name: of its file and its anchor in a page.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// How to read it and how it was measured; may be empty.
    pub note: String,
    /// What the values are.
    pub scale: Scale,
    /// How it is drawn.
    pub form: ChartForm,
    /// Times of the values, in seconds since the run began; ascending.
    pub times: Vec<f64>,
    /// The series: at most [`MAX_SERIES`] and the unattributed rest, except in a heat map.
    pub series: Vec<ChartSeries>,
    /// Limit lines.
    pub limits: Vec<ChartLimit>,
    /// The peak, where it is marked.
    pub peak: Option<ChartPeak>,
    /// The time axis with phases and marks.
    pub timeline: Timeline,
}

/// More colours cannot be told apart.
pub const MAX_SERIES: usize = 8;

/// How a chart is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChartForm {
    /// A stepped line for each series: a value is carried forward to the next time.
    Lines,
    /// A straight line from value to value for each series: counters.
    Counters,
    /// A line for each series; a value covers the interval before its time.
    Rates,
    /// Stacked areas, joined like [`ChartForm::Lines`].
    Stack,
    /// Stacked areas, joined like [`ChartForm::Counters`].
    StackedCounters,
    /// Stacked areas, joined like [`ChartForm::Rates`].
    StackedRates,
    /// A row of coloured cells for each series; a cell lasts until the next time.
    Heatmap,
}

impl ChartForm {
    /// Whether series are stacked.
    pub const fn is_stacked(self) -> bool {
        matches!(self, ChartForm::Stack | ChartForm::StackedCounters | ChartForm::StackedRates)
    }

    /// Whether a value is carried forward to the next: gauges between two samples are unknown, and
    /// a slope would show a change that never happened.
    pub const fn is_stepped(self) -> bool {
        matches!(self, ChartForm::Lines | ChartForm::Stack)
    }

    /// Whether a value covers the interval before its time.
    pub const fn is_rate(self) -> bool {
        matches!(self, ChartForm::Rates | ChartForm::StackedRates)
    }
}

/// One line, area or heat map row.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartSeries {
    /// What it is.
    pub name: String,
    /// Its index in the palette: the same in every chart of a run.
    pub colour: usize,
    /// A value for each time; NaN where unknown.
    pub values: Vec<f64>,
}

/// A limit line.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartLimit {
    /// What it is.
    pub name: String,
    /// Where it is.
    pub value: f64,
}

/// The peak of a chart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChartPeak {
    /// When, in seconds since the run began.
    pub at: f64,
    /// How high.
    pub value: f64,
    /// Set where only an interval is known: it was reached after this and before `at`. A high-water
    /// mark that no sample met.
    pub after: Option<f64>,
}

impl ChartPeak {
    /// A value sampled at a time.
    pub const fn at(at: f64, value: f64) -> ChartPeak {
        ChartPeak { at, value, after: None }
    }

    /// Its value and time as text.
    pub fn describe(&self, scale: Scale) -> String {
        let (value, at) = (scale.shown(self.value), quantity::seconds(self.at));
        match self.after {
            None => format!("{value} at {at}"),
            Some(after) if after > 0.0 => {
                format!("{value} between {} and {at}", quantity::seconds(after))
            }
            Some(_) => format!("{value} before {at}"),
        }
    }
}

/// The time axis of a run with phases and marks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Timeline {
    /// When the run ended, in seconds since it began.
    pub end: f64,
    /// Phases.
    pub bands: Vec<Band>,
    /// Marks.
    pub marks: Vec<Mark>,
    /// Phases and marks that are not drawn: too many, or nested too deep.
    pub left_out: (usize, usize),
}

/// A phase, drawn as a band.
#[derive(Debug, Clone, PartialEq)]
pub struct Band {
    /// Its name.
    pub name: String,
    /// When it began.
    pub from: f64,
    /// When it ended, or the run.
    pub to: f64,
    /// Its nesting depth.
    pub depth: usize,
}

/// A mark of the user.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// Its text.
    pub text: String,
    /// When.
    pub at: f64,
}

/// The unit of values: of the catalogue, or its rate per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// The unit.
    pub unit: Unit,
    /// Whether it is a rate per second.
    pub per_second: bool,
    /// How sizes are written.
    pub units: Units,
}

impl Scale {
    /// A gauge in this unit.
    pub const fn level(unit: Unit) -> Scale {
        Scale { unit, per_second: false, units: Units::Binary }
    }

    /// A rate per second.
    pub const fn rate(unit: Unit) -> Scale {
        Scale { unit, per_second: true, units: Units::Binary }
    }

    /// The scale of a metric: gauges as they are, counters as rates.
    pub const fn of(metric: &Metric) -> Scale {
        match (metric.kind, metric.unit) {
            // Already a rate.
            (Kind::Gauge, Unit::BytesPerSecond) => Scale::rate(Unit::Bytes),
            (Kind::Gauge, Unit::Watts) => Scale::rate(Unit::Joules),
            (Kind::Gauge, unit) => Scale::level(unit),
            (Kind::Counter, unit) => Scale::rate(unit),
        }
    }

    /// Its name for programs: `bytes`, `bytes/s`, `cores`.
    pub const fn name(self) -> &'static str {
        match (self.unit, self.per_second) {
            (Unit::Bytes, false) => match self.units {
                Units::Binary => "bytes",
                Units::Decimal => "decimal bytes",
                Units::Bytes => "plain bytes",
            },
            (Unit::Bytes, true) | (Unit::BytesPerSecond, _) => match self.units {
                Units::Binary => "bytes/s",
                Units::Decimal => "decimal bytes/s",
                Units::Bytes => "plain bytes/s",
            },
            (Unit::Seconds | Unit::SecondsInState, false) => "seconds",
            // One second of CPU time per second is one core used.
            (Unit::Seconds, true) => "cores",
            (Unit::SecondsInState, true) | (Unit::Ratio, _) => "share",
            (Unit::Joules, false) => "joules",
            (Unit::Joules, true) | (Unit::Watts, _) => "watts",
            (Unit::Hertz, _) => "hertz",
            (Unit::Celsius, _) => "celsius",
            (Unit::One, false) => "count",
            (Unit::One, true) => "count/s",
        }
    }

    /// A value as text.
    pub fn shown(self, value: f64) -> String {
        let bytes = || quantity::bytes(value, self.units);
        match (self.unit, self.per_second) {
            (Unit::Bytes, false) => bytes(),
            (Unit::Bytes, true) | (Unit::BytesPerSecond, _) => bytes() + "/s",
            (Unit::Seconds | Unit::SecondsInState, false) => quantity::seconds(value),
            (Unit::Seconds, true) => format!("{value:.2} cores"),
            (Unit::SecondsInState, true) | (Unit::Ratio, _) => quantity::ratio(value),
            (Unit::Joules, false) => quantity::scaled(value, "J"),
            (Unit::Joules, true) | (Unit::Watts, _) => quantity::scaled(value, "W"),
            (Unit::Hertz, _) => quantity::scaled(value, "Hz"),
            (Unit::Celsius, _) => format!("{value:.0} °C"),
            (Unit::One, false) => quantity::count(value),
            (Unit::One, true) => quantity::count(value) + "/s",
        }
    }
}

impl Chart {
    /// The value of the brightest cell of a heat map: 100 % of a ratio, the limit, or else a round
    /// value above the data. A constant value must not look like an alarm.
    pub fn brightest(&self) -> f64 {
        let highest = self.highest().map_or(0.0, |peak| peak.value);
        let limits = self.limits.iter().map(|limit| limit.value);
        match (self.scale.name(), limits.reduce(f64::max)) {
            ("share", _) => highest.max(1.0),
            (_, Some(limit)) => highest.max(limit),
            _ => axis::values(self.scale, highest * 1.1, 5).last().map_or(1.0, |tick| tick.value),
        }
    }

    /// The highest value shown: of the series, or the marked peak.
    pub fn top(&self) -> Option<f64> {
        let drawn = self.highest().map(|peak| peak.value);
        let marked = self.peak.map(|peak| peak.value);
        drawn.into_iter().chain(marked).reduce(f64::max)
    }

    /// Whether hardly anything happened in it: a gauge that did not change, or a rate too low to
    /// matter. Reports show such charts last.
    pub fn is_quiet(&self) -> bool {
        /// Smaller changes of a gauge cannot be seen.
        const VISIBLE: f64 = 0.02;
        let top = self.highest().map_or(0.0, |peak| peak.value);
        let least = match self.scale.name() {
            _ if !self.form.is_rate() && self.form != ChartForm::Heatmap => 0.0,
            "cores" | "share" => 0.01,
            "count/s" => 10.0,
            name if name.ends_with("bytes/s") => 64.0 * 1024.0,
            _ => 0.0,
        };
        let is_flat = |series: &ChartSeries| {
            let known = || series.values.iter().copied().filter(|value| value.is_finite());
            let highest = known().fold(f64::NEG_INFINITY, f64::max);
            known().all(|value| highest - value <= VISIBLE * highest.abs())
        };
        top <= least || (!self.form.is_rate() && self.series.iter().all(is_flat))
    }

    /// The largest series where the chart is highest, and its value there.
    pub fn largest_at_top(&self) -> Option<(&ChartSeries, f64)> {
        let top = self.highest()?;
        let place = self.times.iter().position(|at| *at == top.at)?;
        let known = self.series.iter().map(|series| (series, series.values[place]));
        known.filter(|(_, value)| value.is_finite()).max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The highest value drawn: of one series, or of the stack.
    pub fn highest(&self) -> Option<ChartPeak> {
        let value_at = |place: usize| {
            let values = self.series.iter().map(|series| series.values[place]);
            let known = values.filter(|value| value.is_finite());
            if self.form.is_stacked() { known.reduce(|a, b| a + b) } else { known.reduce(f64::max) }
        };
        let points = self.times.iter().enumerate();
        let known = points.filter_map(|(place, at)| Some(ChartPeak::at(*at, value_at(place)?)));
        // The first of equals: a constant level was reached when it began.
        known.reduce(|best, next| if next.value > best.value { next } else { best })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(scale: Scale, form: ChartForm, values: &[&[f64]]) -> Chart {
        let series = |(colour, values): (usize, &&[f64])| ChartSeries {
            name: colour.to_string(),
            colour,
            values: values.to_vec(),
        };
        Chart {
            name: String::new(),
            title: String::new(),
            note: String::new(),
            scale,
            form,
            times: (1..=values[0].len()).map(|at| at as f64).collect(),
            series: values.iter().enumerate().map(series).collect(),
            limits: Vec::new(),
            peak: None,
            timeline: Timeline::default(),
        }
    }

    #[test]
    fn gauge_that_hardly_changed_is_quiet_and_a_constant_high_rate_is_not() {
        let level = |values: &[f64]| {
            chart(Scale::level(Unit::Bytes), ChartForm::Lines, &[values]).is_quiet()
        };
        assert!(level(&[100.0, 99.0, f64::NAN]) && !level(&[100.0, 90.0]));
        let rate = |values: &[f64]| {
            chart(Scale::rate(Unit::Bytes), ChartForm::Rates, &[values]).is_quiet()
        };
        assert!(rate(&[10.0, 2000.0]) && !rate(&[1e8, 1e8]));
    }

    #[test]
    fn largest_series_is_that_of_the_highest_moment() {
        let values: [&[f64]; 2] = [&[5.0, 1.0, 2.0], &[0.0, 9.0, f64::NAN]];
        let chart = chart(Scale::level(Unit::Bytes), ChartForm::Stack, &values);
        let (series, value) = chart.largest_at_top().unwrap();
        assert_eq!((series.colour, value), (1, 9.0));
    }
}
