//! Lines and areas.

use std::fmt::Write;

use super::Frame;
use super::pen::{Pen, Short};
use crate::plot::chart::Chart;

/// Draws the series of a chart.
pub fn draw(frame: &Frame, chart: &Chart, pen: &mut Pen) {
    if chart.form.is_stacked() {
        areas(frame, chart, pen);
        return;
    }
    for series in &chart.series {
        let line = line(frame, chart, &series.values);
        pen.path(&format!("line c{}", series.colour), &line);
    }
}

/// The points of a line; what is not known is a gap.
fn line(frame: &Frame, chart: &Chart, values: &[f64]) -> String {
    let mut points = String::new();
    let mut is_down = false;
    for (place, value) in values.iter().enumerate() {
        if value.is_nan() {
            is_down = false;
            continue;
        }
        for time in holds(chart, place) {
            let (x, y) = (Short(frame.x(time)), Short(frame.y(*value)));
            let _ = write!(points, "{}{x} {y}", if is_down { 'L' } else { 'M' });
            is_down = true;
        }
    }
    points
}

/// The times at which a value is drawn: its own, and for a rate the time since the last one.
fn holds(chart: &Chart, place: usize) -> impl Iterator<Item = f64> + use<> {
    let time = chart.times[place];
    let before = if place > 0 { chart.times[place - 1] } else { 0.0 };
    let first = chart.form.looks_back().then_some(before);
    // One look alone is no line: what it saw holds to the end.
    let alone = (chart.times.len() == 1 && !chart.form.looks_back()).then_some(chart.timeline.end);
    first.into_iter().chain([time]).chain(alone)
}

fn areas(frame: &Frame, chart: &Chart, pen: &mut Pen) {
    let mut below = vec![0.0; chart.times.len()];
    for series in &chart.series {
        let above: Vec<f64> = series
            .values
            .iter()
            .zip(&below)
            .map(|(value, below)| if value.is_nan() { *below } else { value + below })
            .collect();
        let mut points = String::new();
        for (place, value) in above.iter().enumerate() {
            for time in holds(chart, place) {
                let (x, y) = (Short(frame.x(time)), Short(frame.y(*value)));
                let _ = write!(points, "{}{x} {y}", if points.is_empty() { 'M' } else { 'L' });
            }
        }
        for (place, value) in below.iter().enumerate().rev() {
            let times: Vec<f64> = holds(chart, place).collect();
            for time in times.into_iter().rev() {
                let _ = write!(points, "L{} {}", Short(frame.x(time)), Short(frame.y(*value)));
            }
        }
        if !points.is_empty() {
            points.push('Z');
        }
        pen.path(&format!("area c{}", series.colour), &points);
        below = above;
    }
}
