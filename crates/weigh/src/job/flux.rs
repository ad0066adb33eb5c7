//! Flux: `FLUX_*` variables, and `flux getattr`.
//!
//! A batch job is an instance of Flux of its own, whose script has `FLUX_URI` and no
//! `FLUX_JOB_ID`; the tasks of `flux run` have both.

use super::node_list::expand;
use super::{JobEnvironment, JobHere, asked, bare_node};
use crate::host::program::NoAnswer;
use crate::model::batch_job::Scheduler;

/// The Flux job of an environment.
pub(super) fn of(environment: &dyn JobEnvironment) -> Option<JobHere> {
    let text = |name: &str| environment.variable(name);
    let number = |name: &str| text(name)?.trim().parse::<u32>().ok();
    let id = text("FLUX_JOB_ID");
    let mut here = match (&id, text("FLUX_URI")) {
        (Some(id), _) => JobHere::new(Scheduler::Flux, "FLUX_JOB_ID", id.clone()),
        (None, Some(uri)) => {
            let mut here = JobHere::new(Scheduler::Flux, "FLUX_URI", uri);
            here.job.id = text("FLUX_ENCLOSING_ID");
            here
        }
        (None, None) => return None,
    };
    here.job.node_count = number("FLUX_JOB_NNODES");
    here.settle();
    Some(here)
}

/// Adds what `flux getattr` says of the instance.
pub(super) fn ask(here: &mut JobHere) -> Result<(), NoAnswer> {
    if here.job.id.is_none() {
        let id = asked("flux", &["getattr", "jobid"])?;
        here.job.id = Some(id.trim().to_owned()).filter(|id| !id.is_empty());
    }
    if here.nodes.is_empty() {
        let list = asked("flux", &["getattr", "hostlist"])?;
        let names = expand(&list).unwrap_or_default();
        here.nodes = names.into_iter().map(bare_node).collect();
    }
    Ok(())
}
