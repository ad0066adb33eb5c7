//! Which charts of many entities a report has, and in which order.
//!
//! Some metrics are superseded by another: a sampled gauge by the counter of the same quantity.
//! Such a chart is left out where the better one has all its series, and the better one takes its
//! place. Then the first chart of every family comes before the others of its scope: utilisation,
//! memory and power of GPUs are what most users look for.

use super::chart::{Chart, Timeline};
use super::entities::Entities;
use super::entity_labels::EntityLabels;
use crate::catalog::{Metric, Scope};

/// A chart and its metric.
struct MetricChart {
    metric: &'static Metric,
    is_requested: bool,
    chart: Chart,
}

/// The charts of all entities, in the order of a report.
pub(super) fn arranged(
    entities: Vec<(Scope, Entities)>,
    timeline: &Timeline,
    labels: &EntityLabels,
) -> Vec<(Scope, Chart)> {
    let mut charts: Vec<Option<MetricChart>> = entities
        .into_iter()
        .map(|(_, entities)| {
            let (metric, is_requested) = (entities.metric(), entities.is_requested());
            let chart = entities.chart(timeline, labels)?;
            Some(MetricChart { metric, is_requested, chart })
        })
        .collect();
    for place in 0..charts.len() {
        let better = charts[place].as_ref().filter(|one| !one.is_requested).and_then(|one| {
            charts
                .iter()
                .position(|other| other.as_ref().is_some_and(|other| supersedes(other, one)))
        });
        if let Some(better) = better {
            charts[place] = charts[better].take();
        }
    }
    let mut families: Vec<(Scope, &str)> = Vec::new();
    let mut all: Vec<(Scope, bool, Chart)> = Vec::new();
    for MetricChart { metric, chart, .. } in charts.into_iter().flatten() {
        let family = (metric.scope, metric.group);
        let is_another = families.contains(&family);
        families.push(family);
        all.push((metric.scope, is_another, chart));
    }
    let place = |wanted: Scope| Scope::ALL.into_iter().position(|scope| scope == wanted);
    all.sort_by_key(|(scope, is_another, _)| (place(*scope), *is_another));
    all.into_iter().map(|(scope, _, chart)| (scope, chart)).collect()
}

/// Whether one chart supersedes another: better metric, and all of its series.
fn supersedes(one: &MetricChart, other: &MetricChart) -> bool {
    let has = |name: &str| one.chart.series.iter().any(|series| series.name == name);
    other.metric.is_superseded_by(one.metric)
        && other.chart.series.iter().all(|series| has(&series.name))
}
