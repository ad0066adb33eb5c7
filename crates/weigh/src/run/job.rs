//! When the recorder of a batch job ends.
//!
//! On the node with the job's script it sees the script wait for the recorders, and tells the
//! others; on other nodes nothing may run for a long time although the job goes on, so they wait
//! for that word. Where no script is on any node (srun from a login node), each node decides by
//! itself.

use std::time::Duration;

use super::stop_files::{StopFiles, StopWatch};
use crate::collect::members::EnvironmentMarker;
use crate::collect::processes::ProcessCollector;
use crate::host::cgroup::Cgroup;
use crate::host::clock;
use crate::host::program;
use crate::host::{Dir, Host, ProcPath};
use crate::job::JobHere;
use crate::model::batch_job::Scheduler;
use crate::record::StopReason;

/// How long a script must only have waited for recorders: between two commands it does, too.
const SCRIPT_WAITS: Duration = Duration::from_secs(3);

/// How long nothing of the job must have run on a node where nobody else knows whether it goes on.
const NODE_IDLE: Duration = Duration::from_secs(30);

/// How long a command must have waited for a step to be sure that it is not about to start.
const STEP_WAITS: Duration = Duration::from_secs(2);

/// How long before the time limit a recorder ends: the batch system may kill at once.
const BEFORE_LIMIT: Duration = Duration::from_secs(5);

/// How the processes of a job on this node are found.
#[derive(Debug, Clone)]
pub(super) enum JobProcesses {
    /// They are in a cgroup, of this path.
    Cgroup(Dir, String),
    /// They have a variable in their environment.
    Variable,
}

impl JobProcesses {
    /// Those of this job.
    pub(super) fn of(host: &Host, here: &JobHere) -> JobProcesses {
        match Cgroup::around(host, &|path| here.cgroup(path)) {
            Some((dir, path)) => JobProcesses::Cgroup(dir, path),
            None => JobProcesses::Variable,
        }
    }

    /// The variable in their environment.
    pub(super) fn marker(host: &Host, here: &JobHere) -> EnvironmentMarker {
        let marker = EnvironmentMarker::new(here.marker.name, &here.marker.value);
        match here.job.scheduler {
            // ssh and mpirun pass it to no other host.
            Scheduler::Hosts => marker.or_mpi_daemon(host.ticks(clock::since_boot())),
            _ => marker,
        }
    }

    /// The same in words.
    pub(super) fn words(&self, here: &JobHere) -> String {
        match (self, here.job.scheduler) {
            (JobProcesses::Cgroup(_, path), _) => format!("cgroup {path}"),
            (JobProcesses::Variable, Scheduler::Hosts) => {
                format!("environment variable {}, or a daemon of mpirun", here.marker.name)
            }
            (JobProcesses::Variable, _) => format!("environment variable {}", here.marker.name),
        }
    }
}

/// What ends a recorder, beside signals.
#[derive(Debug, Clone, Default)]
pub struct JobEnding {
    /// Files that request it.
    pub files: StopFiles,
    /// The time until the job reaches its limit.
    pub time_left: Option<Duration>,
    /// Whether stdin closes when the process that started the recorder exits.
    pub stdin_is_launcher: bool,
    /// Whether the job's processes end it: nobody else says when.
    pub by_job: bool,
}

/// Since when something has been so.
#[derive(Debug, Default)]
struct HeldSince(Option<Duration>);

impl HeldSince {
    /// Whether it has been so for this long.
    fn has_been(&mut self, is_so: bool, now: Duration, long: Duration) -> bool {
        self.0 = if is_so { Some(self.0.unwrap_or(now)) } else { None };
        self.0.is_some_and(|since| now.saturating_sub(since) >= long)
    }
}

/// Watches for the end of a job.
#[derive(Debug)]
pub(super) struct JobWatch {
    pub(super) stop: Option<StopWatch>,
    pub(super) stdin_is_launcher: bool,
    by_job: bool,
    limit: Option<Duration>,
    had_work: bool,
    script_waits: HeldSince,
    node_idle: HeldSince,
    step_waits: HeldSince,
    /// The job and its step, where that may block others.
    slurm_step: Option<(String, String)>,
}

impl JobWatch {
    /// Begins to watch.
    pub(super) fn begin(here: &JobHere, ending: &JobEnding) -> JobWatch {
        let job = here.job.id.clone().filter(|_| here.job.scheduler == Scheduler::Slurm);
        JobWatch {
            // Without a thread there are still signals, and the job's processes.
            stop: StopWatch::begin(ending.files.clone()).ok(),
            stdin_is_launcher: ending.stdin_is_launcher,
            by_job: ending.by_job,
            limit: ending.time_left.map(|left| left.saturating_sub(BEFORE_LIMIT)),
            had_work: false,
            script_waits: HeldSince::default(),
            node_idle: HeldSince::default(),
            step_waits: HeldSince::default(),
            slurm_step: job.zip(here.step.clone()),
        }
    }

    /// Whether the recorder ends now, and why.
    pub(super) fn verdict(
        &mut self,
        host: &Host,
        processes: Option<&ProcessCollector>,
        now: Duration,
    ) -> Option<StopReason> {
        if self.stop.as_ref().is_some_and(StopWatch::is_stop_requested) {
            return Some(StopReason::StopRequested);
        }
        if self.limit.is_none()
            && let Some(ends) = self.stop.as_ref().and_then(StopWatch::ends_seconds)
        {
            let left = Duration::from_secs(ends).saturating_sub(clock::wall());
            self.limit = Some(now + left.saturating_sub(BEFORE_LIMIT));
        }
        if self.limit.is_some_and(|limit| now >= limit) {
            return Some(StopReason::TimeLimit);
        }
        let processes = processes.filter(|_| self.by_job)?;
        let (is_idle, waits) =
            (processes.alive().next().is_none(), processes.only_waits_for_recorders());
        self.had_work |= !is_idle && !waits;
        if processes.has_launcher()
            && let Some(stop) = &self.stop
        {
            stop.supervise();
        }
        let is_over = self.script_waits.has_been(self.had_work && waits, now, SCRIPT_WAITS);
        if is_over {
            return Some(StopReason::Ended);
        }
        let is_supervised = self.stop.as_ref().is_some_and(StopWatch::is_supervised);
        let is_left = self.had_work && is_idle && !is_supervised;
        if self.node_idle.has_been(is_left, now, NODE_IDLE) {
            return Some(StopReason::Ended);
        }
        self.is_blocking(host, processes, now).then_some(StopReason::Blocking)
    }

    /// Whether the step of the recorders keeps another one from starting: a command waits for a
    /// step, and there is none but ours.
    fn is_blocking(&mut self, host: &Host, processes: &ProcessCollector, now: Duration) -> bool {
        let Some((job, step)) = &self.slurm_step else { return false };
        let mut launchers = processes.launchers().peekable();
        if launchers.peek().is_none() || launchers.any(|pid| overlaps(host, pid)) {
            return false;
        }
        let waits = processes.has_program(b"srun");
        if !self.step_waits.has_been(waits, now, STEP_WAITS) {
            return false;
        }
        // Not before as much time has passed again.
        self.step_waits = HeldSince::default();
        let limit = Duration::from_secs(5);
        let steps = program::output("scontrol", &["--oneliner", "show", "steps", job], &[], limit);
        steps.is_ok_and(|text| is_only_step(&String::from_utf8_lossy(&text), job, step))
    }
}

/// Whether an srun was told to share the job's resources.
fn overlaps(host: &Host, pid: u32) -> bool {
    let mut buffer = Vec::new();
    let mut has = |file: &str, words: &[&[u8]]| {
        let bytes = host.proc.read(ProcPath::new(pid, file).as_c_str(), &mut buffer);
        // One that cannot be read may have it.
        bytes.map_or(true, |bytes| {
            bytes.split(|byte| *byte == 0).any(|one| words.iter().any(|word| one.starts_with(word)))
        })
    };
    has("cmdline", &[b"--overlap"]) || has("environ", &[b"SLURM_OVERLAP="])
}

/// Whether a job has no step but this one, by `scontrol show steps`; those of the script itself
/// and of containers take nothing. A step that waits is listed as pending, under a word for an id.
fn is_only_step(text: &str, job: &str, own: &str) -> bool {
    let is_running = |line: &&str| !line.split_whitespace().any(|word| word == "State=PENDING");
    let ids = text.lines().filter(is_running).filter_map(|line| {
        let id = line.split_whitespace().find_map(|word| word.strip_prefix("StepId="))?;
        id.strip_prefix(job)?.strip_prefix('.')
    });
    let takes = |id: &&str| !["batch", "extern", "interactive"].contains(id);
    let mut all = ids.filter(takes).peekable();
    all.peek().is_some() && all.all(|id| id == own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_step_blocks_others() {
        let line = |id: &str| format!("StepId={id} UserId=0 State=RUNNING Name=weigh\n");
        let only = |ids: &[&str]| {
            is_only_step(&ids.iter().map(|id| line(id)).collect::<String>(), "7", "0")
        };
        assert!(only(&["7.batch", "7.0"]) && only(&["7.0", "7.extern"]));
        assert!(!only(&["7.batch", "7.0", "7.1"]), "another step runs");
        assert!(!only(&["7.batch"]) && !only(&[]), "ours is not there");
        let waits = "StepId=7.TDB UserId=0 State=PENDING Name=(null)\n";
        assert!(is_only_step(&format!("{}{waits}", line("7.0")), "7", "0"));
    }

    #[test]
    fn condition_must_hold_all_the_time() {
        let second = Duration::from_secs;
        let mut since = HeldSince::default();
        assert!(!since.has_been(true, second(1), second(3)));
        assert!(!since.has_been(false, second(3), second(3)));
        assert!(!since.has_been(true, second(4), second(3)));
        assert!(since.has_been(true, second(7), second(3)));
    }
}
