//! What a recording lacks, determined once per reader.
//!
//! The recording itself states what could not be written ([`super::integrity`]), and holds a
//! checksum of each file once it is finished. A later truncation or change shows against that. In a
//! recording without (of an earlier weigh, or of one that was killed) only invalid data shows.

use std::path::PathBuf;

use super::batches::Batches;
use super::integrity::{self, Integrity, MemberLoss, Seal};
use super::reader::Recording;
use crate::catalog::Scope;

/// What a recording lacks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Losses {
    all: Vec<Loss>,
}

/// Something that a recording lacks.
#[derive(Debug, Clone, PartialEq)]
struct Loss {
    of: LossScope,
    /// Whether bytes differ from those written, so that any value may be wrong, and not only too
    /// low.
    is_changed: bool,
    sentence: String,
}

/// Which part of a recording.
#[derive(Debug, Clone, Copy, PartialEq)]
enum LossScope {
    /// All of it, as far as is known.
    Everything,
    Manifest,
    Events,
    Rows(Scope),
}

impl Losses {
    /// Whether nothing is known to be missing.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// What is missing, a sentence each.
    pub fn sentences(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|loss| loss.sentence.as_str())
    }

    /// Whether the events are incomplete: starts, exits, phases, the end.
    pub fn concern_events(&self) -> bool {
        self.all.iter().any(|loss| !matches!(loss.of, LossScope::Rows(_)))
    }

    /// Whether rows of this scope are missing or changed.
    pub fn concern_rows(&self, scope: Scope) -> bool {
        self.all.iter().any(|loss| match loss.of {
            LossScope::Everything => true,
            LossScope::Rows(of) => of == scope,
            LossScope::Manifest | LossScope::Events => false,
        })
    }

    /// Whether processes, or rows about them, may be missing.
    pub fn concern_processes(&self) -> bool {
        self.concern_events() || self.concern_rows(Scope::Process)
    }

    /// Whether something differs from what was written: values may be wrong in both directions.
    pub fn are_changes(&self) -> bool {
        self.all.iter().any(|loss| loss.is_changed)
    }

    /// The same for the recording that this one is merged into: what is missing, and where.
    pub fn of_member(&self, place: &str) -> impl Iterator<Item = MemberLoss> {
        self.all.iter().map(move |loss| MemberLoss {
            sentence: format!("{} ({place})", loss.sentence),
            is_changed: loss.is_changed,
        })
    }

    fn push(&mut self, of: LossScope, sentence: impl Into<String>) {
        self.all.push(Loss { of, is_changed: false, sentence: sentence.into() });
    }

    fn push_changed(&mut self, of: LossScope, sentence: impl Into<String>) {
        self.all.push(Loss { of, is_changed: true, sentence: sentence.into() });
    }

    /// Compares a file with its seal. Returns whether it is certainly what was written. `is_torn`
    /// means that only its end is incomplete, as after a truncation.
    fn hold(
        &mut self,
        of: LossScope,
        file: &str,
        (found, is_torn): (Seal, bool),
        integrity: &Integrity,
    ) -> bool {
        match integrity.files.get(file) {
            Some(seal) if *seal == found => return true,
            Some(seal) if found.bytes < seal.bytes => {
                let missing = seal.bytes - found.bytes;
                let sentence = format!("{file} is {missing} bytes shorter than it was");
                // Something inside may have been taken out or replaced.
                self.all.push(Loss { of, is_changed: !is_torn, sentence });
            }
            Some(_) => {
                let why = format!("{file} was changed after it was written: its checksum differs");
                self.push_changed(of, why);
            }
            None if integrity.closed => {
                let why = format!("{} has no checksum of {file}", integrity::FILE);
                self.push_changed(of, why);
            }
            // It still runs, or was never finished.
            None => {}
        }
        false
    }

    /// What a recording lacks.
    pub(super) fn of(recording: &Recording) -> Losses {
        let mut losses = Losses::default();
        let integrity = match integrity::read(recording.directory()) {
            Some(Ok(integrity)) => {
                losses.remembered(&integrity, recording);
                integrity
            }
            Some(Err(error)) => {
                losses.push(LossScope::Everything, error.to_string());
                Integrity::default()
            }
            None if recording.manifest().sealed => {
                losses.push(LossScope::Everything, format!("{} does not exist", integrity::FILE));
                Integrity::default()
            }
            None => Integrity::default(),
        };
        losses.of_manifest(&integrity, recording);
        losses.of_events(&integrity, recording);
        for (scope, path) in recording.streams() {
            losses.of_stream(&integrity, recording, scope, path);
        }
        losses
    }

    /// What the recording says itself.
    fn remembered(&mut self, integrity: &Integrity, recording: &Recording) {
        for (what, lost) in &integrity.lost {
            let scope = Scope::ALL.into_iter().find(|scope| scope.name() == what);
            let (of, what) = match scope {
                Some(scope) => (LossScope::Rows(scope), format!("rows of {what}")),
                None => (LossScope::Events, what.clone()),
            };
            let why = if lost.why.is_empty() { String::new() } else { format!(": {}", lost.why) };
            self.push(
                of,
                format!(
                    "{} {what} between {:.1} s and {:.1} s were lost{why}",
                    lost.count, lost.from_seconds, lost.to_seconds
                ),
            );
        }
        let is_changed = integrity.members_changed;
        self.all.extend(integrity.members.iter().map(|sentence| Loss {
            of: LossScope::Everything,
            is_changed,
            sentence: sentence.clone(),
        }));
        let has_ended = recording.entries().iter().any(|entry| entry.event.is_last());
        if has_ended && !integrity.closed {
            let why = "the recording was not finished: weigh was killed while it was writing";
            self.push(LossScope::Everything, why);
        }
    }

    fn of_manifest(&mut self, integrity: &Integrity, recording: &Recording) {
        // It was read: without its end it could not be.
        self.hold(LossScope::Manifest, "run.json", (recording.manifest_seal(), false), integrity);
    }

    fn of_events(&mut self, integrity: &Integrity, recording: &Recording) {
        let file = "events.jsonl";
        let (torn, strange) = (recording.torn_events(), recording.strange_events());
        let is_torn = torn > 0 && strange == 0;
        if self.hold(LossScope::Events, file, (recording.events_seal(), is_torn), integrity) {
            return;
        }
        if torn > 0 {
            self.push(LossScope::Events, format!("{file}: the last {torn} bytes are incomplete"));
        }
        if strange > 0 {
            self.push_changed(
                LossScope::Events,
                format!("{file}: {strange} lines cannot be parsed"),
            );
        }
    }

    fn of_stream(
        &mut self,
        integrity: &Integrity,
        recording: &Recording,
        scope: Scope,
        path: PathBuf,
    ) {
        let (of, file) = (LossScope::Rows(scope), format!("{}.arrows", scope.name()));
        if !path.exists() {
            let prefix = format!("{}.", scope.name());
            let catalogue = &recording.manifest().catalogue;
            let is_recorded = catalogue.iter().any(|metric| metric.name.starts_with(&prefix));
            if integrity.files.contains_key(&file) || is_recorded {
                self.push(of, format!("{file} does not exist"));
            }
            return;
        }
        let mut batches = match Batches::open(&path) {
            Ok(batches) => batches,
            Err(error) => return self.push_changed(of, error.to_string()),
        };
        // Where not even the schema is valid, it may have been changed.
        let is_torn = (1..batches.seal.bytes).contains(&batches.torn) && batches.skipped == 0;
        if self.hold(of, &file, (batches.seal, is_torn), integrity) {
            return;
        }
        if batches.torn > 0 {
            let torn = batches.torn;
            self.push(of, format!("{file}: the last {torn} bytes are incomplete"));
        }
        if batches.skipped > 0 {
            let skipped = batches.skipped;
            self.push_changed(of, format!("{file}: {skipped} bytes are not valid Arrow data"));
        }
        let damaged = batches.by_ref().filter(Result::is_err).count();
        if damaged > 0 {
            self.push_changed(of, format!("{file}: {damaged} batches cannot be decoded"));
        }
    }
}
