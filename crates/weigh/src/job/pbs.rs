//! OpenPBS, PBS Professional and TORQUE: `PBS_*` variables, the node file, and `qstat -f -F json`.
//!
//! `PBS_NODEFILE` has each host once for each of its processes. It may be unset in tasks that
//! pbsdsh starts, and it is on the first node's disk; `PBS_NODEFILE_LOCAL` is a copy that users
//! make for perfmon.

use std::path::Path;

use serde_json::Value;

use super::{
    JobEnvironment, JobHere, asked, bare_node, duration, hosts_of_file, not_understood, size,
};
use crate::host::clock;
use crate::host::program::NoAnswer;
use crate::model::batch_job::{JobNode, Requested, Scheduler};

const QSTAT: &str = "qstat";

/// The PBS job of an environment.
pub(super) fn of(environment: &dyn JobEnvironment) -> Option<JobHere> {
    let text = |name: &str| environment.variable(name);
    let number = |name: &str| text(name)?.trim().parse::<u32>().ok();
    let mut here = JobHere::new(Scheduler::Pbs, "PBS_JOBID", text("PBS_JOBID")?);
    let file = ["PBS_NODEFILE_LOCAL", "PBS_NODEFILE"]
        .into_iter()
        .filter_map(text)
        .find_map(|path| environment.file(Path::new(&path)));
    let hosts = hosts_of_file(&file.unwrap_or_default());
    here.nodes = hosts.into_iter().map(|(name, _)| bare_node(name)).collect();
    let job = &mut here.job;
    // TORQUE calls the index PBS_ARRAYID.
    job.array_index = text("PBS_ARRAY_INDEX").or_else(|| text("PBS_ARRAYID"));
    job.array_id = text("PBS_ARRAY_ID").or_else(|| {
        let array = job.id.as_deref()?.split_once('[')?.0;
        job.array_index.as_ref().map(|_| array.to_owned())
    });
    job.user = text("PBS_O_LOGNAME");
    job.name = text("PBS_JOBNAME");
    job.partition = text("PBS_QUEUE");
    job.node_count = number("PBS_NUM_NODES");
    job.requested.cores = number("NCPUS").or_else(|| number("PBS_NUM_PPN"));
    job.time_limit_seconds = text("PBS_WALLTIME").and_then(|time| duration(&time));
    here.settle();
    Some(here)
}

/// Adds what `qstat -f` says.
pub(super) fn ask(here: &mut JobHere) -> Result<(), NoAnswer> {
    let id = here.job.id.clone().unwrap_or_default();
    let text = asked(QSTAT, &["-f", "-F", "json", &id])?;
    add(here, &text, clock::wall().as_secs()).ok_or_else(|| not_understood(QSTAT, "job"))
}

/// Adds the answer of `qstat -f -F json`, given at this time; `None` when it is none.
pub(super) fn add(here: &mut JobHere, text: &str, now: u64) -> Option<()> {
    let document: Value = serde_json::from_str(text).ok()?;
    let jobs = document.get("Jobs")?.as_object()?;
    let told = here.job.id.as_ref().and_then(|id| jobs.get(id)).or_else(|| jobs.values().next())?;
    let text = |key: &str| told.get(key).and_then(Value::as_str);
    let job = &mut here.job;
    job.name = job.name.take().or_else(|| text("Job_Name").map(str::to_owned));
    job.partition = job.partition.take().or_else(|| text("queue").map(str::to_owned));
    if job.user.is_none() {
        job.user =
            text("Job_Owner").map(|owner| owner.split('@').next().unwrap_or(owner).to_owned());
    }
    let of_list = |list: &str, key: &str| told.get(list)?.get(key).and_then(Value::as_str);
    let limit = of_list("Resource_List", "walltime").and_then(duration);
    job.time_limit_seconds = limit.or(job.time_limit_seconds);
    let used = of_list("resources_used", "walltime").and_then(duration);
    // Its start is a date in the server's time zone; what is left of its time is not.
    here.ends = limit.map(|limit| now + limit.saturating_sub(used.unwrap_or(0))).or(here.ends);
    let chunks = text("exec_vnode").map(chunks).unwrap_or_default();
    for (name, requested) in chunks {
        match here.nodes.iter_mut().find(|node| is_same_host(&node.name, &name)) {
            Some(node) => node.requested = sum(node.requested, requested),
            None => here.nodes.push(JobNode { name, requested }),
        }
    }
    Some(())
}

/// Whether two names are of one host, with or without its domain.
fn is_same_host(one: &str, other: &str) -> bool {
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    one == other || short(one) == short(other)
}

/// Several chunks of a job may be on one node.
fn sum(one: Requested, other: Requested) -> Requested {
    fn add<T: std::ops::Add<Output = T>>(one: Option<T>, other: Option<T>) -> Option<T> {
        match (one, other) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        }
    }
    Requested {
        cores: add(one.cores, other.cores),
        memory_bytes: add(one.memory_bytes, other.memory_bytes),
        gpus: add(one.gpus, other.gpus),
    }
}

/// The chunks of `(n1:ncpus=2:mem=1048576kb)+(n2[0]:ncpus=2:ngpus=1+n2[1]:mem=2gb)`.
fn chunks(list: &str) -> Vec<(String, Requested)> {
    let mut found = Vec::new();
    for chunk in list.split('+') {
        let mut words = chunk.trim_matches(['(', ')']).split(':');
        // A vnode of a host has an index.
        let name = words.next().and_then(|name| name.split('[').next()).unwrap_or_default();
        if name.is_empty() {
            continue;
        }
        let mut requested = Requested::default();
        for (key, value) in words.filter_map(|word| word.split_once('=')) {
            match key {
                "ncpus" => requested.cores = value.parse().ok(),
                "ngpus" => requested.gpus = value.parse().ok(),
                "mem" => requested.memory_bytes = size(value, 1),
                _ => {}
            }
        }
        found.push((name.to_owned(), requested));
    }
    found
}
