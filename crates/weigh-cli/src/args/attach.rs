//! Options of `weigh attach` and `weigh watch`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;
use weigh::quantity;

use super::Measuring;

/// Attach to running processes and all they start, or to a cgroup
///
/// Measures until they exit, until the time is over, or until Ctrl-C, which ends only weigh.
/// Usage before attaching is not counted. The summary is printed on stderr at the end.
///
/// The kernel accounts CPU time, memory and I/O of a cgroup and of all cgroups below it: these
/// are exact, also for short-lived processes. Measuring ends when the cgroup is empty.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  weigh attach 4711                   until it exits
  weigh attach 4711 4712 --for 30s    two of them, for half a minute
  weigh attach $(pgrep -f train.py)   by a string in their command line
  weigh attach --cgroup /sys/fs/cgroup/system.slice/nginx.service --for 1m
  weigh attach --cgroup /slurm/uid_1000/job_42   as in /proc/PID/cgroup
  ")]
pub(crate) struct AttachArgs {
    /// The processes
    #[arg(required_unless_present = "cgroup", value_name = "PID", value_parser = pid)]
    pub pids: Vec<u32>,
    /// A cgroup instead: its directory, or its path as in /proc/PID/cgroup
    #[arg(long, value_name = "PATH", conflicts_with_all = ["pids", "wait_all"])]
    pub cgroup: Option<PathBuf>,
    #[command(flatten)]
    pub until: Until,
    /// Continue until all processes they started have exited, too
    #[arg(long)]
    pub wait_all: bool,
    #[command(flatten)]
    pub measuring: Measuring,
}

/// Monitor all processes of some programs, whenever they start and exit
///
/// A process is found by its program (the base name of its first argument, or the script that an
/// interpreter runs), not by a string somewhere in its command line. Usage is reported for each
/// program. Ends with Ctrl-C, with --for, or with the process that --under names.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  weigh watch fmpy gulmc                until Ctrl-C
  weigh watch --tools oasis --under $$  the tools of oasislmf that this shell starts
  weigh watch --regex '^worker-[0-9]+$' --for 10m
  weigh watch --tools names.txt         a name on each line
")]
pub(crate) struct WatchArgs {
    /// Programs, by name
    #[arg(value_name = "NAME", required_unless_present_any = ["regex", "tools"])]
    pub names: Vec<String>,
    /// Programs whose name matches this pattern
    #[arg(long, value_name = "RE")]
    pub regex: Option<String>,
    /// Programs in this file, a name on each line; or a predefined set: oasis
    #[arg(long, value_name = "FILE|SET")]
    pub tools: Option<String>,
    /// Only descendants of this process, and until it exits
    #[arg(long, value_name = "PID", value_parser = pid)]
    pub under: Option<u32>,
    /// Match names anywhere in the command line, also of an editor or a grep
    #[arg(long)]
    pub anywhere: bool,
    #[command(flatten)]
    pub until: Until,
    #[command(flatten)]
    pub measuring: Measuring,
}

/// How long to measure.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct Until {
    /// Stop after this long, like 30s or 2h
    #[arg(long = "for", value_parser = quantity::parse_duration, value_name = "TIME")]
    pub time: Option<Duration>,
}

/// The number of a process.
fn pid(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|pid| *pid > 0).ok_or_else(|| "not the number of a process".to_owned())
}
