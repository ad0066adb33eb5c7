//! Which recording is meant: a directory, an id, a name, or how far back it is.
//!
//! In this order: a directory that is a recording; the name of a directory; an id; the name of a
//! run; the start of a directory's name or of an id, four characters or more. `last` is the newest,
//! `last~1` the one before, and `NAME~1` the one before of that name.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Deserialize;

use super::recorded;
use crate::record::{Error, files};

/// What identifies a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordingId {
    /// Where it is.
    pub directory: PathBuf,
    /// The id of the run.
    pub id: String,
    /// The name of the run.
    pub name: String,
    /// When it began.
    pub started: Timestamp,
}

/// A recording that was not found.
#[derive(Debug, thiserror::Error)]
pub enum NotFound {
    /// The directory of recordings cannot be read.
    #[error(transparent)]
    Directory(#[from] Error),
    /// There are no recordings.
    #[error("{} has no recordings", directory.display())]
    Empty {
        /// Where they should be.
        directory: PathBuf,
    },
    /// Several recordings are meant.
    #[error("{} recordings in {} match", matches.len(), directory.display())]
    Ambiguous {
        /// Where they are.
        directory: PathBuf,
        /// The recordings, newest first.
        matches: Vec<RecordingId>,
    },
    /// No recording is meant.
    #[error("none of the {of} recordings in {} has this name or id", directory.display())]
    Unknown {
        /// Where they are.
        directory: PathBuf,
        /// How many there are.
        of: usize,
        /// Those with the most similar names; the newest when none is similar.
        nearest: Vec<RecordingId>,
    },
    /// A directory without a recording.
    #[error("{} is neither a recording nor a directory of recordings", directory.display())]
    NotARecording {
        /// Which one.
        directory: PathBuf,
    },
    /// There are fewer.
    #[error("there are {count} in {}", directory.display())]
    TooFar {
        /// Where they are.
        directory: PathBuf,
        /// How many there are.
        count: usize,
    },
    /// A directory of recordings, and not one of them.
    #[error("{} is a directory of {} recordings", directory.display(), runs.len())]
    Several {
        /// Which one.
        directory: PathBuf,
        /// The recordings in it, newest first.
        runs: Vec<RecordingId>,
    },
}

/// Finds the recording that is meant, the newest when nothing is named; `default` is the directory
/// of recordings in which names are looked up.
pub fn find(named: Option<&Path>, default: &Path) -> Result<PathBuf, NotFound> {
    let Some(named) = named else {
        let newest = identified(default)?.into_iter().next();
        let empty = || NotFound::Empty { directory: default.to_owned() };
        return newest.map(|one| one.directory).ok_or_else(empty);
    };
    if named.join("run.json").exists() {
        return Ok(named.to_owned());
    }
    if let Ok(runs) = identified(named)
        && !runs.is_empty()
    {
        return Err(NotFound::Several { directory: named.to_owned(), runs });
    }
    let parent = named.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = parent.unwrap_or(default);
    let word = named.file_name().unwrap_or(named.as_os_str()).to_string_lossy();
    let found = identified(directory).map_err(NotFound::from);
    found.and_then(|all| choose(&word, directory, all)).map_err(|error| match named.is_dir() {
        true => NotFound::NotARecording { directory: named.to_owned() },
        false => error,
    })
}

/// The recording in a directory that a word means.
fn choose(word: &str, directory: &Path, all: Vec<RecordingId>) -> Result<PathBuf, NotFound> {
    let directory = directory.to_owned();
    if all.is_empty() {
        return Err(NotFound::Empty { directory });
    }
    let mut matches = matching(word, &all);
    if matches.is_empty() {
        let (base, back) = match word.rsplit_once('~') {
            Some((base, back)) => (base, back.parse::<usize>().ok()),
            None => (word, (word == "last").then_some(0)),
        };
        let chosen = if base == "last" { all.clone() } else { matching(base, &all) };
        if let (Some(back), false) = (back, chosen.is_empty()) {
            let count = chosen.len();
            let found = chosen.into_iter().nth(back).map(|one| one.directory);
            return found.ok_or(NotFound::TooFar { directory, count });
        }
    }
    match matches.len() {
        0 => Err(NotFound::Unknown { directory, of: all.len(), nearest: nearest(word, all) }),
        1 => Ok(matches.remove(0).directory),
        _ => Err(NotFound::Ambiguous { directory, matches }),
    }
}

/// The recordings that a word means, by the first rule that gives any.
fn matching(word: &str, all: &[RecordingId]) -> Vec<RecordingId> {
    /// Shorter ones are likely to be a mistake.
    const SHORTEST_START: usize = 4;
    let is_long = word.chars().count() >= SHORTEST_START;
    let rules: [&dyn Fn(&RecordingId) -> bool; 4] = [
        &|one| one.directory_name() == word,
        &|one| one.id == word,
        &|one| one.name == word,
        &|one| is_long && (one.directory_name().starts_with(word) || one.has_id(word)),
    ];
    let taken = rules.iter().map(|rule| all.iter().filter(|one| rule(one)).cloned().collect());
    taken.into_iter().find(|found: &Vec<_>| !found.is_empty()).unwrap_or_default()
}

/// The recordings with the most similar names, one of each name; the newest when none is similar.
fn nearest(word: &str, all: Vec<RecordingId>) -> Vec<RecordingId> {
    const MOST: usize = 3;
    /// Two of three letters in place.
    const SIMILAR: f64 = 0.7;
    let mut known: Vec<(f64, RecordingId)> = Vec::new();
    for one in all {
        if known.iter().any(|(_, other)| other.name == one.name) {
            continue;
        }
        let names = [one.name.as_str(), one.id.as_str(), &one.directory_name()];
        let likeness = names.map(|name| strsim::jaro_winkler(word, name));
        known.push((likeness.into_iter().fold(0.0, f64::max), one));
    }
    // A stable sort: of equals the newest is first.
    known.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let is_similar = known.first().is_some_and(|(likeness, _)| *likeness >= SIMILAR);
    known.retain(|(likeness, _)| !is_similar || *likeness >= SIMILAR);
    known.into_iter().take(MOST).map(|(_, one)| one).collect()
}

impl RecordingId {
    /// The name of its directory.
    pub fn directory_name(&self) -> String {
        self.directory.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Whether its id starts with this, or the part after the time does.
    fn has_id(&self, start: &str) -> bool {
        let after_the_time = self.id.split_once('-').map_or("", |(_, rest)| rest);
        self.id.starts_with(start) || after_the_time.starts_with(start)
    }
}

/// The recordings in a directory that can be read, newest first.
fn identified(directory: &Path) -> Result<Vec<RecordingId>, Error> {
    let mut found: Vec<RecordingId> =
        files::recordings(directory)?.into_iter().filter_map(identify).collect();
    found.sort_by_cached_key(|one| std::cmp::Reverse(recorded(&one.directory, Some(one.started))));
    Ok(found)
}

fn identify(directory: PathBuf) -> Option<RecordingId> {
    /// The parts of `run.json` that are needed here.
    #[derive(Deserialize)]
    struct ManifestHead {
        id: String,
        name: String,
        started: Timestamp,
    }
    let bytes = files::read_regular(&directory.join("run.json")).ok()?;
    let ManifestHead { id, name, started } = serde_json::from_slice(&bytes).ok()?;
    Some(RecordingId { directory, id, name, started })
}
