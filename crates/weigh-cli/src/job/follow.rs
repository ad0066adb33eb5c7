//! `weigh job follow`: the recorder of one node.

use std::path::{Path, PathBuf};
use std::time::Duration;

use weigh::job::JobHere;
use weigh::model::settings::Destination;
use weigh::program;
use weigh::record::job_directory::{self, JobState};
use weigh::record::{self, Manifest, StopReason, Target};
use weigh::run::{self, AttachOptions, AttachTarget, JobEnding, Outcome, StopFiles};

use super::{claim, directory, here};
use crate::args::{EndsWith, JobFollowArgs};
use crate::failure::Failure;
use crate::measurement::Measurement;
use crate::print;

/// What was recorded.
pub(crate) struct FollowedNode {
    /// The directory of the job.
    pub directory: PathBuf,
    /// This node.
    pub node: String,
}

/// Records the job's processes on this node.
pub(crate) fn follow(args: JobFollowArgs) -> Result<u8, Failure> {
    record(args).map(|_| 0)
}

/// The same; returns what was recorded.
pub(crate) fn record(mut args: JobFollowArgs) -> Result<FollowedNode, Failure> {
    // A summary of each node in the log of the job would be too much: `weigh job show` has all.
    let is_quiet = std::mem::replace(&mut args.measuring.quiet, true);
    let mut measurement = Measurement::prepare(&args.measuring, false)?;
    let here = here()?;
    let directory = directory(&here, args.measuring.output.as_deref());
    let here = claim(here, &directory)?;
    let node = args.node.clone().unwrap_or_else(|| node(&here, &directory));
    let own = job_directory::of_node(&directory, &node);
    if measurement.settings.destination != Destination::Nowhere {
        measurement.settings.destination = Destination::Directory(own);
    }
    let ending = JobEnding {
        files: StopFiles {
            job: Some(directory.clone()),
            finished: (args.ends_with == EndsWith::Job).then(|| ipc_file(&here)),
        },
        time_left: time_left(&here, &directory),
        stdin_is_launcher: args.ends_with == EndsWith::Stdin,
        by_job: args.ends_with == EndsWith::Job,
    };
    let step = here.step.is_some();
    let what = AttachTarget::Job(Box::new(here), ending);
    let begun = |manifest: &Manifest| {
        if !is_quiet && print::err_is_terminal() {
            let what = manifest.target.as_ref().map(Target::words).unwrap_or_default();
            print::err(&format!("weigh: recording {what} on {node}\n"));
        }
    };
    let options = AttachOptions { what, time: None };
    let observer = measurement.observer();
    let outcome = run::attach(&options, &measurement.settings, begun, observer);
    let Outcome { end, summary, recording, warnings } = outcome.map_err(|error| {
        measurement.discard();
        not_begun(error, &node)
    })?;
    measurement.finish(summary, recording.as_deref(), warnings);
    // The others wait for this word, or hold the resources of the job, too.
    if matches!(end.why, Some(StopReason::Ended | StopReason::Blocking))
        && let Err(error) = job_directory::set_state(&directory, JobState::Stop)
    {
        print::warning(&format!("the other recorders are not told to stop: {error}"));
    }
    match end.why {
        Some(StopReason::Blocking) if step => Err(blocking()),
        _ => Ok(FollowedNode { directory, node }),
    }
}

/// The name of this node, as the batch system has it or, where the environment does not say, as
/// the first recorder has learned it.
fn node(here: &JobHere, directory: &Path) -> String {
    let own = program::host_name();
    if let Some(known) = here.node_called(&own) {
        return known.to_owned();
    }
    let recorded = job_directory::read(directory).ok().flatten();
    let nodes = recorded.map(|file| file.nodes).unwrap_or_default();
    let known = JobHere { nodes, ..here.clone() };
    known.node_called(&own).map_or_else(|| own.clone(), str::to_owned)
}

/// A recorder that did not begin.
fn not_begun(error: run::Error, node: &str) -> Failure {
    match error {
        run::Error::Recording(record::Error::Occupied { path }) => {
            let cause = format!("{} has a recording of it", path.display());
            let hint = "start one recorder on each node: srun --ntasks-per-node 1 …";
            Failure::new(format!("{node} is recorded already"), cause, hint)
        }
        error => error.into(),
    }
}

/// The file by which scripts for perfmon say that the job is over.
fn ipc_file(here: &JobHere) -> PathBuf {
    PathBuf::from(format!(".ipc-{}", here.job.id.as_deref().unwrap_or_default()))
}

/// The time until the job reaches its limit: from its environment, or as the first recorder has
/// learned it.
fn time_left(here: &JobHere, directory: &Path) -> Option<Duration> {
    let recorded = || job_directory::read(directory).ok().flatten()?.ends_seconds();
    let ends = here.ends.or_else(recorded)?;
    Some(Duration::from_secs(ends.saturating_sub(program::now().as_secs())))
}

fn blocking() -> Failure {
    let cause = "srun started the recorders without --overlap, so their step holds the CPUs of the \
                 job, and the next srun waited for them";
    let hint = "srun --overlap -n $SLURM_JOB_NUM_NODES --ntasks-per-node 1 weigh job follow &";
    Failure::new("the recorders kept the job from running, and have stopped", cause, hint)
}
