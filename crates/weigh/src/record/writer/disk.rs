//! The files of a recording, as the thread that writes them has them.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

use super::append_file::AppendFile;
use super::event_log::EventLog;
use super::job::{EventLine, Job};
use super::stream_file::StreamFile;
use crate::model::{Table, Tick};
use crate::record::files::{self, EVENTS};
use crate::record::integrity::{Integrity, IntegrityPage, MemberLoss, Seal};
use crate::record::reader::host_directory;
use crate::record::{Error, Manifest};

const RUN: &str = "run.json";

/// All files of a recording.
pub(super) struct Disk {
    directory: PathBuf,
    events: EventLog,
    /// The complete `run.json`, while a full disk refuses it.
    unwritten_manifest: Option<Manifest>,
    /// `run.json`, until it is synced with the next batch: the command does not wait for it.
    unsynced_manifest: Option<File>,
    streams: Vec<StreamFile>,
    faults: Vec<String>,
    page: IntegrityPage,
    integrity: Integrity,
    /// How much of the losses the page has.
    said: u64,
}

impl Disk {
    /// Writes `run.json` and creates the others.
    pub(super) fn create(
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
        let events = EventLog::new(AppendFile::of(directory.join(EVENTS), events));
        let host = directory.join(host_directory(&manifest.host.name));
        files::create_directory(&host)?;
        let started = Duration::from_nanos(manifest.started.as_nanosecond() as u64);
        let streams = tick
            .tables()
            .iter()
            .map(|table| StreamFile::create(&host, table, started))
            .collect::<Result<_, Error>>()?;
        Ok(Disk {
            directory: directory.to_owned(),
            events,
            unwritten_manifest: None,
            unsynced_manifest: Some(unsynced_manifest),
            streams,
            faults: Vec::new(),
            page,
            integrity,
            said: 0,
        })
    }

    /// Does what is handed over until no more follows; returns what failed.
    pub(super) fn work(
        mut self,
        todo: &Receiver<Job>,
        waiting: &AtomicUsize,
        done: &SyncSender<Vec<Table>>,
    ) -> Vec<String> {
        for job in todo {
            waiting.fetch_sub(job.bytes(), Ordering::Relaxed);
            match job {
                Job::EventLine(line) => self.write_event(line),
                Job::LastRows(tables) => self.write_rows(&tables),
                Job::Rows(mut tables) => {
                    self.write_rows(&tables);
                    self.sync();
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
        for lost in self.events.close() {
            self.integrity.lose("events", lost);
        }
        for stream in &mut self.streams {
            for lost in stream.close() {
                self.integrity.lose(stream.scope().name(), lost);
            }
        }
        let (rows, events) = self.integrity.counts();
        let is_whole = rows + events == 0 && self.faults.is_empty();
        if is_whole && self.streams.iter().any(StreamFile::has_small_batches) {
            // Merging takes a while, and the last rows are not to wait for it.
            self.sync();
            for stream in &mut self.streams {
                // Without free space for it the stream stays as it is: larger, and complete.
                let _ = stream.merge_small_batches();
            }
        }
        if let Some(lost) = self.integrity.lost.values().next() {
            self.faults.insert(0, lost.why.clone());
        }
        let missing = [(rows, "rows"), (events, "events")].into_iter().filter(|(n, _)| *n > 0);
        self.faults.extend(missing.map(|(count, what)| format!("{count} {what} are missing")));
        self.integrity.closed = true;
        self.integrity.files.insert(EVENTS.to_owned(), self.events.file.seal());
        for stream in &self.streams {
            let name = stream.file.path.file_name().unwrap_or_default().to_string_lossy();
            self.integrity.files.insert(name.into_owned(), stream.file.seal());
        }
        if let Err(error) = self.page.write(&self.integrity) {
            self.faults.push(error.to_string());
        }
        // All at once, after the last write: after a crash in between the checksums tell.
        self.page.begin_sync();
        self.sync();
        self.page.sync();
        // Closing it is not enough while a forked process has not yet called exec.
        let _ = self.events.file.file.unlock();
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

    fn write_event(&mut self, line: EventLine) {
        if let Some(lost) = self.events.write(line) {
            self.integrity.lose("events", lost);
        }
    }

    fn write_rows(&mut self, tables: &[Table]) {
        for (stream, table) in self.streams.iter_mut().zip(tables) {
            if let Some(lost) = stream.write(table) {
                self.integrity.lose(stream.scope().name(), lost);
            }
        }
        // What waits for space is retried, and `close` reports if that fails.
        let _ = self.events.write_unwritten();
    }

    /// A machine crash loses what was not written: two seconds, not thirty.
    fn sync(&mut self) {
        let streams = self.streams.iter_mut().map(|stream| &mut stream.file);
        let mut written: Vec<&mut AppendFile> = streams.chain([&mut self.events.file]).collect();
        // Started for all of them first, so that one journal commit serves all: on ext4 a quarter
        // of the CPU of this thread.
        let manifest = self.unsynced_manifest.take();
        manifest.iter().for_each(files::begin_sync);
        written.iter().for_each(|file| file.begin_sync());
        // A file system that cannot is no reason to end a run.
        manifest.iter().for_each(|file| drop(file.sync_data()));
        written.iter_mut().for_each(|file| file.sync());
    }

    /// Retains the first fault: the others follow from it.
    fn fault(&mut self, why: String) {
        if self.faults.is_empty() {
            self.faults.push(why);
        }
    }
}

fn write_manifest(directory: &Path, manifest: &Manifest) -> Result<(File, Seal), Error> {
    let run =
        serde_json::to_vec_pretty(manifest).map_err(|error| Error::malformed(directory, error))?;
    let file = files::write_unsynced(&directory.join(RUN), &run)?;
    Ok((file, Seal::of(&run)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::all_groups;
    use crate::catalog::metrics::ProcessMemory;
    use crate::model::settings::Settings;
    use crate::model::{Entity, Facts, ProcessId};
    use crate::record::files::Claim;
    use crate::record::writer::MOST_UNWRITTEN;
    use crate::record::{Entry, Event, Frame, Moment, Recording};

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
        let streams = disk.streams.iter_mut().map(|stream| &mut stream.file);
        for (out, file) in streams.chain([&mut disk.events.file]).zip(files) {
            std::mem::swap(&mut out.file, file);
        }
    }

    fn full(disk: &Disk) -> Vec<File> {
        let open = |_| File::options().write(true).open("/dev/full").unwrap();
        (0..=disk.streams.len()).map(open).collect()
    }

    fn put(tick: &mut Tick, second: u64) {
        tick.begin(Duration::from_secs(second));
        let process = Entity::Process(ProcessId { pid: 1, started: 1 });
        tick.put(process, &ProcessMemory { rss: Some(second), ..ProcessMemory::default() });
    }

    fn write(disk: &mut Disk, tick: &mut Tick, second: u64) {
        put(tick, second);
        disk.write_rows(tick.tables());
        disk.sync();
        mark(disk, second as f64, false);
        disk.report_losses();
    }

    fn mark(disk: &mut Disk, seconds: f64, is_last: bool) {
        let entry =
            Entry::new(Duration::from_secs_f64(seconds), Event::Mark { text: "x".to_owned() });
        let mut bytes = serde_json::to_vec(&entry).unwrap();
        bytes.push(b'\n');
        disk.write_event(EventLine { bytes, seconds, is_last });
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

    /// Makes every write fail with this error, or lets them through again.
    fn refuse(disk: &mut Disk, code: Option<i32>) {
        let streams = disk.streams.iter_mut().map(|stream| &mut stream.file);
        streams.chain([&mut disk.events.file]).for_each(|file| file.refuses = code);
    }

    #[test]
    fn errors_of_a_shared_file_system_lose_nothing_when_they_pass_and_are_named_when_they_stay() {
        for (code, word) in
            [(libc::EIO, "Input/output"), (libc::ESTALE, "Stale"), (libc::EDQUOT, "quota")]
        {
            let directory = tempfile::tempdir().unwrap();
            let (passes, stays) = (directory.path().join("passes"), directory.path().join("stays"));
            let (mut one, mut tick) = disk(&passes);
            write(&mut one, &mut tick, 1);
            refuse(&mut one, Some(code));
            (2..5).for_each(|second| write(&mut one, &mut tick, second));
            refuse(&mut one, None);
            write(&mut one, &mut tick, 5);
            one.close();
            assert_eq!(one.faults, [""; 0]);
            assert_eq!(read(&passes), (5, 5, String::new()));
            let (mut other, mut tick) = disk(&stays);
            write(&mut other, &mut tick, 1);
            refuse(&mut other, Some(code));
            (2..5).for_each(|second| write(&mut other, &mut tick, second));
            other.close();
            assert!(other.faults[0].contains(word), "{:?}", other.faults);
            let (ticks, events, lost) = read(&stays);
            assert_eq!((ticks, events), (1, 1), "what was written before is there");
            assert!(lost.contains("3 rows of process between 2.0 s and 4.0 s were lost"), "{lost}");
        }
    }

    #[test]
    fn file_that_the_server_has_forgotten_is_opened_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run");
        let (mut disk, mut tick) = disk(&path);
        write(&mut disk, &mut tick, 1);
        // Opened again by its name, and the torn piece after the last complete one is cut off.
        let events = &mut disk.events.file;
        let mut torn = File::options().append(true).open(&events.path).unwrap();
        std::io::Write::write_all(&mut torn, b"torn").unwrap();
        events.open_again().unwrap();
        write(&mut disk, &mut tick, 2);
        disk.close();
        assert_eq!(read(&path), (2, 2, String::new()));
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
    fn last_rows_are_on_the_disk_when_the_recording_is_closed() {
        for batches in [1, 3] {
            let directory = tempfile::tempdir().unwrap();
            let (mut disk, mut tick) = disk(&directory.path().join("run"));
            (1..batches).for_each(|second| write(&mut disk, &mut tick, second));
            put(&mut tick, batches);
            disk.write_rows(tick.tables());
            let unsynced =
                |disk: &Disk| disk.streams.iter().filter(|stream| !stream.file.is_synced()).count();
            assert!(unsynced(&disk) > 0, "they are synced with all else, not before");
            disk.close();
            assert_eq!(unsynced(&disk), 0);
            assert!(disk.events.file.is_synced() && disk.unsynced_manifest.is_none());
        }
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
        assert!(disk.events.unwritten_bytes() <= MOST_UNWRITTEN);
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
