//! Charts as JSON for the page's script, which redraws them on zoom.
//!
//! Kept small, because a page may be an attachment: charts of one run mostly share their times and
//! always their phases, so those are stored once and referenced by index; times are deltas; values
//! have five digits.

use serde::{Serialize, Serializer};

use crate::plot::ChartForm;
use crate::plot::chart::{Band, Chart, ChartLimit, ChartSeries, Mark, Timeline};
use crate::text::printable;

/// All charts of a page.
#[derive(Debug, Default, Serialize)]
pub(super) struct ChartsJson {
    times: Vec<TimesJson>,
    timelines: Vec<TimelineJson>,
    charts: Vec<ChartJson>,
}

/// Deltas between times, the first from zero, as multiples of a unit.
#[derive(Debug, PartialEq, Serialize)]
struct TimesJson {
    unit: f64,
    steps: Vec<i64>,
}

#[derive(Debug, PartialEq, Serialize)]
struct TimelineJson {
    end: f64,
    bands: Vec<(f64, f64, usize, String)>,
    marks: Vec<(f64, String)>,
}

#[derive(Debug, Serialize)]
struct ChartJson {
    name: String,
    title: String,
    scale: &'static str,
    form: &'static str,
    times: usize,
    timeline: usize,
    series: Vec<SeriesJson>,
    limits: Vec<(f64, String)>,
    /// Time and value of the marked peak, and the start of its interval where only that is known.
    peak: Option<(f64, f64, Option<f64>)>,
    /// The highest value shown, unrounded: rounded, the axis could end a tick earlier.
    highest: Option<f64>,
}

#[derive(Debug, Serialize)]
struct SeriesJson {
    name: String,
    colour: usize,
    values: Vec<RoundedNumber>,
}

/// A number with five digits; null for NaN.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RoundedNumber(f64);

impl Serialize for RoundedNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Formatted and parsed: powers of ten are not exact, and 0.1 must not become
        // 0.10000000000000002.
        let rounded: f64 = format!("{:.4e}", self.0).parse().unwrap_or(f64::NAN);
        if !rounded.is_finite() {
            serializer.serialize_none()
        } else if rounded.fract() == 0.0 && rounded.abs() < 1e15 {
            serializer.serialize_i64(rounded as i64)
        } else {
            serializer.serialize_f64(rounded)
        }
    }
}

impl ChartsJson {
    /// Adds a chart; returns its index, by which the script refers to it.
    pub(super) fn push(&mut self, chart: &Chart) -> usize {
        let times = place_of(&mut self.times, TimesJson::of(&chart.times));
        let timeline = place_of(&mut self.timelines, TimelineJson::of(&chart.timeline));
        self.charts.push(ChartJson {
            name: chart.name.clone(),
            title: printable(&chart.title),
            scale: chart.scale.name(),
            form: form(chart.form),
            times,
            timeline,
            series: chart.series.iter().map(SeriesJson::of).collect(),
            limits: chart.limits.iter().map(limit).collect(),
            peak: chart.peak.map(|peak| (peak.at, peak.value, peak.after)),
            highest: chart.top(),
        });
        self.charts.len() - 1
    }
}

/// The index of a value in a list, appended if it is new.
fn place_of<T: PartialEq>(list: &mut Vec<T>, wanted: T) -> usize {
    if let Some(place) = list.iter().position(|one| *one == wanted) {
        return place;
    }
    list.push(wanted);
    list.len() - 1
}

impl TimesJson {
    fn of(times: &[f64]) -> TimesJson {
        // Short runs have times in microseconds.
        let unit = if times.last().is_some_and(|last| *last < 10.0) { 1e-6 } else { 1e-3 };
        let whole: Vec<i64> = times.iter().map(|time| (time / unit).round() as i64).collect();
        let before = std::iter::once(0).chain(whole.iter().copied());
        TimesJson {
            unit,
            steps: whole.iter().zip(before).map(|(time, before)| time - before).collect(),
        }
    }
}

impl TimelineJson {
    fn of(timeline: &Timeline) -> TimelineJson {
        let band =
            |band: &Band| (exact(band.from), exact(band.to), band.depth, printable(&band.name));
        let mark = |mark: &Mark| (exact(mark.at), printable(&mark.text));
        TimelineJson {
            end: exact(timeline.end),
            bands: timeline.bands.iter().map(band).collect(),
            marks: timeline.marks.iter().map(mark).collect(),
        }
    }
}

/// A time to the microsecond: in a run of days, five digits would move a phase by seconds.
fn exact(time: f64) -> f64 {
    (time * 1e6).round() / 1e6
}

impl SeriesJson {
    fn of(series: &ChartSeries) -> SeriesJson {
        let values = series.values.iter().map(|value| RoundedNumber(*value)).collect();
        SeriesJson { name: printable(&series.name), colour: series.colour, values }
    }
}

fn limit(limit: &ChartLimit) -> (f64, String) {
    (limit.value, printable(&limit.name))
}

fn form(form: ChartForm) -> &'static str {
    match form {
        ChartForm::Lines => "lines",
        ChartForm::Counters => "totals",
        ChartForm::Rates => "rates",
        ChartForm::Stack => "stack",
        ChartForm::StackedCounters => "stacked totals",
        ChartForm::StackedRates => "stacked rates",
        ChartForm::Heatmap => "heat",
    }
}
