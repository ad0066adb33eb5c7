//! The directory of a batch job, on a file system that its nodes share.
//!
//! ```text
//! job.json   once, by whoever is first: the job, its nodes and what it requested of each
//! launch.json  by `weigh job run` or `start`: when it started the recorders, and saw each of them
//! state      one line: "running", or a request to stop; every recorder reads it every few seconds
//! <node>/    the recording of one node, by the recorder on that node alone
//! ```
//!
//! Nothing is locked and nothing is renamed over an open file, because neither is reliable on
//! network file systems. `job.json` is created with O_EXCL, so of many recorders that start at once
//! one writes it; readers take one that is empty or incomplete as not written yet. `state` exists
//! from then on and is overwritten in place: opening a file that exists asks the server of a network
//! file system for its current content, while one that did not exist may be remembered as missing.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::manifest::Origin;
use super::{Error, files, host_directory};
use crate::model::batch_job::{BatchJob, JobNode};

const JOB_FILE: &str = "job.json";
const STATE_FILE: &str = "state";
const LAUNCH_FILE: &str = "launch.json";

/// `launch.json`: when the recorders were started, and when each was first seen to record, by the
/// clock of the launcher. The clock of a node is between the two when its recording begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaunchTimes {
    /// The boot id of the launcher's machine.
    pub boot: Option<String>,
    /// When it started the first of them.
    pub launched: Timestamp,
    /// When it saw the recording of a node, by the name of its folder.
    pub seen: BTreeMap<String, Timestamp>,
}

impl LaunchTimes {
    /// None is seen yet.
    pub fn new(boot: Option<String>, wall: Duration) -> LaunchTimes {
        LaunchTimes { boot, launched: timestamp(wall), seen: BTreeMap::new() }
    }

    /// The recording of a node is there.
    pub fn see(&mut self, directory: &Path, node: &str, wall: Duration) {
        let folder = of_node(directory, node);
        let folder = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.seen.entry(folder).or_insert_with(|| timestamp(wall));
    }

    /// Writes them; a second launch into the same directory keeps those of the first.
    pub fn write(&self, directory: &Path) -> Result<(), Error> {
        let path = directory.join(LAUNCH_FILE);
        let json = serde_json::to_vec_pretty(self).map_err(|why| Error::malformed(&path, why))?;
        let mut file = files::create_file(&path)?;
        file.write_all(&json).map_err(|source| Error::file(&path, source))
    }

    /// Those of a directory; `None` where there are none, as with `weigh job follow`.
    pub fn read(directory: &Path) -> Option<LaunchTimes> {
        let bytes = files::read_regular(&directory.join(LAUNCH_FILE)).ok()?;
        serde_json::from_slice(&bytes).ok()
    }
}

fn timestamp(wall: Duration) -> Timestamp {
    Timestamp::from_nanosecond(wall.as_nanos() as i128).unwrap_or_default()
}

/// `job.json`: what was known of the job when its recording began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobFile {
    /// Which weigh wrote it.
    pub weigh: Origin,
    /// When.
    pub written: Timestamp,
    /// The job.
    pub job: BatchJob,
    /// Its nodes; empty when they are not known.
    pub nodes: Vec<JobNode>,
    /// When it reaches its time limit; null when that is not known.
    pub ends: Option<Timestamp>,
    /// Why the batch system could not be asked; null when it answered.
    pub not_asked: Option<String>,
}

impl JobFile {
    /// What is known now of a job, its nodes and when it ends, in seconds since 1970.
    pub fn new(job: BatchJob, nodes: Vec<JobNode>, ends: Option<u64>, wall: Duration) -> JobFile {
        let written = timestamp(wall);
        let ends = ends.and_then(|ends| Timestamp::from_second(i64::try_from(ends).ok()?).ok());
        JobFile { weigh: Origin::default(), written, job, nodes, ends, not_asked: None }
    }

    /// When the job reaches its time limit, in seconds since 1970.
    pub fn ends_seconds(&self) -> Option<u64> {
        u64::try_from(self.ends?.as_second()).ok()
    }
}

/// What the file `state` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// The job is recorded.
    Running,
    /// The same, and the recorder beside the job's script will say when it is over.
    Supervised,
    /// The job is over, or somebody wants its recording to end.
    Stop,
}

impl JobState {
    fn line(self) -> &'static str {
        // Of one length, because the file is overwritten in place.
        match self {
            JobState::Running => "running   \n",
            JobState::Supervised => "supervised\n",
            JobState::Stop => "stop      \n",
        }
    }

    /// What a line says; `None` when it is none.
    pub fn parse(line: &[u8]) -> Option<JobState> {
        let states = [JobState::Running, JobState::Supervised, JobState::Stop];
        let said = |state: &JobState| state.line().trim_end().as_bytes() == line.trim_ascii();
        states.into_iter().find(said)
    }
}

/// The right and the duty to write `job.json`.
#[derive(Debug)]
pub struct JobFileClaim {
    path: PathBuf,
    file: std::fs::File,
}

/// Creates the directory of a job, unless it exists; whoever gets the claim writes `job.json`.
pub fn claim(directory: &Path) -> Result<Option<JobFileClaim>, Error> {
    files::create_shared_directory(directory)?;
    let path = directory.join(JOB_FILE);
    match files::create_file(&path) {
        Ok(file) => {
            let mut state = files::create_file(&state_path(directory))?;
            let written = state.write_all(JobState::Running.line().as_bytes());
            written.map_err(|source| Error::file(&state_path(directory), source))?;
            Ok(Some(JobFileClaim { path, file }))
        }
        Err(Error::File { source, .. }) if source.kind() == std::io::ErrorKind::AlreadyExists => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

impl JobFileClaim {
    /// Writes the file.
    pub fn write(mut self, job: &JobFile) -> Result<(), Error> {
        let json =
            serde_json::to_vec_pretty(job).map_err(|error| Error::malformed(&self.path, error))?;
        let written = self.file.write_all(&json).and_then(|()| self.file.sync_data());
        written.map_err(|source| Error::file(&self.path, source))
    }
}

/// Reads `job.json`; `None` when it is not written yet, or was left empty by a recorder that died.
pub fn read(directory: &Path) -> Result<Option<JobFile>, Error> {
    let bytes = files::read_regular(&directory.join(JOB_FILE))?;
    Ok(serde_json::from_slice(&bytes).ok())
}

/// Whether this is the directory of a job.
pub fn is_one(directory: &Path) -> bool {
    directory.join(JOB_FILE).is_file()
}

/// The recording of a node.
pub fn of_node(directory: &Path, node: &str) -> PathBuf {
    directory.join(host_directory(node))
}

/// The file by which recorders are stopped.
pub fn state_path(directory: &Path) -> PathBuf {
    directory.join(STATE_FILE)
}

/// What the file `state` of a job says; `None` when it cannot be read.
pub fn state(directory: &Path) -> Option<JobState> {
    let mut line = Vec::new();
    let file = files::open_regular(&state_path(directory)).ok()?;
    file.take(64).read_to_end(&mut line).ok()?;
    JobState::parse(&line)
}

/// Says what the recorders of a job are to do.
pub fn set_state(directory: &Path, state: JobState) -> Result<(), Error> {
    let path = state_path(directory);
    let written = OpenOptions::new().write(true).open(&path).and_then(|mut file| {
        file.write_all(state.line().as_bytes())?;
        file.sync_data()
    });
    written.map_err(|source| Error::file(&path, source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::batch_job::Scheduler;

    fn job() -> JobFile {
        let job = BatchJob::of(Scheduler::Slurm);
        JobFile::new(job, Vec::new(), Some(300), Duration::from_secs(7))
    }

    #[test]
    fn of_many_recorders_one_writes_the_job() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("runs/job-7");
        let claims = std::thread::scope(|scope| {
            let claim = || claim(&directory).unwrap();
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(claim)).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(claims.len(), 1);
        assert_eq!(read(&directory).unwrap(), None, "it is not written yet");
        claims.into_iter().for_each(|claim| claim.write(&job()).unwrap());
        assert_eq!(read(&directory).unwrap(), Some(job()));
        assert_eq!(job().ends_seconds(), Some(300));
        assert!(is_one(&directory) && !is_one(parent.path()));
    }

    #[test]
    fn state_is_overwritten_in_place() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("job-7");
        claim(&directory).unwrap();
        assert_eq!(state(&directory), Some(JobState::Running));
        for said in [JobState::Supervised, JobState::Stop, JobState::Running] {
            set_state(&directory, said).unwrap();
            assert_eq!(state(&directory), Some(said));
        }
        std::fs::write(state_path(&directory), "?").unwrap();
        assert_eq!(state(&directory), None);
    }

    #[test]
    fn name_of_a_node_stays_in_the_directory() {
        let directory = Path::new("job-7");
        assert_eq!(of_node(directory, "../n1/x"), Path::new("job-7/.._n1_x"));
        assert_eq!(of_node(directory, ".."), Path::new("job-7/host"));
    }
}
