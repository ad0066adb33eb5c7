//! A chart as SVG: for files, HTML pages and PDF.
//!
//! Elements have classes instead of colours. A page styles them, with its dark mode; a standalone
//! SVG brings its own style. The page's script redraws the same groups and classes on zoom: change
//! both together.

mod annotations;
mod colours;
mod curves;
mod heading;
mod heatmap;
mod pen;

use super::axis::{self, AxisTick};
use super::chart::{Chart, ChartForm};
use pen::{Pen, width_of};

/// Size and style of an SVG.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SvgOptions {
    /// Its width in pixels.
    pub width: f64,
    /// Its height in pixels.
    pub height: f64,
    /// Whether it is standalone: with title, legend and its own colours, which a page provides
    /// itself.
    pub standalone: bool,
}

/// The font size of ticks and labels.
const FONT_SIZE: f64 = 11.0;

/// Draws a chart.
pub fn draw(chart: &Chart, options: SvgOptions) -> String {
    let mut pen = Pen::default();
    let height = if options.standalone { options.height.max(200.0) } else { options.height };
    let (header, footer) = match options.standalone {
        true => {
            (heading::height(chart, options.width), heading::legend_height(chart, options.width))
        }
        false => (0.0, 0.0),
    };
    let area = PlotArea::of(chart, options.width, header, height - footer);
    let PlotArea { left, top, width: wide, height: high, end, .. } = area;
    let highest = area.highest();
    pen.open(
        "svg",
        &format!(
            "xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" width=\"{0}\" height=\"{height}\" \
             viewBox=\"0 0 {0} {height}\" role=\"img\" data-plot=\"{left} {top} {wide} {high}\" \
             data-x=\"0 {end}\" data-y=\"0 {highest}\" aria-label=\"{1}\"",
            options.width,
            pen::escaped(&aria_label(chart)),
        ),
    );
    if options.standalone {
        pen.raw(colours::STYLE);
        pen.raw("<rect class=\"paper\" width=\"100%\" height=\"100%\"/>");
        heading::draw(chart, options.width, &mut pen);
    }
    area.draw(chart, &mut pen);
    if options.standalone {
        heading::legend(chart, options.width, height - footer, &mut pen);
    }
    pen.close("svg");
    pen.finish()
}

/// The chart in a sentence, for screen readers.
fn aria_label(chart: &Chart) -> String {
    let names: Vec<&str> = chart.series.iter().map(|series| series.name.as_str()).collect();
    match chart.peak.or_else(|| chart.highest()) {
        Some(peak) => {
            format!("{}: peak {}; {}", chart.title, peak.describe(chart.scale), names.join(", "))
        }
        None => format!("{}: nothing was measured", chart.title),
    }
}

/// The plot area and its axes.
#[derive(Debug)]
struct PlotArea {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    /// The time at the right end.
    end: f64,
    values: Vec<AxisTick>,
    times: Vec<AxisTick>,
}

impl PlotArea {
    fn of(chart: &Chart, width: f64, header: f64, bottom: f64) -> PlotArea {
        let limits = chart.limits.iter().map(|limit| limit.value);
        let highest = chart.top().into_iter().chain(limits);
        let values = axis::values(chart.scale, highest.fold(0.0, f64::max), 5);
        let labels: Vec<&str> = match chart.form {
            ChartForm::Heatmap => chart.series.iter().map(|series| series.name.as_str()).collect(),
            _ => values.iter().map(|tick| tick.label.as_str()).collect(),
        };
        let widest = labels.iter().map(|label| width_of(label, FONT_SIZE)).fold(24.0, f64::max);
        let left = (widest + 12.0).min(width / 4.0).round();
        // Labels of phases and marks are above the curves.
        let rows = annotations::rows(&chart.timeline);
        let top = header + 10.0 + rows as f64 * annotations::ROW;
        let end = if chart.timeline.end > 0.0 { chart.timeline.end } else { 1.0 };
        let beside = if chart.form == ChartForm::Heatmap { heatmap::MEANS } else { 0.0 };
        let width = (width - left - 16.0 - beside).max(40.0);
        let height = (bottom - 26.0 - top).max(40.0);
        let times = axis::times(end, width);
        PlotArea { left, top, width, height, end, values, times }
    }

    /// The value at the top.
    fn highest(&self) -> f64 {
        self.values.last().map_or(1.0, |tick| tick.value)
    }

    fn x(&self, time: f64) -> f64 {
        self.left + self.width * (time / self.end).clamp(0.0, 1.0)
    }

    fn y(&self, value: f64) -> f64 {
        self.top + self.height * (1.0 - (value / self.highest()).clamp(0.0, 1.0))
    }

    fn bottom(&self) -> f64 {
        self.top + self.height
    }

    fn draw(&self, chart: &Chart, pen: &mut Pen) {
        annotations::bands(self, &chart.timeline, pen);
        let is_heatmap = chart.form == ChartForm::Heatmap;
        pen.group("grid", |pen| {
            for tick in self.values.iter().filter(|_| !is_heatmap) {
                let y = self.y(tick.value);
                pen.line("rule", self.left, y, self.left + self.width, y);
            }
        });
        pen.group("series", |pen| match chart.form {
            ChartForm::Heatmap => heatmap::draw(self, chart, pen),
            _ => curves::draw(self, chart, pen),
        });
        if is_heatmap {
            pen.group("means", |pen| heatmap::means(self, chart, pen));
        }
        annotations::limits(self, chart, pen);
        annotations::marks(self, &chart.timeline, pen);
        annotations::peak(self, chart, pen);
        self.axes(chart, pen);
        if chart.times.is_empty() {
            let (x, y) = (self.left + self.width / 2.0, self.top + self.height / 2.0);
            pen.text("nothing", x, y, "middle", "nothing was measured");
        }
    }

    fn axes(&self, chart: &Chart, pen: &mut Pen) {
        pen.group("axis x", |pen| {
            pen.line("tick-line", self.left, self.bottom(), self.left + self.width, self.bottom());
            for tick in &self.times {
                let x = self.x(tick.value);
                pen.line("tick-line", x, self.bottom(), x, self.bottom() + 4.0);
                let anchor = if x > self.left + self.width - 20.0 { "end" } else { "middle" };
                let x = if anchor == "end" { x + 14.0 } else { x };
                pen.text("tick", x, self.bottom() + 17.0, anchor, &tick.label);
            }
        });
        pen.group("axis y", |pen| match chart.form {
            ChartForm::Heatmap => heatmap::names(self, chart, pen),
            _ => {
                for tick in &self.values {
                    let y = self.y(tick.value) + 4.0;
                    pen.text("tick", self.left - 6.0, y, "end", &tick.label);
                }
            }
        });
    }
}
