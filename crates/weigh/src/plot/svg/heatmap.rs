//! Heat map cells, coloured with cividis: safe for colour-blind readers and readable in grey.

use super::PlotArea;
use super::pen::Pen;
use crate::plot::chart::{Chart, ChartSeries};
use crate::text::ellipsize_middle;

const CIVIDIS: [[f64; 3]; 6] = [
    [0.0, 32.0, 77.0],
    [49.0, 68.0, 107.0],
    [102.0, 105.0, 112.0],
    [149.0, 143.0, 120.0],
    [203.0, 186.0, 105.0],
    [255.0, 234.0, 70.0],
];

/// Distinct shades; adjacent cells of one shade are merged.
const SHADES: f64 = 32.0;

/// Draws a row of cells for each series.
pub(super) fn draw(area: &PlotArea, chart: &Chart, pen: &mut Pen) {
    let high = area.height / chart.series.len().max(1) as f64;
    // Gaps between very low rows would hide the rows.
    let cell = if high > 8.0 { high - 1.0 } else { high + 0.2 };
    let brightest = chart.brightest();
    for (row, series) in chart.series.iter().enumerate() {
        let y = area.top + row as f64 * high;
        let mut place = 0;
        while place < series.values.len() {
            let shade = shade_of(series, place, brightest);
            let mut next = place + 1;
            while next < series.values.len() && shade_of(series, next, brightest) == shade {
                next += 1;
            }
            if let Some(shade) = shade {
                let end = chart.times.get(next).copied().unwrap_or(chart.timeline.end);
                let (x, to) = (area.x(chart.times[place]), area.x(end));
                let fill = format!(" style=\"fill:{}\"", colour(f64::from(shade) / SHADES));
                pen.rectangle("cell", (x, y), ((to - x).max(0.5), cell), &fill);
            }
            place = next;
        }
    }
}

fn shade_of(series: &ChartSeries, place: usize, brightest: f64) -> Option<u32> {
    let value = series.values[place];
    let share = if brightest > 0.0 { (value / brightest).clamp(0.0, 1.0) } else { 0.0 };
    (!value.is_nan()).then_some((share * SHADES).round() as u32)
}

/// The colour of a ratio from 0 to 1.
pub(super) fn colour(share: f64) -> String {
    let place = share.clamp(0.0, 1.0) * (CIVIDIS.len() - 1) as f64;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    let part = |which: usize| {
        let (from, to) = (CIVIDIS[low][which], CIVIDIS[high][which]);
        (from + (to - from) * place.fract()).round() as u8
    };
    format!("#{:02x}{:02x}{:02x}", part(0), part(1), part(2))
}

/// How much space the means of the rows take, beside the cells.
pub(super) const MEANS: f64 = 46.0;

/// The mean of each row as a bar beside it.
pub(super) fn means(area: &PlotArea, chart: &Chart, pen: &mut Pen) {
    const GAP: f64 = 6.0;
    // A page has one of its own.
    const COLOUR: &str = " fill=\"#7d8b99\"";
    let high = area.height / chart.series.len().max(1) as f64;
    let bar = if high > 8.0 { high - 1.0 } else { high };
    let mean = |series: &ChartSeries| {
        let known: Vec<f64> = series.values.iter().copied().filter(|one| one.is_finite()).collect();
        known.iter().sum::<f64>() / known.len().max(1) as f64
    };
    let means: Vec<f64> = chart.series.iter().map(mean).collect();
    let most = means.iter().copied().fold(0.0, f64::max);
    let left = area.left + area.width + GAP;
    for (row, mean) in means.iter().enumerate().filter(|_| most > 0.0) {
        let y = area.top + row as f64 * high;
        pen.rectangle("mean", (left, y), ((MEANS - GAP) * mean / most, bar), COLOUR);
    }
    pen.text("tick", left, area.bottom() + 17.0, "start", "mean");
}

/// The labels of the rows, as many as fit.
pub(super) fn names(area: &PlotArea, chart: &Chart, pen: &mut Pen) {
    let high = area.height / chart.series.len().max(1) as f64;
    let every = (12.0 / high).ceil().max(1.0) as usize;
    for (row, series) in chart.series.iter().enumerate().step_by(every) {
        let y = area.top + (row as f64 + 0.5) * high + 4.0;
        pen.text("tick", area.left - 6.0, y, "end", &ellipsize_middle(&series.name, 28));
    }
}
