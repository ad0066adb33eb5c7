//! What runs already: processes that are named, or found by their program.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;
use weigh::quantity;

use super::Measuring;

/// Follow running processes, and all they start, or a control group
///
/// Until they end, the time is over, or Ctrl-C, which ends the watching and never the watched.
/// What they used before is not counted. The summary is printed on stderr at the end.
///
/// Of a control group the kernel keeps an account: CPU time, memory and I/O of whoever is in it
/// or in a group below it are exact, however short they live. It is over when nobody is in it
/// any more.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  weigh attach 4711                   until it ends
  weigh attach 4711 4712 --for 30s    two of them, for half a minute
  weigh attach $(pgrep -f train.py)   by a word of their command line
  weigh attach --cgroup /sys/fs/cgroup/system.slice/nginx.service --for 1m
  weigh attach --cgroup /slurm/uid_1000/job_42   as /proc/PID/cgroup has it
")]
pub(crate) struct AttachArgs {
    /// The processes
    #[arg(required_unless_present = "cgroup", value_name = "PID")]
    pub pids: Vec<u32>,
    /// A control group instead: its directory, or its path as /proc/PID/cgroup has it
    #[arg(long, value_name = "PATH", conflicts_with_all = ["pids", "wait_all"])]
    pub cgroup: Option<PathBuf>,
    #[command(flatten)]
    pub until: Until,
    /// Go on until what they started has ended, too
    #[arg(long)]
    pub wait_all: bool,
    #[command(flatten)]
    pub measuring: Measuring,
}

/// Follow every process that runs some program, as they come and go
///
/// A process is told by its program (the base name of its first argument, or the script that an
/// interpreter runs), not by a word somewhere in its command line. What each program's
/// processes used is told program by program. Ends with Ctrl-C, with --for, or with the
/// process that --under names.
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
    /// Programs in this file, a name on each line; or a set that weigh knows: oasis
    #[arg(long, value_name = "FILE|SET")]
    pub tools: Option<String>,
    /// Only below this process, and until it ends
    #[arg(long, value_name = "PID")]
    pub under: Option<u32>,
    /// Take every process that mentions a name in its command line, also an editor or a grep
    #[arg(long)]
    pub anywhere: bool,
    #[command(flatten)]
    pub until: Until,
    #[command(flatten)]
    pub measuring: Measuring,
}

/// How long to follow.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct Until {
    /// Stop after this long, like 30s or 2h
    #[arg(long = "for", value_parser = quantity::parse_duration, value_name = "TIME")]
    pub time: Option<Duration>,
}
