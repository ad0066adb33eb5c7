//! Writing a recording while the run goes on.
//!
//! Ticks are buffered in memory and handed over at most two seconds apart (ten on a network file
//! system); a separate thread
//! ([`disk`]) encodes and writes them, so that a slow or hanging disk delays neither a tick nor a
//! signal. What a full disk refuses is retained for a while and retried. When the thread cannot keep
//! up, or the disk stays full, rows are dropped and the recording says how many
//! ([`super::integrity`]); the run never waits.

mod append_file;
mod disk;
mod event_log;
mod job;
mod stream_file;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::files::{self, Claim};
use super::integrity::{Integrity, MemberLoss};
use super::{Entry, Error, Manifest};
use crate::model::{Table, Tick};
use disk::Disk;
use job::{EventLine, Job};

/// The longest time that measurements stay in memory only: two seconds are promised, and a loaded
/// machine takes its part of them.
pub const FLUSH_EVERY: Duration = Duration::from_millis(1500);

/// The same where every write goes to a server, which all nodes of a job use.
const FLUSH_TO_SERVER_EVERY: Duration = Duration::from_millis(9500);

/// Bytes that may be queued for the disk before more are dropped.
const MOST_WAITING: usize = 64 << 20;

/// Bytes of one file that a full disk refused and that are retained for a retry.
const MOST_UNWRITTEN: usize = 4 << 20;

/// Emptied batches that are retained for reuse.
const SPARE_BATCHES: usize = 4;

/// How often a writer that is finishing asks whether to give up.
const POLL: Duration = Duration::from_millis(10);

/// Writes one recording.
pub struct Writer {
    directory: PathBuf,
    batch: Vec<Table>,
    /// The sequence number of the last event or tick.
    sequence: u64,
    flushed: Duration,
    flush_every: Duration,
    jobs: Option<Sender<Job>>,
    waiting: Arc<AtomicUsize>,
    emptied: Receiver<Vec<Table>>,
    thread: Option<JoinHandle<Vec<String>>>,
    /// What was dropped and is not reported yet.
    dropped: Integrity,
}

impl Writer {
    /// Writes `run.json` into an empty directory and prepares the rest.
    pub fn create(directory: &Path, manifest: &Manifest, tick: &Tick) -> Result<Writer, Error> {
        Writer::within(Claim::of(directory)?, manifest, tick, &[])
    }

    /// The same in a claimed directory; nothing is left behind when that fails. `losses` are those
    /// of the recordings that this one is merged from.
    pub fn within(
        mut claim: Claim,
        manifest: &Manifest,
        tick: &Tick,
        losses: &[MemberLoss],
    ) -> Result<Writer, Error> {
        let (directory, made) = (claim.directory.clone(), claim.made);
        let Some(events) = claim.events() else { return Err(Error::Occupied { path: directory }) };
        let begun = Writer::begin(&directory, events, manifest, tick, losses);
        if begun.is_err() {
            files::discard(&directory, made);
        }
        begun
    }

    fn begin(
        directory: &Path,
        events: File,
        manifest: &Manifest,
        tick: &Tick,
        losses: &[MemberLoss],
    ) -> Result<Writer, Error> {
        let disk = Disk::create(directory, events, manifest, tick, losses)?;
        let (jobs, todo) = channel();
        let (done, emptied) = sync_channel(SPARE_BATCHES);
        let waiting = Arc::new(AtomicUsize::new(0));
        let theirs = Arc::clone(&waiting);
        let thread = std::thread::Builder::new()
            .name("weigh-writer".to_owned())
            .spawn(move || disk.work(&todo, &theirs, &done))
            .map_err(|source| Error::file(directory, source))?;
        Ok(Writer {
            directory: directory.to_owned(),
            batch: tick.tables().to_vec(),
            sequence: 0,
            flushed: Duration::ZERO,
            flush_every: match files::is_on_network(directory) {
                true => FLUSH_TO_SERVER_EVERY,
                false => FLUSH_EVERY,
            },
            jobs: Some(jobs),
            waiting,
            emptied,
            thread: Some(thread),
            dropped: Integrity::default(),
        })
    }

    /// The thread that writes; `None` once it has finished.
    #[cfg(feature = "measure")]
    pub(crate) fn thread(&self) -> Option<&JoinHandle<Vec<String>>> {
        self.thread.as_ref()
    }

    /// Where it is written.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Adds the rows of a tick, which comes after all that was written before it.
    pub fn tick(&mut self, tick: &Tick) {
        let sequence = self.next_sequence();
        for (mine, theirs) in self.batch.iter_mut().zip(tick.tables()) {
            mine.append(theirs, Some(sequence));
        }
    }

    /// Writes an event now, which comes after all that was written before it.
    pub fn event(&mut self, entry: Entry) {
        let entry = Entry { sequence: Some(self.next_sequence()), ..entry };
        let Ok(mut bytes) = serde_json::to_vec(&entry) else { return };
        bytes.push(b'\n');
        let (seconds, is_last) = (entry.seconds, entry.event.is_last());
        self.hand_over(Job::EventLine(EventLine { bytes, seconds, is_last }));
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Writes `run.json` again, with what the thread collects: nothing else waits for it.
    pub fn describe(&mut self, complete: impl FnOnce() -> Manifest + Send + 'static) {
        self.hand_over(Job::Manifest(Box::new(complete)));
    }

    /// How many rows are buffered and not handed over.
    pub fn gathered(&self) -> usize {
        self.batch.iter().map(Table::len).sum()
    }

    /// Waits until the disk has written most of the queue, for a writer that has time: nothing it
    /// writes is dropped.
    pub fn wait_for_queue(&self) {
        let is_behind = || self.waiting.load(Ordering::Relaxed) > MOST_WAITING / 4;
        while is_behind() && self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// When the next batch must be handed over, if there is anything in it.
    pub fn due(&self) -> Option<Duration> {
        let empty = self.batch.iter().all(Table::is_empty);
        (!empty).then_some(self.flushed + self.flush_every)
    }

    /// Hands over what is buffered.
    pub fn flush(&mut self, now: Duration) {
        self.hand_over_rows(now, Job::Rows);
    }

    fn hand_over_rows(&mut self, now: Duration, job: fn(Vec<Table>) -> Job) {
        self.flushed = now;
        if self.batch.iter().all(Table::is_empty) {
            return;
        }
        let empty = self.emptied.try_recv().unwrap_or_else(|_| {
            let mut tables = self.batch.clone();
            tables.iter_mut().for_each(Table::clear);
            tables
        });
        let full = std::mem::replace(&mut self.batch, empty);
        self.hand_over(job(full));
    }

    fn hand_over(&mut self, job: Job) {
        let bytes = job.bytes();
        if self.waiting.load(Ordering::Relaxed) + bytes > MOST_WAITING {
            self.dropped.lose_all(job.lost("the disk was too slow"));
            return;
        }
        self.report_dropped();
        self.waiting.fetch_add(bytes, Ordering::Relaxed);
        // It fails only when the thread has failed, which `finish` reports.
        let _ = self.jobs.as_ref().map(|jobs| jobs.send(job));
    }

    fn report_dropped(&mut self) {
        let lost = std::mem::take(&mut self.dropped.lost);
        if !lost.is_empty() {
            let _ = self.jobs.as_ref().map(|jobs| jobs.send(Job::Lost(lost)));
        }
    }

    /// Hands over what is left: the thread writes it, merges small batches and syncs the files.
    /// Nothing may follow; [`Writer::finish`] waits for it.
    pub fn close(&mut self, now: Duration) {
        self.hand_over_rows(now, Job::LastRows);
        self.report_dropped();
        self.jobs = None;
    }

    /// Writes what is left, and merges small batches; returns what failed.
    ///
    /// `give_up` is polled meanwhile.
    pub fn finish(mut self, now: Duration, mut give_up: impl FnMut() -> bool) -> Vec<String> {
        self.close(now);
        // The thread drops its end when it is done, which wakes this one.
        while !matches!(self.emptied.recv_timeout(POLL), Err(RecvTimeoutError::Disconnected)) {
            if give_up() {
                return vec!["the disk took too long, and weigh was asked to stop".to_owned()];
            }
        }
        let joined = self.thread.take().map(JoinHandle::join);
        match joined {
            Some(Ok(faults)) => faults,
            _ => vec!["the thread that writes the recording failed".to_owned()],
        }
    }
}
