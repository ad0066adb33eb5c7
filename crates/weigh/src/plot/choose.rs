//! Charts by name: the standard charts, and any metric of the catalogue.

use super::catalogued::is_drawn;
use super::{Chart, ChartBuilder};
use crate::catalog::{Metric, all_groups};
use crate::quantity::Units;
use crate::record::{self, Recording};

/// Why a chart is not available.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The recording cannot be read.
    #[error(transparent)]
    Recording(#[from] record::Error),
    /// No chart or metric has that name.
    #[error("there is no chart and no metric {name}")]
    NoChart {
        /// The name.
        name: String,
    },
    /// The run has no data for it.
    #[error("the recording has no data for {name}, or it was always zero")]
    Nothing {
        /// The name.
        name: String,
    },
}

/// The charts of these names, in their order: of a chart, or of a metric.
pub fn charts(recording: &Recording, names: &[String], units: Units) -> Result<Vec<Chart>, Error> {
    let metrics: Vec<&'static Metric> = names.iter().filter_map(|name| metric(name)).collect();
    let run_charts = ChartBuilder::of(recording, &metrics, units)?;
    let found = |name: &String| {
        let chart = run_charts.all().find(|chart| chart.name == *name).cloned();
        let name = name.clone();
        chart.ok_or(if metric(&name).is_some() || is_chart(&name) {
            Error::Nothing { name }
        } else {
            Error::NoChart { name }
        })
    };
    names.iter().map(found).collect()
}

/// The metric of a name, if it can be drawn.
pub(crate) fn metric(name: &str) -> Option<&'static Metric> {
    drawn().find(|metric| metric.name() == name)
}

fn drawn() -> impl Iterator<Item = &'static Metric> {
    all_groups().into_iter().flatten().filter(|metric| is_drawn(metric))
}

fn is_chart(name: &str) -> bool {
    super::chart_builder::names().iter().any(|known| known == name)
}

/// The names that [`charts`] knows: of charts first, then of metrics.
pub fn names() -> Vec<String> {
    super::chart_builder::names().into_iter().chain(drawn().map(Metric::name)).collect()
}
