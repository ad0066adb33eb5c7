//! Several recordings as one: of the workers, containers or nodes of one analysis.
//!
//! The result is an ordinary recording. Times are aligned by the wall clock of each machine, so
//! that concurrent values are summed. Equal pids of different pid namespaces stay apart
//! ([`crate::model::numbering`]), and a process in several recordings is counted once. Memory does
//! not grow with the length of the recordings.
//!
//! What surprised us: each weigh samples at its own times. A sum over the rows of one moment is a
//! sum over one worker. So the values of a process are carried forward until its next sample, and a
//! round is complete when the last recording has sampled (`rounds`).

mod ending;
mod facts;
mod gpu_names;
mod gpus;
mod layout;
mod manifest;
mod process_registry;
mod rounds;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use layout::Layout;
use walk::Walk;

use crate::catalog::all_groups;
use crate::model::Tick;
use crate::model::numbering::MOST_NAMESPACES;
use crate::record::files::{self, Claim};
use crate::record::{self, Manifest, MemberLoss, Recording, Writer};
use crate::summary::{self, Summary};

/// Why recordings were not merged.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing to merge.
    #[error("merging needs two or more recordings, got {0}")]
    TooFew(usize),
    /// There are too many to distinguish.
    #[error("there are {0} recordings, and at most {MOST_NAMESPACES} make one")]
    TooMany(usize),
    /// One of them is given twice and would be counted twice.
    #[error("{} and {} are the same run", one.display(), other.display())]
    Twice {
        /// Its path.
        one: PathBuf,
        /// Its other path.
        other: PathBuf,
    },
    /// A recording cannot be read, or not be written.
    #[error(transparent)]
    Recording(#[from] record::Error),
    /// It could not be written whole.
    #[error("{}: {why}", path.display())]
    Unwritten {
        /// Where it should have been.
        path: PathBuf,
        /// What went wrong.
        why: String,
    },
}

/// Merged recordings.
#[derive(Debug)]
pub struct Merged {
    /// Where the new recording is.
    pub directory: PathBuf,
    /// What they used in total.
    pub summary: Summary,
    /// What is missing from them.
    pub warnings: Vec<String>,
}

/// Progress: seconds of the run that are done, and the total.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Done.
    pub done: Duration,
    /// All there are.
    pub of: Duration,
}

/// Merges recordings into one.
///
/// It is written into this directory, which must be new or empty, or into a new one under
/// `weigh-runs/`. When it fails, nothing is left behind.
pub fn merge(
    recordings: &[Recording],
    output: Option<&Path>,
    name: Option<&str>,
    now: Duration,
    progress: impl FnMut(Progress),
) -> Result<Merged, Error> {
    check(recordings)?;
    let layout = Layout::of(recordings);
    let manifest = manifest::of(recordings, &layout, name, now);
    let claim = prepare(output, &manifest, now)?;
    let (directory, made) = (claim.directory.clone(), claim.made);
    let written = write(recordings, &layout, &manifest, claim, progress);
    let finished = written.and_then(|()| {
        let summary = summary::of(&Recording::open(&directory)?)?;
        let json = serde_json::to_vec_pretty(&summary).map_err(|error| Error::Unwritten {
            path: directory.clone(),
            why: error.to_string(),
        })?;
        files::write_whole(&directory.join("summary.json"), &json)?;
        Ok(summary)
    });
    match finished {
        Ok(summary) => Ok(Merged { directory, summary, warnings: warnings(recordings) }),
        Err(error) => {
            files::discard(&directory, made);
            Err(error)
        }
    }
}

fn check(recordings: &[Recording]) -> Result<(), Error> {
    if recordings.len() < 2 {
        return Err(Error::TooFew(recordings.len()));
    }
    let members = recordings.iter().map(|one| layout::members_of(one.manifest())).sum();
    if members > MOST_NAMESPACES {
        return Err(Error::TooMany(members));
    }
    let mut known: HashMap<&str, &Path> = HashMap::new();
    for recording in recordings {
        let other = recording.directory();
        for id in manifest::ids(recording.manifest()) {
            if let Some(one) = known.insert(id, other) {
                return Err(Error::Twice { one: one.to_owned(), other: other.to_owned() });
            }
        }
    }
    Ok(())
}

/// Claims the directory.
fn prepare(output: Option<&Path>, manifest: &Manifest, now: Duration) -> Result<Claim, Error> {
    Ok(match output {
        Some(path) => Claim::of(path)?,
        None => {
            let now = jiff::Timestamp::from_nanosecond(now.as_nanos() as i128).unwrap_or_default();
            let name = files::directory_name(now, &manifest.name);
            Claim::new_in(Path::new(files::DEFAULT_DIRECTORY), &name)?
        }
    })
}

fn write(
    recordings: &[Recording],
    layout: &Layout,
    manifest: &Manifest,
    claim: Claim,
    mut progress: impl FnMut(Progress),
) -> Result<(), Error> {
    let groups = all_groups();
    let tick = Tick::new(&manifest::merged_groups(&groups, manifest));
    let (directory, losses) = (claim.directory.clone(), losses(recordings));
    let writer = Writer::within(claim, manifest, &tick, &losses)?;
    let mut walk = Walk::new(recordings, layout, &groups, tick, writer)?;
    let of = layout.last(recordings);
    while let Some(done) = walk.step()? {
        progress(Progress { done: done.min(of), of });
    }
    let faults = walk.finish();
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Error::Unwritten { path: directory, why: faults.join("; ") }),
    }
}

/// What is missing from the recordings, each with its path.
fn warnings(recordings: &[Recording]) -> Vec<String> {
    let mut warnings = Vec::new();
    for recording in recordings {
        let place = recording.directory().display();
        if ending::of(recording).is_none() {
            warnings.push(format!("{place}: its end is not recorded, so neither is that of all"));
        }
    }
    warnings.extend(losses(recordings).into_iter().map(|loss| loss.sentence));
    warnings
}

/// What the recordings have lost, each with its path.
fn losses(recordings: &[Recording]) -> Vec<MemberLoss> {
    let of_one = |one: &Recording| {
        let place = one.directory().display().to_string();
        one.losses().of_member(&place).collect::<Vec<_>>()
    };
    recordings.iter().flat_map(of_one).collect()
}
