//! Files that request the end of a recorder, read in a thread of their own: they are on a file
//! system that the nodes of a job share, and one that hangs must not delay a tick.
//!
//! What surprised us: a client of NFS remembers for up to a minute that a file does not exist, and
//! what a directory contains. A `statx` of the directory that is forced to ask the server ends
//! that; and a file that exists is asked for again whenever it is opened.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{AtFlags, CWD, StatxFlags};

use crate::record::files;
use crate::record::job_directory::{self, JobState};

/// How often the files are read: each costs two requests to the server of a network file system.
const EVERY: Duration = Duration::from_secs(2);

/// Which files are read.
#[derive(Debug, Clone, Default)]
pub struct StopFiles {
    /// The directory of a job, for its file `state`.
    pub job: Option<PathBuf>,
    /// A file that requests the end by the word FINISHED, as perfmon's `.ipc-<job>` does.
    pub finished: Option<PathBuf>,
}

/// What the thread has found, and what it is to do.
#[derive(Debug, Default)]
struct StopShared {
    is_stop_requested: AtomicBool,
    is_supervised: AtomicBool,
    /// This recorder is beside the job's script.
    supervises: AtomicBool,
    /// When the job reaches its limit, in seconds since 1970; 0 while that is not known. Only the
    /// first recorder asks, and it may take a while.
    ends: AtomicU64,
}

/// The thread's other side.
#[derive(Debug)]
pub(super) struct StopWatch {
    found: Arc<StopShared>,
    wakeup: Arc<OwnedFd>,
    thread: std::thread::Thread,
}

impl StopWatch {
    /// Begins to read the files.
    pub(super) fn begin(stop_files: StopFiles) -> std::io::Result<StopWatch> {
        let wakeup = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let found = Arc::new(StopShared::default());
        let (theirs, their_wakeup) = (Arc::clone(&found), Arc::clone(&wakeup));
        let thread = std::thread::Builder::new().name("weigh-stop".to_owned());
        let thread = thread.spawn(move || {
            while !theirs.is_stop_requested.load(Ordering::Relaxed) {
                if read_all(&stop_files, &theirs) {
                    theirs.is_stop_requested.store(true, Ordering::Relaxed);
                    // A counter that is full already wakes the monitor.
                    let _ = rustix::io::write(&*their_wakeup, &1u64.to_ne_bytes());
                    return;
                }
                std::thread::park_timeout(EVERY);
            }
        })?;
        Ok(StopWatch { found, wakeup, thread: thread.thread().clone() })
    }

    /// Whether a file requests the end.
    pub(super) fn is_stop_requested(&self) -> bool {
        self.found.is_stop_requested.load(Ordering::Relaxed)
    }

    /// Whether the recorder beside the job's script will say when the job is over.
    pub(super) fn is_supervised(&self) -> bool {
        self.found.is_supervised.load(Ordering::Relaxed)
    }

    /// When the job reaches its time limit, in seconds since 1970, as the first recorder has learned
    /// it.
    pub(super) fn ends_seconds(&self) -> Option<u64> {
        Some(self.found.ends.load(Ordering::Relaxed)).filter(|ends| *ends > 0)
    }

    /// Tells the other recorders that this one will say when the job is over.
    pub(super) fn supervise(&self) {
        if !self.found.supervises.swap(true, Ordering::Relaxed) {
            self.thread.unpark();
        }
    }
}

impl AsFd for StopWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wakeup.as_fd()
    }
}

/// Reads all files; returns whether one requests the end.
fn read_all(stop_files: &StopFiles, found: &StopShared) -> bool {
    if let Some(directory) = &stop_files.job {
        if found.ends.load(Ordering::Relaxed) == 0 {
            let job = job_directory::read(directory).ok().flatten();
            let ends = job.and_then(|job| job.ends_seconds()).unwrap_or(0);
            found.ends.store(ends, Ordering::Relaxed);
        }
        match job_directory::state(directory) {
            Some(JobState::Stop) => return true,
            Some(JobState::Supervised) => found.is_supervised.store(true, Ordering::Relaxed),
            Some(JobState::Running) if found.supervises.load(Ordering::Relaxed) => {
                // One that cannot be written now is tried again.
                let _ = job_directory::set_state(directory, JobState::Supervised);
            }
            Some(JobState::Running) | None => {}
        }
    }
    stop_files.finished.as_deref().is_some_and(says_finished)
}

fn says_finished(path: &Path) -> bool {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let (here, flags) = (parent.unwrap_or(Path::new(".")), AtFlags::STATX_FORCE_SYNC);
    // Only for what it makes the client ask the server; a kernel without it asks later.
    let _ = rustix::fs::statx(CWD, here, flags, StatxFlags::MTIME);
    let mut text = Vec::new();
    let read = files::open_regular(path).map(|file| file.take(64).read_to_end(&mut text));
    read.is_ok_and(|read| read.is_ok()) && text.trim_ascii().starts_with(b"FINISHED")
}

#[expect(clippy::disallowed_methods, reason = "the files of a user's script")]
#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;
    use crate::model::batch_job::{BatchJob, Scheduler};
    use crate::record::job_directory::JobFile;

    #[test]
    fn finished_of_perfmon_and_a_stopped_job_request_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let job = directory.path().join("job");
        job_directory::claim(&job).unwrap();
        let finished = directory.path().join(".ipc-7");
        let files = StopFiles { job: Some(job.clone()), finished: Some(finished.clone()) };
        let found = StopShared::default();
        assert!(!read_all(&files, &found));
        std::fs::write(&finished, "INPROGRESS\n").unwrap();
        assert!(!read_all(&files, &found));
        std::fs::write(&finished, "FINISHED\n").unwrap();
        assert!(read_all(&files, &found));
        std::fs::remove_file(&finished).unwrap();
        job_directory::set_state(&job, JobState::Stop).unwrap();
        assert!(read_all(&files, &found));
    }

    #[test]
    fn recorder_beside_the_script_is_known_to_the_others() {
        let directory = tempfile::tempdir().unwrap();
        let job = directory.path().join("job");
        job_directory::claim(&job).unwrap();
        let files = StopFiles { job: Some(job.clone()), finished: None };
        let (beside, other) = (StopShared::default(), StopShared::default());
        beside.supervises.store(true, Ordering::Relaxed);
        assert!(!read_all(&files, &beside) && !read_all(&files, &other));
        assert!(other.is_supervised.load(Ordering::Relaxed));
    }

    #[test]
    fn time_limit_that_the_first_recorder_learns_late_is_known_to_the_others() {
        let directory = tempfile::tempdir().unwrap();
        let claim = job_directory::claim(directory.path()).unwrap().unwrap();
        let files = StopFiles { job: Some(directory.path().to_owned()), finished: None };
        let found = StopShared::default();
        assert!(!read_all(&files, &found));
        assert_eq!(found.ends.load(Ordering::Relaxed), 0);
        let job = BatchJob::of(Scheduler::Slurm);
        claim.write(&JobFile::new(job, Vec::new(), Some(300), Duration::ZERO)).unwrap();
        assert!(!read_all(&files, &found));
        assert_eq!(found.ends.load(Ordering::Relaxed), 300);
    }

    #[test]
    fn request_wakes_the_monitor() {
        let directory = tempfile::tempdir().unwrap();
        let finished = directory.path().join(".ipc-7");
        std::fs::write(&finished, "FINISHED").unwrap();
        let files = StopFiles { job: None, finished: Some(finished) };
        let sampling = StopWatch::begin(files).unwrap();
        poll(&mut [PollFd::new(&sampling, PollFlags::IN)], None).unwrap();
        assert!(sampling.is_stop_requested() && !sampling.is_supervised());
    }
}
