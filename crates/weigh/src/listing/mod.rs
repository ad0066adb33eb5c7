//! The recordings in a directory: listed, found by what people call them, and removed.
//!
//! A list is read from the `summary.json` of each recording. Where it is missing, made by another
//! version, or older than the events, the summary is made from the recording again.
#![allow(clippy::disallowed_methods, reason = "a recording is the user's files, not the machine")]

mod filter;
mod find;
mod remove;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::catalog::FigureId;
use crate::record::manifest::Origin;
use crate::record::{Error, Recording, files};
use crate::summary::{self, Figures, Run, RunOutcome};

pub use filter::{LabelFilter, RunFilter, Since};
pub use find::{NotFound, RecordingId, find};
pub use remove::{KeptReason, removable_bytes, remove};

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListedRun {
    /// Where its recording is.
    pub directory: PathBuf,
    /// The run: id, name, labels, start, end, exit code.
    #[serde(flatten)]
    pub run: Run,
    /// Whether it is still being recorded.
    pub is_running: bool,
    /// CPU time; null when it is not known.
    pub cpu_time_seconds: Option<f64>,
    /// Peak memory; null when it is not known.
    pub memory_peak_bytes: Option<f64>,
}

impl ListedRun {
    /// Reads what a list says of a recording.
    pub fn read(directory: &Path) -> Result<ListedRun, Error> {
        let (run, figures) = match current_summary(directory) {
            Some(current) => (current.run, current.figures),
            None => {
                let summary = summary::of(&Recording::open(directory)?)?;
                (summary.run, summary.figures)
            }
        };
        Ok(ListedRun {
            directory: directory.to_owned(),
            is_running: run.ended.is_none() && files::is_locked(directory),
            cpu_time_seconds: figures.value(FigureId::CpuTime),
            memory_peak_bytes: figures.value(FigureId::MemoryPeak),
            run,
        })
    }

    /// Whether it did not end as it should: another exit code than 0, a signal, or no end at all.
    pub fn has_failed(&self) -> bool {
        match self.run.outcome() {
            RunOutcome::Failed(_) | RunOutcome::Killed(_) => true,
            RunOutcome::NotRecorded => !self.is_running,
            RunOutcome::Success | RunOutcome::Stopped(_) | RunOutcome::MonitoringEnded(_) => false,
        }
    }
}

/// The recordings in a directory, newest first; those that cannot be read with the reason.
pub fn list(directory: &Path) -> Result<Vec<Result<ListedRun, UnreadableRun>>, Error> {
    let read = |directory: PathBuf| {
        ListedRun::read(&directory)
            .map_err(|error| UnreadableRun { directory, error: error.to_string() })
    };
    let mut listed: Vec<_> = files::recordings(directory)?.into_iter().map(read).collect();
    listed.sort_by_cached_key(|one| {
        std::cmp::Reverse(match one {
            Ok(run) => recorded(&run.directory, Some(run.run.started)),
            Err(unreadable) => recorded(&unreadable.directory, None),
        })
    });
    Ok(listed)
}

/// A recording that cannot be read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnreadableRun {
    /// Where it is.
    pub directory: PathBuf,
    /// What is wrong with it.
    pub error: String,
}

/// When it was recorded, as text that sorts by time: the time in the name of its directory, which a
/// merged recording has too, or the start of the run.
fn recorded(directory: &Path, started: Option<Timestamp>) -> String {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let time: String = name.chars().take("2026-11-18T08-05-23.123Z".len()).collect();
    let is_time = jiff::civil::DateTime::strptime("%Y-%m-%dT%H-%M-%S.%fZ", &time).is_ok();
    match (is_time, started) {
        (true, _) => name.into_owned(),
        (false, Some(started)) => files::directory_name(started, ""),
        (false, None) => String::new(),
    }
}

/// The parts of `summary.json` that a list needs.
#[derive(Deserialize)]
struct SummaryHead {
    weigh: Origin,
    run: Run,
    figures: Figures,
}

/// The summary in a recording's directory, unless it has to be made again.
fn current_summary(directory: &Path) -> Option<SummaryHead> {
    let path = directory.join("summary.json");
    let modified = |name: &str| modified(&directory.join(name));
    let made = modified("summary.json")?;
    let sources = ["run.json", "events.jsonl", "integrity.json"];
    if sources.into_iter().filter_map(modified).any(|changed| changed > made) {
        return None;
    }
    let head: SummaryHead = serde_json::from_slice(&files::read_regular(&path).ok()?).ok()?;
    (head.weigh == Origin::default()).then_some(head)
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).ok()?.modified().ok()
}

/// The labels of a run.
type Labels = BTreeMap<String, String>;
