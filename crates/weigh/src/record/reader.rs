//! Reading a recording: a finished one, a torn one, one that is still growing.
//!
//! Recordings may come from untrusted sources, so Arrow gets only what [`super::batches`] has found
//! to be complete and of sensible sizes.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use jiff::SignedDuration;

use super::batches::Batches;
use super::integrity::Seal;
use super::losses::Losses;
use super::{BaselinedBatches, Entry, Error, FORMAT, Frame, Frames, Manifest, Replay, files};
use crate::catalog::{Metric, Scope};

/// A recorded run.
#[derive(Debug)]
pub struct Recording {
    directory: PathBuf,
    manifest: Manifest,
    entries: Vec<Entry>,
    torn: u64,
    strange: u64,
    /// `run.json` and `events.jsonl` as they were read.
    seals: (Seal, Seal),
    losses: OnceLock<Losses>,
    /// By how much its clock was corrected.
    clock_ahead: SignedDuration,
}

impl Recording {
    /// Opens the recording in a directory.
    pub fn open(directory: &Path) -> Result<Recording, Error> {
        let path = directory.join("run.json");
        let bytes = files::read_regular(&path)?;
        let manifest: Manifest =
            serde_json::from_slice(&bytes).map_err(|error| Error::malformed(&path, error))?;
        if manifest.weigh.format > FORMAT {
            return Err(Error::Newer { path, found: manifest.weigh.format });
        }
        let events = read_events(&directory.join("events.jsonl"))?;
        let Events { entries, torn, strange, bytes: length, crc } = events;
        let seals = (Seal::of(&bytes), Seal { bytes: length, crc32: crc.finalize() });
        let (directory, losses) = (directory.to_owned(), OnceLock::new());
        let clock_ahead = SignedDuration::ZERO;
        Ok(Recording { directory, manifest, entries, torn, strange, seals, losses, clock_ahead })
    }

    /// The same by a clock that its own is ahead of: it began so much earlier.
    pub fn with_clock_ahead(mut self, seconds: f64) -> Recording {
        let ahead = SignedDuration::try_from_secs_f64(seconds).unwrap_or_default();
        if let Ok(started) = self.manifest.started.checked_sub(ahead) {
            self.manifest.started = started;
            self.clock_ahead += ahead;
        }
        self
    }

    /// By how much its clock was corrected, in seconds.
    pub fn clock_ahead_seconds(&self) -> f64 {
        self.clock_ahead.as_secs_f64()
    }

    /// When it began by its own clock, since 1970: the times of rows are counted from there.
    pub(crate) fn own_start(&self) -> Duration {
        let started = self.manifest.started.checked_add(self.clock_ahead);
        let started = started.unwrap_or(self.manifest.started).as_nanosecond().max(0);
        Duration::from_nanos(started as u64)
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What was known when the run began.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Everything that happened, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Bytes at the end of its events that are incomplete and were skipped.
    pub fn torn_events(&self) -> u64 {
        self.torn
    }

    /// Events that this weigh cannot parse: of a later version, or damaged.
    pub fn strange_events(&self) -> u64 {
        self.strange
    }

    /// What it lacks. Its files are read for that, once.
    pub fn losses(&self) -> &Losses {
        self.losses.get_or_init(|| Losses::of(self))
    }

    pub(super) fn manifest_seal(&self) -> Seal {
        self.seals.0
    }

    pub(super) fn events_seal(&self) -> Seal {
        self.seals.1
    }

    /// Everything that was measured in one scope, batch by batch; `None` when nothing was.
    pub fn batches(&self, scope: Scope) -> Result<Option<Batches>, Error> {
        let found = self.streams().find(|(of, path)| *of == scope && path.exists());
        found.map(|(_, path)| Batches::open(&path)).transpose()
    }

    /// The same with counters since weigh attached, as the summary and the charts have them.
    pub fn baselined_batches(&self, scope: Scope) -> Result<Option<BaselinedBatches>, Error> {
        BaselinedBatches::of(self, scope)
    }

    /// Replays the run frame by frame, for as many readers as there are in `each`. Returns the
    /// frames, which have the live processes at the end.
    ///
    /// Memory does not grow with the recording: one batch of each scope is held.
    pub fn replay(
        &self,
        groups: &[&'static [Metric]],
        mut each: impl FnMut(&Frame<'_>),
    ) -> Result<Frames, Error> {
        let (mut replay, mut frames) = (Replay::of(self, groups)?, Frames::default());
        while let Some(moment) = replay.next_moment()? {
            frames.moment(moment, &mut each);
        }
        Ok(frames)
    }

    pub(super) fn streams(&self) -> impl Iterator<Item = (Scope, PathBuf)> {
        let host = self.directory.join(host_directory(&self.manifest.host.name));
        Scope::ALL.into_iter().map(move |scope| {
            let path = host.join(format!("{}.arrows", scope.name()));
            (scope, path)
        })
    }
}

/// The name of a host's directory: its host name, as far as a path can hold it.
pub(crate) fn host_directory(host: &str) -> String {
    let name: String = host
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' })
        .collect();
    if name.trim_matches('.').is_empty() { "host".to_owned() } else { name }
}

/// The events of a recording.
#[derive(Default)]
struct Events {
    entries: Vec<Entry>,
    /// Bytes left over at the end.
    torn: u64,
    /// Lines that this weigh cannot parse.
    strange: u64,
    /// How long the file is, and its checksum.
    bytes: u64,
    crc: crc32fast::Hasher,
}

/// The complete lines of the events.
fn read_events(path: &Path) -> Result<Events, Error> {
    let failed = |source| Error::file(path, source);
    /// No event of ours is longer: the longest command line the kernel accepts is 6 MB.
    const LONGEST_LINE: u64 = 64 << 20;
    let mut file = BufReader::new(files::open_regular(path)?);
    let mut events = Events::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let count =
            file.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).map_err(failed)?;
        if count == 0 {
            return Ok(events);
        }
        events.bytes += count as u64;
        events.crc.update(&line);
        match serde_json::from_slice(&line) {
            Ok(entry) => events.entries.push(entry),
            Err(_) if line.last() != Some(&b'\n') => {
                return Ok(Events { torn: count as u64, ..events });
            }
            // Of a later weigh, or damaged: the others are still valid.
            Err(_) => events.strange += 1,
        }
    }
}
