//! Annotations of a chart: phases, marks, limits and the peak.

use super::pen::{Pen, width_of};
use super::{FONT_SIZE, PlotArea};
use crate::plot::chart::{Chart, ChartForm, Timeline};
use crate::text::{ellipsize, ellipsize_middle, printable};

/// The height of a row of labels.
pub(super) const ROW: f64 = 14.0;

/// How much wider bold text is.
const BOLD: f64 = 1.1;

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
        }
        for depth in 0..rows {
            let y = area.top - (rows - depth) as f64 * ROW + 11.0;
            let bands = timeline.bands.iter().filter(|band| band.depth == depth);
            let named = bands.map(|band| NamedSpan {
                from: area.x(band.from),
                to: area.x(band.to),
                name: printable(&band.name),
            });
            let named: Vec<NamedSpan> = named.collect();
            for (x, name) in placed(&named, area.left, area.left + area.width) {
                pen.text("band-name", x, y, "start", &name);
            }
        }
    });
}

/// A band on the picture, and its name.
struct NamedSpan {
    from: f64,
    to: f64,
    name: String,
}

/// Space between two names, and between a name and the edge of its band.
const BETWEEN: f64 = 8.0;
const EDGE: f64 = 3.0;

/// Where names go, from left to right. One that is wider than its band reaches into the band after
/// or before it, as far as the name there leaves space; else it is cut in the middle, because names
/// of phases often differ at their end.
fn placed(spans: &[NamedSpan], left: f64, right: f64) -> Vec<(f64, String)> {
    let mut free = left;
    let mut names = Vec::new();
    for (place, NamedSpan { from, to, name }) in spans.iter().enumerate() {
        let (begin, width) = ((from + EDGE).max(free), width_of(name, FONT_SIZE));
        let limit = spans.get(place + 1).map_or(right, |next| {
            next.to.min(right) - width_of(&next.name, FONT_SIZE) - BETWEEN - EDGE
        });
        let limit = limit.max(*to) - EDGE;
        let before = to - EDGE - width;
        let found = if begin + width <= limit {
            Some((begin, name.clone()))
        } else if before >= free {
            Some((before, name.clone()))
        } else {
            let letters = letters(to - EDGE - begin);
            (letters >= FEWEST).then(|| (begin, ellipsize_middle(name, letters)))
        };
        if let Some((x, name)) = &found {
            free = x + width_of(name, FONT_SIZE) + BETWEEN;
        }
        names.extend(found);
    }
    names
}

/// As much of a name as fits.
fn fitting(name: &str, space: f64) -> Option<String> {
    let name = printable(name);
    if width_of(&name, FONT_SIZE) <= space {
        return Some(name);
    }
    let letters = letters(space);
    (letters >= FEWEST).then(|| ellipsize(&name, letters))
}

/// With fewer letters a name is not shown.
const FEWEST: usize = 3;

/// How many letters fit.
fn letters(space: f64) -> usize {
    (space / (0.63 * FONT_SIZE)) as usize
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
        let is_left = x < area.left + area.width / 2.0;
        let space = if is_left { area.left + area.width - x } else { x - area.left } - 7.0;
        let (x, anchor) = if is_left { (x + 7.0, "start") } else { (x - 7.0, "end") };
        // When it was is in the caption, too.
        let label = Some(peak.describe(chart.scale))
            .filter(|label| width_of(label, FONT_SIZE) * BOLD <= space)
            .unwrap_or_else(|| chart.scale.shown(peak.value));
        let above = (y - 5.0).max(area.top + 10.0);
        let names = chart.limits.iter().map(|limit| beside_limit(area, area.y(limit.value)));
        // Below the dot where a limit's label is in the way.
        let is_taken = names.into_iter().any(|name| (name - above).abs() < ROW);
        pen.text("peak-name", x, if is_taken { y + 18.0 } else { above }, anchor, &label);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where names of bands go on a picture from 0 to 300.
    fn names(bands: &[(f64, f64, &str)]) -> Vec<(f64, String)> {
        let span = |(from, to, name): &(f64, f64, &str)| NamedSpan {
            from: *from,
            to: *to,
            name: (*name).to_owned(),
        };
        placed(&bands.iter().map(span).collect::<Vec<_>>(), 0.0, 300.0)
    }

    fn texts(names: &[(f64, String)]) -> Vec<&str> {
        names.iter().map(|(_, name)| name.as_str()).collect()
    }

    #[test]
    fn names_of_narrow_phases_reach_into_the_wide_one_beside_them() {
        let placed =
            names(&[(0.0, 20.0, "loading"), (20.0, 270.0, "train"), (270.0, 300.0, "saving it")]);
        assert_eq!(texts(&placed), ["loading", "train", "saving it"]);
        let ends: Vec<f64> = placed.iter().map(|(x, name)| x + width_of(name, FONT_SIZE)).collect();
        assert_eq!(placed[0].0, 3.0);
        assert!(placed[1].0 >= ends[0] + BETWEEN && placed[2].0 >= ends[1] + BETWEEN, "{placed:?}");
        assert!(ends[2] <= 300.0, "{placed:?}");
    }

    #[test]
    fn names_that_fit_begin_at_their_phase_and_many_narrow_ones_are_cut_or_left_out() {
        let wide = names(&[(0.0, 100.0, "load"), (120.0, 300.0, "train")]);
        assert_eq!(wide, [(3.0, "load".to_owned()), (123.0, "train".to_owned())]);
        let narrow: Vec<(f64, f64, &str)> = (0..10)
            .map(|n| (f64::from(n) * 30.0, f64::from(n) * 30.0 + 30.0, "preprocess"))
            .collect();
        let placed = names(&narrow);
        let cut: Vec<(f64, f64, &str)> = vec![(0.0, 40.0, "epoch 11"), (40.0, 80.0, "epoch 12")];
        assert_eq!(texts(&names(&cut)), ["e…11", "epoch 12"], "names differ at their end");
        for two in placed.windows(2) {
            assert!(two[1].0 >= two[0].0 + width_of(&two[0].1, FONT_SIZE), "{placed:?}");
        }
    }
}
