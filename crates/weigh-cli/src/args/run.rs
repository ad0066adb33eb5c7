//! What a run is measured with, and what is told from inside of it.

use std::ffi::OsString;

use clap::{Args as ClapArgs, ValueEnum};
use weigh::model::settings::OwnCgroup;

use super::Measuring;

/// Run a command, weigh it and all it starts
///
/// The command has weigh's own terminal, input and output, gets the signals that weigh gets,
/// and its exit code is weigh's (128 and the signal's number when one killed it). The
/// summary is printed on stderr when the command has ended.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  weigh run -- python train.py
  weigh run --name nightly --label commit=abc123 -- ./build.sh
  weigh run -q --summary out.json -- ./solver      only the file, nothing on the terminal
  weigh run --wait-all -- ./start-daemon           wait for what outlives the command
  sudo weigh run --cgroup auto -- ./solver         exact peak of memory of all together
  systemd-run --user --scope -p Delegate=yes weigh run --cgroup always -- ./solver

Settings may also stand in weigh.toml (here, or in $XDG_CONFIG_HOME/weigh/) and in
WEIGH_* variables. A flag wins over a variable, a variable over a file.
")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub measuring: Measuring,
    /// Wait for descendants that outlive the command
    #[arg(long)]
    pub wait_all: bool,
    /// Give the command a control group of its own, for an exact peak of memory [default: never]
    #[arg(long, env = "WEIGH_CGROUP", hide_env_values = true, value_enum, value_name = "WHEN")]
    pub cgroup: Option<OwnGroup>,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Whether a command gets a control group of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OwnGroup {
    /// No
    Never,
    /// Where it can be made and changes nothing for the command: no limit above, no batch job
    Auto,
    /// Yes, or the run does not begin
    Always,
}

impl From<OwnGroup> for OwnCgroup {
    fn from(group: OwnGroup) -> OwnCgroup {
        match group {
            OwnGroup::Never => OwnCgroup::Never,
            OwnGroup::Auto => OwnCgroup::Auto,
            OwnGroup::Always => OwnCgroup::Always,
        }
    }
}

/// Put a phase into the running recording
///
/// With a command, the phase is what the command takes, and its exit code is weigh's.
/// Without one, the phase lasts until the next one begins.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples, in a script under weigh run:
  weigh phase load -- ./load.sh      one command is the phase
  weigh phase solve                  everything from here is the phase,
  weigh phase write                  until the next one begins
  weigh phase --end                  or until here
")]
pub(crate) struct PhaseArgs {
    /// Its name
    #[arg(required_unless_present = "end")]
    pub name: Option<String>,
    /// End the phase that the last `weigh phase NAME` began
    #[arg(long, conflicts_with_all = ["name", "command"])]
    pub end: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}
