//! Which recording a verb reads: the only place that turns a RUN into a directory.

use std::path::{Path, PathBuf};

use weigh::listing::{self, NotFound, RecordingId};
use weigh::record::{files, job_directory};

use crate::failure::Failure;

/// The recording that is named, or the newest.
pub(crate) fn one(named: Option<&Path>) -> Result<PathBuf, Failure> {
    listing::find(named, Path::new(files::DEFAULT_DIRECTORY)).map_err(|error| failure(named, error))
}

/// The recordings in a directory that is not one itself.
pub(crate) fn all_in(directory: &Path) -> Option<Vec<PathBuf>> {
    let is_one = directory.join("run.json").exists();
    let runs = files::recordings(directory).ok().filter(|_| !is_one)?;
    (!runs.is_empty()).then_some(runs)
}

fn failure(named: Option<&Path>, error: NotFound) -> Failure {
    let word = named.map(|named| named.display().to_string()).unwrap_or_default();
    let what = match named {
        Some(_) => format!("cannot find the run {word}"),
        None => "no recordings found".to_owned(),
    };
    let cause = error.to_string();
    match error {
        NotFound::Directory(_) | NotFound::Empty { .. } => {
            let hint = "record one: weigh run -- CMD, or list another place: weigh runs DIR";
            Failure::new(what, cause, hint)
        }
        NotFound::Ambiguous { matches, .. } => {
            let hint = format!("name one by its id or directory, or the newest of them: {word}~0");
            Failure::new(format!("several runs are {word}"), cause, hint).list(lines(&matches))
        }
        NotFound::Several { runs, .. } => {
            let hint = match named.is_some_and(job_directory::is_one) {
                true => format!("name one of them, or show the whole job: weigh job show {word}"),
                false => "name one of them by its directory".to_owned(),
            };
            Failure::new("cannot read several runs at once", cause, hint).list(lines(&runs))
        }
        NotFound::Unknown { nearest, .. } => {
            let cause = format!("{cause}; the nearest:");
            Failure::new(what, cause, "list the runs: weigh runs").list(lines(&nearest))
        }
        NotFound::NotARecording { .. } | NotFound::TooFar { .. } => {
            Failure::new(what, cause, "list the runs: weigh runs")
        }
    }
}

/// Lines with time, name, id and directory of recordings.
fn lines(runs: &[RecordingId]) -> Vec<String> {
    const MOST: usize = 10;
    let shown = &runs[..runs.len().min(MOST)];
    let longest = shown.iter().map(|one| one.name.chars().count()).max().unwrap_or(0);
    let line = |one: &RecordingId| {
        let started = one.started.strftime("%Y-%m-%d %H:%M:%S UTC");
        format!("{started}  {:longest$}  {}  {}", one.name, one.id, one.directory.display())
    };
    let mut lines: Vec<String> = shown.iter().map(line).collect();
    if runs.len() > MOST {
        lines.push(format!("and {} older ones", runs.len() - MOST));
    }
    lines
}
