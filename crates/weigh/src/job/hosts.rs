//! Hosts without a batch system: a job is what has the variable `WEIGH_JOB_ID`.
//!
//! `weigh job run --hosts` sets it for its command; a script that starts several commands exports
//! it itself. ssh passes no variable on, and mpirun only few: on other hosts the daemon by which an
//! MPI launcher starts its ranks stands for it (`collect::members`).

use jiff::Timestamp;

use super::{JobEnvironment, JobHere, bare_node, rung};
use crate::host::clock;
use crate::model::batch_job::Scheduler;

/// The variable.
pub const VARIABLE: &str = "WEIGH_JOB_ID";

/// The job of an environment.
pub(super) fn of(environment: &dyn JobEnvironment) -> Option<JobHere> {
    Some(JobHere::new(Scheduler::Hosts, VARIABLE, environment.variable(VARIABLE)?))
}

/// A new job, called after this moment.
pub fn new() -> JobHere {
    let now = Timestamp::from_second(clock::wall().as_secs() as i64).unwrap_or_default();
    let id = format!("{}-{}", now.strftime("%Y%m%d-%H%M%S"), std::process::id());
    JobHere::new(Scheduler::Hosts, VARIABLE, id)
}

impl JobHere {
    /// Has these hosts instead of the nodes that the batch system knows.
    pub fn set_hosts(&mut self, hosts: &[String]) {
        let bare = |host: &String| {
            let name = rung::name_of(host);
            let known = self.nodes.iter().find(|node| node.name == name).cloned();
            known.unwrap_or_else(|| bare_node(name.to_owned()))
        };
        self.nodes = hosts.iter().map(bare).collect();
        self.job.node_count = None;
        self.settle();
    }
}
