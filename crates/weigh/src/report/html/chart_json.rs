//! Charts as the page's script reads them, to draw them again when somebody zooms.
//!
//! Kept small, because a page may be an attachment: charts of one run mostly have their
//! times and always their phases in common, so those stand once and are named by their
//! place; times are steps from one to the next; values have five digits.

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

/// Steps between times, the first from zero, in whole units of a part of a second.
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
    title: String,
    scale: &'static str,
    form: &'static str,
    times: usize,
    timeline: usize,
    series: Vec<SeriesJson>,
    limits: Vec<(f64, String)>,
    /// When and how high the point is that has a mark, and after when, where only that is known.
    peak: Option<(f64, f64, Option<f64>)>,
    /// The highest value in sight with all its digits: rounded, it could end the axis a tick earlier.
    highest: Option<f64>,
}

#[derive(Debug, Serialize)]
struct SeriesJson {
    name: String,
    colour: usize,
    values: Vec<RoundedNumber>,
}

/// A number with five digits, or null when it is none.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RoundedNumber(f64);

impl Serialize for RoundedNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Written and read again: powers of ten are not exact, and 0.1 must not become
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
    /// Adds a chart; the script knows it by its place.
    pub(super) fn push(&mut self, chart: &Chart) {
        let times = place_of(&mut self.times, TimesJson::of(&chart.times));
        let timeline = place_of(&mut self.timelines, TimelineJson::of(&chart.timeline));
        self.charts.push(ChartJson {
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
    }
}

/// Where something is in a list, at whose end it is put when it is not there yet.
fn place_of<T: PartialEq>(list: &mut Vec<T>, wanted: T) -> usize {
    if let Some(place) = list.iter().position(|one| *one == wanted) {
        return place;
    }
    list.push(wanted);
    list.len() - 1
}

impl TimesJson {
    fn of(times: &[f64]) -> TimesJson {
        // A run of some milliseconds has times of microseconds.
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
        ChartForm::Totals => "totals",
        ChartForm::Rates => "rates",
        ChartForm::Stack => "stack",
        ChartForm::StackedTotals => "stacked totals",
        ChartForm::StackedRates => "stacked rates",
        ChartForm::Heatmap => "heat",
    }
}
