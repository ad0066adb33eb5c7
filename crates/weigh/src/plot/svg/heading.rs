//! Title, note and legend of a standalone SVG.

use super::heatmap;
use super::pen::{Pen, width_of};
use crate::plot::chart::{Chart, ChartForm, ChartSeries};
use crate::text::{ellipsize, printable};

const MARGIN: f64 = 16.0;
const LINE: f64 = 18.0;
const FONT_SIZE: f64 = 12.0;

/// The height of title and note.
pub(super) fn height(chart: &Chart, width: f64) -> f64 {
    30.0 + note(chart, width).len() as f64 * 15.0
}

/// Draws title and note.
pub(super) fn draw(chart: &Chart, width: f64, pen: &mut Pen) {
    let letters = ((width - 2.0 * MARGIN) / 9.5) as usize;
    pen.text("title", MARGIN, 24.0, "start", &ellipsize(&chart.title, letters));
    for (line, text) in note(chart, width).iter().enumerate() {
        pen.text("note", MARGIN, 41.0 + line as f64 * 15.0, "start", text);
    }
}

/// The wrapped note.
fn note(chart: &Chart, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in chart.note.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width_of(line, 11.0) + width_of(word, 11.0) < width - 2.5 * MARGIN => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The height of the legend.
pub(super) fn legend_height(chart: &Chart, width: f64) -> f64 {
    if chart.form == ChartForm::Heatmap {
        return 30.0;
    }
    let rows = places(chart, width).last().map_or(0, |(row, _, _)| row + 1);
    rows as f64 * LINE + if rows > 0 { 10.0 } else { 4.0 }
}

/// Row, x and label of each series.
fn places(chart: &Chart, width: f64) -> Vec<(usize, f64, String)> {
    let (mut row, mut x) = (0, MARGIN);
    let mut places = Vec::new();
    // The topmost area comes first.
    for series in ordered(chart) {
        let name = ellipsize(&printable(&series.name), 40);
        let wide = width_of(&name, FONT_SIZE) + 38.0;
        if x + wide > width - MARGIN && x > MARGIN {
            row += 1;
            x = MARGIN;
        }
        places.push((row, x, name));
        x += wide;
    }
    places
}

fn ordered(chart: &Chart) -> Vec<&ChartSeries> {
    let mut series: Vec<&ChartSeries> = chart.series.iter().collect();
    if chart.form.is_stacked() {
        series.reverse();
    }
    series
}

/// Draws the legend below the chart.
pub(super) fn legend(chart: &Chart, width: f64, top: f64, pen: &mut Pen) {
    if chart.form == ChartForm::Heatmap {
        shades(chart, top, pen);
        return;
    }
    pen.group("legend", |pen| {
        for ((row, x, name), series) in places(chart, width).into_iter().zip(ordered(chart)) {
            let y = top + 12.0 + row as f64 * LINE;
            let colour = series.colour;
            if chart.form.is_stacked() {
                pen.rectangle(&format!("area c{colour}"), (x, y - 9.0), (14.0, 11.0), "");
            } else {
                pen.line(&format!("line c{colour}"), x - 2.0, y - 4.0, x + 18.0, y - 4.0);
            }
            pen.text("name", x + 22.0, y, "start", &name);
        }
    });
}

/// The colour scale of a heat map.
fn shades(chart: &Chart, top: f64, pen: &mut Pen) {
    pen.group("legend", |pen| {
        pen.text("name", MARGIN, top + 14.0, "start", "0");
        for step in 0..20 {
            let fill = format!(" style=\"fill:{}\"", heatmap::colour(f64::from(step) / 19.0));
            let x = MARGIN + 14.0 + f64::from(step) * 8.0;
            pen.rectangle("cell", (x, top + 4.0), (8.2, 12.0), &fill);
        }
        let x = MARGIN + 14.0 + 20.0 * 8.0 + 6.0;
        pen.text("name", x, top + 14.0, "start", &chart.scale.shown(chart.brightest()));
    });
}
