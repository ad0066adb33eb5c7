//! Writing a recording while the run goes on.
//!
//! Ticks are buffered in memory and handed over at most two seconds apart; a separate thread
//! encodes and writes them, so that a slow or hanging disk delays neither a tick nor a signal. What
//! a full disk refuses is retained for a while and retried. When the thread cannot keep up, or the
//! disk stays full, rows are dropped and the recording says how many ([`super::integrity`]); the
//! run never waits.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::batches::Batches;
use super::files::{self, Claim, EVENTS};
use super::integrity::{Integrity, IntegrityPage, Lost, MemberLoss, Seal};
use super::reader::host_directory;
use super::stream::{Effort, Encoder, decode};
use super::{Entry, Error, Manifest};
use crate::model::{Table, Tick};

/// The longest time that measurements stay in memory only: two seconds are promised, and a loaded
/// machine takes its part of them.
pub const FLUSH_EVERY: Duration = Duration::from_millis(1500);

/// Bytes that may be queued for the disk before more are dropped.
const MOST_WAITING: usize = 64 << 20;

/// Bytes of one file that a full disk refused and that are retained for a retry.
const MOST_UNWRITTEN: usize = 4 << 20;

/// Emptied batches that are retained for reuse.
const SPARE_BATCHES: usize = 4;

/// How often a writer that is finishing asks whether to give up.
const POLL: Duration = Duration::from_millis(10);

const RUN: &str = "run.json";

/// Batches with fewer rows than this on average are merged at the end.
const SMALL_BATCH: usize = 512;

/// Rows of a merged batch.
const LARGE_BATCH: usize = 16 * 1024;

enum Job {
    Rows(Vec<Table>),
    EventLine(EventLine),
    /// What is known of the run now, and takes a while to collect.
    Manifest(Box<dyn FnOnce() -> Manifest + Send>),
    /// What could not be handed over.
    Lost(BTreeMap<String, Lost>),
}

/// One event.
struct EventLine {
    bytes: Vec<u8>,
    seconds: f64,
    /// Without the end of the run everything before it is worth less.
    is_last: bool,
}

impl Job {
    /// Approximate memory it takes while queued.
    fn bytes(&self) -> usize {
        match self {
            Job::Rows(tables) => tables.iter().map(size).sum(),
            Job::EventLine(line) => line.bytes.len(),
            Job::Manifest(_) | Job::Lost(_) => 0,
        }
    }

    /// What is lost when it cannot be handed over.
    fn lost(&self, why: &str) -> BTreeMap<String, Lost> {
        match self {
            Job::Rows(tables) => {
                let full = tables.iter().filter(|table| !table.is_empty());
                full.map(|table| (table.scope().name().to_owned(), lost_rows(table, why))).collect()
            }
            Job::EventLine(line) => BTreeMap::from([("events".to_owned(), line.lost(why))]),
            Job::Manifest(_) | Job::Lost(_) => BTreeMap::new(),
        }
    }
}

impl EventLine {
    fn lost(&self, why: &str) -> Lost {
        let (from_seconds, to_seconds) = (self.seconds, self.seconds);
        Lost { count: 1, from_seconds, to_seconds, why: why.to_owned() }
    }
}

/// Approximate bytes of a table.
fn size(table: &Table) -> usize {
    table.len() * table.columns().len() * 9
}

fn lost_rows(table: &Table, why: &str) -> Lost {
    let seconds = |at: Option<&Duration>| at.map_or(0.0, Duration::as_secs_f64);
    Lost {
        count: table.len() as u64,
        from_seconds: seconds(table.times().first()),
        to_seconds: seconds(table.times().last()),
        why: why.to_owned(),
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
            flushed: Duration::ZERO,
            jobs: Some(jobs),
            waiting,
            emptied,
            thread: Some(thread),
            dropped: Integrity::default(),
        })
    }

    /// Where it is written.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Adds the rows of a tick.
    pub fn tick(&mut self, tick: &Tick) {
        for (mine, theirs) in self.batch.iter_mut().zip(tick.tables()) {
            mine.append(theirs);
        }
    }

    /// Writes an event now.
    pub fn event(&mut self, entry: &Entry) {
        let Ok(mut bytes) = serde_json::to_vec(entry) else { return };
        bytes.push(b'\n');
        let (seconds, is_last) = (entry.seconds, entry.event.is_last());
        self.hand_over(Job::EventLine(EventLine { bytes, seconds, is_last }));
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
        (!empty).then_some(self.flushed + FLUSH_EVERY)
    }

    /// Hands over what is buffered.
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

    /// Writes what is left, and merges small batches; returns what failed.
    ///
    /// `give_up` is polled meanwhile.
    pub fn finish(mut self, now: Duration, mut give_up: impl FnMut() -> bool) -> Vec<String> {
        self.flush(now);
        self.report_dropped();
        self.jobs = None;
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

/// The thread's side: the files.
struct Disk {
    directory: PathBuf,
    events: Out,
    /// Events that a full disk refused, in order.
    unwritten: VecDeque<EventLine>,
    unwritten_bytes: usize,
    /// The complete `run.json`, while a full disk refuses it.
    unwritten_manifest: Option<Manifest>,
    /// `run.json`, until it is synced with the next batch: the command does not wait for it.
    unsynced_manifest: Option<File>,
    streams: Vec<Stream>,
    faults: Vec<String>,
    page: IntegrityPage,
    integrity: Integrity,
    /// How much of the losses the page has.
    said: u64,
}

/// A file of complete pieces only.
struct Out {
    path: PathBuf,
    file: File,
    /// Where the last complete piece ends.
    good: u64,
    /// Up to where it is on the disk.
    synced: u64,
    /// The checksum of the complete pieces.
    crc: crc32fast::Hasher,
}

struct Stream {
    out: Out,
    encoder: Encoder,
    /// An empty table of this scope.
    shape: Table,
    started: Duration,
    batches: usize,
    rows: usize,
    /// Batches that a full disk refused, in order.
    unwritten: VecDeque<Table>,
}

impl Out {
    fn create(path: PathBuf) -> Result<Out, Error> {
        let file = files::create_file(&path)?;
        Ok(Out::of(path, file))
    }

    /// A file that is empty.
    fn of(path: PathBuf, file: File) -> Out {
        Out { path, file, good: 0, synced: 0, crc: crc32fast::Hasher::new() }
    }

    fn seal(&self) -> Seal {
        Seal { bytes: self.good, crc32: self.crc.clone().finalize() }
    }

    /// Appends a piece, or leaves the file as it was.
    fn append(&mut self, piece: &[u8]) -> Result<(), Error> {
        let written = self.file.write_all(piece);
        if let Err(source) = written {
            // Truncating a torn piece needs no free space, and the next one begins where it should.
            let _ = self.file.set_len(self.good);
            let _ = self.file.seek(std::io::SeekFrom::Start(self.good));
            return Err(Error::file(&self.path, source));
        }
        self.good += piece.len() as u64;
        self.crc.update(piece);
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
    fn create(
        directory: &Path,
        events: File,
        manifest: &Manifest,
        tick: &Tick,
        losses: &[MemberLoss],
    ) -> Result<Disk, Error> {
        let mut integrity = Integrity::default();
        integrity.take_over(losses);
        let page = IntegrityPage::create(directory)?;
        page.write(&integrity)?;
        let (unsynced_manifest, seal) = write_manifest(directory, manifest)?;
        integrity.files.insert(RUN.to_owned(), seal);
        let events = Out::of(directory.join(EVENTS), events);
        let host = directory.join(host_directory(&manifest.host.name));
        files::create_directory(&host)?;
        let started = Duration::from_nanos(manifest.started.as_nanosecond() as u64);
        let streams = tick
            .tables()
            .iter()
            .map(|table| Stream::create(&host, table, started))
            .collect::<Result<_, Error>>()?;
        Ok(Disk {
            directory: directory.to_owned(),
            events,
            unwritten: VecDeque::new(),
            unwritten_manifest: None,
            unsynced_manifest: Some(unsynced_manifest),
            unwritten_bytes: 0,
            streams,
            faults: Vec::new(),
            page,
            integrity,
            said: 0,
        })
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
                Job::EventLine(line) => self.write_line(line),
                Job::Rows(mut tables) => {
                    self.write(&tables);
                    tables.iter_mut().for_each(Table::clear);
                    // Not needed when the run is over.
                    let _ = done.try_send(tables);
                }
                Job::Manifest(complete) => {
                    let complete = complete();
                    if self.write_manifest(&complete).is_err() {
                        self.unwritten_manifest = Some(complete);
                    }
                }
                Job::Lost(lost) => self.integrity.lose_all(lost),
            }
            self.report_losses();
        }
        self.close();
        self.faults
    }

    fn write_manifest(&mut self, manifest: &Manifest) -> Result<(), Error> {
        let (file, seal) = write_manifest(&self.directory, manifest)?;
        self.unsynced_manifest = Some(file);
        self.integrity.files.insert(RUN.to_owned(), seal);
        Ok(())
    }

    /// Retries what was refused, and finally states what the recording holds.
    fn close(&mut self) {
        if let Some(manifest) = self.unwritten_manifest.take()
            && let Err(error) = self.write_manifest(&manifest)
        {
            self.fault(error.to_string());
        }
        if let Err(error) = self.write_lines() {
            let why = error.to_string();
            for line in std::mem::take(&mut self.unwritten) {
                self.integrity.lose("events", line.lost(&why));
            }
        }
        for stream in &mut self.streams {
            if let Err(error) = stream.write_unwritten() {
                let why = error.to_string();
                for table in std::mem::take(&mut stream.unwritten) {
                    self.integrity.lose(table.scope().name(), lost_rows(&table, &why));
                }
            }
        }
        let (rows, events) = self.integrity.counts();
        if rows + events == 0 && self.faults.is_empty() {
            self.merge_small_batches();
        }
        if let Some(lost) = self.integrity.lost.values().next() {
            self.faults.insert(0, lost.why.clone());
        }
        let missing = [(rows, "rows"), (events, "events")].into_iter().filter(|(n, _)| *n > 0);
        self.faults.extend(missing.map(|(count, what)| format!("{count} {what} are missing")));
        self.integrity.closed = true;
        self.integrity.files.insert(EVENTS.to_owned(), self.events.seal());
        for stream in &self.streams {
            let name = stream.out.path.file_name().unwrap_or_default().to_string_lossy();
            self.integrity.files.insert(name.into_owned(), stream.out.seal());
        }
        if let Err(error) = self.page.write(&self.integrity) {
            self.faults.push(error.to_string());
        }
        // All at once, after the last write: after a crash in between the checksums tell.
        self.page.begin_sync();
        self.sync();
        self.page.sync();
        // Closing it is not enough while a forked process has not yet called exec.
        let _ = self.events.file.unlock();
    }

    /// A later reader must know, also when weigh is killed next.
    fn report_losses(&mut self) {
        let (rows, events) = self.integrity.counts();
        if rows + events > self.said {
            self.said = rows + events;
            let until_now = Integrity { files: BTreeMap::new(), ..self.integrity.clone() };
            if let Err(error) = self.page.write(&until_now) {
                self.fault(error.to_string());
            }
        }
    }

    fn write_line(&mut self, line: EventLine) {
        self.unwritten_bytes += line.bytes.len();
        self.unwritten.push_back(line);
        let Err(error) = self.write_lines() else { return };
        if self.unwritten_bytes > MOST_UNWRITTEN
            && self.unwritten.back().is_some_and(|line| !line.is_last)
            && let Some(line) = self.unwritten.pop_back()
        {
            self.unwritten_bytes -= line.bytes.len();
            self.integrity.lose("events", line.lost(&error.to_string()));
        }
    }

    /// Writes the queued events, as far as the disk takes them.
    fn write_lines(&mut self) -> Result<(), Error> {
        while let Some(line) = self.unwritten.front() {
            self.events.append(&line.bytes)?;
            self.unwritten_bytes -= line.bytes.len();
            self.unwritten.pop_front();
        }
        Ok(())
    }

    fn write(&mut self, tables: &[Table]) {
        for (stream, table) in self.streams.iter_mut().zip(tables) {
            if table.is_empty() {
                continue;
            }
            let written = stream.write_unwritten().and_then(|()| stream.append(table));
            let Err(error) = written else { continue };
            if stream.unwritten.iter().map(size).sum::<usize>() + size(table) <= MOST_UNWRITTEN {
                stream.unwritten.push_back(table.clone());
            } else {
                let lost = lost_rows(table, &error.to_string());
                self.integrity.lose(table.scope().name(), lost);
            }
        }
        // What waits for space is retried, and `close` reports if that fails.
        let _ = self.write_lines();
        self.sync();
    }

    /// A machine crash loses what was not written: two seconds, not thirty.
    fn sync(&mut self) {
        let outs = self.streams.iter_mut().map(|stream| &mut stream.out);
        let mut outs: Vec<&mut Out> = outs.chain([&mut self.events]).collect();
        // Started for all of them first, so that one journal commit serves all: on ext4 a quarter
        // of the CPU of this thread.
        let manifest = self.unsynced_manifest.take();
        manifest.iter().for_each(files::begin_sync);
        outs.iter().for_each(|out| out.begin_sync());
        // A file system that cannot is no reason to end a run.
        manifest.iter().for_each(|file| drop(file.sync_data()));
        outs.iter_mut().for_each(|out| out.sync());
    }

    /// Retains the first fault: the others follow from it.
    fn fault(&mut self, why: String) {
        if self.faults.is_empty() {
            self.faults.push(why);
        }
    }

    /// Rewrites streams of many small batches as few large ones.
    fn merge_small_batches(&mut self) {
        for stream in &mut self.streams {
            if stream.batches > 1 && stream.rows < stream.batches * SMALL_BATCH {
                // Without free space for it the stream stays as it is: larger, and complete.
                let _ = stream.merge_small_batches();
            }
        }
    }
}

impl Stream {
    fn create(host: &Path, table: &Table, started: Duration) -> Result<Stream, Error> {
        let path = host.join(format!("{}.arrows", table.scope().name()));
        let encoder = encoder(&path, table, started, Effort::Little)?;
        let mut out = Out::create(path)?;
        out.append(encoder.header())?;
        let (shape, unwritten) = (table.clone(), VecDeque::new());
        Ok(Stream { out, encoder, shape, started, batches: 0, rows: 0, unwritten })
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
            self.encoder.encode(table).map_err(|error| Error::malformed(&self.out.path, error));
        if let Err(error) = encoded.and_then(|bytes| self.out.append(bytes)) {
            // What the lost piece defined must be written again.
            self.encoder = encoder(&self.out.path, &self.shape, self.started, Effort::Little)?;
            return Err(error);
        }
        self.batches += 1;
        self.rows += table.len();
        Ok(())
    }

    /// Rewrites the file with fewer, larger batches; it exists complete all the time.
    fn merge_small_batches(&mut self) -> Result<(), Error> {
        let path = &self.out.path;
        let partial = files::partial_name(path);
        let written = self.rewrite(path, Out::create(partial.clone())?);
        let renamed = written.and_then(|out| {
            std::fs::rename(&partial, path).map_err(|source| Error::file(path, source))?;
            Ok(Out { path: path.clone(), ..out })
        });
        match renamed {
            Ok(out) => self.out = out,
            Err(error) => {
                // The original still exists; this one only takes space.
                let _ = std::fs::remove_file(&partial);
                return Err(error);
            }
        }
        Ok(())
    }

    fn rewrite(&self, from: &Path, mut to: Out) -> Result<Out, Error> {
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
        to.file.sync_data().map_err(|source| Error::file(&to.path, source))?;
        Ok(to)
    }
}

fn write_manifest(directory: &Path, manifest: &Manifest) -> Result<(File, Seal), Error> {
    let run =
        serde_json::to_vec_pretty(manifest).map_err(|error| Error::malformed(directory, error))?;
    let file = files::write_unsynced(&directory.join(RUN), &run)?;
    Ok((file, Seal::of(&run)))
}

fn encoder(
    path: &Path,
    table: &Table,
    started: Duration,
    effort: Effort,
) -> Result<Encoder, Error> {
    Encoder::new(table, started, effort).map_err(|error| Error::malformed(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::all_groups;
    use crate::catalog::metrics::ProcessMemory;
    use crate::model::settings::Settings;
    use crate::model::{Entity, Facts, ProcessId};
    use crate::record::{Event, Frame, Moment, Recording};

    fn disk(path: &Path) -> (Disk, Tick) {
        let settings = Settings::default();
        let began = Duration::from_secs(1_700_000_000);
        let manifest = Manifest::new(&settings, &["true".to_owned()], Facts::example(), began);
        let tick = Tick::new(&crate::catalog::groups(settings.sources()));
        let events = Claim::of(path).unwrap().events().unwrap();
        (Disk::create(path, events, &manifest, &tick, &[]).unwrap(), tick)
    }

    /// Makes every write fail with ENOSPC, or lets them through again.
    fn exchange(disk: &mut Disk, files: &mut Vec<File>) {
        let outs = disk.streams.iter_mut().map(|stream| &mut stream.out);
        for (out, file) in outs.chain([&mut disk.events]).zip(files) {
            std::mem::swap(&mut out.file, file);
        }
    }

    fn full(disk: &Disk) -> Vec<File> {
        let open = |_| File::options().write(true).open("/dev/full").unwrap();
        (0..=disk.streams.len()).map(open).collect()
    }

    fn write(disk: &mut Disk, tick: &mut Tick, second: u64) {
        tick.begin(Duration::from_secs(second));
        let process = Entity::Process(ProcessId { pid: 1, started: 1 });
        tick.put(process, &ProcessMemory { rss: Some(second), ..ProcessMemory::default() });
        disk.write(tick.tables());
        mark(disk, second as f64, false);
        disk.report_losses();
    }

    fn mark(disk: &mut Disk, seconds: f64, is_last: bool) {
        let entry = Entry { seconds, event: Event::Mark { text: "x".to_owned() } };
        let mut bytes = serde_json::to_vec(&entry).unwrap();
        bytes.push(b'\n');
        disk.write_line(EventLine { bytes, seconds, is_last });
    }

    /// The ticks and events of a recording, and what it lacks.
    fn read(path: &Path) -> (usize, usize, String) {
        let recording = Recording::open(path).unwrap();
        let (mut ticks, mut events) = (0, 0);
        let each = |frame: &Frame<'_>| match frame.moment {
            Moment::Tick(_) => ticks += 1,
            Moment::Event(_) => events += 1,
        };
        recording.replay(&all_groups(), each).unwrap();
        (ticks, events, recording.losses().sentences().collect::<Vec<_>>().join("; "))
    }

    #[test]
    fn disk_that_is_full_for_a_while_loses_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run");
        let (mut disk, mut tick) = disk(&path);
        write(&mut disk, &mut tick, 1);
        let mut other = full(&disk);
        exchange(&mut disk, &mut other);
        (2..5).for_each(|second| write(&mut disk, &mut tick, second));
        exchange(&mut disk, &mut other);
        write(&mut disk, &mut tick, 5);
        disk.close();
        assert_eq!(disk.faults, [""; 0]);
        assert_eq!(read(&path), (5, 5, String::new()));
    }

    #[test]
    fn disk_that_stays_full_drops_rows_and_the_recording_has_their_count_and_times() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run");
        let (mut disk, mut tick) = disk(&path);
        write(&mut disk, &mut tick, 1);
        let mut other = full(&disk);
        exchange(&mut disk, &mut other);
        (2..5).for_each(|second| write(&mut disk, &mut tick, second));
        disk.close();
        assert!(disk.faults[0].contains("No space"), "{:?}", disk.faults);
        assert_eq!(disk.faults[1..], ["3 rows are missing", "3 events are missing"]);
        let (ticks, events, lost) = read(&path);
        assert_eq!((ticks, events), (1, 1));
        assert!(lost.contains("3 rows of process between 2.0 s and 4.0 s were lost"), "{lost}");
        assert!(lost.contains("3 events between 2.0 s and 4.0 s were lost"), "{lost}");
    }

    #[test]
    fn queue_for_a_full_disk_is_bounded_and_retains_the_end_of_the_run() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run");
        let (mut disk, _) = disk(&path);
        let mut other = full(&disk);
        exchange(&mut disk, &mut other);
        let most = 2 * MOST_UNWRITTEN / 40;
        (0..most).for_each(|_| mark(&mut disk, 1.0, false));
        assert!(disk.unwritten_bytes <= MOST_UNWRITTEN);
        mark(&mut disk, 2.0, true);
        disk.report_losses();
        let (.., so_far) = read(&path);
        assert!(so_far.contains("events"), "it is said before the end: {so_far}");
        exchange(&mut disk, &mut other);
        disk.close();
        let recording = Recording::open(&path).unwrap();
        let lost = disk.integrity.counts().1 as usize;
        assert!(lost > 0);
        assert_eq!(recording.entries().len(), most + 1 - lost);
        assert_eq!(recording.entries().last().unwrap().seconds, 2.0);
    }
}
