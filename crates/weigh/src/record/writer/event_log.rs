//! `events.jsonl`: a line at a time, and a queue of those that a full disk refused.

use std::collections::VecDeque;

use super::MOST_UNWRITTEN;
use super::append_file::AppendFile;
use super::job::EventLine;
use crate::record::Error;
use crate::record::integrity::Lost;

/// The events of a recording.
pub(super) struct EventLog {
    pub(super) file: AppendFile,
    /// Events that a full disk refused, in order.
    unwritten: VecDeque<EventLine>,
    unwritten_bytes: usize,
}

impl EventLog {
    /// In a file that is empty.
    pub(super) fn new(file: AppendFile) -> EventLog {
        EventLog { file, unwritten: VecDeque::new(), unwritten_bytes: 0 }
    }

    /// Writes an event, or queues it; returns what is lost when the queue is full.
    pub(super) fn write(&mut self, line: EventLine) -> Option<Lost> {
        self.unwritten_bytes += line.bytes.len();
        self.unwritten.push_back(line);
        let error = self.write_unwritten().err()?;
        let is_full = self.unwritten_bytes > MOST_UNWRITTEN
            && self.unwritten.back().is_some_and(|line| !line.is_last);
        let line = if is_full { self.unwritten.pop_back() } else { None }?;
        self.unwritten_bytes -= line.bytes.len();
        Some(line.lost(&error.to_string()))
    }

    /// Writes the queued events, as far as the disk takes them.
    pub(super) fn write_unwritten(&mut self) -> Result<(), Error> {
        while let Some(line) = self.unwritten.front() {
            self.file.append(&line.bytes)?;
            self.unwritten_bytes -= line.bytes.len();
            self.unwritten.pop_front();
        }
        Ok(())
    }

    /// Tries the queued events for the last time; returns what is lost.
    pub(super) fn close(&mut self) -> Vec<Lost> {
        let Err(error) = self.write_unwritten() else { return Vec::new() };
        let why = error.to_string();
        self.unwritten.drain(..).map(|line| line.lost(&why)).collect()
    }

    #[cfg(test)]
    pub(super) fn unwritten_bytes(&self) -> usize {
        self.unwritten_bytes
    }
}
