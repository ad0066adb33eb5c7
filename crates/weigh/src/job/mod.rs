//! Which batch job this process is part of: from the environment, and from the commands of its
//! batch system.
//!
//! The environment is read by every `weigh run`; it costs nothing. The commands ask a server, so
//! only one recorder of a job asks, once, with a time limit (see ARCHITECTURE.md, "Batch jobs").

pub mod flux;
pub mod hosts;
pub mod launch;
pub mod node_list;
pub mod oar;
pub mod pbs;
pub mod rung;
pub mod slurm;

use std::path::Path;
use std::time::Duration;

use crate::host::environment;
use crate::host::program::{self, NoAnswer};
use crate::model::batch_job::{BatchJob, JobNode, Requested, Scheduler};

/// How long a command of a batch system may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A job, its nodes and its end, as far as they are known here.
#[derive(Debug, Clone, PartialEq)]
pub struct JobHere {
    /// The job.
    pub job: BatchJob,
    /// All its nodes, in the scheduler's order; empty when they are not known.
    pub nodes: Vec<JobNode>,
    /// When it reaches its time limit, in seconds since 1970.
    pub ends: Option<u64>,
    /// The step that this process is part of, where the scheduler has steps.
    pub step: Option<String>,
    /// The variable that every process of the job has.
    pub marker: JobMarker,
}

/// A variable in the environment of every process of a job, with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobMarker {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: String,
}

/// Where variables are looked up, and files that they name are read.
pub trait JobEnvironment {
    /// A variable that is set and not empty.
    fn variable(&self, name: &str) -> Option<String>;
    /// The text of a small file.
    fn file(&self, path: &Path) -> Option<String>;
}

/// The environment of this process.
#[derive(Debug, Clone, Copy)]
pub struct OwnEnvironment;

impl JobEnvironment for OwnEnvironment {
    fn variable(&self, name: &str) -> Option<String> {
        environment::variable(name)?.into_string().ok().filter(|value| !value.is_empty())
    }

    fn file(&self, path: &Path) -> Option<String> {
        environment::small_file(path)
    }
}

/// The job this process is part of, by its environment alone.
pub fn here() -> Option<JobHere> {
    of(&OwnEnvironment)
}

/// The job of an environment.
pub fn of(environment: &dyn JobEnvironment) -> Option<JobHere> {
    // A job inside a job (Flux in SLURM) has the variables of both: the inner one is meant.
    flux::of(environment)
        .or_else(|| slurm::of(environment))
        .or_else(|| pbs::of(environment))
        .or_else(|| oar::of(environment))
        .or_else(|| hosts::of(environment))
}

impl JobHere {
    fn new(scheduler: Scheduler, name: &'static str, value: String) -> JobHere {
        JobHere {
            job: BatchJob { id: Some(value.clone()), ..BatchJob::of(scheduler) },
            nodes: Vec::new(),
            ends: None,
            step: None,
            marker: JobMarker { name, value },
        }
    }

    /// The name of its directory: the same on every node, and another one when the scheduler has
    /// started the job again.
    pub fn directory_name(&self) -> String {
        let id = self.job.id.as_deref().unwrap_or("unknown");
        let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let id: String = id.chars().map(safe).take(100).collect();
        match self.job.restarts.filter(|count| *count > 0) {
            Some(count) => format!("job-{id}-restart-{count}"),
            None => format!("job-{id}"),
        }
    }

    /// The job's own cgroup, picked from the path of a cgroup that a process of it is in.
    ///
    /// By the names that the batch system gives to levels, never by the id of the job: SLURM may
    /// have another id in the path.
    pub fn cgroup(&self, path: &str) -> Option<String> {
        let above = |begin: &str| path.find(begin).map(|end| path[..end].to_owned());
        match self.job.scheduler {
            // /slurm/uid_0/job_2/step_0/task_0, /system.slice/slurmstepd.scope/job_2/step_0/user,
            // and with several daemons on a machine /slurm_n1/uid_0/…
            Scheduler::Slurm => above("/step_").filter(|path| !path.is_empty()),
            // /pbs_jobs.service/jobid/0.vm
            Scheduler::Pbs => {
                let (before, after) = path.split_once("/jobid/")?;
                let id = after.split('/').next().filter(|id| !id.is_empty())?;
                Some(format!("{before}/jobid/{id}"))
            }
            // /oar/ada_1, below anything
            Scheduler::Oar => {
                let (before, after) = path.split_once("/oar/")?;
                let own = after.split('/').next().filter(|own| !own.is_empty())?;
                Some(format!("{before}/oar/{own}"))
            }
            Scheduler::Flux | Scheduler::Hosts | Scheduler::Other => None,
        }
    }

    /// Adds what the batch system answers; returns why it does not, where it does not.
    pub fn ask(&mut self) -> Option<NoAnswer> {
        let answered = match self.job.scheduler {
            Scheduler::Slurm => slurm::ask(self),
            Scheduler::Pbs => pbs::ask(self),
            Scheduler::Oar => oar::ask(self),
            Scheduler::Flux => flux::ask(self),
            Scheduler::Hosts | Scheduler::Other => Ok(()),
        };
        self.settle();
        answered.err()
    }

    /// The name of this node as the batch system has it, which may be longer or shorter than the
    /// machine's own.
    pub fn node_called(&self, host: &str) -> Option<&str> {
        let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
        let is_host = |name: &&str| *name == host || short(name) == short(host);
        let names = self.nodes.iter().map(|node| node.name.as_str());
        self.job.node.as_deref().or_else(|| names.clone().find(|name| *name == host)).or_else(
            || {
                let mut found = names.filter(is_host);
                // Two nodes of one short name are not told apart by it.
                found.next().filter(|_| found.next().is_none())
            },
        )
    }

    /// Fills in what follows from the rest.
    fn settle(&mut self) {
        if self.job.node_count.is_none() {
            self.job.node_count = u32::try_from(self.nodes.len()).ok().filter(|count| *count > 0);
        }
        let here = self.nodes.iter().find(|node| Some(&node.name) == self.job.node.as_ref());
        if let Some(node) = here {
            self.job.requested = node.requested.or(self.job.requested);
        }
        // Some variables are about the node they are read on: the only one, or this one.
        if let [node] = &mut self.nodes[..] {
            node.requested = node.requested.or(self.job.requested);
        }
    }
}

/// What a command of the batch system prints.
fn asked(program: &str, arguments: &[&str]) -> Result<String, NoAnswer> {
    // SLURM's times are then seconds since 1970, in any time zone.
    let variables = [("SLURM_TIME_FORMAT", "%s"), ("LC_ALL", "C")];
    let bytes = program::output(program, arguments, &variables, PATIENCE)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// An answer that is not what it should be.
fn not_understood(program: &str, what: &str) -> NoAnswer {
    NoAnswer::Failed { program: program.to_owned(), message: format!("its answer has no {what}") }
}

/// Hosts of a file with one on each line, repeated for each core or process that is requested.
fn hosts_of_file(text: &str) -> Vec<(String, u32)> {
    let mut hosts: Vec<(String, u32)> = Vec::new();
    for name in text.lines().map(str::trim).filter(|name| !name.is_empty()) {
        match hosts.iter_mut().find(|(known, _)| known == name) {
            Some((_, count)) => *count += 1,
            None => hosts.push((name.to_owned(), 1)),
        }
    }
    hosts
}

/// A node of which nothing but its name is known.
fn bare_node(name: String) -> JobNode {
    JobNode { name, requested: Requested::default() }
}

/// A size as batch systems write it: `2gb`, `1024kb`, `4000M`, `1.50G`, `512`.
///
/// Their units are powers of 1024; a number without one is in `plain` bytes.
fn size(text: &str, plain: u64) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = match unit.trim_end_matches(['b', 'B']).to_ascii_lowercase().as_str() {
        "" if unit.is_empty() => plain,
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        _ => return None,
    };
    let value = number.parse::<f64>().ok()? * factor as f64;
    (value.is_finite() && value < u64::MAX as f64).then_some(value as u64)
}

/// A duration as batch systems write it: `[days-]hours:minutes:seconds`, in seconds.
fn duration(text: &str) -> Option<u64> {
    let text = text.trim();
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (days.parse::<u64>().ok()?, rest),
        None => (0, text),
    };
    let mut seconds = 0u64;
    for part in rest.split(':') {
        seconds = seconds.checked_mul(60)?.checked_add(part.parse().ok()?)?;
    }
    days.checked_mul(86_400)?.checked_add(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_durations_are_read_as_batch_systems_write_them() {
        assert_eq!(size("2gb", 1), Some(2 << 30));
        assert_eq!(size("1048576kb", 1), Some(1 << 30));
        assert_eq!(size("4000M", 1), Some(4000 << 20));
        assert_eq!(size("1.5G", 1), Some(3 << 29));
        assert_eq!((size("512", 1 << 20), size("512b", 1 << 20)), (Some(512 << 20), Some(512)));
        assert_eq!((size("x", 1), size("", 1), size("9e9T", 1)), (None, None, None));
        assert_eq!(duration("00:05:00"), Some(300));
        assert_eq!((duration("1-01:00:00"), duration("90")), (Some(90_000), Some(90)));
        assert_eq!((duration("UNLIMITED"), duration("")), (None, None));
    }

    #[test]
    fn cgroup_of_the_job_is_above_its_steps_whatever_its_id() {
        let of = |scheduler, path: &str| JobHere::new(scheduler, "X", "2".to_owned()).cgroup(path);
        for (path, expected) in [
            ("/slurm/uid_0/job_2/step_0/task_0", Some("/slurm/uid_0/job_2")),
            ("/slurm_n1/uid_0/job_2/step_batch", Some("/slurm_n1/uid_0/job_2")),
            (
                "/system.slice/slurmstepd.scope/job_991/step_0/user/task_0",
                Some("/system.slice/slurmstepd.scope/job_991"),
            ),
            ("/", None),
            ("/step_0", None),
            ("/user.slice", None),
        ] {
            assert_eq!(of(Scheduler::Slurm, path).as_deref(), expected, "{path}");
        }
        let pbs = of(Scheduler::Pbs, "/pbs_jobs.service/jobid/0.vm/task");
        assert_eq!(pbs.as_deref(), Some("/pbs_jobs.service/jobid/0.vm"));
        let oar = of(Scheduler::Oar, "/oardocker/n1/oar/ada_1");
        assert_eq!(oar.as_deref(), Some("/oardocker/n1/oar/ada_1"));
        assert_eq!(of(Scheduler::Flux, "/slurm/job_2/step_0"), None);
    }

    #[test]
    fn node_is_called_as_the_batch_system_calls_it() {
        let mut here = JobHere::new(Scheduler::Pbs, "PBS_JOBID", "7".to_owned());
        here.nodes = ["n1.hpc", "n2"].map(|name| bare_node(name.to_owned())).to_vec();
        assert_eq!(here.node_called("n1"), Some("n1.hpc"));
        assert_eq!(here.node_called("n2.cluster"), Some("n2"));
        assert_eq!(here.node_called("n3"), None);
        here.nodes.push(bare_node("n2.other".to_owned()));
        assert_eq!((here.node_called("n2.x"), here.node_called("n2")), (None, Some("n2")));
    }

    #[test]
    fn directory_is_that_of_the_job_and_of_its_restart() {
        let mut here = JobHere::new(Scheduler::Pbs, "PBS_JOBID", "7[3].host/x".to_owned());
        assert_eq!(here.directory_name(), "job-7_3_.host_x");
        here.job.restarts = Some(2);
        assert_eq!(here.directory_name(), "job-7_3_.host_x-restart-2");
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod fixtures;
