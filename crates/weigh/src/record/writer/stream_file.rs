//! One `.arrows` stream: a batch at a time, and a queue of those that a full disk refused.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use super::MOST_UNWRITTEN;
use super::append_file::AppendFile;
use super::job::{lost_rows, size};
use crate::catalog::Scope;
use crate::model::Table;
use crate::record::batches::Batches;
use crate::record::integrity::Lost;
use crate::record::stream::{Effort, Encoder, decode};
use crate::record::{Error, files};

/// Batches with fewer rows than this on average are merged at the end.
const SMALL_BATCH: usize = 512;

/// Rows of a merged batch.
const LARGE_BATCH: usize = 16 * 1024;

/// The rows of one scope.
pub(super) struct StreamFile {
    pub(super) file: AppendFile,
    encoder: Encoder,
    /// An empty table of this scope.
    shape: Table,
    started: Duration,
    batches: usize,
    rows: usize,
    /// Batches that a full disk refused, in order.
    unwritten: VecDeque<Table>,
}

impl StreamFile {
    /// A new stream in the directory of a host, for tables like this one.
    pub(super) fn create(
        host: &Path,
        table: &Table,
        started: Duration,
    ) -> Result<StreamFile, Error> {
        let path = host.join(format!("{}.arrows", table.scope().name()));
        let encoder = encoder(&path, table, started, Effort::Little)?;
        let mut file = AppendFile::create(path)?;
        file.append(encoder.header())?;
        let (shape, unwritten) = (table.clone(), VecDeque::new());
        Ok(StreamFile { file, encoder, shape, started, batches: 0, rows: 0, unwritten })
    }

    /// Writes a batch, or queues it; returns what is lost when the queue is full.
    pub(super) fn write(&mut self, table: &Table) -> Option<Lost> {
        if table.is_empty() {
            return None;
        }
        let error = self.write_unwritten().and_then(|()| self.append(table)).err()?;
        if self.unwritten.iter().map(size).sum::<usize>() + size(table) > MOST_UNWRITTEN {
            return Some(lost_rows(table, &error.to_string()));
        }
        self.unwritten.push_back(table.clone());
        None
    }

    /// Tries the queued batches for the last time; returns what is lost.
    pub(super) fn close(&mut self) -> Vec<Lost> {
        let Err(error) = self.write_unwritten() else { return Vec::new() };
        let why = error.to_string();
        self.unwritten.drain(..).map(|table| lost_rows(&table, &why)).collect()
    }

    /// Its scope.
    pub(super) fn scope(&self) -> Scope {
        self.shape.scope()
    }

    /// Writes the queued batches, as far as the disk takes them.
    fn write_unwritten(&mut self) -> Result<(), Error> {
        while let Some(table) = self.unwritten.pop_front() {
            if let Err(error) = self.append(&table) {
                self.unwritten.push_front(table);
                return Err(error);
            }
        }
        Ok(())
    }

    fn append(&mut self, table: &Table) -> Result<(), Error> {
        let encoded =
            self.encoder.encode(table).map_err(|error| Error::malformed(&self.file.path, error));
        if let Err(error) = encoded.and_then(|bytes| self.file.append(bytes)) {
            // What the lost piece defined must be written again.
            self.encoder = encoder(&self.file.path, &self.shape, self.started, Effort::Little)?;
            return Err(error);
        }
        self.batches += 1;
        self.rows += table.len();
        Ok(())
    }

    /// Whether it has several batches, and those are small.
    pub(super) fn has_small_batches(&self) -> bool {
        self.batches > 1 && self.rows < self.batches * SMALL_BATCH
    }

    /// Rewrites a file of many small batches with few large ones; it exists complete all the time.
    pub(super) fn merge_small_batches(&mut self) -> Result<(), Error> {
        if !self.has_small_batches() {
            return Ok(());
        }
        let path = &self.file.path;
        let partial = files::partial_name(path);
        let rewritten = self.rewrite(path, AppendFile::create(partial.clone())?);
        self.file = rewritten.and_then(|file| file.replace(path)).inspect_err(|_| {
            // The original still exists; this one only takes space.
            let _ = std::fs::remove_file(&partial);
        })?;
        Ok(())
    }

    fn rewrite(&self, from: &Path, mut to: AppendFile) -> Result<AppendFile, Error> {
        let mut together = self.shape.clone();
        let mut encoder = encoder(from, &self.shape, self.started, Effort::Full)?;
        to.append(encoder.header())?;
        let mut write = |table: &mut Table, to: &mut AppendFile| {
            let bytes = encoder.encode(table).map_err(|error| Error::malformed(from, error))?;
            table.clear();
            to.append(bytes)
        };
        for batch in Batches::open(from)? {
            decode(&batch?, self.started, &mut together);
            if together.len() >= LARGE_BATCH {
                write(&mut together, &mut to)?;
            }
        }
        if !together.is_empty() {
            write(&mut together, &mut to)?;
        }
        Ok(to)
    }
}

fn encoder(
    path: &Path,
    table: &Table,
    started: Duration,
    effort: Effort,
) -> Result<Encoder, Error> {
    Encoder::new(table, started, effort).map_err(|error| Error::malformed(path, error))
}
