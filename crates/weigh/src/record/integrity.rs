//! `integrity.json`: what a recording holds, and what it has lost.
//!
//! One page (4 KiB), written in full when the recording begins and then only overwritten in place.
//! That needs no free space, so it also works on a full disk, and SIGKILL does not split a one-page
//! write. Rows that could not be written are counted here; at the end it gets a checksum of each
//! file. A reader compares the files with it.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Error, files};

/// The file's name.
pub(super) const FILE: &str = "integrity.json";

/// Its fixed length.
const PAGE: usize = 4096;

/// Characters of one sentence that are retained.
const LONGEST_SENTENCE: usize = 120;

/// What a recording states about itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Integrity {
    /// Whether the recording was finished; it may have lost rows all the same.
    pub closed: bool,
    /// What could not be written, by the scope of rows, or `events`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lost: BTreeMap<String, Lost>,
    /// What the recordings had lost from which this one was merged, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    /// Whether some of that is not as it was written, and not only missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub members_changed: bool,
    /// The files as they were when the recording was finished.
    #[serde(default)]
    pub files: BTreeMap<String, Seal>,
}

/// Rows or events that could not be written.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Lost {
    /// How many.
    pub count: u64,
    /// When the first was measured, in seconds since the run began.
    pub from_seconds: f64,
    /// When the last was measured.
    pub to_seconds: f64,
    /// Why the first could not be written.
    pub why: String,
}

/// Something that a recording lacks from which another one is merged.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberLoss {
    /// What is missing, and then where: a long path must not hide the reason.
    pub sentence: String,
    /// Whether it is not as it was written, and not only missing.
    pub is_changed: bool,
}

/// A file that was finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seal {
    /// Its length.
    pub bytes: u64,
    /// CRC-32 of its bytes.
    pub crc32: u32,
}

impl Seal {
    /// The seal of these bytes.
    pub(super) fn of(bytes: &[u8]) -> Seal {
        Seal { bytes: bytes.len() as u64, crc32: crc32fast::hash(bytes) }
    }
}

impl Integrity {
    /// Something could not be written.
    pub(super) fn lose(&mut self, what: &str, lost: Lost) {
        if lost.count == 0 {
            return;
        }
        let known = self.lost.entry(what.to_owned()).or_insert_with(|| Lost {
            count: 0,
            why: end_of(&lost.why),
            ..lost.clone()
        });
        known.count += lost.count;
        known.from_seconds = known.from_seconds.min(lost.from_seconds);
        known.to_seconds = known.to_seconds.max(lost.to_seconds);
    }

    /// Adds what another part of weigh could not hand over.
    pub(super) fn lose_all(&mut self, others: BTreeMap<String, Lost>) {
        others.into_iter().for_each(|(what, lost)| self.lose(&what, lost));
    }

    /// How many rows are lost, and how many events.
    pub(super) fn counts(&self) -> (u64, u64) {
        let events = self.lost.get("events").map_or(0, |lost| lost.count);
        let all: u64 = self.lost.values().map(|lost| lost.count).sum();
        (all - events, events)
    }

    /// The recordings it was merged from have lost something.
    pub(super) fn take_over(&mut self, losses: &[MemberLoss]) {
        const MOST: usize = 8;
        self.members_changed = losses.iter().any(|loss| loss.is_changed);
        self.members = losses.iter().take(MOST).map(|loss| shortened(&loss.sentence)).collect();
        if losses.len() > MOST {
            self.members.push(format!("and {} more", losses.len() - MOST));
        }
    }
}

fn shortened(sentence: &str) -> String {
    sentence.chars().take(LONGEST_SENTENCE).collect()
}

/// The end of an error that begins with its path.
fn end_of(why: &str) -> String {
    match why.chars().count().checked_sub(LONGEST_SENTENCE) {
        Some(more) if more > 0 => format!("…{}", why.chars().skip(more + 1).collect::<String>()),
        _ => why.to_owned(),
    }
}

/// The page on the disk.
pub(super) struct IntegrityPage {
    path: PathBuf,
    file: File,
}

impl IntegrityPage {
    /// Allocates the space for all later contents.
    pub(super) fn create(directory: &Path) -> Result<IntegrityPage, Error> {
        let path = directory.join(FILE);
        let page = IntegrityPage { file: files::create_file(&path)?, path };
        page.write(&Integrity::default())?;
        Ok(page)
    }

    /// Replaces its contents.
    pub(super) fn write(&self, integrity: &Integrity) -> Result<(), Error> {
        let encoded = |integrity: &Integrity| {
            serde_json::to_vec(integrity).map_err(|error| Error::malformed(&self.path, error))
        };
        let mut page = encoded(integrity)?;
        if page.len() > PAGE {
            // Names and reasons that are this long are worth less than the counts.
            let mut short = integrity.clone();
            short.members.truncate(1);
            short.lost.values_mut().for_each(|lost| lost.why.clear());
            page = encoded(&short)?;
        }
        // Space after a JSON document is part of the format.
        page.resize(PAGE.max(page.len()), b' ');
        self.file.write_all_at(&page, 0).map_err(|source| Error::file(&self.path, source))
    }

    pub(super) fn begin_sync(&self) {
        files::begin_sync(&self.file);
    }

    pub(super) fn sync(&self) {
        // A file system that cannot is no reason to end a run.
        let _ = self.file.sync_data();
    }
}

/// What a recording states about itself; nothing when it has no such file.
pub(super) fn read(directory: &Path) -> Option<Result<Integrity, Error>> {
    let path = directory.join(FILE);
    path.exists().then(|| {
        let bytes = files::read_regular(&path)?;
        serde_json::from_slice(&bytes).map_err(|error| Error::malformed(&path, error))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(count: u64, from_seconds: f64, to_seconds: f64, why: &str) -> Lost {
        Lost { count, from_seconds, to_seconds, why: why.to_owned() }
    }

    #[test]
    fn losses_of_one_stream_add_up_and_retain_the_first_reason() {
        let mut integrity = Integrity::default();
        integrity.lose("process", lost(0, 1.0, 1.0, "nothing"));
        integrity.lose("process", lost(3, 4.0, 5.0, "full"));
        integrity.lose("process", lost(2, 6.0, 7.0, "slow"));
        integrity.lose("events", lost(1, 6.0, 6.0, "full"));
        assert_eq!(integrity.lost["process"], lost(5, 4.0, 7.0, "full"));
        assert_eq!(integrity.counts(), (5, 1));
    }

    #[test]
    fn long_path_does_not_hide_why_something_was_lost() {
        let mut integrity = Integrity::default();
        let path = "/long/é".repeat(100);
        integrity.lose("process", lost(1, 1.0, 1.0, &format!("{path}: No space left")));
        let why = &integrity.lost["process"].why;
        assert!(why.ends_with(": No space left") && why.chars().count() <= 120, "{why}");
    }

    #[test]
    fn the_page_never_grows_whatever_is_lost() {
        let directory = tempfile::tempdir().unwrap();
        let page = IntegrityPage::create(directory.path()).unwrap();
        let length = || directory.path().join(FILE).metadata().unwrap().len();
        assert_eq!(length(), 4096);
        let mut integrity = Integrity { closed: true, ..Integrity::default() };
        let loss = MemberLoss { sentence: "m".repeat(1000), is_changed: true };
        integrity.take_over(&vec![loss; 100]);
        for scope in crate::catalog::Scope::ALL {
            integrity.lose(scope.name(), lost(u64::MAX / 100, 0.1, 1e9 / 3.0, &"w".repeat(500)));
            let seal = Seal { bytes: u64::MAX, crc32: u32::MAX };
            integrity.files.insert(format!("{}.arrows", scope.name()), seal);
        }
        page.write(&integrity).unwrap();
        assert_eq!(length(), 4096);
        let read = read(directory.path()).unwrap().unwrap();
        assert_eq!((read.closed, read.counts()), (true, integrity.counts()));
        assert!(read.members_changed);
        page.write(&Integrity::default()).unwrap();
        assert_eq!(super::read(directory.path()).unwrap().unwrap(), Integrity::default());
    }
}
