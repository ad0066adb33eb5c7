//! SLURM: `SLURM_*` variables, and `scontrol show job`.
//!
//! The variables of a step are those of the job, except for some that srun sets again
//! (`SLURM_NNODES`, `SLURM_MEM_PER_NODE`); so the ones with `JOB` in their name are preferred.
//! Memory is in MiB, and 0 is all that the node has.

use super::node_list::{expand, repeated};
use super::{JobEnvironment, JobHere, asked, bare_node, duration, not_understood, size};
use crate::host::program::NoAnswer;
use crate::model::batch_job::{JobNode, Requested, Scheduler};

const SCONTROL: &str = "scontrol";

/// The SLURM job of an environment.
pub(super) fn of(environment: &dyn JobEnvironment) -> Option<JobHere> {
    let text = |name: &str| environment.variable(name);
    let number = |name: &str| text(name)?.trim().parse::<u32>().ok();
    let mut here = JobHere::new(Scheduler::Slurm, "SLURM_JOB_ID", text("SLURM_JOB_ID")?);
    here.step = text("SLURM_STEP_ID");
    here.ends = text("SLURM_JOB_END_TIME").and_then(|end| end.parse().ok());
    let list = text("SLURM_JOB_NODELIST").or_else(|| text("SLURM_NODELIST"));
    let names = list.and_then(|list| expand(&list).ok()).unwrap_or_default();
    here.nodes = names.into_iter().map(bare_node).collect();
    let cores = text("SLURM_JOB_CPUS_PER_NODE").and_then(|list| repeated(&list));
    if let Some(cores) = cores.filter(|cores| cores.len() == here.nodes.len()) {
        for (node, cores) in here.nodes.iter_mut().zip(cores) {
            node.requested.cores = Some(cores);
        }
    }
    let mib = |name: &str| number(name).filter(|mib| *mib > 0).map(|mib| u64::from(mib) << 20);
    let (on_node, per_cpu) = (mib("SLURM_MEM_PER_NODE"), mib("SLURM_MEM_PER_CPU"));
    let gpus = text("SLURM_GPUS_PER_NODE").and_then(|gpus| gpus.rsplit(':').next()?.parse().ok());
    for node in &mut here.nodes {
        let by_cpu = per_cpu.zip(node.requested.cores).map(|(mib, cores)| mib * u64::from(cores));
        node.requested.memory_bytes = on_node.or(by_cpu);
        node.requested.gpus = gpus;
    }
    let job = &mut here.job;
    job.array_id = text("SLURM_ARRAY_JOB_ID");
    job.array_index = text("SLURM_ARRAY_TASK_ID");
    job.restarts = number("SLURM_RESTART_COUNT");
    job.user = text("SLURM_JOB_USER");
    job.name = text("SLURM_JOB_NAME");
    job.partition = text("SLURM_JOB_PARTITION");
    job.node_count = number("SLURM_JOB_NUM_NODES").or_else(|| number("SLURM_NNODES"));
    job.node = text("SLURMD_NODENAME");
    job.requested.cores = number("SLURM_CPUS_ON_NODE").filter(|_| here.step.is_none());
    job.requested.gpus = number("SLURM_GPUS_ON_NODE").filter(|_| here.step.is_none());
    let start = text("SLURM_JOB_START_TIME").and_then(|start| start.parse::<u64>().ok());
    job.time_limit_seconds = here.ends.zip(start).and_then(|(end, start)| end.checked_sub(start));
    here.settle();
    Some(here)
}

/// Adds what `scontrol show job` says.
pub(super) fn ask(here: &mut JobHere) -> Result<(), NoAnswer> {
    let id = here.job.id.clone().unwrap_or_default();
    let text = asked(SCONTROL, &["--details", "show", "job", &id])?;
    add(here, &text).ok_or_else(|| not_understood(SCONTROL, "job"))
}

/// Adds the answer of `scontrol --details show job`; `None` when it is none.
pub(super) fn add(here: &mut JobHere, text: &str) -> Option<()> {
    let value = |key: &str| {
        let word = text.split_whitespace().find_map(|word| word.strip_prefix(key))?;
        Some(word).filter(|word| !word.is_empty() && *word != "(null)" && *word != "N/A")
    };
    value("JobId=")?;
    let job = &mut here.job;
    if job.name.is_none() {
        // A name may contain spaces; it ends its line.
        let name = text.lines().find_map(|line| line.split_once("JobName=").map(|(_, name)| name));
        job.name = name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    }
    if job.user.is_none() {
        job.user = value("UserId=").map(|user| user.split('(').next().unwrap_or(user).to_owned());
    }
    job.partition = job.partition.take().or_else(|| value("Partition=").map(str::to_owned));
    job.node_count = job.node_count.or_else(|| value("NumNodes=")?.split('-').next()?.parse().ok());
    job.time_limit_seconds = value("TimeLimit=").and_then(duration).or(job.time_limit_seconds);
    here.ends = value("EndTime=").and_then(|end| end.parse().ok()).or(here.ends);
    if here.nodes.is_empty() {
        let names = value("NodeList=").and_then(|list| expand(list).ok()).unwrap_or_default();
        here.nodes = names.into_iter().map(bare_node).collect();
    }
    for line in text.lines().filter(|line| line.trim_start().starts_with("Nodes=")) {
        add_allocation(&mut here.nodes, line);
    }
    Some(())
}

/// A line of the details: `Nodes=n[1-2] CPU_IDs=0-1 Mem=2000 GRES=gpu:a100:2(IDX:0-1)`.
fn add_allocation(nodes: &mut [JobNode], line: &str) {
    let value = |key: &str| line.split_whitespace().find_map(|word| word.strip_prefix(key));
    let names = value("Nodes=").and_then(|list| expand(list).ok()).unwrap_or_default();
    let cores = value("CPU_IDs=").and_then(count_of_list);
    // In MiB; 0 where memory is not allocated.
    let memory = value("Mem=").and_then(|mem| size(mem, 1 << 20)).filter(|bytes| *bytes > 0);
    let gpus = value("GRES=").and_then(count_of_gpus);
    for node in nodes.iter_mut().filter(|node| names.contains(&node.name)) {
        let allocated = Requested { cores, memory_bytes: memory, gpus };
        node.requested = allocated.or(node.requested);
    }
}

/// How many numbers a list like `0-1,4` has.
fn count_of_list(list: &str) -> Option<u32> {
    let mut count = 0u32;
    for item in list.split(',') {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        count = count.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(count)
}

/// The GPUs of `gpu:a100:2(IDX:0-1),craynetwork:1`; `None` when it names none.
fn count_of_gpus(gres: &str) -> Option<u32> {
    // Commas are also inside the parentheses.
    let mut sum = None;
    let mut rest = gres;
    while let Some(start) = rest.find("gpu:") {
        rest = &rest[start + "gpu:".len()..];
        let end = rest.find(['(', ',']).unwrap_or(rest.len());
        let count: u32 = rest[..end].rsplit(':').next()?.parse().ok()?;
        sum = Some(sum.unwrap_or(0u32).saturating_add(count));
        rest = &rest[end..];
    }
    sum
}
