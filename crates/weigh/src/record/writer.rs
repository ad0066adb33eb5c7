//! Writing a recording while the run goes on.
//!
//! Ticks are gathered in memory and handed over at most two seconds apart; a
//! thread of its own encodes and writes them, so that a slow or hanging disk
//! delays neither a tick nor a signal. When it cannot keep up, or there is no
//! room, rows are dropped and the recording says how many; the run never waits.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::frames::Batches;
use super::reader::host_directory;
use super::stream::{Effort, Encoder, decode};
use super::{Entry, Error, Manifest, files};
use crate::sample::{Table, Tick};

/// The longest time that measurements stay in memory only: two seconds are promised, and a
/// busy machine takes its part of them.
pub const FLUSH_EVERY: Duration = Duration::from_millis(1500);

/// Bytes that may wait for the disk before more are dropped.
const MOST_WAITING: usize = 64 << 20;

/// Emptied batches that are kept for the next ones.
const SPARE_BATCHES: usize = 4;

/// Batches with fewer rows than this on average are put together at the end.
const SMALL_BATCH: usize = 512;

/// Rows of a batch that was put together.
const LARGE_BATCH: usize = 16 * 1024;

enum Job {
    Rows(Vec<Table>),
    Line(Vec<u8>),
    /// What is known of the run now, and takes a while to find out.
    Manifest(Box<dyn FnOnce() -> Manifest + Send>),
}

impl Job {
    /// Roughly, what it takes while it waits.
    fn bytes(&self) -> usize {
        match self {
            Job::Rows(tables) => {
                tables.iter().map(|table| table.len() * table.columns().len() * 9).sum()
            }
            Job::Line(line) => line.len(),
            Job::Manifest(_) => 0,
        }
    }
}

/// Writes one recording.
pub struct Writer {
    directory: PathBuf,
    batch: Vec<Table>,
    flushed: Duration,
    jobs: Option<Sender<Job>>,
    waiting: Arc<AtomicUsize>,
    emptied: Receiver<Vec<Table>>,
    thread: Option<JoinHandle<Vec<String>>>,
    dropped: usize,
}

impl Writer {
    /// Writes `run.json` into an empty directory and makes ready for the rest.
    pub fn create(directory: &Path, manifest: &Manifest, tick: &Tick) -> Result<Writer, Error> {
        let disk = Disk::create(directory, manifest, tick)?;
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
            flushed: Duration::ZERO,
            jobs: Some(jobs),
            waiting,
            emptied,
            thread: Some(thread),
            dropped: 0,
        })
    }

    /// Where it is written.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Takes the rows of a tick.
    pub fn tick(&mut self, tick: &Tick) {
        for (mine, theirs) in self.batch.iter_mut().zip(tick.tables()) {
            mine.append(theirs);
        }
    }

    /// Writes an event now.
    pub fn event(&mut self, entry: &Entry) {
        let Ok(mut line) = serde_json::to_vec(entry) else { return };
        line.push(b'\n');
        self.hand_over(Job::Line(line));
    }

    /// Writes `run.json` once more, with what the thread finds out: nobody else waits for it.
    pub fn describe(&mut self, complete: impl FnOnce() -> Manifest + Send + 'static) {
        self.hand_over(Job::Manifest(Box::new(complete)));
    }

    /// How many rows have been gathered and not been handed over.
    pub fn gathered(&self) -> usize {
        self.batch.iter().map(Table::len).sum()
    }

    /// Waits until the disk has taken most of what it was given, for a writer that has time:
    /// nothing it writes is dropped.
    pub fn wait_for_room(&self) {
        let is_behind = || self.waiting.load(Ordering::Relaxed) > MOST_WAITING / 4;
        while is_behind() && self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// When the next batch must be handed over, if there is anything in it.
    pub fn due(&self) -> Option<Duration> {
        let empty = self.batch.iter().all(Table::is_empty);
        (!empty).then_some(self.flushed + FLUSH_EVERY)
    }

    /// Hands over what has been gathered.
    pub fn flush(&mut self, now: Duration) {
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
        self.hand_over(Job::Rows(full));
    }

    fn hand_over(&mut self, job: Job) {
        let bytes = job.bytes();
        if self.waiting.load(Ordering::Relaxed) + bytes > MOST_WAITING {
            self.dropped += bytes;
            return;
        }
        self.waiting.fetch_add(bytes, Ordering::Relaxed);
        // It fails only when the thread has failed, which `finish` reports.
        let _ = self.jobs.as_ref().map(|jobs| jobs.send(job));
    }

    /// Writes what is left, and puts small batches together; says what went wrong on the way.
    ///
    /// `give_up` is asked again and again while that takes.
    pub fn finish(mut self, now: Duration, mut give_up: impl FnMut() -> bool) -> Vec<String> {
        self.flush(now);
        self.jobs = None;
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            if give_up() {
                return vec!["the disk took too long, and weigh was told to end".to_owned()];
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        let joined = self.thread.take().map(JoinHandle::join);
        let mut faults = match joined {
            Some(Ok(faults)) => faults,
            _ => vec!["the thread that writes the recording failed".to_owned()],
        };
        if self.dropped > 0 {
            faults.push(format!("the disk was too slow: {} bytes were dropped", self.dropped));
        }
        faults
    }
}

/// The thread's side: the files.
struct Disk {
    directory: PathBuf,
    events: Out,
    streams: Vec<Stream>,
    faults: Vec<String>,
    lost: u64,
}

/// A file that holds whole pieces only.
struct Out {
    path: PathBuf,
    file: File,
    /// Where the last whole piece ends.
    good: u64,
    /// Up to where the disk has it.
    synced: u64,
}

struct Stream {
    out: Out,
    encoder: Encoder,
    /// An empty table of this scope.
    shape: Table,
    started: Duration,
    batches: usize,
    rows: usize,
}

impl Out {
    fn create(path: PathBuf) -> Result<Out, Error> {
        let file = files::create_file(&path)?;
        Ok(Out { path, file, good: 0, synced: 0 })
    }

    /// Appends a piece, or leaves the file as it was.
    fn append(&mut self, piece: &[u8]) -> Result<(), Error> {
        let written = self.file.write_all(piece);
        if let Err(source) = written {
            // Cutting off a torn piece needs no room, and the next one begins where it should.
            let _ = self.file.set_len(self.good);
            let _ = self.file.seek(std::io::SeekFrom::Start(self.good));
            return Err(Error::file(&self.path, source));
        }
        self.good += piece.len() as u64;
        Ok(())
    }

    fn begin_sync(&self) {
        if self.synced < self.good {
            files::begin_sync(&self.file);
        }
    }

    fn sync(&mut self) {
        // A file system that cannot is no reason to end a run.
        if self.synced < self.good && self.file.sync_data().is_ok() {
            self.synced = self.good;
        }
    }
}

impl Disk {
    fn create(directory: &Path, manifest: &Manifest, tick: &Tick) -> Result<Disk, Error> {
        files::create_directory(directory)?;
        write_manifest(directory, manifest)?;
        let events = Out::create(directory.join("events.jsonl"))?;
        let host = directory.join(host_directory(&manifest.host.name));
        files::create_directory(&host)?;
        let started = Duration::from_nanos(manifest.started.as_nanosecond() as u64);
        let streams = tick
            .tables()
            .iter()
            .map(|table| {
                let path = host.join(format!("{}.arrows", table.scope().name()));
                let encoder = encoder(&path, table, started, Effort::Little)?;
                let mut out = Out::create(path)?;
                out.append(encoder.header())?;
                Ok(Stream { out, encoder, shape: table.clone(), started, batches: 0, rows: 0 })
            })
            .collect::<Result<_, Error>>()?;
        Ok(Disk { directory: directory.to_owned(), events, streams, faults: Vec::new(), lost: 0 })
    }

    fn work(
        mut self,
        todo: &Receiver<Job>,
        waiting: &AtomicUsize,
        done: &SyncSender<Vec<Table>>,
    ) -> Vec<String> {
        for job in todo {
            waiting.fetch_sub(job.bytes(), Ordering::Relaxed);
            match job {
                Job::Line(line) => {
                    if let Err(error) = self.events.append(&line) {
                        self.fault(error.to_string());
                    }
                }
                Job::Rows(mut tables) => {
                    self.write(&tables);
                    tables.iter_mut().for_each(Table::clear);
                    // Nobody waits for it when the run is over.
                    let _ = done.try_send(tables);
                }
                Job::Manifest(complete) => {
                    if let Err(error) = write_manifest(&self.directory, &complete()) {
                        self.fault(error.to_string());
                    }
                }
            }
        }
        if self.lost > 0 {
            self.faults.push(format!("{} rows are missing", self.lost));
        } else if self.faults.is_empty() {
            self.put_together();
        }
        self.faults
    }

    fn write(&mut self, tables: &[Table]) {
        let mut failed = None;
        for (stream, table) in self.streams.iter_mut().zip(tables) {
            if table.is_empty() {
                continue;
            }
            if let Err(error) = stream.append(table) {
                self.lost += table.len() as u64;
                failed = Some(error.to_string());
            }
        }
        self.sync();
        if let Some(why) = failed {
            self.fault(why);
        }
    }

    /// A machine that dies loses what it had not written: two seconds, not thirty.
    fn sync(&mut self) {
        let outs = self.streams.iter_mut().map(|stream| &mut stream.out);
        let mut outs: Vec<&mut Out> = outs.chain([&mut self.events]).collect();
        // Begun for all of them first, so that a journal which has to be committed for one
        // is committed for all: on ext4 a quarter of the CPU of this thread.
        outs.iter().for_each(|out| out.begin_sync());
        outs.iter_mut().for_each(|out| out.sync());
    }

    /// Keeps the first fault: the others are its echo.
    fn fault(&mut self, why: String) {
        if self.faults.is_empty() {
            self.faults.push(why);
        }
    }

    /// Rewrites streams of many small batches as few large ones.
    fn put_together(&mut self) {
        for stream in &self.streams {
            if stream.batches > 1 && stream.rows < stream.batches * SMALL_BATCH {
                // Without room for it the stream stays as it is: larger, and whole.
                let _ = stream.put_together();
            }
        }
    }
}

impl Stream {
    fn append(&mut self, table: &Table) -> Result<(), Error> {
        let encoded =
            self.encoder.encode(table).map_err(|error| Error::malformed(&self.out.path, error));
        if let Err(error) = encoded.and_then(|bytes| self.out.append(bytes)) {
            // What the lost piece had told the reader must be told again.
            self.encoder = encoder(&self.out.path, &self.shape, self.started, Effort::Little)?;
            return Err(error);
        }
        self.batches += 1;
        self.rows += table.len();
        Ok(())
    }

    /// Rewrites the file with fewer, larger batches; it is there whole all the time.
    fn put_together(&self) -> Result<(), Error> {
        let path = &self.out.path;
        let partial = files::partial_name(path);
        let written = self.rewrite(path, Out::create(partial.clone())?);
        let renamed = written.and_then(|()| {
            std::fs::rename(&partial, path).map_err(|source| Error::file(path, source))
        });
        if renamed.is_err() {
            // The original is still there; this one only takes room.
            let _ = std::fs::remove_file(&partial);
        }
        renamed
    }

    fn rewrite(&self, from: &Path, mut to: Out) -> Result<(), Error> {
        let mut together = self.shape.clone();
        let mut encoder = encoder(from, &self.shape, self.started, Effort::Full)?;
        to.append(encoder.header())?;
        let mut write = |table: &mut Table, to: &mut Out| {
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
        to.file.sync_data().map_err(|source| Error::file(&to.path, source))
    }
}

fn write_manifest(directory: &Path, manifest: &Manifest) -> Result<(), Error> {
    let run =
        serde_json::to_vec_pretty(manifest).map_err(|error| Error::malformed(directory, error))?;
    files::write_whole(&directory.join("run.json"), &run)
}

fn encoder(
    path: &Path,
    table: &Table,
    started: Duration,
    effort: Effort,
) -> Result<Encoder, Error> {
    Encoder::new(table, started, effort).map_err(|error| Error::malformed(path, error))
}
