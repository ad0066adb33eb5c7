//! What is handed over to the thread that writes a recording.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::model::Table;
use crate::record::Manifest;
use crate::record::integrity::Lost;

/// Something to write.
pub(super) enum Job {
    Rows(Vec<Table>),
    /// The last rows: the recording is closed next, and synced then.
    LastRows(Vec<Table>),
    EventLine(EventLine),
    /// What is known of the run now, and takes a while to collect.
    Manifest(Box<dyn FnOnce() -> Manifest + Send>),
    /// What could not be handed over.
    Lost(BTreeMap<String, Lost>),
}

/// One event.
pub(super) struct EventLine {
    pub(super) bytes: Vec<u8>,
    pub(super) seconds: f64,
    /// Without the end of the run everything before it is worth less.
    pub(super) is_last: bool,
}

impl Job {
    /// Approximate memory it takes while queued.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Job::Rows(tables) | Job::LastRows(tables) => tables.iter().map(size).sum(),
            Job::EventLine(line) => line.bytes.len(),
            Job::Manifest(_) | Job::Lost(_) => 0,
        }
    }

    /// What is lost when it cannot be handed over.
    pub(super) fn lost(&self, why: &str) -> BTreeMap<String, Lost> {
        match self {
            Job::Rows(tables) | Job::LastRows(tables) => {
                let full = tables.iter().filter(|table| !table.is_empty());
                full.map(|table| (table.scope().name().to_owned(), lost_rows(table, why))).collect()
            }
            Job::EventLine(line) => BTreeMap::from([("events".to_owned(), line.lost(why))]),
            Job::Manifest(_) | Job::Lost(_) => BTreeMap::new(),
        }
    }
}

impl EventLine {
    /// What is lost when it cannot be written.
    pub(super) fn lost(&self, why: &str) -> Lost {
        let (from_seconds, to_seconds) = (self.seconds, self.seconds);
        Lost { count: 1, from_seconds, to_seconds, why: why.to_owned() }
    }
}

/// Approximate bytes of a table.
pub(super) fn size(table: &Table) -> usize {
    table.len() * table.columns().len() * 9
}

/// What is lost when a table cannot be written.
pub(super) fn lost_rows(table: &Table, why: &str) -> Lost {
    let seconds = |at: Option<&Duration>| at.map_or(0.0, Duration::as_secs_f64);
    Lost {
        count: table.len() as u64,
        from_seconds: seconds(table.times().first()),
        to_seconds: seconds(table.times().last()),
        why: why.to_owned(),
    }
}
