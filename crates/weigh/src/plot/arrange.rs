//! Which charts of many things a report has, and in which order.
//!
//! Some metrics say in another way what another says better: a glimpse of what a total has all
//! of. Such a chart is left out where the better one has all that it has, which then stands in
//! its place. After that the first chart of every family comes before the others of its scope: how
//! busy GPUs were, their memory and their power are what most people look for.

use super::chart::{Chart, Timeline};
use super::entities::Entities;
use super::entity_labels::EntityLabels;
use crate::catalog::{Metric, Scope};

/// A chart and what it is of.
struct MetricChart {
    metric: &'static Metric,
    is_requested: bool,
    chart: Chart,
}

/// The charts of all things, in the order of a report.
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

/// Whether one chart says what another does, of everybody who is in it.
fn supersedes(one: &MetricChart, other: &MetricChart) -> bool {
    let has = |name: &str| one.chart.series.iter().any(|series| series.name == name);
    other.metric.is_beside(one.metric) && other.chart.series.iter().all(|series| has(&series.name))
}
