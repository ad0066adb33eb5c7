//! The jobs of an array: how far their figures are apart.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::{COMBINED, JobSummary};
use crate::catalog::{Combine, FigureId};
use crate::record;
use crate::record::manifest::Origin;

/// Several jobs, side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArraySummary {
    /// Which weigh made it.
    pub weigh: Origin,
    /// The jobs, in the order in which they were named.
    pub jobs: Vec<ArrayJob>,
    /// Figures over the jobs, those that are known of at least one.
    pub figures: Vec<SpreadFigure>,
}

/// One job of several.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArrayJob {
    /// Its directory.
    pub directory: PathBuf,
    /// Its id; with its index for the task of an array.
    pub id: Option<String>,
    /// Whether it is still recorded.
    pub is_running: bool,
    /// How many nodes were recorded.
    pub nodes_recorded: usize,
    /// Whether all nodes have a recording, and none ended before the others.
    pub is_whole: bool,
    /// How long it was recorded.
    pub duration_seconds: f64,
}

/// A figure over several jobs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SpreadFigure {
    /// Its name.
    pub name: &'static str,
    /// Jobs of which it is known.
    pub jobs: usize,
    /// The least.
    pub min: f64,
    /// The one in the middle; of an even number, the mean of both.
    pub median: f64,
    /// The most.
    pub max: f64,
    /// The place of the job with the most.
    pub max_job: usize,
}

impl ArraySummary {
    /// Of the directories of jobs, at this time of the wall clock. They are read one after the
    /// other, and nothing but their figures is kept.
    pub fn of(directories: &[PathBuf], wall: Duration) -> Result<ArraySummary, record::Error> {
        let mut jobs = Vec::new();
        let mut values: Vec<(FigureId, Vec<(f64, usize)>)> =
            figures().map(|id| (id, Vec::new())).collect();
        for (place, directory) in directories.iter().enumerate() {
            let summary = JobSummary::of(directory, wall)?;
            for (id, known) in &mut values {
                known.extend(value(&summary, *id).map(|value| (value, place)));
            }
            jobs.push(job(directory, &summary));
        }
        let figures = values.iter().filter_map(|(id, values)| spread(*id, values)).collect();
        Ok(ArraySummary { weigh: Origin::default(), jobs, figures })
    }
}

/// Figures that are compared.
fn figures() -> impl Iterator<Item = FigureId> {
    std::iter::once(FigureId::Duration).chain(COMBINED)
}

/// The figure of a job as a whole.
fn value(summary: &JobSummary, id: FigureId) -> Option<f64> {
    if id == FigureId::Duration {
        return summary.started.map(|_| summary.duration_seconds);
    }
    let combined = summary.figure(id)?;
    Some(match id.combine() {
        Combine::Sum => combined.sum,
        Combine::Mean => combined.mean,
        Combine::Max => combined.max,
    })
}

fn job(directory: &Path, summary: &JobSummary) -> ArrayJob {
    let coverage = &summary.coverage;
    ArrayJob {
        directory: directory.to_owned(),
        id: summary.job.as_ref().and_then(|job| match (&job.array_id, &job.array_index) {
            (Some(array), Some(index)) => Some(format!("{array}_{index}")),
            _ => job.id.clone(),
        }),
        is_running: summary.is_running,
        nodes_recorded: coverage.recorded,
        is_whole: coverage.silent.is_empty() && coverage.ended_early.is_empty(),
        duration_seconds: summary.duration_seconds,
    }
}

fn spread(id: FigureId, values: &[(f64, usize)]) -> Option<SpreadFigure> {
    let (max, max_job) = *values.iter().max_by(|one, other| one.0.total_cmp(&other.0))?;
    let min = values.iter().map(|(value, _)| *value).fold(f64::INFINITY, f64::min);
    let median = super::advice::median(values.iter().map(|(value, _)| *value).collect())?;
    Some(SpreadFigure { name: id.name(), jobs: values.len(), min, median, max, max_job })
}
