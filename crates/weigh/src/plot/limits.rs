//! Limit lines and the marked peak of a chart.

use super::chart::{Chart, ChartForm, ChartLimit, ChartPeak};
use crate::catalog::FigureId;
use crate::summary::{Figure, Figures};

/// The limits of a run.
#[derive(Debug)]
pub(super) struct LimitLines {
    /// Memory, in bytes, and whether it is a limit of the cgroup and not the machine's size.
    pub memory: Option<f64>,
    pub memory_is_limited: bool,
    /// Cores.
    pub cores: f64,
}

/// The names of the charts with a marked peak and a limit.
pub(crate) const MEMORY: &str = "memory";
pub(crate) const CPU: &str = "cpu";

impl LimitLines {
    /// Marks the peak of a chart as in the run's figures, and its limits where they are near the
    /// curves.
    pub(super) fn mark(&self, chart: &mut Chart, figures: &Figures) {
        let of_run = match chart.name.as_str() {
            MEMORY if self.memory_is_limited => {
                Some((FigureId::MemoryPeak, "memory limit", self.memory))
            }
            MEMORY => Some((FigureId::MemoryPeak, "machine memory", self.memory)),
            CPU => Some((FigureId::CpuCoresPeak, "limit", Some(self.cores))),
            _ => None,
        };
        if let Some((figure, name, value)) = of_run {
            chart.peak = peak(chart, figures.get(figure));
            chart.limits.extend(value.map(|value| ChartLimit { name: name.to_owned(), value }));
        }
        let Some(top) = chart.top().filter(|_| chart.form != ChartForm::Heatmap) else { return };
        // A line far above the data would flatten the curves.
        let (near, far): (Vec<ChartLimit>, Vec<ChartLimit>) =
            chart.limits.drain(..).partition(|limit| top > limit.value * 0.3);
        chart.limits = near;
        for ChartLimit { name, value } in far {
            chart.note =
                format!("{} {}: {}.", chart.note, capital(&name), chart.scale.shown(value));
        }
    }
}

/// The peak to mark: that of the figure, so that chart and summary agree.
///
/// None where the figure has no time, or where the chart shows something else: cgroup memory
/// includes the page cache, and RSS without PSS may be above the figure.
fn peak(chart: &Chart, figure: Option<&Figure>) -> Option<ChartPeak> {
    let drawn = chart.highest()?;
    let Some(figure) = figure.filter(|figure| figure.value.is_some()) else { return Some(drawn) };
    if figure.source.starts_with("cgroup") && chart.name == MEMORY {
        return Some(drawn);
    }
    let value = figure.value.filter(|value| drawn.value <= value * (1.0 + 1e-6))?;
    match (figure.at_seconds, figure.before_seconds) {
        (Some(at), _) => Some(ChartPeak::at(at, value)),
        (None, Some(at)) => {
            Some(ChartPeak { at, value, after: Some(figure.after_seconds.unwrap_or(0.0)) })
        }
        (None, None) => None,
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
