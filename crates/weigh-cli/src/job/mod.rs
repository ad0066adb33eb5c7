//! `weigh job`: a batch job on all its nodes.

mod follow;
mod launch;
mod report;
mod show;

pub(crate) use follow::{FollowedNode, record};
pub(crate) use launch::wait_for_ends;

use std::path::{Path, PathBuf};

use weigh::job::JobHere;
use weigh::model::batch_job::BatchJob;
use weigh::program::{self, Inherited};
use weigh::record::job_directory::{self, JobFile};
use weigh::record::{self, files};

use crate::args::{JobArgs, JobVerb};
use crate::failure::{Failure, USAGE};

/// Runs one of the verbs.
pub(crate) fn job(args: JobArgs, inherited: Inherited) -> Result<u8, Failure> {
    match args.verb {
        JobVerb::Run(args) => launch::run(args, inherited),
        JobVerb::Start(args) => launch::start(args),
        JobVerb::Stop(args) => launch::stop(args),
        JobVerb::Follow(args) => follow::follow(args),
        JobVerb::Show(args) => show::show(args),
        JobVerb::Report(args) => report::report(args),
    }
}

/// The job that this process is part of.
pub(crate) fn here() -> Result<JobHere, Failure> {
    weigh::job::here().ok_or_else(|| {
        let cause = "none of SLURM_JOB_ID, PBS_JOBID, OAR_JOB_ID, FLUX_JOB_ID, FLUX_URI is set";
        let hint = "weigh job run --hosts n1,n2 -- CMD, over ssh; on one machine: weigh run -- CMD";
        Failure::new("this is not part of a batch job", cause, hint).code(USAGE)
    })
}

/// The directory of a job, by option or by default.
fn directory(here: &JobHere, named: Option<&Path>) -> PathBuf {
    let default = || Path::new(files::DEFAULT_DIRECTORY).join(here.directory_name());
    named.map_or_else(default, Path::to_owned)
}

/// Creates the directory of the job; whoever is first asks the batch system, and writes what it
/// answers. Returns what is known of the job then.
fn claim(mut here: JobHere, directory: &Path) -> Result<JobHere, Failure> {
    let claim = job_directory::claim(directory).map_err(|error| not_writable(&error))?;
    let Some(claim) = claim else { return Ok(here) };
    let not_asked = here.ask().map(|why| why.to_string());
    here.job.user = here.job.user.take().or_else(program::user);
    // It is about all nodes.
    let job = BatchJob { node: None, ..weigh::run::recorded_job(here.job.clone()) };
    let file =
        JobFile { not_asked, ..JobFile::new(job, here.nodes.clone(), here.ends, program::now()) };
    claim.write(&file).map_err(|error| not_writable(&error))?;
    Ok(here)
}

fn not_writable(error: &record::Error) -> Failure {
    let hint = "name a directory that all nodes share: weigh job … -o DIR";
    Failure::new("cannot write the directory of the job", error, hint)
}
