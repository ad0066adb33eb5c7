//! OAR: `OAR_*` variables, the node file, and `oarstat -J`.
//!
//! The node file has each host once for each of its cores. `OAR_RESOURCE_FILE` is the node file in
//! the script and another file under oarsh, so it is not used.

use std::path::Path;

use serde_json::Value;

use super::{JobEnvironment, JobHere, asked, bare_node, duration, hosts_of_file, not_understood};
use crate::host::program::NoAnswer;
use crate::model::batch_job::Scheduler;

const OARSTAT: &str = "oarstat";

/// The OAR job of an environment.
pub(super) fn of(environment: &dyn JobEnvironment) -> Option<JobHere> {
    let text = |name: &str| environment.variable(name);
    let mut here = JobHere::new(Scheduler::Oar, "OAR_JOB_ID", text("OAR_JOB_ID")?);
    let file = ["OAR_NODEFILE", "OAR_NODE_FILE", "OAR_FILE_NODES"]
        .into_iter()
        .filter_map(text)
        .find_map(|path| environment.file(Path::new(&path)));
    for (name, cores) in hosts_of_file(&file.unwrap_or_default()) {
        let mut node = bare_node(name);
        node.requested.cores = Some(cores);
        here.nodes.push(node);
    }
    let job = &mut here.job;
    job.array_index = text("OAR_ARRAY_INDEX");
    // A job that is not in an array is an array of its own.
    job.array_id = text("OAR_ARRAY_ID").filter(|array| Some(array) != job.id.as_ref());
    if job.array_id.is_none() {
        job.array_index = job.array_index.take().filter(|index| index != "1");
    }
    job.user = text("OAR_JOB_USER").or_else(|| text("OAR_USER"));
    job.name = text("OAR_JOB_NAME");
    job.partition = text("OAR_QUEUE");
    job.time_limit_seconds = text("OAR_JOB_WALLTIME_SECONDS").and_then(|time| time.parse().ok());
    here.settle();
    Some(here)
}

/// Adds what `oarstat -J` says.
pub(super) fn ask(here: &mut JobHere) -> Result<(), NoAnswer> {
    let id = here.job.id.clone().unwrap_or_default();
    let text = asked(OARSTAT, &["-J", "-f", "-j", &id])?;
    add(here, &text).ok_or_else(|| not_understood(OARSTAT, "job"))
}

/// Adds the answer of `oarstat -J -f -j ID`; `None` when it is none.
pub(super) fn add(here: &mut JobHere, text: &str) -> Option<()> {
    let document: Value = serde_json::from_str(text).ok()?;
    let jobs = document.as_object()?;
    let told = here.job.id.as_ref().and_then(|id| jobs.get(id)).or_else(|| jobs.values().next())?;
    let text = |key: &str| told.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let seconds = |key: &str| match told.get(key)? {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => duration(text),
        _ => None,
    };
    told.as_object()?;
    let job = &mut here.job;
    job.name = job.name.take().or_else(|| text("name").map(str::to_owned));
    job.user = job.user.take().or_else(|| text("owner").map(str::to_owned));
    job.partition = job.partition.take().or_else(|| text("queue").map(str::to_owned));
    job.time_limit_seconds = job.time_limit_seconds.or_else(|| seconds("walltime"));
    let start = seconds("startTime").filter(|start| *start > 0);
    here.ends = start.zip(job.time_limit_seconds).map(|(start, limit)| start + limit).or(here.ends);
    if here.nodes.is_empty() {
        let hosts = told.get("assigned_network_address").and_then(Value::as_array);
        let names = hosts.into_iter().flatten().filter_map(Value::as_str);
        here.nodes = names.map(|name| bare_node(name.to_owned())).collect();
    }
    Some(())
}
