//! Annotations of a chart: phases, marks, limits and the peak.

use super::pen::{Pen, width_of};
use super::{FONT_SIZE, PlotArea};
use crate::plot::chart::{Chart, ChartForm, Timeline};
use crate::text::{ellipsize, printable};

/// The height of a row of labels.
pub(super) const ROW: f64 = 14.0;

/// A narrower band has no outline.
const THIN: f64 = 4.0;

/// The number of label rows above the curves.
pub(super) fn rows(timeline: &Timeline) -> usize {
    bands_rows(timeline) + usize::from(!timeline.marks.is_empty())
}

fn bands_rows(timeline: &Timeline) -> usize {
    timeline.bands.iter().map(|band| band.depth + 1).max().unwrap_or(0)
}

/// Phases: bands behind the curves, with labels above.
pub(super) fn bands(area: &PlotArea, timeline: &Timeline, pen: &mut Pen) {
    let rows = bands_rows(timeline);
    pen.group("bands", |pen| {
        for band in &timeline.bands {
            let depth = band.depth;
            let (x, to) = (area.x(band.from), area.x(band.to));
            let top = area.top - (rows - depth) as f64 * ROW;
            let size = ((to - x).max(0.5), area.bottom() - top);
            // Outlines of many short bands would hide the bands.
            let thin = if to - x < THIN { " thin" } else { "" };
            pen.rectangle(&format!("band d{depth}{thin}"), (x, top), size, "");
            if let Some(name) = fitting(&band.name, to - x - 6.0) {
                pen.text("band-name", x + 3.0, top + 11.0, "start", &name);
            }
        }
    });
}

/// As much of a name as fits.
fn fitting(name: &str, space: f64) -> Option<String> {
    let name = printable(name);
    if width_of(&name, FONT_SIZE) <= space {
        return Some(name);
    }
    let letters = (space / (0.63 * FONT_SIZE)) as usize;
    (letters >= 3).then(|| ellipsize(&name, letters))
}

/// Marks of the user.
pub(super) fn marks(area: &PlotArea, timeline: &Timeline, pen: &mut Pen) {
    pen.group("marks", |pen| {
        let mut free = f64::NEG_INFINITY;
        for mark in &timeline.marks {
            let x = area.x(mark.at);
            let top = area.top - rows(timeline) as f64 * ROW;
            pen.line("mark", x, top, x, area.bottom());
            let space = area.left + area.width - x - 4.0;
            let name = fitting(&mark.text, space.min(160.0));
            // A label that would overlap the last one is left out; the line stays.
            if let Some(name) = name.filter(|_| x >= free) {
                free = x + width_of(&name, FONT_SIZE) + 8.0;
                pen.text("mark-name", x + 3.0, top + 11.0, "start", &name);
            }
        }
    });
}

/// Limit lines.
pub(super) fn limits(area: &PlotArea, chart: &Chart, pen: &mut Pen) {
    pen.group("limits", |pen| {
        // A heat map has no value axis for a line.
        for limit in chart.limits.iter().filter(|_| chart.form != ChartForm::Heatmap) {
            let y = area.y(limit.value);
            pen.line("limit", area.left, y, area.left + area.width, y);
            let label = format!("{} {}", limit.name, chart.scale.shown(limit.value));
            let y = beside_limit(area, y);
            pen.text("limit-name", area.left + area.width - 4.0, y, "end", &label);
        }
    });
}

/// Above the line, unless that is outside the chart.
fn beside_limit(area: &PlotArea, y: f64) -> f64 {
    if y - area.top < ROW { y + 13.0 } else { y - 4.0 }
}

/// The peak, its value and its time.
pub(super) fn peak(area: &PlotArea, chart: &Chart, pen: &mut Pen) {
    pen.group("peak", |pen| {
        let Some(peak) = chart.peak else { return };
        let (x, y) = (area.x(peak.at), area.y(peak.value));
        match peak.after {
            None => pen.dot("peak-dot", x, y, 3.5),
            // When in this interval it was is unknown.
            Some(after) => pen.line("peak-span", area.x(after), y, x, y),
        }
        let label = peak.describe(chart.scale);
        let is_left = x < area.left + area.width / 2.0;
        let (x, anchor) = if is_left { (x + 7.0, "start") } else { (x - 7.0, "end") };
        let above = (y - 5.0).max(area.top + 10.0);
        let names = chart.limits.iter().map(|limit| beside_limit(area, area.y(limit.value)));
        // Below the dot where a limit's label is in the way.
        let is_taken = names.into_iter().any(|name| (name - above).abs() < ROW);
        pen.text("peak-name", x, if is_taken { y + 18.0 } else { above }, anchor, &label);
    });
}
