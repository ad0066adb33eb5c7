//! Options of `weigh job`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use weigh::job::node_list;

use super::{Format, Measuring, ReportFiles, Sizes};

/// Measure a batch job on all its nodes (SLURM, PBS, OAR, Flux)
///
/// One recorder on each node measures the processes of the job there, and writes a recording into
/// a folder of its own in the directory of the job: weigh-runs/job-ID, or -o DIR. All nodes must
/// share it. Nothing needs root, and nothing listens on the network.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples, in a job script:
  weigh job run -- srun ./solver           all nodes, while this command runs
  weigh job start                          the same around several commands,
  weigh job stop                           from here to here
  weigh job run --hosts n1,n2 -- mpirun -H n1,n2 ./solver     without a batch system
  srun --overlap -n $SLURM_JOB_NUM_NODES --ntasks-per-node 1 weigh job follow &
  weigh job show weigh-runs/job-4711       at any time, also while it runs
  weigh job report -f html,pdf             a page and job-report-4711.pdf
")]
pub(crate) struct JobArgs {
    #[command(subcommand)]
    pub verb: JobVerb,
}

// The help of a verb with options is at its options.
#[derive(Debug, Subcommand)]
pub(crate) enum JobVerb {
    Run(JobRunArgs),
    Start(JobStartArgs),
    Stop(JobStopArgs),
    Follow(JobFollowArgs),
    Show(JobShowArgs),
    Report(JobReportArgs),
}

/// Run a command, and record the job on all its nodes meanwhile
///
/// Starts one recorder on each node, runs the command, stops the recorders and prints what each
/// node used. The exit code is the command's. Nodes on which no recorder starts are named, and the
/// command runs all the same.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples, in a job script:
  weigh job run -- srun ./solver
  weigh job run -i 10s -o results/job -- mpirun ./solver
Without a batch system:
  weigh job run --hosts n[1-4] -- mpirun -H n1,n2,n3,n4 ./solver
")]
pub(crate) struct JobRunArgs {
    #[command(flatten)]
    pub hosts: Hosts,
    #[command(flatten)]
    pub measuring: Measuring,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Where recorders are started.
#[derive(Debug, ClapArgs)]
pub(crate) struct Hosts {
    /// Start recorders on these hosts over ssh: n1,n2 or n[01-16] or ada@n1
    ///
    /// ssh must ask for nothing. Without a batch system, the processes of the job are those that
    /// have the variable WEIGH_JOB_ID, which the command gets, and what mpirun starts on a host.
    #[arg(long, value_name = "LIST", value_parser = host_list)]
    pub hosts: Option<HostList>,
}

/// Hosts by name.
#[derive(Debug, Clone)]
pub(crate) struct HostList(pub Vec<String>);

fn host_list(text: &str) -> Result<HostList, String> {
    let hosts = node_list::expand(text).map_err(|error| error.to_string())?;
    // ssh would take it for an option.
    match hosts.iter().find(|host| host.is_empty() || host.starts_with('-')) {
        Some(host) => Err(format!("{host:?} is no name of a host")),
        None => Ok(HostList(hosts)),
    }
}

/// Start recorders on all nodes of the job, and return when they record
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example, in a job script:
  weigh job start -i 10s
  srun ./prepare && srun ./solver
  weigh job stop
")]
pub(crate) struct JobStartArgs {
    #[command(flatten)]
    pub hosts: Hosts,
    #[command(flatten)]
    pub measuring: Measuring,
}

/// Stop the recorders of the job, and print what each node used
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example, in a job script:\n  weigh job stop\n")]
pub(crate) struct JobStopArgs {
    /// The directory of the job [default: weigh-runs/job-ID]
    #[arg(value_name = "JOBDIR")]
    pub directory: Option<PathBuf>,
    #[command(flatten)]
    pub sizes: Sizes,
}

/// Record the job's processes on this node: one recorder for each node
///
/// Ends when the job's script only waits for the recorders, when the file .ipc-JOBID says FINISHED,
/// at weigh job stop, at SIGTERM, or shortly before the time limit of the job. Under SLURM the srun
/// that starts the recorders needs --overlap: without it they take the job's CPUs.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples, in a job script:
  srun --overlap -n $SLURM_JOB_NUM_NODES --ntasks-per-node 1 weigh job follow &
  srun ./solver
  wait

  mpirun --map-by node -np $NODES weigh job follow &
  mpirun ./solver
  echo FINISHED > .ipc-$PBS_JOBID
  wait
")]
pub(crate) struct JobFollowArgs {
    /// What ends the recorder
    #[arg(long, hide = true, value_enum, default_value_t)]
    pub ends_with: EndsWith,
    /// The name of this node
    #[arg(long, hide = true, value_name = "NAME")]
    pub node: Option<String>,
    #[command(flatten)]
    pub measuring: Measuring,
}

/// What ends a recorder, beside signals and the time limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum EndsWith {
    /// The job's script, when it only waits for recorders
    #[default]
    Job,
    /// A line on stdin, or its end
    Stdin,
    /// Only the file `state`
    State,
}

/// Show what each node of a job used, and all together
///
/// Also while the job runs: the recordings are read as far as they go.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  weigh job show weigh-runs/job-4711
  weigh job show weigh-runs/job-4711 --format json | jq '.nodes[].name'
  weigh job show weigh-runs/job-4711_*     an array: least, middle and most of each figure
")]
pub(crate) struct JobShowArgs {
    /// The directory of the job [default: that of the job this is part of, or the newest]; several,
    /// as of an array, are compared
    #[arg(value_name = "JOBDIR")]
    pub directories: Vec<PathBuf>,
    /// Text for people or JSON for programs
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    #[command(flatten)]
    pub sizes: Sizes,
}

/// Write a report of a job: all nodes together, each node, and which are missing
///
/// Also while the job runs. The files are job-report-ID in the directory of the job. The page is
/// one file that needs no network; the PDF is A4 and short.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  weigh job report weigh-runs/job-4711
  weigh job report weigh-runs/job-4711 -f html,md,pdf -o out
  weigh job report weigh-runs/job-4711 -f pdf -o solver.pdf
")]
pub(crate) struct JobReportArgs {
    /// The directory of the job [default: that of the job this is part of, or the newest]
    #[arg(value_name = "JOBDIR")]
    pub directory: Option<PathBuf>,
    #[command(flatten)]
    pub files: ReportFiles,
    #[command(flatten)]
    pub sizes: Sizes,
}
