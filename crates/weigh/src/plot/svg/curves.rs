//! Lines and areas.

use std::ops::Range;

use super::PlotArea;
use super::pen::{PathData, Pen};
use crate::plot::chart::Chart;

/// Draws the series of a chart.
pub(super) fn draw(area: &PlotArea, chart: &Chart, pen: &mut Pen) {
    if chart.form.is_stacked() {
        areas(area, chart, pen);
        return;
    }
    for series in &chart.series {
        let line = line(area, chart, &series.values);
        pen.path(&format!("line c{}", series.colour), &line);
    }
}

/// The path of a line; unknown values are gaps.
fn line(area: &PlotArea, chart: &Chart, values: &[f64]) -> String {
    let mut path = PathData::default();
    for piece in pieces(values) {
        for place in piece.clone() {
            for time in drawn_times(chart, place, &piece) {
                path.line_to(area.x(time), area.y(values[place]));
            }
        }
        path.end_subpath();
    }
    path.data
}

/// The times at which a value is drawn: its own, for a rate also the end of the last one, and for a
/// gauge also the time of the next.
fn drawn_times(
    chart: &Chart,
    place: usize,
    piece: &Range<usize>,
) -> impl DoubleEndedIterator<Item = f64> {
    let time = chart.times[place];
    let before = if place > 0 { chart.times[place - 1] } else { 0.0 };
    let first = chart.form.is_rate().then_some(before);
    // A single sample is no line: it is carried forward to the next time.
    let alone = piece.len() == 1 && !chart.form.is_rate();
    let next = chart.times.get(place + 1).copied().unwrap_or(chart.timeline.end.max(time));
    first.into_iter().chain([time]).chain((alone || chart.form.is_stepped()).then_some(next))
}

fn areas(area: &PlotArea, chart: &Chart, pen: &mut Pen) {
    let mut below = vec![0.0; chart.times.len()];
    for series in &chart.series {
        let mut above = below.clone();
        let known = series.values.iter().zip(&mut above).filter(|(value, _)| !value.is_nan());
        known.for_each(|(value, above)| *above += value);
        let mut path = PathData::default();
        // Unknown values are gaps: each piece between two gaps is a separate area.
        for piece in pieces(&with_area(chart, &series.values)) {
            let mut line_to = |time: f64, value: f64| path.line_to(area.x(time), area.y(value));
            for place in piece.clone() {
                drawn_times(chart, place, &piece).for_each(|time| line_to(time, above[place]));
            }
            for place in piece.clone().rev() {
                let times = drawn_times(chart, place, &piece).rev();
                times.for_each(|time| line_to(time, below[place]));
            }
            path.close();
        }
        pen.path(&format!("area c{}", series.colour), &path.data);
        below = above;
    }
}

/// The values that have an area: the outline of a zero step would be a line on top of the others.
fn with_area(chart: &Chart, values: &[f64]) -> Vec<f64> {
    let is_nothing = |value: f64| value == 0.0 && (chart.form.is_stepped() || chart.form.is_rate());
    values.iter().map(|value| if is_nothing(*value) { f64::NAN } else { *value }).collect()
}

/// The index ranges between gaps.
fn pieces(values: &[f64]) -> Vec<Range<usize>> {
    let mut pieces: Vec<Range<usize>> = Vec::new();
    for place in (0..values.len()).filter(|place| !values[*place].is_nan()) {
        match pieces.last_mut().filter(|piece| piece.end == place) {
            Some(piece) => piece.end = place + 1,
            None => pieces.push(place..place + 1),
        }
    }
    pieces
}
