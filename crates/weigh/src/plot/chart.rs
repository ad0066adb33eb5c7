//! The chart model: what a picture shows, whoever draws it.
//!
//! The SVG, the PNG, the page's script and the PDF are all made from this.

use super::axis;
use crate::catalog::{Kind, Metric, Unit};
use crate::quantity::{self, Units};

/// A chart over the time of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// A short name in small letters: the name of its file and of its place in a page.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// How to read it, and how it was got; may be empty.
    pub note: String,
    /// What the values are.
    pub scale: Scale,
    /// How it is drawn.
    pub form: ChartForm,
    /// When the values of the series are, in seconds since the run began; ascending.
    pub times: Vec<f64>,
    /// What is drawn. Never more than [`MAX_SERIES`] and what is unattributed, except in a heat
    /// map.
    pub series: Vec<ChartSeries>,
    /// Levels that are not to be passed.
    pub limits: Vec<ChartLimit>,
    /// The highest point, where it is worth a mark.
    pub peak: Option<ChartPeak>,
    /// The time axis, and what happened along it.
    pub timeline: Timeline,
}

/// More colours than these nobody tells apart.
pub const MAX_SERIES: usize = 8;

/// How a chart is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChartForm {
    /// A line for each series, in steps: a value holds from its time to the next.
    Lines,
    /// A line for each series from one value straight to the next: what was counted so far.
    Totals,
    /// A line for each series; a value is that of the time before it, back to the last one.
    Rates,
    /// Areas on top of each other, joined like [`Form::Lines`].
    Stack,
    /// Areas on top of each other, joined like [`Form::Totals`].
    StackedTotals,
    /// Areas on top of each other, joined like [`Form::Rates`].
    StackedRates,
    /// A row of coloured cells for each series; a cell lasts until the next time.
    Heatmap,
}

impl ChartForm {
    /// Whether series lie on top of each other.
    pub const fn is_stacked(self) -> bool {
        matches!(self, ChartForm::Stack | ChartForm::StackedTotals | ChartForm::StackedRates)
    }

    /// Whether a value holds until the next: levels between two samples are not known, and a
    /// slope from one to the other is a change that never happened.
    pub const fn is_stepped(self) -> bool {
        matches!(self, ChartForm::Lines | ChartForm::Stack)
    }

    /// Whether a value speaks of the time before it.
    pub const fn is_rate(self) -> bool {
        matches!(self, ChartForm::Rates | ChartForm::StackedRates)
    }
}

/// One line, area or row.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartSeries {
    /// What it is.
    pub name: String,
    /// Its colour: a place in the palette, so that it is the same in every chart of a run.
    pub colour: usize,
    /// A value for each time; NaN where nothing is known.
    pub values: Vec<f64>,
}

/// A level that is not to be passed.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartLimit {
    /// What it is.
    pub name: String,
    /// Where it is.
    pub value: f64,
}

/// The highest point of a chart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChartPeak {
    /// When, in seconds since the run began.
    pub at: f64,
    /// How high.
    pub value: f64,
    /// It was reached after this and before `at`, where only that is known: a high-water mark
    /// that no sample met.
    pub after: Option<f64>,
}

impl ChartPeak {
    /// A value that was sampled at a moment.
    pub const fn at(at: f64, value: f64) -> ChartPeak {
        ChartPeak { at, value, after: None }
    }

    /// Its value and when it was, in words.
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

/// The time of a run, and what happened in it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Timeline {
    /// When the run ended, in seconds since it began.
    pub end: f64,
    /// Phases.
    pub bands: Vec<Band>,
    /// Marks.
    pub marks: Vec<Mark>,
    /// Phases and marks that are too many, or too deep inside each other, to be drawn.
    pub left_out: (usize, usize),
}

/// A phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Band {
    /// Its name.
    pub name: String,
    /// When it began.
    pub from: f64,
    /// When it ended, or the run.
    pub to: f64,
    /// How many phases it is inside of.
    pub depth: usize,
}

/// A moment that somebody marked.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// With these words.
    pub text: String,
    /// When.
    pub at: f64,
}

/// What values are: a unit of the catalogue, or its change in a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// The unit.
    pub unit: Unit,
    /// Whether it is the change in a second.
    pub per_second: bool,
    /// How sizes are written.
    pub units: Units,
}

impl Scale {
    /// A level in this unit.
    pub const fn level(unit: Unit) -> Scale {
        Scale { unit, per_second: false, units: Units::Binary }
    }

    /// A change in a second.
    pub const fn rate(unit: Unit) -> Scale {
        Scale { unit, per_second: true, units: Units::Binary }
    }

    /// What a chart of a metric shows: levels as they are, running totals as rates.
    pub const fn of(metric: &Metric) -> Scale {
        match (metric.kind, metric.unit) {
            // A rate already, whoever made it one.
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
            (Unit::Seconds | Unit::Elapsed, false) => "seconds",
            // A second of CPU time in a second is a busy core.
            (Unit::Seconds, true) => "cores",
            (Unit::Elapsed, true) | (Unit::Ratio, _) => "share",
            (Unit::Joules, false) => "joules",
            (Unit::Joules, true) | (Unit::Watts, _) => "watts",
            (Unit::Hertz, _) => "hertz",
            (Unit::Celsius, _) => "celsius",
            (Unit::One, false) => "count",
            (Unit::One, true) => "count/s",
        }
    }

    /// A value as people read it.
    pub fn shown(self, value: f64) -> String {
        let bytes = || quantity::bytes(value, self.units);
        match (self.unit, self.per_second) {
            (Unit::Bytes, false) => bytes(),
            (Unit::Bytes, true) | (Unit::BytesPerSecond, _) => bytes() + "/s",
            (Unit::Seconds | Unit::Elapsed, false) => quantity::seconds(value),
            (Unit::Seconds, true) => format!("{value:.2} cores"),
            (Unit::Elapsed, true) | (Unit::Ratio, _) => quantity::ratio(value),
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
    /// What the brightest cell of a heat map stands for: all of what a share is of, or the limit,
    /// or else a round value that is not reached. What never changes must not look like an alarm.
    pub fn brightest(&self) -> f64 {
        let highest = self.highest().map_or(0.0, |peak| peak.value);
        let limits = self.limits.iter().map(|limit| limit.value);
        match (self.scale.name(), limits.reduce(f64::max)) {
            ("share", _) => highest.max(1.0),
            (_, Some(limit)) => highest.max(limit),
            _ => axis::values(self.scale, highest * 1.1, 5).last().map_or(1.0, |tick| tick.value),
        }
    }

    /// The highest value that is in sight: of what is drawn, or the marked peak.
    pub fn top(&self) -> Option<f64> {
        let drawn = self.highest().map(|peak| peak.value);
        let marked = self.peak.map(|peak| peak.value);
        drawn.into_iter().chain(marked).reduce(f64::max)
    }

    /// The highest value that is drawn: of one series, or of all on top of each other.
    pub fn highest(&self) -> Option<ChartPeak> {
        let value_at = |place: usize| {
            let values = self.series.iter().map(|series| series.values[place]);
            let known = values.filter(|value| value.is_finite());
            if self.form.is_stacked() { known.reduce(|a, b| a + b) } else { known.reduce(f64::max) }
        };
        let points = self.times.iter().enumerate();
        let known = points.filter_map(|(place, at)| Some(ChartPeak::at(*at, value_at(place)?)));
        // The first of equals: a level that stays was reached when it began.
        known.reduce(|best, next| if next.value > best.value { next } else { best })
    }
}
