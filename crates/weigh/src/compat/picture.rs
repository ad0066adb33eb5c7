//! Pictures under the file names of other tools' pictures.
//!
//! Where a recording has no data, an empty frame says so: a script that collects the pictures
//! finds all of them, and a missing one is not taken for zero.

use crate::catalog::Unit;
use crate::plot::RunCharts;
use crate::plot::chart::{Chart, ChartForm, Scale, Timeline};
#[cfg(feature = "png")]
use crate::plot::svg;

/// A picture under the file name of another tool's.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// The name of its file.
    pub file: String,
    /// What it shows.
    pub chart: Chart,
    /// Its width and height in pixels.
    pub size: (f64, f64),
}

/// The width at which pictures are set, so that text is as large as in weigh's own pictures.
#[cfg(feature = "png")]
const SET_WIDTH: f64 = 900.0;

#[cfg(feature = "png")]
impl Picture {
    /// Draws it as a PNG of its size.
    pub fn png(&self) -> Result<Vec<u8>, crate::plot::PngError> {
        let (width, height) = self.size;
        let height = SET_WIDTH * height / width;
        let drawn =
            svg::draw(&self.chart, svg::SvgOptions { width: SET_WIDTH, height, standalone: true });
        crate::plot::png(&drawn, (width / SET_WIDTH) as f32)
    }
}

/// A chart of the run, under another title.
pub(super) fn named(run_charts: &RunCharts, name: &str, title: &str) -> Chart {
    let found = run_charts.all().find(|chart| chart.name == name).cloned();
    let chart = found.unwrap_or_else(|| nothing(title, "The recording has no data for this."));
    Chart { title: title.to_owned(), peak: None, limits: Vec::new(), ..chart }
}

pub(super) fn nothing(title: &str, note: &str) -> Chart {
    Chart {
        name: String::new(),
        title: title.to_owned(),
        note: note.to_owned(),
        scale: Scale::level(Unit::One),
        form: ChartForm::Lines,
        times: Vec::new(),
        series: Vec::new(),
        limits: Vec::new(),
        peak: None,
        timeline: Timeline::default(),
    }
}

/// A line for each tool instead of areas on top of each other.
pub(super) fn lines(chart: Chart) -> Chart {
    let form = match chart.form {
        ChartForm::StackedRates | ChartForm::Rates => ChartForm::Rates,
        ChartForm::StackedCounters | ChartForm::Counters => ChartForm::Counters,
        ChartForm::Stack | ChartForm::Lines | ChartForm::Heatmap => ChartForm::Lines,
    };
    Chart { form, ..chart }
}
